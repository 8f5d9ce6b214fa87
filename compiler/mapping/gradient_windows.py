"""The reduction of partial input gradients: which tile adds what.

A target block multiplies the entries of a backward window (neurons that spiked or are near the threshold) with its own columns of the
weights; these partial products of all column groups have to be added. Stage one adds them in `parts` groups of producers, every group's
entries cut over tiles of the producers' chip; the relays add the parts of their samples and show the sums to the source.
Few parts mean many fragments in stage one, many mean much work for the few relay tiles: :func:`choose_parts` takes the cheapest number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cost import CodeletCost
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, column_groups, split
from snnc.compiler.mapping.network import Link
from snnc.compiler.mapping.placement import TileRange
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.plan import GradientPlan, PartialSum, Relay

FLOAT: Final = 4


@dataclass(frozen=True, eq=False)
class Job:
    """One part of the sums of a bus for a range of samples: consecutive producers on one chip."""

    bus: Bus
    part: int
    first: int
    producers: int
    chip: int
    sample: int
    samples: int

    @property
    def work(self) -> int:
        """Floats that are added."""
        return self.producers * self.samples * self.bus.gradient_capacity


def returning(problem: Problem, bus: Bus) -> tuple[Link, ...]:
    """Links that read `bus` and send its source's gradient back in windows."""
    return tuple(link for link in problem.network.links if problem.bus_of[link.id] == bus.id and problem.returns(link))


def producer_tiles(problem: Problem, bus: Bus, ranges: Mapping[str, TileRange]) -> Ints:
    """Tile of every column group that makes partial products for `bus`, in the order connection, tile, neuron."""
    found = []
    for link in returning(problem, bus):
        where = ranges[link.target]
        tiles = np.arange(where.first, where.stop, dtype=np.int64)
        found.append(np.repeat(tiles, column_groups(where.neurons, problem.target.workers)))
    return np.concatenate(found)


def reductions(problem: Problem, ranges: Mapping[str, TileRange], relays: Mapping[str, Sequence[Relay]]) -> dict[str, GradientPlan]:
    """Plan the reduction of every bus whose gradient comes back in windows, by bus id."""
    buses = [bus for bus in problem.buses if returning(problem, bus)]
    if not buses:
        return {}
    tiles = {bus.id: producer_tiles(problem, bus, ranges) for bus in buses}
    work = {bus.id: len(tiles[bus.id]) * bus.gradient_capacity for bus in buses}
    jobs: list[Job] = []
    for bus in buses:
        share = max(1.0, problem.target.tiles_per_chip * work[bus.id] / sum(work.values()))
        parts = choose_parts(problem, bus, len(tiles[bus.id]), share, max(r.samples for r in relays[bus.source.buffer]))
        jobs += _jobs(problem, bus, tiles[bus.id], parts)
    sums: dict[str, list[PartialSum]] = {bus.id: [] for bus in buses}
    for job, where in _dealt(problem, jobs):
        sums[job.bus.id] += _sums(job, where, problem.target.workers)
    return {bus.id: GradientPlan(bus.gradient_capacity, 1 + max(v.part for v in sums[bus.id]), tuple(sums[bus.id])) for bus in buses}


def choose_parts(problem: Problem, bus: Bus, producers: int, tiles: float, relay_samples: int) -> int:
    """Number of parts with the least predicted time of both stages, with `tiles` tiles for stage one."""
    target, batch, capacity = problem.target, problem.batch, bus.gradient_capacity
    parts = np.arange(1, producers + 1)
    each = np.maximum(batch * capacity * parts / max(tiles, 1.0), 2.0)
    inner = np.ceil(producers / parts)
    one = _stage(problem, problem.costs["reduce_partials"], inner, each)
    second = relay_samples * capacity
    two = _stage(problem, problem.costs["gradient_window"], parts, np.full(producers, float(second)))
    two += target.fragment_cycles * parts * np.floor(second / np.maximum(each, 1.0))
    return int(parts[int(np.argmin(one + two))])


def _stage(problem: Problem, cost: CodeletCost, inner: Floats, elements: Floats) -> Floats:
    """Cycles in which a tile receives and adds `inner` rows of `elements` floats."""
    target = problem.target
    exchange = inner * elements * FLOAT / target.exchange_bytes_per_cycle + target.fragment_cycles * inner
    found: Floats = exchange + (elements / 2) * (cost.row + cost.product * inner)
    return found


def _jobs(problem: Problem, bus: Bus, tiles: Ints, parts: int) -> Iterator[Job]:
    """Cut the producers where their chip changes, and each run into its share of `parts`."""
    chips = tiles // problem.target.tiles_per_chip
    edges = [0, *(np.flatnonzero(np.diff(chips)) + 1).tolist(), len(chips)]
    part = 0
    for start, stop in pairwise(edges):
        share = min(stop - start, max(1, round(parts * (stop - start) / len(chips))))
        for first, count in split(stop - start, share):
            yield Job(bus, part, start + first, count, int(chips[start]), 0, problem.batch)
            part += 1


def _dealt(problem: Problem, jobs: Sequence[Job]) -> Iterator[tuple[Job, range]]:
    """Give each job tiles of its chip in proportion to its work."""
    per_chip = problem.target.tiles_per_chip
    for chip in sorted({job.chip for job in jobs}):
        mine = [job for job in jobs if job.chip == chip]
        total, done = sum(job.work for job in mine), 0
        for job in mine:
            first = min(done * per_chip // total, per_chip - 1)
            done += job.work
            stop = max(first + 1, done * per_chip // total)
            yield job, range(chip * per_chip + first, chip * per_chip + stop)


def _sums(job: Job, tiles: range, workers: int) -> list[PartialSum]:
    """Cut the windows of a job over all workers of its tiles: whole samples, or pieces of one."""
    capacity = job.bus.gradient_capacity
    pairs = int(ceil_div(capacity, 2))
    most = len(tiles) * workers
    if most <= job.samples:
        pieces = [(sample, samples, 0, capacity) for sample, samples in split(job.samples, most)]
    else:
        cuts = [(2 * first, min(2 * count, capacity - 2 * first)) for first, count in split(pairs, min(most // job.samples, pairs))]
        pieces = [(sample, 1, entry, entries) for sample in range(job.samples) for entry, entries in cuts]
    dealt = np.repeat(np.arange(len(tiles)), [count for _, count in split(len(pieces), len(tiles))])
    return [
        PartialSum(tiles[int(at)], job.part, job.sample + sample, samples, entry, entries, job.first, job.producers)
        for at, (sample, samples, entry, entries) in zip(dealt, pieces, strict=True)
    ]
