"""The file of results: one JSON object per line, appended when a row ends, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from snnc.errors import BenchError

FILE: Final = "rows.jsonl"


class RowsFile:
    """Results by row key, on disk and in memory. With `resume`, a file of an earlier run is continued, without its failed rows.

    Raises
    ------
    BenchError
        There are results and `resume` is false, or the file cannot be read or written.
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
            entry = _parsed(line)
            if entry is not None and "failed" not in entry[1]:
                self.results[entry[0]] = entry[1]
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


def _parsed(line: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the key and result of a line; None if the line is invalid, like the incomplete last line of a run that was killed."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if isinstance(entry, dict) and isinstance(entry.get("row"), str) and isinstance(entry.get("result"), dict):
        return entry["row"], entry["result"]
    return None
