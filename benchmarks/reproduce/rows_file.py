"""The file of results: one JSON object per line, appended when a row ends, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from snnc.errors import BenchError

FILE: Final = "rows.jsonl"


class RowsFile:
    """Results by row key, on disk and in memory. With `resume`, a file of an earlier run is continued, without its failed rows.

    Raise BenchError if there are results and `resume` is false, or if the file cannot be read or written.
    """

    def __init__(self, folder: Path, resume: bool) -> None:
        self.path = folder / FILE
        self.results: dict[str, Mapping[str, Any]] = {}
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise BenchError(f"{str(self.path)!r} cannot be read: {error}.") from None
        if text and not resume:
            raise BenchError(
                f"{str(self.path)!r} contains the results of an earlier run; add --resume to continue it, or name another folder."
            )
        for line in text.splitlines():
            # The last line of a run that was killed may be incomplete.
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                if "failed" not in entry["result"]:
                    self.results[entry["row"]] = entry["result"]
        self._end_line = bool(text) and not text.endswith("\n")

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Append one result and flush it to disk."""
        self.results[key] = result
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(("\n" if self._end_line else "") + json.dumps({"row": key, "result": dict(result)}, allow_nan=False) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise BenchError(f"{str(self.path)!r} cannot be written: {error.strerror or error}.") from None
        self._end_line = False
