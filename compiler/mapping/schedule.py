"""When each population runs: the wavefront of Leiserson and Saxe's retiming (1991) on the graph of populations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.compiler.mapping.errors import NoScheduleError
from snnc.compiler.mapping.network import Network

INPUT_STAGE: Final = -1
"""Inputs present step t from iteration ``interval * t`` on: one stage before the first population."""


@dataclass(frozen=True)
class Arc:
    """A connection between two populations that carries `delay` steps."""

    source: str
    target: str
    delay: int


@dataclass(frozen=True)
class Schedule:
    """Population p runs step t in iteration ``interval * t + stages[p]``; `lags` count iterations on each connection, by its id."""

    interval: int
    stages: Mapping[str, int]
    lags: Mapping[str, int]

    def iterations(self, steps: int) -> int:
        """Iterations of a sequence of `steps` steps."""
        return self.interval * (steps - 1) + max(self.stages.values(), default=0) + 1


def find_stages(names: Sequence[str], arcs: Sequence[Arc]) -> tuple[int, dict[str, int]]:
    """Return the smallest interval R >= 1 and, for it, the smallest stages >= 0 with ``R*delay + stage[target] - stage[source] >= 1``.

    A larger R never breaks a constraint, and R = number of populations satisfies every cycle that holds a delay, so R is
    found by bisection.

    Raises
    ------
    NoScheduleError
        A cycle holds no delay.
    """
    low, high = 1, max(1, len(names))
    best = _longest_paths(names, arcs, high)
    if best is None:
        loop = ", ".join(sorted({a.target for a in arcs if a.delay == 0}))
        raise NoScheduleError(f"a cycle of connections among {loop} holds no delay; give one of them a delay of at least 1 step.")
    while low < high:
        middle = (low + high) // 2
        stages = _longest_paths(names, arcs, middle)
        if stages is None:
            low = middle + 1
        else:
            high, best = middle, stages
    return high, best


def _longest_paths(names: Sequence[str], arcs: Sequence[Arc], interval: int) -> dict[str, int] | None:
    """Bellman-Ford on edge lengths ``1 - interval * delay``; None when a cycle is longer than 0."""
    stages = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        changed = False
        for arc in arcs:
            reached = stages[arc.source] + 1 - interval * arc.delay
            if reached > stages[arc.target]:
                stages[arc.target] = reached
                changed = True
        if not changed:
            return stages
    return None


def make_schedule(network: Network) -> Schedule:
    """Find the schedule of a network; inputs have stage -1."""
    names = [layer.id for layer in network.layers]
    arcs = [Arc(link.source.owner, link.target, link.delay) for link in network.links if not link.source.external]
    interval, stages = find_stages(names, arcs)
    lags = {link.id: interval * link.delay + stages[link.target] - stages.get(link.source.owner, INPUT_STAGE) for link in network.links}
    return Schedule(interval, stages, lags)
