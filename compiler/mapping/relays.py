"""Over which tiles the samples of each source are dealt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cost import worker_cycles
from snnc.compiler.mapping.grouping import Ints, ceil_div, mask_words, split
from snnc.compiler.mapping.network import Source
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.plan import Relay


def relay_words(problem: Problem, source: Source, ranges: Mapping[str, TileRange]) -> int:
    """Mask words of one sample of `source`; 0 for inputs and values."""
    if source.external or source.kind != "spikes":
        return 0
    where = ranges[source.owner]
    return int(mask_words(where.neurons, where.columns).sum())


@dataclass(frozen=True)
class RelayWork:
    """Worker cycles of one run of a relay: always, in iterations that follow a step of its source, and while a bus shows a step."""

    always: Any
    compacting: Any
    shown: Mapping[str, Any]
    spread: Any
    """Standard deviation, from the events of its samples."""

    @property
    def cycles(self) -> Any:
        """All of it."""
        return self.always + self.compacting + sum(self.shown.values())


def relay_work(problem: Problem, source: Source, words: int, samples: Any, *, compact: bool) -> RelayWork:
    """Expected worker cycles of a relay with `samples` samples (a number or an array), the start of its vertex included."""
    buses, start = problem.buses_of(source), problem.target.vertex_start_cycles
    compacts = compact and not source.external
    if source.kind != "spikes":
        cost = problem.costs["relay_values"]
        size = samples * source.width
        always = worker_cycles(cost, samples=samples, elements=size * len(buses))
        return RelayWork(start + always, cost.element * size * compacts, {}, 0.0)
    cost = problem.costs["relay_events" if compacts else "relay_input"]
    shown = {bus.id: cost.element * samples * _shown(problem, bus, forward=compact) for bus in buses}
    compacting, each = 0.0, cost.element * len(buses) * copied_words(1.0, source.width)
    if compacts:
        counts = _compacted(problem, source, words)
        compacting = samples * (worker_cycles(cost, **counts) - cost.start)
        each += cost.id + cost.word_hit * max(0.0, 1.0 - counts["hits"] / max(counts["words"], 1))
    always = start + worker_cycles(cost, samples=samples)
    return RelayWork(always, compacting, shown, each * np.sqrt(samples * problem.event_variance(source)))


def boundary_cycles(problem: Problem, source: Source, samples: Any) -> Any:
    """Expected worker cycles of a relay that copies the steps that are still shown to or from a boundary."""
    steps, start = problem.largest_lag(source) / problem.schedule.interval, problem.target.vertex_start_cycles
    if source.kind != "spikes":
        return start + worker_cycles(problem.costs["boundary"], rows=steps, elements=steps * samples * source.width)
    ids = source.width * problem.near[source.buffer] if source in problem.windowed else problem.events(source)
    words = steps * samples * copied_words(ids, source.width)
    return start + worker_cycles(problem.costs["boundary_events"], rows=steps, samples=steps * samples, elements=words)


def _shown(problem: Problem, bus: Bus, *, forward: bool) -> float:
    """Words of ids that a relay copies into the windows of a bus: backward, what takes gradient and what came back."""
    if bus.id in problem.windowed_buses and not forward:
        return 2 * copied_words(problem.near_events(bus), bus.source.width)
    return copied_words(min(problem.events(bus.source), bus.capacity), bus.source.width)


def _compacted(problem: Problem, source: Source, words: int) -> dict[str, float]:
    """Counts of compacting one sample: the mask of spikes, and that of neurons that only take gradient."""
    spikes = problem.events(source)
    counts = {"words": ceil_div(words, 4), "hits": _hits(source, words, spikes), "ids": spikes}
    if source in problem.windowed:
        only = source.width * problem.near[source.buffer] - spikes
        more = {"words": ceil_div(words, 4), "hits": _hits(source, words, only), "ids": only}
        counts = {name: value + more[name] for name, value in counts.items()}
    return counts


def copied_words(ids: float, width: int) -> float:
    """Expected 32-bit words of `ids` ids: two 16-bit ids each, the last half full every second time."""
    return ids if width > 1 << 16 else (ids + 0.5) / 2 if ids > 0.5 else ids


def _hits(source: Source, words: int, events: float) -> float:
    """Expected groups of four mask words with a spike, of independent neurons; what is left of the words is never skipped."""
    whole, rest = divmod(words, 4)
    return float(whole * (1.0 - (1.0 - events / source.width) ** (4 * source.width / words)) + (rest > 0))


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
