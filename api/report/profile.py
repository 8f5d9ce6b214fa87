"""Match the emulator's counts to the plan's phases by the names of compute sets, for comparison with the predictions.

A profile lists the compute sets and copies of a program under ``steps``; they are called entries here. A *step* is a training step or a
forward pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from snnc.compiler.ir.plan import Phase, Plan
from snnc.compiler.ir.plan_json import runs, unruns
from snnc.compiler.tiles.errors import ReportOptionError


def _further_windows(part: str, code: str) -> dict[str, str]:
    """Return the entries of :data:`CODES` for the phases that test for further windows (a tree of tiles, level by level) and move them."""
    return {
        **{f"{part}: test, level {level}": rf"{code}D{level}\b" for level in (1, 2, 3)},
        f"{part}: test for further windows": rf"{code}D\b",
        f"{part}: decisions": r"decisions and barriers$",
        f"{part}: further windows": rf"{code}G\b",
        f"{part}: next windows": rf"{code}N\b",
    }


CODES: Final[Mapping[str, str]] = {
    "recompute: relays": r"F1\b",
    "recompute: windows": r"F1b\b",
    **_further_windows("recompute", "F"),
    "recompute: neurons": r"F2\b",
    "forward: initial states": r"F0 initial\b",
    "forward: relays": r"F1\b",
    "forward: windows": r"F1b\b",
    "forward: counters": r"F0 counters\b",
    **_further_windows("forward", "F"),
    "forward: neurons": r"F2\b",
    "forward: moments": r"N1\b",
    "forward: save": r"FS\b",
    "recompute: restore": r"FR\b",
    "forward: to streaming memory": r"MS\b",
    "backward: from streaming memory": r"ML\b",
    "loss: scores": r"L1 scores\b",
    "loss: adjoints": r"L1 loss\b",
    "loss: sum": r"L2\b",
    "backward: relays and source gradients": r"B1\b",
    "backward: neurons": r"B2\b",
    "backward: neurons ahead": r"B2a\b",
    "backward: reduction": r"B3\b",
    **_further_windows("backward", "B"),
    "update: private gradients": r"U1 private\b",
    "update: shared gradients": r"U1 shared\b",
    "update: squares": r"U1 squares\b",
    "update: norm of tiles": r"U1 norm of tiles\b",
    "update: norm of chips": r"U1 norm of chips\b",
    "update: norm": r"U1 norm\b",
    "update: loss scale": r"U1 loss scale\b",
    "update: gradients": r"U1 gradients\b",
    "update: rates": r"U1 rates\b",
    "update: optimiser": r"U1\b",
    "update: replicas": r"U2 replicas\b",
    "update: shared numbers": r"U2 shared\b",
    "update: weight rows packed": r"U2 rows packed\b",
    "update: weight copies": r"U2 weights\b",
}
"""Pattern that matches the names of a phase's compute sets and copies in the emitted program, by name of the phase.

The names begin with F (forward), B (backward), L (loss), U (update), N (normalisation) or M (streaming memory). An entry belongs to the
first phase that matches, with two exceptions: phases of the recomputation run the compute sets of the forward pass, so both match the same
entries; and the decisions (whether further windows follow) have one set of entries, whose count is divided among their phases."""
BY_DATA: Final = (": decisions", ": further windows", ": next windows", "backward: reduction")
"""Suffixes of phases whose number of runs depends on the data."""
COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("compute_cycles_busiest",),
    "sync": ("sync_cycles", "control_cycles"),
    "exchange": ("exchange_cycles", "link_cycles", "remote_cycles"),
}
"""Numbers of an entry that are added to the cycles of each kind."""
TILES: Final = "tiles_in_all"
"""Key of the numbers per tile, run-length encoded, in a stored profile."""


@dataclass(frozen=True)
class Emulation:
    """Cycles and memory counted by the emulator, for one training step or forward pass.

    `phases` contains the cycles of all runs, by phase and by kind ("compute", "sync", "exchange"); `complete` is whether it includes every
    phase of the plan that :data:`CODES` names. `compute` and `memory` are the compute cycles and the peak bytes of each tile (None if
    the profile does not contain them), and `fullest` the bytes of the fullest tile in each phase.
    """

    phases: Mapping[str, Mapping[str, float]]
    complete: bool
    compute: tuple[int, ...] | None
    memory: tuple[int, ...] | None
    fullest: Mapping[str, int] = field(default_factory=dict)

    @property
    def cycles(self) -> float:
        """Total cycles of the included phases."""
        return sum(sum(kinds.values()) for kinds in self.phases.values())


def read_profile(plan: Plan, profile: Mapping[str, Any] | None) -> Emulation | None:
    """Return the emulator's counts for one step of `plan`; a profile may cover several steps."""
    if profile is None:
        return None
    steps = profile.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) and "name" in step for step in steps):
        raise ReportOptionError("the profile contains no list 'steps' of named steps; use a file that the emulator wrote.")
    entries = _entries_of(plan, steps)
    ratios = [max(_number(entry, "executions") for entry in ran) / p.runs for p, ran in entries.values() if not p.name.endswith(BY_DATA)]
    repeats = min((ratio for ratio in ratios if ratio > 0), default=1.0)  # steps of the plan that the profile covers
    phases = {name: _cycles(plan, phase, ran, repeats) for name, (phase, ran) in entries.items()}
    complete = bool(phases) and all(p.name in phases for p in plan.phases if p.name in CODES)
    tiles = profile.get(TILES, {})
    compute = _tiles(plan, tiles, "compute_cycles")
    return Emulation(
        phases,
        complete,
        None if compute is None else tuple(round(value / repeats) for value in compute),
        _tiles(plan, tiles, "memory"),
        _fullest(plan, profile.get("memory_over_time", ())),
    )


