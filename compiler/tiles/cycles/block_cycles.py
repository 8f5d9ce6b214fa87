"""Worker cycles of the busiest block of a tile, as a function of the number of neurons of a population on the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.cycles.sparse_values import loud_rows
from snnc.compiler.tiles.gradients.gradient_counts import partial_product_counts, returned_buses, returned_counts
from snnc.compiler.tiles.indexed.indexed_cycles import Holdings, estimated, indexed_counts, keys_passed
from snnc.compiler.tiles.network import Layer, Link, learned_elements
from snnc.compiler.tiles.placement.block_shapes import BlockShape
from snnc.compiler.tiles.placement.cut import AnyCut
from snnc.compiler.tiles.placement.grouping import Floats, Ints, ceil_div, column_groups, largest_share, sample_groups
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.cost import (
    EVENT_SWEEP,
    SAMPLE_SWEEP,
    SUMMANDS,
    VALUE_SWEEP,
    CodeletCost,
    column_pairs,
    column_sweeps,
    worker_cycles,
)

PARTS: Final = ("forward", "backward", "source_gradient")


def block_cycles(
    problem: MappingProblem,
    layer: Layer,
    cut: AnyCut,
    neurons: Any,
    samples: Any,
    part: str,
    holdings: Holdings | None = None,
    *,
    even: bool = False,
) -> Any:
    """Expected worker cycles of one run of the largest block with the busiest samples, including the start of its vertex.

    Parameters
    ----------
    problem, layer
        The mapping problem, and the population.
    cut
        How the tile's neurons and samples are cut.
    neurons, samples
        Neurons and samples of the tile, numbers or arrays.
    part
        One of :data:`PARTS`.
    holdings
        Sizes of the tables of indexed connections there; estimated by default.
    even
        Assume that every sample sees the mean.
    """
    n = np.asarray(neurons, dtype=np.int64)
    columns = ceil_div(n, np.maximum(column_groups(n, cut.columns), 1))
    shares = np.maximum(sample_groups(n, cut.columns, problem.target.workers, samples), 1)
    each = largest_share(samples, shares, paired=cut.paired)
    odd = (shares > 1) & (each % 2 == 1)
    held = holdings or estimated(n, column_groups(n, cut.columns))
    found = shape_cycles(
        problem, layer, BlockShape(columns, each, 1, odd), samples, part, held, expected(problem) if even else busiest(problem, part, each)
    )
    if part == "backward":
        cost = replace(problem.costs[f"backward.{layer.id}"], start=0)
        found = found + worker_cycles(cost, **returned_counts(problem, layer, columns, each))
    return found


@dataclass(frozen=True)
class WindowContents:
    """Contents of the windows of a block's connections for a sample: spikes, and entries of backward windows."""

    events: Callable[[Link], Any]
    entries: Callable[[Link], Any]
    passed: Callable[[Link], Any]
    """Share of a table's keys that a search for the spikes passes."""


def expected(problem: MappingProblem) -> WindowContents:
    """Return the means."""
    events = problem.window_events
    return WindowContents(
        events, lambda link: problem.support_events(problem.bus[problem.bus_of[link.id]]), lambda link: keys_passed(events(link))
    )


def busiest(problem: MappingProblem, part: str, samples: Any) -> WindowContents:
    """Return the events of the slowest of all blocks with so many samples each."""

    def events(link: Link) -> Any:
        bus = problem.bus[problem.bus_of[link.id]]
        return problem.timeline.busiest(bus, part, samples) if bus.events else problem.window_events(link)

    def entries(link: Link) -> Any:
        return problem.timeline.busiest(problem.bus[problem.bus_of[link.id]], "entries", samples)

    return WindowContents(events, entries, lambda link: keys_passed(events(link)))


def shape_cycles(
    problem: MappingProblem, layer: Layer, shape: BlockShape, samples: Any, part: str, holdings: Holdings, seen: WindowContents
) -> Any:
    """Worker cycles of a block with some of the tile's `samples`, including the start of its vertex; `holdings` describes the tile.

    Backward, without its own neurons in returning windows.
    """
    columns, each = shape.columns, shape.samples
    cost = problem.costs[f"{part}.{layer.id}"]
    if part == "source_gradient":
        counts = _source_counts(problem, layer, shape, samples)
    else:
        counts = _neuron_counts(problem, read_links(problem, layer, part), columns, each, seen.events)
        back = [link for link in layer.incoming if problem.returns(link)]
        extra = partial_product_counts(columns, each, seen.entries, back) if part == "backward" else {}
        counts = added(counts, extra)
        if part == "forward":
            counts["nears"] = each * columns * sum(source in problem.windowed for source in layer.sent)
    usual = problem.window_events
    counts = added(counts, indexed_counts(layer, part, columns, each, holdings, seen.events, seen.passed, usual))
    return problem.target.vertex_start_cycles + worker_cycles(cost, columns=columns, **counts)


