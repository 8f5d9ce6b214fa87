"""Choice of the number of parts of a network with sparse connections: the number with the fastest predicted plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.errors import PartsError, TooBigError, UnreachedPartError
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.partition import Correspondence, Partition, Prepared
from snnc.compiler.tiles.partition.candidates import Candidates
from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph
from snnc.compiler.tiles.partition.partitioners import Partitioner, first_that_works
from snnc.compiler.tiles.schedule.buses import ASSUMED_ACTIVITY
from snnc.compiler.tiles.vertices.codelet_costs import network_costs

IMBALANCE: Final = 0.05
"""Fraction by which the work of a part may exceed the mean."""
MIN_NEURONS: Final = 48
"""Minimum mean number of neurons in a part, so that a part fills several tiles."""
MAX_PARTS: Final = 32
"""Maximum number of parts, unless the user requests more."""
MAX_CONNECTIONS: Final = 128
"""Maximum number of connections after the cut: each costs planning time, and code on every tile that it reaches."""
Variant = TypeVar("Variant")
PLANNED: Final = 2
"""Maximum number of variants planned in full: those with the fastest quick estimates."""
CLOSE: Final = 1.15
"""A variant is planned in full only if its estimate is at most this factor times the fastest."""
Mapper: TypeAlias = Callable[..., Plan]
"""Function that maps a program: ``(program, activity, quick=…)``."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a network, and the correspondence between its whole program and the partitioned one."""

    partition: Partition
    correspondence: Correspondence


@dataclass(frozen=True, eq=False)
class Mapped:
    """A plan, and in `parts` the form of its program: :class:`Parts`, `ChannelOrders` (reordered channels), or None if unchanged."""

    plan: Plan
    parts: Any = None


@dataclass(frozen=True, eq=False)
class NetworkPartitioner:
    """Cuts one network into any number of parts."""

    prepared: Prepared
    program: StepProgram
    """The graph after the default passes, and the program of the whole network."""
    lowering: Mapping[str, Any]
    """Options of :func:`snnc.compiler.lowering.lower.lower` with which the program was lowered."""
    activity: Activity | None
    seed: int = 0

    def hypergraph(self) -> Hypergraph:
        """Return the hypergraph of all neurons that can be cut, weighted by their predicted work; a net is a neuron with its targets."""
        candidates = self.prepared.candidates
        assert candidates is not None
        rates = {name: _rate(self.program, name, self.activity) for name in candidates.sizes}
        return candidates.hypergraph(rates, self._work(candidates, rates))

    def partition(self, parts: int, by: Partitioner | None = None) -> Partition:
        """Cut the network into `parts` parts."""
        candidates = self.prepared.candidates
        assert candidates is not None
        if parts == 1:
            return candidates.partition(np.zeros(candidates.neurons, dtype=np.int64))
        return candidates.partition((by or first_that_works)(self.hypergraph(), parts, IMBALANCE, self.seed))

    def apply(self, partition: Partition) -> Parts:
        """Lower the network in the parts of `partition`; an UnreachedPartError if a part has no connection."""
        return Parts(partition, self.prepared.lower(self.program, partition, **self.lowering))

    def _work(self, candidates: Candidates, rates: Mapping[str, Any]) -> Floats:
        """Return the worker cycles per step of each neuron: its equations, the events that reach it, and the deltas of its targets.

        Every entry into a neuron is assumed to have events at the mean rate of the neuron's own population.
        """
        network = describe(self.program)
        costs, layers = network_costs(network), {layer.label: layer for layer in network.layers}
        cycles = np.zeros(candidates.neurons)
        for name, first in candidates.first.items():
            neurons, id_ = slice(first, first + candidates.sizes[name]), layers[name].id
            kinds = [costs[f"{kind}.{id_}"] for kind in ("forward", "backward") if f"{kind}.{id_}" in costs]
            mean = float(np.mean(rates[name]))
            cycles[neurons] += sum(cost.neuron + mean * (cost.single + cost.value) * candidates.fan_in[neurons] for cost in kinds)
            back = costs.get(f"source_gradient.{id_}")
            if back is not None:
                cycles[neurons] += (back.single + back.value) * candidates.fan_out[neurons]
        return np.maximum(cycles, 1.0)