def _entries_of(plan: Plan, entries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Phase, list[Mapping[str, Any]]]]:
    """Return each phase with its entries that ran; if its number of runs depends on the data, also with entries that never ran."""
    by_phase: dict[str, tuple[Phase, list[Mapping[str, Any]]]] = {}
    unmatched = list(entries)
    for phase in (p for name in CODES for p in plan.phases if p.name == name):
        matching = [entry for entry in unmatched if re.match(CODES[phase.name], str(entry["name"]).rsplit("/", 1)[-1])]
        ran = [entry for entry in matching if _number(entry, "executions") > 0]
        if ran or (matching and phase.name.endswith(BY_DATA)):
            by_phase[phase.name] = phase, ran or matching
        if phase.part != "recompute" and not phase.name.endswith(": decisions"):
            unmatched = [entry for entry in unmatched if entry not in matching]
    return by_phase


def _cycles(plan: Plan, phase: Phase, ran: Sequence[Mapping[str, Any]], repeats: float) -> dict[str, float]:
    """Return the cycles of all runs of a phase in one step, by kind.

    If the number of runs depends on the data, phases with the same compute sets share the count in proportion to their predicted runs.
    """

    def counted(entry: Mapping[str, Any], names: Sequence[str]) -> float:
        if phase.name.endswith(BY_DATA):
            return sum(_number(entry, name) for name in names) * part / repeats
        return phase.runs * sum(_number(entry, name) for name in names) / _number(entry, "executions")

    part = phase.runs / sum(p.runs for p in plan.phases if CODES.get(p.name) == CODES[phase.name])
    return {kind: sum(counted(entry, names) for entry in ran) for kind, names in COUNTED.items()}


def _fullest(plan: Plan, points: object) -> dict[str, int]:
    """Return the bytes of the fullest tile in each phase; `points` (``memory_over_time``) are the operations of the engine's programs.

    A step runs the engine's last program, in plans with the phase "update: gradients" also the two programs before it, and in plans with
    the phase "forward: moments" one more. If several points match a phase, the first is in the forward pass, the last in the recomputation.
    """
    if not isinstance(points, list) or not points:
        return {}
    if not all(isinstance(p, Mapping) and isinstance(p.get("bytes"), int) and "name" in p and "program" in p for p in points):
        raise ReportOptionError(
            "the profile's 'memory_over_time' is not a list of named points with bytes; use a file that the emulator wrote."
        )
    # The last point, after all programs, is the data that stay live between two runs.
    last = points[-1]["program"] - 1
    names = {p.name for p in plan.phases}
    programs = range(last - 2 * ("update: gradients" in names) - ("forward: moments" in names), last + 1)
    step = [point for point in points if point["program"] in programs]
    fullest: dict[str, int] = {}
    for phase in (p for name in CODES for p in plan.phases if p.name == name):
        matching = [point for point in step if re.match(CODES[phase.name], str(point["name"]).rsplit("/", 1)[-1])]
        if matching:
            again = phase.part == "recompute"
            fullest[phase.name] = matching[-1 if again else 0]["bytes"]
            step = step if again else [point for point in step if point not in matching]
    return fullest


def slim(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return `profile` as a project stores it: of the numbers per tile, only compute cycles and peak bytes, run-length encoded."""
    stored = {name: value for name, value in profile.items() if name != "per_tile"}
    per_tile = profile.get("per_tile")
    if isinstance(per_tile, Mapping):
        peak = per_tile.get("peak", per_tile["memory"])["total"]
        stored[TILES] = {"compute_cycles": runs(per_tile["compute_cycles"]), "memory": runs(peak)}
    return stored


def _tiles(plan: Plan, tiles: object, name: str) -> tuple[int, ...] | None:
    coded = tiles.get(name) if isinstance(tiles, Mapping) else None
    if coded is None:
        return None
    if not isinstance(coded, list) or len(coded) % 2 or not all(isinstance(n, int) and n >= 0 for n in coded):
        raise ReportOptionError(f"the profile's {name!r} of each tile is not a list of runs; use a file that the emulator wrote.")
    tiles = sum(coded[1::2])
    if tiles > plan.target.tiles:
        raise ReportOptionError(f"the profile has {tiles:,} tiles, but the plan has {plan.target.tiles:,}; run the project again.")
    return unruns([*coded, 0, plan.target.tiles - tiles])


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name, 0)
    return float(value) if isinstance(value, int | float) else 0.0
