"""Over which tiles the samples of each source are dealt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cost import CodeletCost, worker_cycles
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, mask_words, split
from snnc.compiler.mapping.network import Source
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.schedule import INPUT_STAGE
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.timeline import Sums
from snnc.compiler.plan import Relay


def relay_words(problem: Problem, source: Source, ranges: Mapping[str, TileRange]) -> int:
    """Mask words of one sample of `source`; 0 for inputs and values."""
    if source.external or source.kind != "spikes":
        return 0
    where = ranges[source.owner]
    return int(mask_words(where.neurons, where.columns).sum())


@dataclass(frozen=True)
class RelayWork:
    """Worker cycles of one run of a relay: always, and while a bus shows a step or its source has finished one."""

    always: Any
    varying: Any

    @property
    def cycles(self) -> Any:
        """All of it."""
        return self.always + self.varying


def relay_work(problem: Problem, source: Source, words: int, samples: Any, *, compact: bool) -> RelayWork:
    """Expected worker cycles of a relay with `samples` samples (a number or an array), the start of its vertex included."""
    buses, start = problem.buses_of(source), problem.target.vertex_start_cycles
    compacts = compact and not source.external
    if source.kind != "spikes":
        cost = problem.costs["relay_values"]
        size = samples * source.width
        always = worker_cycles(cost, samples=samples, elements=size * len(buses))
        return RelayWork(start + always, cost.element * size * compacts)
    cost = problem.costs["relay_events" if compacts else "relay_input"]
    varying = cost.element * sum(_shown(problem, bus, forward=compact) for bus in buses)
    if compacts:
        near = source.width * problem.near[source.buffer] if source in problem.windowed else None
        varying += compacting(problem, source, words, problem.events(source), near)
    return RelayWork(start + worker_cycles(cost, samples=samples), samples * varying)


def _shown(problem: Problem, bus: Bus, *, forward: bool) -> float:
    """Words of ids that a relay copies into the windows of a bus: backward, what takes gradient and what came back."""
    if bus.id in problem.windowed_buses and not forward:
        return 2 * copied_words(problem.near_events(bus), bus.source.width)
    return copied_words(min(problem.events(bus.source), bus.capacity), bus.source.width)


def compacting(problem: Problem, source: Source, words: int, spikes: Any, near: Any | None) -> Any:
    """Worker cycles of compacting a sample: the mask of `spikes`, and that of neurons which only take gradient (`near` counts both)."""
    cost = problem.costs["relay_events"]
    if near is None:
        return _mask(cost, source, words, spikes) + cost.id * spikes
    room = max(bus.capacity for bus in problem.buses_of(source)) if problem.mode == "drop" else source.width
    ids = np.minimum(spikes, room) + near - spikes
    return _mask(cost, source, words, spikes) + _mask(cost, source, words, near - spikes) + cost.id * ids


def _mask(cost: CodeletCost, source: Source, words: int, bits: Any) -> Any:
    return cost.word * ceil_div(words, 4) + cost.word_hit * _hits(source, words, bits)


def copied_words(ids: float, width: int) -> float:
    """Expected 32-bit words of `ids` ids: two 16-bit ids each, the last half full every second time."""
    return ids if width > 1 << 16 else (ids + 0.5) / 2 if ids > 0.5 else ids


def whole_id_words(ids: Ints, width: int) -> Ints:
    """32-bit words of known numbers of ids."""
    return ids if width > 1 << 16 else (ids + 1) // 2


def _hits(source: Source, words: int, events: Any) -> Any:
    """Expected groups of four mask words with a spike, of independent neurons; what is left of the words is never skipped."""
    whole, rest = divmod(words, 4)
    return whole * (1.0 - (1.0 - events / source.width) ** (4 * source.width / words)) + (rest > 0)


def relay_cycles(problem: Problem, source: Source, words: int, relays: Sequence[tuple[int, int]], *, compact: bool) -> Floats:
    """[relays, iterations]: worker cycles of the relays of a source, the starts of their vertices included; `compact` as in forward.

    Of each of `relays`, its first sample and their number.
    """
    timeline, stage = problem.timeline, problem.schedule.stages.get(source.owner, INPUT_STAGE)
    first, count = np.array(relays, dtype=np.int64).T
    work = relay_work(problem, source, words, count, compact=compact)
    finished = timeline.active(stage + 1) if compact and not source.external else np.zeros(1)
    if source.kind != "spikes":
        found: Floats = np.asarray(work.always, dtype=np.float64)[:, None] + np.asarray(work.varying)[:, None] * finished
        return found
    moved = sum(_moved(problem, bus, forward=compact).over(first, count) for bus in problem.buses_of(source))
    found = work.always[:, None] + problem.costs["relay_input"].element * moved
    if compact and not source.external:
        found = found + timeline.of_source(f"compacting {words}", source, lambda: _compacting(problem, source, words)).over(first, count)
    return found


def _compacting(problem: Problem, source: Source, words: int) -> Any:
    spikes = problem.timeline.spikes(source)
    near = problem.timeline.near(source) if source in problem.windowed else None
    stage = problem.schedule.stages[source.owner]
    return problem.timeline.placed(compacting(problem, source, words, spikes, near), stage + 1)


def _moved(problem: Problem, bus: Bus, *, forward: bool) -> Sums:
    """Words of ids that a relay copies into the windows of a bus in each iteration."""
    timeline, width, first = problem.timeline, bus.source.width, problem.timeline.first(bus)
    if forward or bus.id not in problem.windowed_buses:
        shown = np.minimum(timeline.kept(bus), bus.capacity)
        return timeline.sums("words", bus, lambda: timeline.placed(whole_id_words(shown, width), first))

    def both() -> Any:
        words = whole_id_words(timeline.entries(bus), width)
        return timeline.placed(words, first) + timeline.placed(words, first - 1)

    return timeline.sums("near words", bus, both)


def _share(problem: Problem, source: Source, words: int, most: int, batch: int) -> int:
    """Samples of one relay, at most `most` of `batch`: few make relays fast, many leave readers fewer fragments."""
    buses = problem.buses_of(source)
    directions = (True, False) if problem.training else (True,)

    each = np.arange(1, most + 1)
    compute = sum(problem.target.workers * relay_work(problem, source, words, each, compact=forward).cycles for forward in directions)
    fragments = len(directions) * len(buses) * (2 if source.kind == "spikes" else 1) * ceil_div(batch, each)
    return 1 + int(np.argmin(compute + fragments * problem.target.fragment_cycles))


@dataclass(frozen=True)
class Room:
    """Where relays of the samples ``[sample, sample + samples)`` may lie: the tiles ``[first, stop)``."""

    first: int
    stop: int
    sample: int
    samples: int


def deal_relays(
    problem: Problem, held: Ints, rooms: Mapping[Source, Sequence[Room]], ranges: Mapping[str, TileRange]
) -> dict[Source, tuple[Relay, ...]]:
    """Deal the samples of every source over the tiles that hold least; adds what they take to `held`.

    A relay takes as many samples as make the step fastest, fewer when they would fill more than half of what a tile has left.
    Sources are dealt largest first; a tile takes at most one relay of a source. Ties go to the lowest tile.

    Parameters
    ----------
    problem
        What is mapped.
    held
        Bytes that each tile holds already; changed.
    rooms
        Tiles to use, by source, in the order of samples.
    ranges
        Tile ranges of the populations.
    """
    found: dict[Source, tuple[Relay, ...]] = {}
    for source, size in sorted(problem.store_sizes.items(), key=lambda item: (-item[1], item[0].buffer)):
        words = relay_words(problem, source, ranges)
        relays: list[Relay] = []
        for room in rooms[source]:
            order = np.argsort(held[room.first : room.stop], kind="stable")
            left = problem.target.tile_bytes - int(held[room.first + order[0]])
            most = max(1, min(room.samples, left // 2 // max(size, 1)))
            each = _share(problem, source, words, most, room.samples)
            parts = min(ceil_div(room.samples, each), len(order))
            chosen = sorted((order[:parts] + room.first).tolist())
            dealt = split(room.samples, parts)
            relays += [Relay(tile, room.sample + first, count) for tile, (first, count) in zip(chosen, dealt, strict=True)]
        for relay in relays:
            held[relay.tile] += relay.samples * size
        found[source] = tuple(relays)
    return found
