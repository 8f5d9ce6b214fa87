"""Worker cycles of the busiest block of a tile, as a function of the number of neurons of a population on the tile.

A block is the neurons and samples that one worker processes. It reads the events of a step from windows, which are lists of ids with a
fixed capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.blocks import BlockShape
from snnc.compiler.tiles.blocks.grouping import AnyCut, Floats, Ints, ceil_div, column_groups, largest_share
from snnc.compiler.tiles.codelets.block_codelets import block_loops
from snnc.compiler.tiles.cycles.indexed_cycles import Holdings, estimated, expected_halvings, keys_passed, source_amounts, target_amounts
from snnc.compiler.tiles.mapped.learned import half_elements, learned_rows
from snnc.compiler.tiles.mapped.network import Layer, Link
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.loops import Loop, cycles_of
from snnc.compiler.tiles.vertices.parameter_vertices import summands, update, update_half

PARTS: Final = ("forward", "backward", "source_gradient")
"""Parts of a step in which blocks run: neurons, adjoints of neurons, and gradients of sources."""
MIN_SILENCE: Final = 1e-12
"""Lower bound on the probability that a spike does not occur, so that its logarithm is finite."""


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
    """Return the expected worker cycles of one run of a tile's slowest block in a part of :data:`PARTS`, with the start of the vertex.

    This is the largest block, for the samples with the most events or, with `even`, with the mean number of events. The tile has `neurons`
    neurons and `samples` samples (numbers or arrays), and tables of the sizes `holdings` (by default estimated).
    """
    n = np.asarray(neurons, dtype=np.int64)
    columns = ceil_div(n, np.maximum(column_groups(n, cut.columns), 1))
    shares = np.maximum(problem.sample_groups(n, cut.columns, samples), 1)
    largest = largest_share(samples, shares, paired=cut.paired)
    odd = (shares > 1) & (largest % 2 == 1)
    held = holdings or estimated(n, column_groups(n, cut.columns))
    contents = expected(problem) if even else busiest(problem, part, largest)
    cycles = shape_cycles(problem, layer, BlockShape(columns, largest, 1, odd), samples, part, held, contents)
    if part == "backward" and problem.returned_buses(layer):
        loops = block_loops(problem, layer, "backward")["returned", 0]
        cycles = cycles + cycles_of(loops, _returned_amounts(problem, layer, columns, largest))
    return cycles


@dataclass(frozen=True)
class WindowContents:
    """Contents of the windows that a block reads, per connection and sample."""

    events: Callable[[Link], Any]
    """Number of spikes."""
    entries: Callable[[Link], Any]
    """Number of entries of a backward window: ids of the neurons that receive a gradient."""


def expected(problem: MappingProblem) -> WindowContents:
    """Return the mean contents of windows."""
    return WindowContents(problem.window_events, lambda link: problem.support_events[problem.bus_of[link.id]])


def busiest(problem: MappingProblem, part: str, samples: Any) -> WindowContents:
    """Return the contents of the windows that the slowest block with `samples` samples reads."""

    def events(link: Link) -> Any:
        bus = problem.bus_into(link)
        return problem.timeline.busiest(bus, part, samples) if bus.events else problem.window_events(link)

    def entries(link: Link) -> Any:
        return problem.timeline.busiest(problem.bus_into(link), "entries", samples)

    return WindowContents(events, entries)


def shape_cycles(
    problem: MappingProblem, layer: Layer, shape: BlockShape, samples: Any, part: str, holdings: Holdings, contents: WindowContents
) -> Any:
    """Return the worker cycles of a block, including the start of its vertex, on a tile with `samples` samples.

    Windows of returned gradients are not included.
    """
    start = problem.target.vertex_start_cycles + problem.costs[f"{part}.{layer.id}"].start
    return sum((run.cycles(samples) for run in block_runs(problem, layer, shape, samples, part, holdings, contents)), start)


class BlockRun(NamedTuple):
    """Loops of a block for one connection (or for none), with their amounts; on a tile with one sample, `alone` replaces the loops."""

    link: Link | None
    amounts: dict[str, Any]  # numbers by name, such as samples and events, that determine the trips: see the module `block_loops`
    loops: tuple[Loop, ...]
    alone: tuple[Loop, ...] | None = None

    def cycles(self, samples: Any) -> Any:
        """Return the worker cycles on a tile with `samples` samples."""
        cycles = cycles_of(self.loops, self.amounts)
        return cycles if self.alone is None else np.where(np.asarray(samples) == 1, cycles_of(self.alone, self.amounts), cycles)


def block_runs(
    problem: MappingProblem, layer: Layer, shape: BlockShape, samples: Any, part: str, holdings: Holdings, contents: WindowContents
) -> Iterator[BlockRun]:
    """Yield the loops of a block's vertex with their amounts, one connection at a time."""
    block, loops = {"samples": shape.samples, "count": shape.columns}, block_loops(problem, layer, part)
    yield BlockRun(None, block, loops[None])
    if part == "source_gradient":
        for index, link in enumerate(link for link in layer.outgoing if problem.copies(link)):
            amounts = _source_amounts(link, shape, samples, holdings)
            yield BlockRun(link, block | amounts, loops["outgoing", index], loops["alone", index] if link.dense else None)
        return
    for index, link in enumerate(layer.incoming):
        if part == "forward" or link.read_backward:
            yield BlockRun(link, block | _amounts(problem, link, shape, holdings, contents), loops["incoming", index])
        if part == "backward" and problem.returns(link):
            yield BlockRun(link, block | {"entries": shape.samples * contents.entries(link)}, loops["partials", index])