def _rate(program: StepProgram, name: str, activity: Activity | None) -> Any:
    """Return the spikes per step of each neuron of a population, or one number for all of them."""
    info = next(p for p in program.populations if p.label == name)
    spiking = [b for b in info.output_buffers.values() if program.buffers[b].kind == "spikes"]
    for buffer in spiking if activity is not None else ():
        assert activity is not None
        if buffer in activity.rates:
            return np.maximum(activity.rates[buffer], 1e-4)
        if buffer in activity.mean:
            return activity.mean[buffer]
    return ASSUMED_ACTIVITY if spiking else 1.0


def map_parts(parter: NetworkPartitioner, mapper: Mapper, chips: int, wanted: int | None) -> Mapped:
    """Map the network whole, whole with neurons ordered so that tiles get even work, and in parts; return the fastest plan.

    If the user requests a number of parts (`wanted`), only that number is mapped; if that is impossible, a PartsError is raised.
    """
    whole = partial(mapper, parter.program, parter.activity)
    if wanted is not None and wanted > 1:
        return _map(parter, mapper, _requested_parts(parter, wanted))
    if wanted == 1 or parter.prepared.candidates is None:
        return Mapped(whole())
    worth = worth_planning(_quick_estimates(parter, mapper, chips))
    return min((Mapped(whole()) if p is None else _map(parter, mapper, p) for p in worth or [None]), key=lambda mapped: mapped.plan.cycles)


def worth_planning(estimates: Iterable[tuple[float, Variant]]) -> list[Variant]:
    """Return the variants with the fastest quick estimates, at most :data:`PLANNED`, without those that do not fit or are far slower.

    Several are returned because quick estimates, which use full windows and no local search, may rank them wrongly.
    """
    ranked = sorted(estimates, key=lambda estimate: estimate[0])
    return [variant for cycles, variant in ranked[:PLANNED] if cycles < math.inf and cycles <= CLOSE * ranked[0][0]]


def _quick_estimates(parter: NetworkPartitioner, mapper: Mapper, chips: int) -> Iterator[tuple[float, Parts | None]]:
    """Yield quick estimates of the cycles of a step (infinite if nothing fits): of the whole network, then of increasing numbers of parts.

    The first estimate is the faster one of the author's order and an order with even work.
    """

    def estimate(parts: Parts | None) -> tuple[float, Parts | None]:
        program, activity = parter.program, parter.activity
        if parts is not None:
            program, activity = parts.correspondence.program_of_parts, activity_of(parts, activity)
        try:
            return mapper(program, activity, quick=True).cycles, parts
        except TooBigError:
            return math.inf, parts

    best = min(map(estimate, (None, *_evenly_ordered(parter))), key=lambda estimated: estimated[0])
    yield best
    for number, parts in enumerate(_candidate_parts(parter, chips)):
        estimated = estimate(parts)
        yield estimated
        if number and best[0] <= estimated[0] < math.inf:
            return  # even more parts are assumed to be slower; the smallest number of parts alone does not show that
        best = min(best, estimated, key=lambda each: each[0])


def _evenly_ordered(parter: NetworkPartitioner) -> Iterator[Parts]:
    with suppress(UnreachedPartError):
        yield parter.apply(parter.partition(1))


def _map(parter: NetworkPartitioner, mapper: Mapper, parts: Parts) -> Mapped:
    plan = mapper(parts.correspondence.program_of_parts, activity_of(parts, parter.activity))
    return Mapped(replace(plan, parts=parts.correspondence.parts), parts)


