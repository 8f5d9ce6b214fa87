"""The fastest variant of an engine on a workload, found by a trial and stored in the cache folder for later runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from snnc.backends.toolchain.compilers import digest
from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.workloads import Workload
from snnc.compiler.errors import SnncError
from snnc.compiler.files.cache import cache_dir, read_checked, write_checked

FASTEST: Final = "fastest"
ALL: Final = "all"
WAYS: Final = (FASTEST, ALL)
"""Choices of --ways: the fastest variant of each engine, or all variants."""
TRIAL: Final = "a trial"
STORED_TRIAL: Final = "a trial of an earlier run"
ONLY: Final = "being the only one"
"""Reasons for a choice, in the table."""
_FOLDER: Final = "ways"
_FORMAT: Final = 1
_LARGEST: Final = 1_000_000
"""Maximum size of a stored choice, in bytes."""


@dataclass(frozen=True)
class FastestWay:
    """The chosen variant of an engine."""

    way: str
    reason: str
    """The reason for the choice."""
    trial_ms: Mapping[str, float]
    """Milliseconds of a training step in the trial, by variant."""
    left_out: Mapping[str, str]
    """Reasons why other variants were left out, by variant."""

    def to_data(self) -> dict[str, Any]:
        """Return the choice as JSON data, for the row of a result."""
        return {"by": self.reason, "trial_ms": dict(self.trial_ms), "left_out": dict(self.left_out)}


def identity(entry: Entry, workload: Workload, versions: Mapping[str, str], machine: Sequence[str], seconds: float) -> dict[str, Any]:
    """Return everything that a choice depends on, as JSON data.

    `versions` are those of the engine's packages, `machine` has the values of :data:`~snnc.benchmarks.cuda.resuming.SAME`, and `seconds` is
    the time limit of a first step.
    """
    line = {"engine": entry.engine, "mode": entry.mode, "ways": list(entry.variants), "versions": dict(versions)}
    return line | {"workload": workload.to_data(), "machine": list(machine), "first_step_s": seconds}


def load_choice(identity_data: Mapping[str, Any]) -> FastestWay | None:
    """Return the choice that an earlier run stored for an :func:`identity`; None if it does not exist or cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, SnncError):
        data = json.loads(read_checked(cache_dir() / _FOLDER / _name(identity_data), _LARGEST) or b"")
        times = {str(way): float(ms) for way, ms in data["trial_ms"].items()}
        reasons = {str(way): str(reason) for way, reason in data["left_out"].items()}
        if (data["format"], data["of"]) == (_FORMAT, identity_data) and data["way"] in identity_data["ways"]:
            return FastestWay(data["way"], STORED_TRIAL, times, reasons)
    return None


def store_choice(identity_data: Mapping[str, Any], choice: FastestWay) -> None:
    """Store a choice for later runs, if the cache can be written."""
    data = {"format": _FORMAT, "of": identity_data, "way": choice.way, "trial_ms": dict(choice.trial_ms), "left_out": dict(choice.left_out)}
    with suppress(OSError, SnncError):
        write_checked(cache_dir() / _FOLDER / _name(identity_data), json.dumps(data, allow_nan=False).encode())


def _name(identity_data: Mapping[str, Any]) -> str:
    return f"{digest([json.dumps(identity_data, sort_keys=True)])}.json"
