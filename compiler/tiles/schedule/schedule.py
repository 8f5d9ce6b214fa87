"""Wavefront schedule of the populations, found by retiming their graph (Leiserson and Saxe, 1991).

In one iteration, populations process different steps: each runs a step one or more iterations after the spikes that it reads were computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.compiler.tiles.errors import NoScheduleError
from snnc.compiler.tiles.mapped.network import MappedNetwork

INPUT_STAGE: Final = -1
"""Stage of the inputs, one before that of the first population: their data of step t is available from iteration ``interval * t`` on."""


@dataclass(frozen=True)
class Arc:
    """A connection between two populations with a delay of `delay` steps."""

    source: str
    target: str
    delay: int


@dataclass(frozen=True)
class TileSchedule:
    """Population p runs step t in iteration ``interval * t + stages[p]``; `lags` maps each connection's id to its lag in iterations."""

    interval: int
    stages: Mapping[str, int]
    lags: Mapping[str, int]
    latency: int = 1
    """Minimum number of iterations until a population's spikes reach their readers."""

    def iterations(self, steps: int) -> int:
        """Return the number of iterations that a sequence of `steps` steps takes."""
        return self.interval * (steps - 1) + max(self.stages.values(), default=0) + 1


def find_stages(names: Sequence[str], arcs: Sequence[Arc]) -> tuple[int, dict[str, int]]:
    """Return the smallest interval R >= 1 and, for it, the smallest stages >= 0 with ``R*delay + stage[target] - stage[source] >= 1``.

    If an R satisfies the constraints, so does a larger one, and R = number of populations does if every cycle has a delay. So bisection
    finds the smallest.
    A cycle without a delay raises a NoScheduleError.
    """
    low, high = 1, max(1, len(names))
    best = stages_of(names, arcs, high)
    if best is None:
        loop = ", ".join(sorted({a.target for a in arcs if a.delay == 0}))
        raise NoScheduleError(f"a cycle of connections among {loop} contains no delay; give one connection a delay of at least 1 step.")
    while low < high:
        middle = (low + high) // 2
        stages = stages_of(names, arcs, middle)
        if stages is None:
            low = middle + 1
        else:
            high, best = middle, stages
    return high, best


def stages_of(names: Sequence[str], arcs: Sequence[Arc], interval: int, latency: int = 1) -> dict[str, int] | None:
    """Return the smallest stages with lags of at least `latency`, by the Bellman-Ford algorithm; None if a cycle makes this impossible."""
    stages = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        before = dict(stages)
        for arc in arcs:
            stages[arc.target] = max(stages[arc.target], stages[arc.source] + latency - interval * arc.delay)
        if stages == before:
            return stages
    return None


def make_schedule(network: MappedNetwork) -> TileSchedule:
    """Find the schedule of a network; inputs have stage -1."""
    interval, stages = find_stages(*_graph(network))
    return TileSchedule(interval, stages, _lags(network, interval, stages))


FUSED: Final = 2
"""Latency of a forward pass in which relays search for the spikes of one iteration while neurons compute the next."""


def fused_schedule(network: MappedNetwork, schedule: TileSchedule) -> TileSchedule | None:
    """Return the schedule of the forward pass of `network` with the latency :data:`FUSED`.

    Return None if a cycle needs a larger interval, or if connections that share a bus would get different lags.
    """
    stages = stages_of(*_graph(network), schedule.interval, FUSED)
    if stages is None:
        return None
    lags = _lags(network, schedule.interval, stages)
    shared = {(link.source, schedule.lags[link.id]): lags[link.id] for link in network.links}
    if any(shared[link.source, schedule.lags[link.id]] != lags[link.id] for link in network.links):
        return None
    return TileSchedule(schedule.interval, stages, lags, FUSED)


def _graph(network: MappedNetwork) -> tuple[list[str], list[Arc]]:
    arcs = [Arc(link.source.owner, link.target, link.delay) for link in network.links if not link.source.external]
    return [layer.id for layer in network.layers], arcs


def _lags(network: MappedNetwork, interval: int, stages: Mapping[str, int]) -> dict[str, int]:
    """Return the lag of each connection: the number of iterations from a source's step to the step that reads it."""
    return {link.id: interval * link.delay + stages[link.target] - stages.get(link.source.owner, INPUT_STAGE) for link in network.links}
