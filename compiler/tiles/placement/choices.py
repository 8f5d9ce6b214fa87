"""Choices for each population: ways to cut it, with cycles and bytes for any number of neurons on a tile.

A population is cut into replicas (copies on separate tiles, each for a share of the batch). On each tile, its neurons are divided into
column groups, and its samples are divided among the blocks of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Final

import numpy as np

from snnc.compiler.errors import HalfDeltasError
from snnc.compiler.tiles.blocks.grouping import Cut, Cuts, Floats, Ints, ceil_div, column_limits, largest_share
from snnc.compiler.tiles.cycles.block_cycles import PARTS, step_cycles
from snnc.compiler.tiles.mapped.network import Layer, Link, MappedNetwork
from snnc.compiler.tiles.memory.block_memory import block_bytes, code_bytes_estimate, most_bytes, most_received
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus

TYPICAL_NEURONS: Final = 6
"""Number of neurons per tile at which the work of populations is compared."""
PERIOD: Final = 12
"""Period, in neurons, of the pattern of cycles per tile: 12 neurons are a pair of columns in each of six column groups."""
ALIKE: Final = 0.05
"""Populations with the same structure share a table if their expected events differ by at most about this fraction."""


@dataclass(frozen=True, eq=False)
class Choice:
    """One way to cut a population, with its cycles and bytes."""

    cut: Cut
    """Number of replicas and division into column groups."""
    compute_parts: Callable[[], Floats]
    """Function that computes :attr:`parts`, which are needed only for cuts that fit."""
    used: Ints
    """Bytes on a tile with 1, 2, … neurons, not decreasing."""
    limit: float
    """Maximum number of bytes of a tile that blocks may use."""
    neurons: int

    @cached_property
    def parts(self) -> Floats:
        """Tile cycles of a step with 1, 2, … neurons on a tile, not decreasing, one row per part of the step (see :func:`step_cycles`)."""
        return self.compute_parts()

    @cached_property
    def cycles(self) -> Ints:
        """Cycles of a step, summed over its parts."""
        total: Ints = np.ceil(self.parts.sum(axis=0)).astype(np.int64)
        return total

    @cached_property
    def fit(self) -> int:
        """Maximum number of neurons of a tile that fit within :attr:`limit`."""
        return int(np.searchsorted(self.used, self.limit, side="right"))

    def tiles(self, neurons: int) -> int:
        """Return the number of tiles of all replicas with at most `neurons` on each."""
        return self.cut.replicas * int(ceil_div(self.neurons, neurons))

    @property
    def weight(self) -> float:
        """Tile cycles of a step, summed over all tiles, with :data:`TYPICAL_NEURONS` neurons per tile (all, if there are fewer)."""
        typical = min(self.neurons, TYPICAL_NEURONS)
        return float(self.cycles[typical - 1]) * self.tiles(typical)


def cuts(problem: MappingProblem, layer: Layer) -> tuple[Cut, ...]:
    """Return the ways to cut a population, those with one replica first.

    With float16 deltas, which are stored for pairs of samples, all blocks have samples in pairs.
    """
    replicas = dict.fromkeys(int(ceil_div(problem.batch, s)) for s in _sample_counts(problem.batch))
    chip_tiles, workers = problem.target.tiles_per_chip, problem.target.workers
    possible = [Cut(r, c) for r in replicas if r <= chip_tiles for c in column_limits(workers) if c <= max(layer.neurons, 1)]
    if problem.network.half_deltas:
        return tuple(cut for cut in possible if pairs_samples(problem.batch, cut.replicas))
    return tuple(other for cut in possible for other in (cut, *_unpaired(cut, problem.batch, workers)))


def pairs_samples(batch: int, replicas: int) -> bool:
    """Return whether the samples of every block can be grouped in pairs."""
    return batch % (2 * replicas) == 0


def check_pairs(network: MappedNetwork, batch: int) -> None:
    """Raise a HalfDeltasError if deltas are float16, which are stored for pairs of samples, and the batch is odd."""
    if network.half_deltas and not pairs_samples(batch, 1):
        raise HalfDeltasError(
            f"float16 deltas need samples in pairs, because two samples share a word, but the batch of {batch} samples is odd; use an "
            "even batch, or leave 'deltas' out of the option half."
        )


def _unpaired(cut: Cut, batch: int, workers: int) -> Iterator[Cut]:
    """Yield the cut with pairs of samples split, if the largest block then has fewer samples."""
    samples = cut.samples(batch)
    shares = min(workers // cut.columns, samples)
    if largest_share(samples, shares, paired=False) < largest_share(samples, shares, paired=True):
        yield replace(cut, paired=False)


def _sample_counts(batch: int) -> list[int]:
    """Return the numbers of samples on a tile to try: the batch divided by 1, 2, 3, 4, 6, 8, 12, 16, …"""
    divisors = [d * 2**k for k in range(batch.bit_length()) for d in (1, 1.5) if d * 2**k == int(d * 2**k)]
    return sorted({max(1, int(ceil_div(batch, int(d)))) for d in divisors if d <= batch}, reverse=True)


def all_within(limit: float, options: Sequence[Choice]) -> list[Choice]:
    """Return the choices of a population, each with the limit `limit` on the bytes of a tile."""
    return [replace(choice, limit=limit) for choice in options]


def choices(problem: MappingProblem, *, even: bool = False) -> tuple[tuple[Choice, ...], ...]:
    """Return the choices of every population, for tiles without relays; populations with the same structure share one tuple of choices.

    Cycles are those of the block whose samples have the most events; with `even`, every sample has the mean number of events.
    """
    by_structure: dict[object, tuple[Choice, ...]] = {}
    for layer in problem.network.layers:
        if (key := _structure(problem, layer)) not in by_structure:
            by_structure[key] = _choices(problem, layer, even=even)
    return tuple(by_structure[_structure(problem, layer)] for layer in problem.network.layers)


def _structure(problem: MappingProblem, layer: Layer) -> object:
    """Return a key of all properties of a population that determine its choices; names are not part of it."""
    parameters = (layer.neuron_parameters, layer.scalar_parameters, layer.learnable_neuron_parameters, layer.learnable_scalars)
    kernel = (len(layer.kernel.states), len(layer.kernel.halves), len(layer.kernel.inputs), layer.past)
    return (
        (layer.neurons, parameters, layer.records, layer.gradient, layer.stores_adjoint, layer.computes_statistics),
        kernel,
        tuple(problem.costs.get(f"{part}.{layer.id}") for part in PARTS),
        tuple((_link_key(link), _rounded(problem.window_events(link))) for link in layer.incoming),
        tuple((_link_key(link), problem.returns(link)) for link in layer.outgoing),
        tuple(bus.window_bytes for bus in problem.buses_into(layer)),
        tuple(problem.by_id[target].neurons for target, _ in problem.deltas_into(layer)),
        tuple((source.kind, source.width, problem.ring_slots.get(source.buffer, 0), source in problem.windowed) for source in layer.sent),
        tuple(_returned_key(problem, problem.bus_into(link)) for link in layer.incoming if problem.returns(link)),
        tuple(_returned_key(problem, bus) for bus in problem.returned_buses(layer)),
        len(layer.adjoint_outputs),
    )


def _returned_key(problem: MappingProblem, bus: Bus) -> object:
    return bus.gradient_capacity, bus.source.width, _rounded(problem.support_events[bus.id]), _rounded(problem.events(bus.source))


def _rounded(number: float) -> int:
    """Round to logarithmic steps of :data:`ALIKE`, because counted or drawn numbers are never exactly equal."""
    return round(math.log(number) / ALIKE) if number > 0 else -(1 << 30)


def _link_key(link: Link) -> object:
    sizes = (link.dense, link.indexed, link.inputs, link.outputs, link.weight_elements, link.weight_gradient, link.input_gradient)
    return (*sizes, link.sparse_values, link.half, link.half_deltas, link.source.kind)


def _choices(problem: MappingProblem, layer: Layer, *, even: bool) -> tuple[Choice, ...]:
    """Return the choices of a population; cuts with one replica share a table of cycles, and so do cuts with several replicas.

    A table covers every number of neurons that the fullest tile can have if the neurons are divided evenly.
    """
    possible = cuts(problem, layer)
    largest = np.unique(ceil_div(layer.neurons, np.arange(1, layer.neurons + 1)))
    # Cycles are not monotone in the neurons, so their running maximum at each size also needs the PERIOD - 1 sizes before it.
    shares = np.unique(np.maximum(largest[:, None] - np.arange(PERIOD), 1))
    of_neurons = np.searchsorted(shares, np.arange(1, layer.neurons + 1), side="right") - 1
    by_cut: dict[Cut, Choice] = {}
    for single in (True, False):
        cut_list = [cut for cut in possible if (cut.replicas == 1) == single]
        if not cut_list:
            continue
        table = cache(partial(_parts, problem, layer, Cuts.of(cut_list), shares, even=even))
        for row, (cut, used) in enumerate(zip(cut_list, _used(problem, layer, cut_list, shares), strict=True)):
            compute_parts = cache(partial(_row, table, row, of_neurons))  # copies of a choice with other limits share it
            by_cut[cut] = Choice(cut, compute_parts, used[of_neurons], problem.target.tile_bytes, layer.neurons)
    return tuple(by_cut[cut] for cut in possible)


def _row(table: Callable[[], Floats], row: int, of_neurons: Ints) -> Floats:
    return table()[:, row, of_neurons]


def _parts(problem: MappingProblem, layer: Layer, several: Cuts, neurons: Ints, *, even: bool) -> Floats:
    return np.maximum.accumulate(step_cycles(problem, layer, several, neurons, even=even), axis=2)


def _used(problem: MappingProblem, layer: Layer, cut_list: Sequence[Cut], neurons: Ints) -> Ints:
    several = Cuts.of(cut_list)
    held = block_bytes(problem, layer, several, neurons, several.samples(problem.batch))
    code = code_bytes_estimate(problem, layer, several, neurons)
    return np.maximum.accumulate(most_bytes(problem, held, most_received(problem, layer, several, neurons)) + code, axis=1)


@dataclass(frozen=True, eq=False)
class Allocation:
    """Tiles for a population: a choice, and the number of tiles of one replica."""

    choice: Choice
    width: int

    @property
    def tiles(self) -> int:
        """Number of tiles of all replicas."""
        return self.choice.cut.replicas * self.width

    @property
    def neurons(self) -> int:
        """Number of neurons on the fullest tile."""
        return int(ceil_div(self.choice.neurons, self.width))

    def with_fewer(self, neurons: int) -> Allocation:
        """Return an allocation of the same choice with at most `neurons` neurons per tile, on as few tiles as possible."""
        return Allocation(self.choice, int(ceil_div(self.choice.neurons, neurons)))
