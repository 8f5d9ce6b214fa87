"""Reduction of partial input gradients: the tiles that add the partial products of each bus.

For each entry of a backward window (a source neuron that spiked or is near the threshold), a target tile multiplies the deltas of its own
columns by their weights, and adds the products. Each column group is a *producer* of such partial products. They are added in two stages:

* Stage one: the producers are divided into parts. Tiles on the chip of a part's first producer add the partial products of the part.
* Stage two: relays add the sums of all parts for their samples, and write the results to windows for the source.

With few parts, a tile of stage one receives many fragments. With many parts, the few relays have much work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import GradientPlan, PartialSum, Relay
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div, column_groups, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.vertices.gradient_vertices import PAIRS, gradient_window, reduce_partials

ROUNDING: Final = 1e-6
"""Tolerance, in tiles, for rounding errors in a job's share of the tiles."""
COLUMNS: Final = tuple(PartialSum.__dataclass_fields__)
"""Names of the fields of a partial sum of a plan, in order."""


@dataclass(frozen=True, eq=False)
class BusReduction:
    """Stage one of the reduction for one bus."""

    capacity: int
    parts: int
    table: Mapping[str, Ints]
    """Columns of :class:`~snnc.compiler.ir.plan.PartialSum`, one row per vertex."""
    producers: Mapping[tuple[int, int], Ints]
    """Tile of each producer, for each range of samples (first, count)."""

    def to_plan(self) -> GradientPlan:
        """Return the reduction as a part of the plan."""
        rows = zip(*(self.table[name].tolist() for name in COLUMNS), strict=True)
        return GradientPlan(self.capacity, self.parts, tuple(PartialSum(*row) for row in rows))


@dataclass(frozen=True, eq=False)
class Job:
    """The sums of one part over `producers` consecutive producers from `first` on, for `samples` samples from `sample` on.

    Tiles of `chip` compute the sums.
    """

    bus: Bus
    part: int
    first: int
    producers: int
    chip: int
    sample: int
    samples: int
    work: float
    """Worker cycles of the sums."""


def producer_tiles(problem: MappingProblem, bus: Bus, ranges: Mapping[str, TileRange]) -> dict[tuple[int, int], Ints]:
    """Return the tile of every column group that computes partial products for `bus`, in the order connection, tile, neuron.

    The keys are the largest ranges of samples (first, count) that no target splits between replicas.
    """
    targets = [ranges[link.target] for link in problem.returned[bus.id]]
    edges = sorted({0, problem.batch, *(first for where in targets for first, _ in where.samples)})
    by_samples = {}
    for first, stop in pairwise(edges):
        tiles = [np.repeat(where.of(where.replica_with(first)), column_groups(where.neurons, where.columns)) for where in targets]
        by_samples[first, stop - first] = np.concatenate(tiles)
    return by_samples