def added(counts: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add up counts by name."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


def read_links(problem: MappingProblem, layer: Layer, part: str) -> list[Link]:
    """Connections whose windows a block reads: all forward; backward those with :attr:`Link.read_backward`."""
    return [link for link in layer.incoming if part != "backward" or link.read_backward]


def _neuron_counts(
    problem: MappingProblem, links: Sequence[Link], columns: Any, samples: Any, events: Callable[[Link], float]
) -> dict[str, Any]:
    dense = [link for link in links if link.dense]
    other = [link for link in links if link.one_to_one]
    event_sweeps, value_sweeps = column_sweeps(columns, EVENT_SWEEP), column_sweeps(columns, VALUE_SWEEP)
    values = samples * sum(link.inputs for link in dense if not link.events and not link.quiet)
    quiet = [link for link in dense if link.quiet]
    loud = samples * sum(link.inputs * loud_rows(problem, link) for link in quiet)
    return {
        "samples": samples,
        "sweeps": samples * sum(event_sweeps if link.events else value_sweeps for link in dense),
        "held": samples * columns * len(dense),
        "events": samples * sum(events(link) for link in dense if link.events),
        "rows": values * value_sweeps,
        "products": (values + loud) * column_pairs(columns),
        "words": samples * sum(column_pairs(link.inputs) for link in quiet) * value_sweeps,
        "hits": loud * value_sweeps,
        "neurons": samples * (columns % 2),
        "pairs": samples * (columns // 2),
        "ids": samples * sum(events(link) for link in other if link.events),
        "elements": samples * columns * sum(not link.events for link in other),
    }


def _source_counts(problem: MappingProblem, layer: Layer, shape: BlockShape, of_tile: Any) -> dict[str, Any]:
    """Counts of a block with some of the `of_tile` samples that its tile has."""
    columns, samples = shape.columns, shape.samples
    back = [link for link in layer.outgoing if problem.copies(link)]
    dense = [link.outputs for link in back if link.dense]
    some, one = _many_samples(dense, columns, samples, np.asarray(of_tile) % 2 | shape.odd), _one_sample(dense, columns)
    counts = {name: np.where(np.asarray(of_tile) == 1, one.get(name, 0), some.get(name, 0)) for name in some | one}
    return {**counts, "samples": samples, "elements": samples * columns * sum(link.one_to_one for link in back)}


def _many_samples(outputs: Sequence[int], columns: Any, samples: Any, unaligned: Any) -> dict[str, Any]:
    """Two samples at a time; `unaligned`: they are not an aligned load."""
    rows = columns * sum(outputs)
    return {
        "sweeps": columns * column_sweeps(samples, SAMPLE_SWEEP) * len(outputs),
        "held": columns * samples * len(outputs),
        "rows": rows * column_sweeps(samples, SAMPLE_SWEEP),
        "products": rows * column_pairs(samples),
        "unaligned": rows * (samples // 2) * unaligned,
    }


def _one_sample(outputs: Sequence[int], columns: Any) -> dict[str, Any]:
    """Two outputs at a time, for runs of four, two and one columns."""
    runs = columns // 4 + columns % 4 // 2 + columns % 2
    halves = sum((n + 1) // 2 for n in outputs)
    return {
        "sweeps": runs * len(outputs),
        "held": columns * len(outputs),
        "dots": runs * halves,
        "products": columns * halves,
        "unaligned": columns * sum((n + 1) // 2 for n in outputs if n % 2),
    }


def step_cycles(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Ints, *, even: bool = False) -> Floats:
    """Tile cycles of one time step, a row for each part of it; placement balances these.

    Rows: forward, backward, source gradients (computing and receiving), and the update's share of a step; of several cuts [rows, cuts,
    neurons].
    `even` as in :func:`block_cycles`.
    """
    samples = cut.samples(problem.batch)
    runs = {"forward": True, "backward": layer.gradient, "source_gradient": layer.gradient and bool(problem.deltas_into(layer))}
    received = _received(problem, layer, samples)
    found = [
        problem.target.workers * block_cycles(problem, layer, cut, neurons, samples, part, even=even) + received[part] + 0.0 * neurons
        if runs[part]
        else 0.0 * neurons
        for part in PARTS
    ]
    return np.stack(np.broadcast_arrays(*found, _update(problem, layer, cut, neurons))).astype(np.float64)


def _received(problem: MappingProblem, layer: Layer, samples: Any) -> dict[str, Any]:
    """Cycles of the exchange before each part, without fragments."""
    rate = problem.target.exchange_bytes_per_cycle
    windows = sum(samples * bus.window_bytes for bus in problem.buses_into(layer)) / rate
    deltas = sum(samples * FLOAT * problem.by_id[target].neurons for target, _ in problem.whole_deltas_into(layer)) / rate
    back = sum(samples * problem.backward_bytes(bus) for bus in problem.buses_into(layer))
    back += sum(samples * bus.returned_bytes for bus in returned_buses(problem, layer))
    return {"forward": windows, "backward": back / rate, "source_gradient": deltas}


def _update(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Ints) -> Floats:
    """Private gradients are summed, shares travel between replicas and are updated; one update serves all steps."""
    learned = sum(learned_elements(layer).values()) if problem.training else 0
    elements = learned * neurons
    shares = sample_groups(neurons, cut.columns, problem.target.workers, cut.samples(problem.batch))
    summed = moved = updated = 0.0 * neurons
    if learned:
        cost = problem.costs["update"]
        summed = elements / 2 * (_sum_of_pair(cost, shares) + _sum_of_pair(cost, cut.replicas) / cut.replicas)
        moved = 2 * FLOAT * elements * (1 - 1 / cut.replicas) / problem.target.exchange_bytes_per_cycle
        updated = elements / cut.replicas * cost.element
    found: Floats = (summed + moved + updated) / problem.schedule.iterations(problem.steps) + 0.0 * neurons
    return found


def _sum_of_pair(cost: CodeletCost, parts: Any) -> Any:
    """Worker cycles to add up `parts` gradients of two elements."""
    return cost.row * ceil_div(parts - 1, SUMMANDS) + cost.product * (parts - 1)