def read_links(layer: Layer, part: str) -> list[Link]:
    """Return the connections whose windows a block reads in a part of :data:`PARTS`."""
    return [link for link in layer.incoming if part == "forward" or link.read_backward]


def _amounts(problem: MappingProblem, link: Link, shape: BlockShape, holdings: Holdings, contents: WindowContents) -> dict[str, Any]:
    if link.indexed is not None:
        held, events = holdings(link.indexed, "target").largest, contents.events(link) if link.events else 0.0
        return target_amounts(link, held, shape.samples, events, keys_passed(events), problem.window_events(link))
    if link.events:
        return {"events": shape.samples * contents.events(link)}
    return {"width": link.inputs, "nonzero": shape.samples * link.inputs * _nonzero_rows(problem, link) if link.sparse_values else 0}


def _source_amounts(link: Link, shape: BlockShape, of_tile: Any, holdings: Holdings) -> dict[str, Any]:
    if link.indexed is not None:
        return source_amounts(link, holdings(link.indexed, "source").largest, shape.columns, shape.samples)
    return {"outputs": link.outputs, "unaligned": np.asarray(of_tile) % 2 | shape.odd} if link.dense else {}


def step_cycles(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Ints, *, even: bool = False) -> Floats:
    """Return the tile cycles of one time step, one row per part of the step; placement balances these rows.

    The rows are: forward, backward, source gradients (each with compute and exchange, without the cost of fragments), and the step's share
    of the update. If `cut` is a :class:`Cuts`, the result is [rows, cuts, neurons].
    """
    samples = cut.samples(problem.batch)
    runs = {"forward": True, "backward": layer.gradient, "source_gradient": layer.gradient and bool(problem.deltas_into(layer))}
    exchange = {part: size / problem.target.exchange_bytes_per_cycle for part, size in received_bytes(problem, layer, samples).items()}
    rows = [
        problem.target.workers * block_cycles(problem, layer, cut, neurons, samples, part, even=even) + exchange[part] + 0.0 * neurons
        if runs[part]
        else 0.0 * neurons
        for part in PARTS
    ]
    return np.stack(np.broadcast_arrays(*rows, _update(problem, layer, cut, neurons))).astype(np.float64)


def received_bytes(problem: MappingProblem, layer: Layer, samples: Any) -> dict[str, Any]:
    """Return the bytes a tile with `samples` samples receives before each part of :data:`PARTS`, without deltas of indexed connections."""
    windows = sum(samples * bus.window_bytes for bus in problem.buses_into(layer))
    read = problem.whole_deltas_into(layer)
    deltas = sum(samples * problem.delta_bytes(target, port) * problem.by_id[target].neurons for target, port in read)
    back = sum(samples * problem.backward_bytes(bus) for bus in problem.buses_into(layer))
    back += sum(samples * bus.returned_bytes for bus in problem.returned_buses(layer))
    return {"forward": windows, "backward": back, "source_gradient": deltas}


def _update(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Ints) -> Floats:
    """Return the tile cycles of the update, divided by the number of iterations of a sequence."""
    learned = sum(learned_rows(layer)) if problem.training else 0
    elements = learned * neurons
    shares = problem.sample_groups(neurons, cut.columns, cut.samples(problem.batch))
    summed = moved = updated = 0.0 * neurons
    if learned:
        vertex = update(problem.costs, problem.network.moments)
        private, replicas = (cycles_of(vertex.by_place["sums"], {"count": 2, **summands(parts)}) for parts in (shares, cut.replicas))
        summed = elements / 2 * (private + replicas / cut.replicas)
        moved = 2 * FLOAT * elements * (1 - 1 / cut.replicas) / problem.target.exchange_bytes_per_cycle
        halves = half_elements(layer) if problem.network.rounding is not None else 0
        rounding = update_half(problem.costs, problem.network.moments).trip("parameters") - vertex.trip("parameters") if halves else 0
        updated = (elements * vertex.trip("parameters") + halves * neurons * rounding) / cut.replicas
    total: Floats = (summed + moved + updated) / problem.schedule.iterations(problem.steps) + 0.0 * neurons
    return total


def _returned_amounts(problem: MappingProblem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    amounts: dict[str, Any] = {"windows": 0, "searches": 0.0, "own": 0.0}
    for bus in problem.returned_buses(layer):
        support = problem.support_events[bus.id]
        spikes = min(problem.events(bus.source), bus.capacity, support)
        amounts["windows"] = amounts["windows"] + samples
        amounts["searches"] = amounts["searches"] + samples * (expected_halvings(spikes) + expected_halvings(support - spikes))
        amounts["own"] = amounts["own"] + samples * columns * support / bus.source.width
    return amounts


def _nonzero_rows(problem: MappingProblem, link: Link) -> float:
    """Return the fraction of pairs of neighbouring inputs (sums of independent spikes) that are not both 0, so that their rows are read."""

    def count() -> float:
        all_zero = np.zeros(link.inputs + link.inputs % 2)
        for feeding in problem.by_id[link.source.owner].incoming:
            assert feeding.indexed is not None
            connected, mean = feeding.indexed.map, problem.activity.mean.get(feeding.source.buffer, 0.0)
            rate, relative = np.full(feeding.inputs, mean), problem.relative_rate(feeding.source.buffer)
            rate = rate if relative is None else rate * relative
            np.add.at(all_zero, connected.target, np.log(np.maximum(1 - rate[connected.source], MIN_SILENCE)))
        return float(1 - np.exp(all_zero.reshape(-1, 2).sum(axis=1)).mean())

    return problem.memo.get(("nonzero rows", link.source.buffer), count)