def reductions(problem: MappingProblem, ranges: Mapping[str, TileRange], relays: Mapping[str, Sequence[Relay]]) -> dict[str, BusReduction]:
    """Plan the reduction of every bus whose gradient returns in windows, by bus id."""
    buses = [bus for bus in problem.buses if bus.id in problem.returned]
    producers = {bus.id: producer_tiles(problem, bus, ranges) for bus in buses}
    work = np.zeros(problem.target.chips)  # of stage one, counted on the chip of the first producer
    for bus in buses:
        for (_, samples), tiles in producers[bus.id].items():
            work[int(tiles[0]) // problem.target.tiles_per_chip] += _work(problem, bus, len(tiles), samples)
    jobs: list[Job] = []
    parts = {}
    for bus in buses:
        relay_samples = max(r.samples for r in relays[bus.source.buffer])
        (_, samples), tiles = next(iter(producers[bus.id].items()))
        share = _work(problem, bus, len(tiles), samples) / work[int(tiles[0]) // problem.target.tiles_per_chip]
        chosen = choose_parts(problem, bus, len(tiles), samples, share * problem.target.tiles_per_chip, relay_samples)
        bus_jobs = _jobs(problem, bus, producers[bus.id], chosen)
        parts[bus.id] = 1 + max(job.part for job in bus_jobs)
        jobs += bus_jobs
    rows: dict[str, list[Ints]] = {bus.id: [] for bus in buses}
    for job, first, stop in _tiles_of_jobs(problem, jobs):
        rows[job.bus.id].append(_vertices(job, first, stop, problem.target.workers))
    tables = {name: np.concatenate(pieces, axis=1) for name, pieces in rows.items()}
    return {
        bus.id: BusReduction(bus.gradient_capacity, parts[bus.id], dict(zip(COLUMNS, tables[bus.id], strict=True)), producers[bus.id])
        for bus in buses
    }


def _work(problem: MappingProblem, bus: Bus, producers: int, samples: int) -> float:
    return samples * bus.gradient_capacity / 2 * float(reduce_partials(problem.costs).trip(PAIRS, {"producers": producers}))


def choose_parts(problem: MappingProblem, bus: Bus, producers: int, samples: int, tiles: float, relay_samples: int) -> int:
    """Return the number of parts with the shortest predicted time of both stages.

    Stage one uses `tiles` tiles for `samples` samples. In stage two, a relay has at most `relay_samples` samples.
    """
    target, capacity = problem.target, bus.gradient_capacity
    parts = np.arange(1, producers + 1)
    tile_elements = np.maximum(samples * capacity * parts / max(tiles, 1.0), 2.0)
    per_part = np.ceil(producers / parts)
    cycles_one = _stage(problem, reduce_partials(problem.costs).trip(PAIRS, {"producers": per_part}), per_part, tile_elements)
    relay_elements = float(relay_samples * capacity)
    cycles_two = _stage(problem, gradient_window(problem.costs).trip(PAIRS, {"parts": parts}), parts, np.full(producers, relay_elements))
    cycles_two += target.fragment_cycles * parts * np.floor(relay_elements / tile_elements)
    return int(parts[int(np.argmin(cycles_one + cycles_two))])


def _stage(problem: MappingProblem, pair_cycles: Any, rows: Ints | Floats, elements: Floats) -> Floats:
    """Return tile cycles to receive and add `rows` rows of `elements` floats; a worker adds two elements of each row in `pair_cycles`."""
    target = problem.target
    exchange = rows * elements * FLOAT / target.exchange_bytes_per_cycle + target.fragment_cycles * rows
    cycles: Floats = exchange + (elements / 2) * pair_cycles
    return cycles


def _jobs(problem: MappingProblem, bus: Bus, producers: Mapping[tuple[int, int], Ints], parts: int) -> list[Job]:
    """Cut the producers of each range of samples into about `parts` parts, each with producers on one chip.

    If ranges of samples would get different numbers of parts, the producers are cut evenly instead; some parts then extend over several
    chips.
    """
    per_chip = problem.target.tiles_per_chip
    cuts = {samples: list(_cut(tiles // per_chip, parts)) for samples, tiles in producers.items()}
    if len({len(cut) for cut in cuts.values()}) > 1:
        cuts = {samples: list(split(len(tiles), parts)) for samples, tiles in producers.items()}
    return [
        Job(bus, part, first, count, int(producers[samples][first]) // per_chip, *samples, _work(problem, bus, count, samples[1]))
        for samples, cut in cuts.items()
        for part, (first, count) in enumerate(cut)
    ]


def _cut(chips: Ints, parts: int) -> Iterator[tuple[int, int]]:
    """Yield the first producer and the number of producers of each part; a part has producers of one chip, at least one part per chip."""
    edges = [0, *(np.flatnonzero(np.diff(chips)) + 1).tolist(), len(chips)]
    for start, stop in pairwise(edges):
        share = min(stop - start, max(1, round(parts * (stop - start) / len(chips))))
        yield from ((start + first, count) for first, count in split(stop - start, share))


def _tiles_of_jobs(problem: MappingProblem, jobs: Sequence[Job]) -> Iterator[tuple[Job, int, int]]:
    """Yield each job with its tiles ``[first, stop)``, at least one; the jobs of a chip share its tiles in proportion to their work."""
    per_chip = problem.target.tiles_per_chip
    by_chip: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        by_chip[job.chip].append(job)
    for chip, chip_jobs in sorted(by_chip.items()):
        edges = np.cumsum([0.0, *(job.work for job in chip_jobs)])
        tiles = np.floor(edges * (per_chip / edges[-1]) + ROUNDING).astype(np.int64).tolist()
        for job, first, stop in zip(chip_jobs, tiles, tiles[1:], strict=False):
            begin = min(first, per_chip - 1)
            yield job, chip * per_chip + begin, chip * per_chip + max(begin + 1, stop)


def _vertices(job: Job, first: int, stop: int, workers: int) -> Ints:
    """Distribute the samples of a job, or pieces of samples, over the workers of its tiles; rows are those of :data:`COLUMNS`."""
    capacity = job.bus.gradient_capacity
    pairs = int(ceil_div(capacity, 2))
    most = (stop - first) * workers
    if most <= job.samples:
        cut = np.array(list(split(job.samples, most)), dtype=np.int64)
        sample, samples = cut[:, 0], cut[:, 1]
        entry, entries = np.zeros_like(sample), np.full_like(sample, capacity)
    else:
        cut = 2 * np.array(list(split(pairs, min(most // job.samples, pairs))), dtype=np.int64)
        sample = np.repeat(np.arange(job.samples), len(cut))
        samples = np.ones_like(sample)
        entry = np.tile(cut[:, 0], job.samples)
        entries = np.minimum(np.tile(cut[:, 1], job.samples), capacity - entry)
    counts = [count for _, count in split(len(sample), stop - first)]
    tile = np.repeat(np.arange(first, stop), counts)
    part, start, producers = (np.full_like(sample, value) for value in (job.part, job.first, job.producers))
    return np.stack([tile, part, sample + job.sample, samples, entry, entries, start, producers])
