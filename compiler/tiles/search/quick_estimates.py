"""Caches of quick estimates, from which full plans of the same requests start, and of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines.target import Target, differ_in_clock_only
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.search.search import Search

MAX_SLOWDOWN: Final = 1.15
"""Quick estimates slower than the fastest one for the same populations by more than this factor keep their estimated cycles. Exact cycles,
for which the entries of indexed connections are counted, tend to be even higher."""
Populations: TypeAlias = tuple[tuple[int, ...], tuple[tuple[str, int], ...]]
"""Sizes of the machine and of a training step, and id and number of neurons of each population."""


@dataclass(frozen=True, eq=False)
class Rival:
    """The best placement of a full plan for a set of populations, and its cycles."""

    populations: Populations
    placement: Placement
    cycles: float


@dataclass(frozen=True, eq=False)
class QuickEstimate:
    """A quick estimate: its arguments, all of its searches, and the searches that are worth refining (`candidates`)."""

    arguments: Mapping[str, Any]
    searches: list[Search]
    candidates: list[Search]


class Clocks:
    """Cache of plans, which are reused for machines that differ only in clock frequency, as in an exploration.

    Plans count cycles, so they depend on the clock only through the rates of streaming memory and of the host. Plans with segments, which
    may use streaming memory, are therefore not cached. The host's rate decides which relays store bits, so the arguments name them.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Mapping[str, Any], Plan]] = []

    def plan(self, arguments: Mapping[str, Any], target: Target) -> Plan | None:
        """Return the plan cached for these arguments and for `target` at any clock frequency; None if none is cached."""
        same_machine = ((other, plan) for other, plan in self._known if differ_in_clock_only(plan.target, target))
        on_target = (({**other, "request": {**other["request"], "target": target}}, plan) for other, plan in same_machine)
        return next((replace(plan, target=target) for other, plan in on_target if _same(other, arguments)), None)

    def add(self, arguments: Mapping[str, Any], plan: Plan) -> None:
        """Cache a plan."""
        if not plan.segment:
            self._known.append((arguments, plan))


class QuickEstimates:
    """Cache of quick estimates and of the fastest full plans, shared by callers that plan several variants of a program."""

    def __init__(self, clocks: Clocks | None = None) -> None:
        self.clocks = clocks
        self._estimates: list[QuickEstimate] = []
        self._cycles: dict[Populations, float] = {}
        self.rivals: list[Rival] = []

    def add(self, estimate: QuickEstimate) -> None:
        """Cache a quick estimate."""
        self._estimates.append(estimate)

    def pop(self, arguments: Mapping[str, Any]) -> QuickEstimate | None:
        """Remove and return the quick estimate with these arguments; None if none is cached."""
        for place, estimate in enumerate(self._estimates):
            if _same(arguments, estimate.arguments):
                return self._estimates.pop(place)
        return None

    def record(self, populations: Populations, cycles: float) -> None:
        """Record the cycles of the best placement of a quick estimate."""
        self._cycles[populations] = min(cycles, self.fastest(populations))

    def fastest(self, populations: Populations) -> float:
        """Return the cycles of the fastest quick estimate of a program with these populations; infinite without one."""
        return self._cycles.get(populations, math.inf)

    def rival(self, populations: Populations) -> Rival | None:
        """Return the fastest full plan of a program with these populations; None without one."""
        return min((rival for rival in self.rivals if rival.populations == populations), key=lambda rival: rival.cycles, default=None)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return type(one) is type(other) and bool(one == other)
