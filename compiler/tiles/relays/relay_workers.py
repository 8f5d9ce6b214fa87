"""Cycles of the slowest worker of every relay in each iteration, from the events of its samples.

A relay is a tile that searches the masks of a population (one bit per neuron) for spikes, and writes their ids to windows. Several workers
share this work. The positions of a sample's events in its mask are drawn at random; measured firing rates weight the positions of spikes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Floats, Ints
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import TOGETHER, MaskRows, windows_work
from snnc.compiler.tiles.schedule.buses import Bus, bit_words
from snnc.compiler.tiles.schedule.schedule import INPUT_STAGE
from snnc.compiler.tiles.vertices.loops import Loop, LoopsByPlace, cycles_of
from snnc.compiler.tiles.vertices.relay_loops import bit_loops, compact_loops, window_loops


@dataclass(frozen=True, eq=False)
class Shares:
    """Distribution of lists, one per sample, to the workers of a tile.

    Each list is divided into as many classes as the tile has workers. For ids, class c contains the words c, c + workers, c + 2 workers, …
    For bits and for the entries of gradients, it is the c-th of equal ranges. The classes of all lists are lined up, and every worker gets
    as many consecutive classes as there are lists. The arrays have one element per class.
    """

    workers: int
    lists: int
    """Numbers of workers and of lists (samples)."""
    list_index: Ints
    class_index: Ints
    """Index of the list, and index of the class within its list."""
    begins: Ints
    """1 if the class is the first of a worker or of a list, otherwise 0."""

    @classmethod
    def of(cls, workers: int, lists: int) -> Shares:
        """Assign `lists` consecutive classes to every worker."""
        place = np.arange(workers * lists)
        begins = ((place % workers == 0) | (place % lists == 0)).astype(np.int64)
        return cls(workers, lists, place // workers, place % workers, begins)

    def of_workers(self, values: Any) -> Any:
        """Sum `values`, [..., classes, iterations], over the classes of each worker."""
        return values.reshape(*values.shape[:-2], self.workers, self.lists, values.shape[-1]).sum(axis=-2)

    @property
    def pieces(self) -> Ints:
        """Number of lists, or parts of lists, of each worker."""
        number: Ints = self.begins.reshape(self.workers, self.lists).sum(axis=1)
        return number

    def part_of(self, classes: Floats) -> Floats:
        """Return each worker's fraction of the events of every list, [samples, workers], given the fraction in each class."""
        fractions = np.zeros((self.lists, self.workers))
        np.add.at(fractions, (self.list_index, np.arange(len(self.list_index)) // self.lists), classes[self.class_index])
        return fractions


def relay_cycles(problem: MappingProblem, source: BusSource, rows: MaskRows | None, relays: Sequence[tuple[int, int]], part: str) -> Floats:
    """Return the cycles of the slowest worker of each relay, including the start of the vertex: [relays, iterations].

    `relays` lists each relay's first sample and number of samples. `part` is "masks" (relays of spikes with `rows` search masks, all
    others write windows), "windows" (relays of spikes merge the results of that search and write windows), "shown" (relays without masks
    write windows, where others search masks while neurons compute), or "backward" (relays write windows again).
    """
    cycles = partial(_cycles_for_samples, problem, source, rows, part=part)
    return by_samples(relays, len(problem.timeline.chosen), cycles)


def by_samples(relays: Sequence[tuple[int, int]], iterations: int, cycles: Callable[[Ints, int], Any]) -> Floats:
    """Call `cycles` once for each number of samples that relays have, and return the results as [relays, iterations].

    The arguments of `cycles` are the first sample of each relay with this number of samples, and the number.
    """
    results = np.zeros((len(relays), iterations))
    first, count = np.array(relays, dtype=np.int64).T
    for samples in np.unique(count).tolist():
        of_equal = np.flatnonzero(count == samples)
        results[of_equal] = cycles(first[of_equal], samples)
    return results


def _cycles_for_samples(problem: MappingProblem, source: BusSource, rows: MaskRows | None, first: Ints, samples: int, part: str) -> Any:
    stage, workers = problem.schedule.stages.get(source.owner, INPUT_STAGE), problem.target.workers
    finished = problem.timeline.active(stage + (problem.schedule.latency if part == "windows" else 1))  # 1 if a step is processed
    if source.kind != "spikes":
        work = windows_work(problem, source, rows, samples, forward=part != "backward")
        return work.always + work.compacting * finished
    shares, chosen = Shares.of(workers, samples), first[:, None] + np.arange(samples)
    start = problem.target.vertex_start_cycles
    if part == "masks" and rows is not None:
        cost = problem.costs["relay_compact"]
        ids = np.sum([counts for _, counts in _found_counts(problem, source, rows, shares, chosen, 1)], axis=0)
        return start + cost.idle + finished * (_searching(problem, rows, shares, ids).max(axis=1) - cost.idle)
    cost = problem.costs["relay_windows"].with_request()
    loops, forward = LoopsByPlace(window_loops(cost, bits=source in problem.bits)), part != "backward"
    cycles: Any = np.full((1, workers, 1), float(cost.start))
    for bus in problem.buses_of(source):
        if source in problem.bits and bus.lag != 1:
            continue
        joined = forward and rows is not None and bus.lag == problem.schedule.latency
        each = cycles_of(loops["lists"], {"lists": shares.pieces[:, None]}) * (1.0 - finished if joined else 1.0)
        cycles = cycles + each + (0.0 if joined else _copying(problem, loops["copied"], bus, shares, chosen, forward=forward))
        if passes := problem.further.passes(bus.id, forward=forward):
            read = samples + (finished * (shares.pieces.sum() - samples) if joined else 0.0)
            cycles = cycles + cycles_of(loops["request"], {"numbers": read}) * (np.arange(workers) < passes)[:, None]
    if forward and rows is not None:
        cycles = cycles + finished * _joining(problem, loops["joined"], source, rows, shares, chosen)
    return start + cycles.max(axis=1)


def _found_counts(
    problem: MappingProblem, source: BusSource, rows: MaskRows, shares: Shares, chosen: Ints, later: int
) -> Iterator[tuple[str, Ints]]:
    """Yield ("spikes", number of spikes that each worker finds) for each sample of a relay; the numbers are [relays, workers, iterations].

    For sources with windowed gradients, then yield ("near", number of other neurons in the support). The source computed the step `later`
    iterations before.
    """
    key = ("found", source.buffer, rows, shares.lists, chosen.tobytes(), later)
    yield from problem.memo.get(key, lambda: list(_draw_found(problem, source, rows, shares, chosen, later)))


def _draw_found(
    problem: MappingProblem, source: BusSource, rows: MaskRows, shares: Shares, chosen: Ints, later: int
) -> Iterator[tuple[str, Ints]]:
    timeline, after = problem.timeline, problem.schedule.stages[source.owner] + later
    spikes = timeline.placed(timeline.spikes(source), after)
    parts = _before(problem, source)(_searched_parts(rows, shares))
    yield from (("spikes", counts) for counts in _draw(f"{source.buffer} spikes", source.width, spikes, chosen, np.diff(parts)))
    if source in problem.windowed:
        support = timeline.placed(timeline.support(source), after) - spikes
        parts = _searched_parts(rows, shares)
        yield from (("near", counts) for counts in _draw(f"{source.buffer} near", source.width, support, chosen, np.diff(parts)))


def _before(problem: MappingProblem, source: BusSource) -> Callable[[Floats], Floats]:
    """Return a function that maps a leading fraction of a sample's values to the fraction of its events in these values."""
    rate = problem.relative_rate(source.buffer)
    if rate is None:
        return lambda place: place
    before = np.append(0.0, np.cumsum(rate.reshape(-1)) / rate.sum())
    return lambda place: np.interp(place, np.linspace(0.0, 1.0, len(before)), before)


def _searched_parts(rows: MaskRows, shares: Shares) -> Floats:
    """Return start and end of the part of each sample's mask that a worker searches, as fractions: [samples, workers, 2]."""
    all_units = rows.all * shares.lists
    edges = all_units * np.arange(shares.workers + 1) // shares.workers - rows.all * np.arange(shares.lists)[:, None]
    fractions = np.clip(edges, 0, rows.all) / rows.all
    return np.stack([fractions[:, :-1], fractions[:, 1:]], axis=-1)


def _listed(problem: MappingProblem, source: BusSource, shares: Shares) -> Floats:
    """Return the fraction of each sample's events in the words of bits that a worker converts to ids: [samples, workers]."""
    edges = 32 * (bit_words(source.width) * np.arange(shares.workers + 1) // shares.workers)
    return shares.part_of(np.diff(_before(problem, source)(np.minimum(edges / source.width, 1.0))))


def _draw(name: str, width: int, counts: Ints, chosen: Ints, parts: Floats) -> tuple[Ints, ...]:
    """Draw the number of events in the part of every worker: one array [relays, workers, iterations] for each sample of a relay.

    `counts` are the numbers of events, [iterations, samples of the batch]. `chosen` are the samples of each relay, [relays, samples]. A
    sample has `width` values, and its events are distinct ones. `parts`, [samples, workers] or [samples, workers, 1], are the fractions of
    these values that each worker processes.
    """
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    return _draw_cached(name, width, counts.tobytes(), counts.shape, chosen.tobytes(), chosen.shape, parts.tobytes(), parts.shape)


@lru_cache(maxsize=256)
def _draw_cached(
    name: str, width: int, counted: bytes, times: tuple[int, ...], of: bytes, relays: tuple[int, ...], cut: bytes, shape: tuple[int, ...]
) -> tuple[Ints, ...]:
    counts, chosen = (np.frombuffer(data, dtype=np.int64).reshape(size) for data, size in ((counted, times), (of, relays)))
    parts, by_sample = np.frombuffer(cut, dtype=np.float64).reshape(shape), []
    samples = len(parts)
    random = np.random.default_rng(zlib.crc32(f"{name} {samples}".encode()))
    ends = np.rint(width * np.cumsum(parts.reshape(samples, -1), axis=1)).astype(np.int64)
    for sample, sizes in enumerate(np.diff(ends, prepend=0)):
        left = np.minimum(counts.T[chosen[:, sample]], width)
        drawn, remaining = [], width
        for values in sizes.tolist():
            remaining -= values
            drawn.append(random.hypergeometric(values, remaining, left))
            left = left - drawn[-1]
        by_sample.append(np.stack(drawn, axis=1))
    return tuple(by_sample)


def bits_cycles(problem: MappingProblem, bus: Bus, relays: Sequence[tuple[int, int]], *, forward: bool) -> Floats:
    """Return the cycles of the slowest worker that converts the bits of a step to ids in a window: [relays, iterations].

    With `forward`, the vertex writes the first window, and also computes the number of further windows.
    """
    total = by_samples(relays, len(problem.timeline.chosen), partial(_listing, problem, bus))
    request = LoopsByPlace(bit_loops(problem.costs["relay_bits"].with_request()))["request"]
    total += cycles_of(request, {}) * (problem.further.passes(bus.id, forward=True) if forward else 0)
    return total


def _listing(problem: MappingProblem, bus: Bus, firsts: Ints, samples: int) -> Any:
    shares, chosen = Shares.of(problem.target.workers, samples), firsts[:, None] + np.arange(samples)
    timeline, cost, words = problem.timeline, problem.costs["relay_bits"], bit_words(bus.source.width)
    loops = LoopsByPlace(bit_loops(cost))
    at = np.flatnonzero(shares.begins)
    first, span = shares.class_index[at], np.diff(np.append(at, len(shares.class_index)))
    begin, end = words * first // shares.workers, words * (first + span) // shares.workers
    counted = cycles_of(loops["counted"], {"words": begin + (first == 0) * (words - end)})
    walked = counted + cycles_of(loops["copied"], {"words": end - begin, "ids": 0})
    read = np.bincount(at // shares.lists, weights=walked, minlength=shares.workers)
    counts = timeline.placed(timeline.spikes(bus.source), timeline.first(bus))
    ids = np.sum(list(_draw(bus.id, bus.source.width, counts, chosen, _listed(problem, bus.source, shares))), axis=0)
    fixed = problem.target.vertex_start_cycles + cost.start + cycles_of(loops["lists"], {"lists": shares.pieces[:, None]})
    listed = cycles_of(loops["copied"], {"words": 0, "ids": ids})
    cycles = fixed + timeline.active(timeline.first(bus)) * read[:, None] + listed
    return cycles.max(axis=1)


def _searching(problem: MappingProblem, rows: MaskRows, shares: Shares, ids: Ints) -> Any:
    """Return each worker's cycles to search masks in which it finds `ids` ids; both are [relays, workers, iterations]."""
    cost = problem.costs["relay_compact"]
    pieces, runs, groups, singles = (numbers[:, None] for numbers in _walked(rows, shares))
    boxes = np.maximum(groups + singles * rows.unit / TOGETHER, 1.0)
    hits = groups * (1.0 - (1.0 - 1.0 / boxes) ** ids)  # expected number of groups with an id, if ids fall into boxes at random
    amounts = {"pieces": pieces, "runs": runs, "groups": groups, "singles": singles, "hits": hits, "ids": ids}
    return cost.start + cycles_of(compact_loops(cost), amounts)


def _walked(rows: MaskRows, shares: Shares) -> Floats:
    """Return each worker's numbers of mask pieces, runs of consecutive units, groups of words in runs, and other units: [4, workers]."""
    together, all_units = TOGETHER // rows.unit, rows.all * shares.lists
    walked = np.zeros((4, shares.workers))
    for worker in range(shares.workers):
        at, end = all_units * worker // shares.workers, all_units * (worker + 1) // shares.workers
        step = all_units if shares.lists == 1 else rows.row
        edges = np.unique([at, end, *range(at - at % step, end, step)])
        lengths = np.diff(edges[edges >= at])
        pieces = -(-end // rows.all) - at // rows.all if end > at else 0
        walked[:, worker] = pieces, len(lengths), (lengths // together).sum(), (lengths % together).sum()
    return walked


def _joining(problem: MappingProblem, loops: Sequence[Loop], source: BusSource, rows: MaskRows, shares: Shares, chosen: Ints) -> Any:
    """Return each worker's cycles to move the ids that it found to the lists of a step, [relays, workers, iterations]."""
    wide_ids, later = source.width > 1 << 16, problem.schedule.latency
    parts = np.diff(_searched_parts(rows, shares))[..., 0]
    sharing = (parts > 0) @ np.ones(shares.workers)
    amounts: dict[str, Any] = {"pieces": (parts > 0).sum(axis=0)[:, None], "counts": ((parts > 0) * sharing[:, None]).sum(axis=0)[:, None]}
    words: Any = 0
    room = source.width if problem.mode == "exact" else max(bus.capacity for bus in problem.buses_of(source))
    for kind, drawn in _found_counts(problem, source, rows, shares, chosen, later):
        end = np.cumsum(drawn, axis=1)
        stored = np.minimum(end, room) if kind == "spikes" else end
        begin = np.minimum(end - drawn, stored)
        words = words + (stored - begin if wide_ids else (stored + 1) // 2 - (begin + 1) // 2)
    if source in problem.bits:
        amounts["ids"] = np.sum([drawn for _, drawn in _found_counts(problem, source, rows, shares, chosen, later)], axis=0)
        amounts["bit_words"] = (bit_words(source.width) * parts.sum(axis=0))[:, None]
    return cycles_of(loops, {**amounts, "words": words})


def _copying(problem: MappingProblem, loops: Sequence[Loop], bus: Bus, shares: Shares, chosen: Ints, *, forward: bool) -> Any:
    """Return each worker's cycles to copy ids into the windows of a bus, [relays, workers, iterations].

    In the backward pass, workers of a bus with windowed gradients also copy the ids of the window before, that of iteration k + 1 in
    iteration k.
    """
    timeline, first = problem.timeline, problem.timeline.first(bus)
    support = bus.id in problem.returned and not forward
    ids = timeline.entries(bus) if support else np.minimum(timeline.stored(bus), bus.capacity)
    words = ids if bus.source.width > 1 << 16 else (ids + 1) // 2
    total: Any = 0
    for begin in (first, first - 1) if support else (first,):
        lists = timeline.placed(words, begin).T[chosen]
        turns = np.maximum(-(-(lists[:, shares.list_index] - shares.class_index[:, None]) // shares.workers), 0)
        total = total + shares.of_workers(cycles_of(loops, {"words": turns, "runs": turns * shares.begins[:, None]}))
    return total
