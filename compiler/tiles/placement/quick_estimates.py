"""Results of quick estimates, from which full plans of the same request start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines.target import Target, differ_in_clock_only
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.placement.search import Search

HOPELESS: Final = 1.15
"""Quick estimates that are slower than another by this factor are not followed up: wrong estimates are too low."""
Populations: TypeAlias = tuple[tuple[int, ...], tuple[tuple[str, int], ...]]
"""Sizes of the machine and of a step, and id and neurons of each population."""


@dataclass(frozen=True, eq=False)
class Rival:
    """The best placement of a full plan, and its cycles."""

    populations: Populations
    placement: Placement
    cycles: float


@dataclass(frozen=True, eq=False)
class QuickEstimate:
    """A quick estimate: its arguments, its searches, and the best placements of several layouts that are worth local search."""

    asked: Mapping[str, Any]
    found: list[Search]
    several: list[Search]


class Clocks:
    """Plans of machines of one chip: another that differs in its clock alone has the same, where nothing goes at a rate a second.

    Only the host and streaming memory do. What the host sends beside a step is no part of these plans, and those with segments, which
    streaming memory may hold, are not kept.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Mapping[str, Any], Plan]] = []

    def plan(self, asked: Mapping[str, Any], target: Target) -> Plan | None:
        """Return the plan for `target` of what was asked for, at this or another clock; None where it is not known."""
        found = (plan for other, plan in self._known if differ_in_clock_only(plan.target, target) and _same(_at(other, target), asked))
        return next((replace(plan, target=target) for plan in found), None)

    def keep(self, asked: Mapping[str, Any], plan: Plan) -> None:
        """Remember a plan."""
        if not plan.segment:
            self._known.append((asked, plan))


def _at(asked: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    return {**asked, "request": {**asked["request"], "target": target}}


class QuickEstimates:
    """Searches of quick estimates of several programs, and the fastest full plan so far, shared by callers that plan several variants."""

    def __init__(self, clocks: Clocks | None = None) -> None:
        self.clocks = clocks
        self._found: list[QuickEstimate] = []
        self._cycles: dict[Populations, float] = {}
        self.rivals: list[Rival] = []

    def keep(self, estimate: QuickEstimate) -> None:
        """Remember a quick estimate."""
        self._found.append(estimate)

    def take(self, asked: Mapping[str, Any]) -> QuickEstimate | None:
        """Return the quick estimate with these arguments, and forget it; None if there was none."""
        for place, estimate in enumerate(self._found):
            if _same(asked, estimate.asked):
                del self._found[place]
                return estimate
        return None

    def saw(self, populations: Populations, cycles: float) -> None:
        """Remember the cost of the best placement of a quick estimate."""
        self._cycles[populations] = min(cycles, self.fastest(populations))

    def fastest(self, populations: Populations) -> float:
        """Cycles of the fastest quick estimate of a program with these populations."""
        return self._cycles.get(populations, math.inf)

    def rival(self, populations: Populations) -> Rival | None:
        """Return the fastest plan of a program with these populations."""
        return min((rival for rival in self.rivals if rival.populations == populations), key=lambda rival: rival.cycles, default=None)


def _same(one: Any, other: Any) -> bool:
    """Whether two arguments are the same: arrays and programs are compared by identity."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return type(one) is type(other) and bool(one == other)
