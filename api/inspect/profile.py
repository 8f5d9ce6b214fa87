"""Emulated cycles beside the predicted ones: reads the emulator's profile by the names of its compute sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.compiler.mapping.errors import ReportOptionError

CODES: Final[Mapping[str, tuple[str, ...]]] = {
    "forward: relays": ("F1",),
    "forward: neurons": ("F2",),
    "loss: adjoints": ("L1",),
    "loss: sum": ("L2",),
    "backward: relays and source gradients": ("B1",),
    "backward: neurons": ("B2",),
    "backward: reduction": ("B3",),
    "update: optimiser": ("U1",),
    "update: weight copies": ("U2",),
}
"""Name of a phase to the beginning of the names of its compute sets in the emitted program."""


def measured_phases(profile: Mapping[str, Any] | None) -> dict[str, dict[str, float]]:
    """Return phase name -> ``{"runs", "compute", "sync", "exchange"}``, cycles summed over all runs that the profile holds.

    Raises
    ------
    ReportOptionError
        The profile has no list of steps.
    """
    if profile is None:
        return {}
    steps = profile.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) and "name" in step for step in steps):
        raise ReportOptionError("the profile holds no list 'steps' of named steps; use what the emulator wrote.")
    found: dict[str, dict[str, float]] = {}
    for phase, codes in CODES.items():
        mine = [step for step in steps if str(step["name"]).split(" ")[0].split("/")[-1] in codes]
        if mine:
            found[phase] = {
                "runs": max(_number(step, "executions") for step in mine),
                "compute": sum(_number(step, "compute_cycles_busiest", "computeCyclesBusiest") for step in mine),
                "sync": sum(_number(step, "sync_cycles", "syncCycles") + _number(step, "control_cycles", "controlCycles") for step in mine),
                "exchange": sum(
                    _number(step, "exchange_cycles", "exchangeCycles") + _number(step, "link_cycles", "linkCycles") for step in mine
                ),
            }
    return found


def _number(step: Mapping[str, Any], *names: str) -> float:
    value = next((step[name] for name in names if name in step), 0)
    return float(value) if isinstance(value, int | float) else 0.0
