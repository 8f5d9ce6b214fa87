"""Rows from an earlier run's file, which need not be measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.suite import named
from snnc.benchmarks.cpu.workloads import Workload
from snnc.errors import BenchError

SAME: Final = ("GPU", "CPU", "threads", "times")
"""Properties of the machine and run that must be equal for rows of two runs to be in one file."""
Row = dict[str, Any]


def read_rows(path: Path, machine: Mapping[str, str]) -> tuple[list[Row], list[Row]]:
    """Return the rows of a file, and the lines of the comparison that it records as left out; both are empty if the file does not exist.

    Raise BenchError if the file does not contain results of this suite, or they are from another machine.
    """
    try:
        data = json.loads(path.read_bytes())
        rows, left_out, file_machine = list(data["rows"]), list(data["left_out"]), dict(data["machine"])
        valid = all(key_of(row) and isinstance(row["versions"], dict) for row in rows) and all(key_of(one) for one in left_out)
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        valid, rows, left_out, file_machine = False, [], [], {}
    if not valid:
        raise BenchError(f"{str(path)!r} contains no rows of this suite to continue; name another file.")
    other = next((key for key in SAME if file_machine.get(key) != machine.get(key)), None)
    if other is not None:
        raise BenchError(
            f"the rows of {str(path)!r} were measured elsewhere ({other} {file_machine.get(other)}, not {machine.get(other)}); "
            "name another file."
        )
    return rows, left_out


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that identify a line of the comparison."""
    return tuple(row[key] for key in ("workload", "density", "engine", "mode"))


def was_measured(rows: Sequence[Mapping[str, Any]], workload: Workload, entry: Entry, versions: Mapping[str, str], ways: str) -> bool:
    """Return whether a line was measured before, with the same sizes, versions and choice of variants."""
    expected = named(workload, entry) | {"batch": workload.batch, "steps": workload.steps, "versions": dict(versions), "ways": ways}
    return any(all(row.get(key) == value for key, value in expected.items()) for row in rows)


def without(rows: Sequence[Row], workload: Workload, entry: Entry) -> list[Row]:
    """Return `rows` without those of the line of `workload` and `entry`."""
    return [row for row in rows if key_of(row) != key_of(named(workload, entry))]
