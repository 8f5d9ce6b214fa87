"""Weight gradients and source gradients, distributed over the workers of a tile by the spikes of all its samples.

A column group of a tile with g workers reads the lists of its samples consecutively and gives worker w the spikes from
``floor(E w / g)`` to ``floor(E (w + 1) / g)`` of all E: no worker waits for the one whose samples had the most spikes. See
docs/decisions/0023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.network import Layer, Link
from snnc.compiler.tiles.placement.grouping import Floats, Ints, ceil_div, column_groups, sample_groups
from snnc.compiler.tiles.placement.tile_range import TileRange
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.timeline import Sums
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, VALUE_SWEEP, column_sweeps, worker_cycles

CUT: Final = 1.0
"""Mean number of additional samples of which a worker has only a part."""


@dataclass(frozen=True)
class _List:
    """A worker's loop: `counted` is the name of its elements in :func:`worker_cycles`, with pairs of columns of a sweep."""

    link: Link
    counted: str
    sweep: int


def dealt_links(problem: MappingProblem, layer: Layer) -> list[Link]:
    """Connections whose work is dealt."""
    return [link for link in layer.incoming if problem.deals(link) and (link.weight_gradient or problem.returns(link))]


def _lists(problem: MappingProblem, layer: Layer) -> Iterator[_List]:
    for link in dealt_links(problem, layer):
        if link.weight_gradient:
            yield _List(link, "events", EVENT_SWEEP)
        if problem.returns(link):
            yield _List(link, "entries", VALUE_SWEEP)


def dealt_estimate(problem: MappingProblem, layer: Layer, columns: Any, shares: Any, samples: Any, *, even: bool) -> Any:
    """Expected worker cycles on a tile with the busiest samples (`even`: with any samples) if gradients are dealt, else 0."""
    lists = list(_lists(problem, layer))
    if not lists:
        return 0.0
    cost, counts = (
        problem.costs[f"dealt.{layer.id}"],
        {"samples": 0.0, "runs": 0.0, "sweeps": 0.0, "held": 0.0, "events": 0.0, "entries": 0.0},
    )
    touched = np.minimum(samples / shares + (shares > 1) * CUT, samples)
    for each in lists:
        counts[each.counted] = counts[each.counted] + samples * _expected(problem, each, samples, even=even) / shares
        counts["samples"] = counts["samples"] + samples
        counts["runs"] = counts["runs"] + touched
        counts["sweeps"] = counts["sweeps"] + touched * column_sweeps(columns, each.sweep)
        counts["held"] = counts["held"] + touched * columns
    return problem.target.vertex_start_cycles + worker_cycles(cost, columns=columns, **counts)


def _expected(problem: MappingProblem, each: _List, samples: Any, *, even: bool) -> Any:
    """Spikes or entries of a sample."""
    bus = problem.bus[problem.bus_of[each.link.id]]
    if even:
        return problem.near_events(bus) if each.counted == "entries" else problem.window_events(each.link)
    return problem.timeline.busiest(bus, "backward" if each.counted == "events" else "entries", np.asarray(samples))


# ---- exactly, in every iteration -------------------------------------------------------------------------------------------------


def add_dealt(problem: MappingProblem, layer: Layer, where: TileRange, load: Load) -> None:
    """Add a vertex on each tile of a population, shared by all its workers."""
    lists = list(_lists(problem, layer))
    if not lists:
        return
    some, of_tile = np.unique(where.neurons, return_inverse=True)
    cycles = np.stack([_busiest(problem, layer, where, lists, int(n), place) for place in where.samples for n in some])
    kind = (np.arange(where.replicas)[:, None] * len(some) + of_tile.reshape(1, -1)).ravel()
    load.add_kinds(where.tiles, kind, load.looked_at(cycles), shared=True)


def _busiest(problem: MappingProblem, layer: Layer, where: TileRange, lists: list[_List], neurons: int, place: tuple[int, int]) -> Floats:
    """[iterations]: cycles of the slowest worker of a tile with so many neurons for the samples (first, number)."""
    cost, start = problem.costs[f"dealt.{layer.id}"], problem.target.vertex_start_cycles
    groups = int(column_groups(neurons, where.columns))
    shares = int(sample_groups(neurons, where.columns, problem.target.workers, place[1]))
    slowest: Any = 0.0
    for columns in {neurons // groups, int(ceil_div(neurons, groups))}:
        found: Any = cost.start + cost.sample * place[1] * len(lists) - cost.idle
        for each in lists:
            number, touched = _shares(_seen(problem, each), place, shares)
            of_sample = cost.run + cost.sweep * column_sweeps(columns, each.sweep) + cost.held * columns
            one = worker_cycles(cost, columns=columns, **{each.counted: 1}) - cost.start
            found = found + of_sample * touched + one * number
        slowest = np.maximum(slowest, found.max(axis=0))
    active: Floats = problem.timeline.active(problem.schedule.stages[layer.id])
    cycles: Floats = start + cost.idle + active * slowest
    return cycles


def _seen(problem: MappingProblem, each: _List) -> Sums:
    """Spikes or entries of the first window of each sample and iteration."""
    timeline, bus = problem.timeline, problem.bus[problem.bus_of[each.link.id]]
    if each.counted == "events":
        return timeline.shown(bus, "backward")
    return timeline.sums("entries", bus, lambda: timeline.placed(timeline.entries(bus), timeline.first(bus)))


def _shares(seen: Sums, place: tuple[int, int], shares: int) -> tuple[Ints, Ints]:
    """[shares, iterations]: spikes of each worker of a column group, and the number of samples that contain them."""
    before = seen.before(*place).astype(np.int64)
    bounds = before[-1] * np.arange(shares + 1)[:, None] // shares
    number = np.diff(bounds, axis=0)
    inside = (before[None, 1:] > bounds[:-1, None]) & (before[None, :-1] < bounds[1:, None]) & (before[None, 1:] > before[None, :-1])
    return number, inside.sum(axis=1)


# ---- which populations -----------------------------------------------------------------------------------------------------------


def deals(layer: Layer) -> bool:
    """Whether all of a population's backward inputs can be dealt, however gradients return to its sources."""
    learned = [link for link in layer.incoming if link.read_backward]
    back = [link for link in layer.incoming if link.input_gradient and link.dense]
    return layer.gradient and bool(learned or back) and all(link.deals for link in (*learned, *back))


def may_deal(problem: MappingProblem, layer: Layer, where: TileRange) -> bool:
    """The same if several workers of a tile share its samples."""
    shares = sample_groups(where.neurons.max(), where.columns, problem.target.workers, where.most_samples)
    return bool(dealt_links(replace(problem, dealt=frozenset((layer.id,))), layer)) and deals(layer) and int(shares) > 1