def _candidate_parts(parter: NetworkPartitioner, chips: int) -> Iterator[Parts]:
    """Yield the network in as many parts as chips, and in two, four, … parts, in ascending order."""
    assert parter.prepared.candidates is not None
    most = min(MAX_PARTS, parter.prepared.candidates.neurons // MIN_NEURONS)
    for number in sorted({chips, *(1 << k for k in range(1, MAX_PARTS.bit_length()))}):
        if not 2 <= number <= most:
            continue
        with suppress(UnreachedPartError):
            parts = parter.apply(parter.partition(number))
            if len(parts.correspondence.program_of_parts.connections) <= MAX_CONNECTIONS:
                yield parts


def _requested_parts(parter: NetworkPartitioner, number: int) -> Parts:
    candidates = parter.prepared.candidates
    if candidates is None or number > candidates.neurons:
        what = "no population has sparse connections" if candidates is None else f"{candidates.neurons} neurons have sparse connections"
        raise PartsError(f"{parter.program.name!r} cannot be cut into {number} parts: {what}; omit --parts.")
    try:
        return parter.apply(parter.partition(number))
    except UnreachedPartError as error:
        raise PartsError(f"{parter.program.name!r} cannot be cut into {number} parts: {error.text} Choose fewer parts.") from None


def activity_of(parts: Parts, activity: Activity | None) -> Activity | None:
    """Return the activity of the partitioned program."""
    if activity is None:
        return None
    mean, support, rates = {}, {}, {}
    peak: dict[str, int] = {}
    support_peak: dict[str, int] = {}
    for buffer, place in parts.correspondence.buffers.items():
        whole_name, index = place.whole, slice(None) if place.index is None else place.index
        if whole_name not in activity.mean:
            continue
        mean[buffer], share = activity.mean[whole_name], 1.0
        if whole_name in activity.rates:
            rates[buffer] = activity.rates[whole_name][index]
            mean[buffer] = float(rates[buffer].mean())
            share = float(rates[buffer].sum() / max(activity.rates[whole_name].sum(), 1e-30))
        if whole_name in activity.support:
            support[buffer] = activity.support[whole_name]
        width = math.prod(parts.correspondence.program_of_parts.buffers[buffer].shape)
        for whole_peak, part_peak in ((activity.peak, peak), (activity.support_peak, support_peak)):
            if whole_name in whole_peak:
                part_peak[buffer] = _peak(whole_peak[whole_name], share, width)
    counts = _counts_of_parts(parts, activity.counts, activity.rates)
    return Activity(mean, peak, activity.source, support, support_peak, rates, counts, _counts_of_parts(parts, activity.support_counts, {}))


def _counts_of_parts(parts: Parts, counts: Mapping[str, Array], rates: Mapping[str, Array]) -> dict[str, Array]:
    """Distribute counts of whole buffers, [steps, samples], randomly over their parts, in proportion to the mean activity of the parts."""
    random, of_parts = np.random.default_rng(0), {}
    for whole_name, counted in counts.items():
        places = {name: place.index for name, place in parts.correspondence.buffers.items() if place.whole == whole_name}
        cut = {name: index for name, index in places.items() if index is not None}
        of_parts.update({name: counted for name in places if name not in cut})
        rate = np.asarray(rates.get(whole_name, np.ones(math.prod(parts.correspondence.whole.buffers[whole_name].shape))), dtype=np.float64)
        share = np.array([rate[index].sum() for index in cut.values()]) / max(rate.sum(), 1e-30)
        share = share / max(share.sum(), 1.0)  # rounding may make the sum exceed 1
        drawn = random.multinomial(counted, [*share, max(0.0, 1.0 - share.sum())])  # last: neurons that no part sends
        of_parts.update({name: np.minimum(drawn[..., n], len(index)) for n, (name, index) in enumerate(cut.items())})
    return of_parts


def _peak(peak: int, share: float, width: int) -> int:
    """Return the peak of a part, given the peak `peak` of its population: a Poisson mean plus three standard deviations."""
    mean = peak * share
    return min(width, peak, math.ceil(mean + 3 * math.sqrt(mean) * (share < 1)))
