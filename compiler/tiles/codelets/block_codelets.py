"""Codelets that run the blocks of a population, and the number of vertices of each codelet.

A block is the neurons and samples that one worker of a tile processes. A codelet is a C++ class of the emitted program, and a vertex an
instance of it on a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from snnc.compiler.tiles.codelets.block_code import backward_code, forward_code
from snnc.compiler.tiles.codelets.block_loops import backward_loops, forward_loops, source_loops
from snnc.compiler.tiles.codelets.block_vertices import (
    BlockLink,
    backward,
    forward,
    gather,
    returning_to,
    source_gradient,
    weight_round,
    with_support_tests,
)
from snnc.compiler.tiles.codelets.relay_codelets import relay_codelets
from snnc.compiler.tiles.indexed.indexed_links import IndexedLink, Side
from snnc.compiler.tiles.indexed.tables import TableForm
from snnc.compiler.tiles.mapped.network import BusSource, Layer
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.boundary_vertices import boundary, state_types
from snnc.compiler.tiles.vertices.control_vertices import ZERO_VERTEX
from snnc.compiler.tiles.vertices.loops import Loop, LoopsByPlace
from snnc.compiler.tiles.vertices.statistics_vertices import block_moments
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

FormOf: TypeAlias = Callable[[IndexedLink, Side], TableForm]
"""Function that returns the form of the tables of one side of an indexed connection."""


def estimated_form(link: IndexedLink, side: Side) -> TableForm:
    """Return the form that tables have in nearly every placement: runs have one value if each entry of the connection's map has one target.

    A placement may cut longer entries, but rarely cuts all of them into runs of one value.
    """
    return TableForm(single=link.map.length == 1)


def block_codelets(problem: MappingProblem, layer: Layer, form: FormOf = estimated_form) -> Iterator[tuple[VertexSpec, int]]:
    """Yield every class of vertices of `layer`, with the number of its vertices per block."""
    links, costs = block_links(problem, layer, form), problem.costs
    saved, supports = problem.training and layer.gradient, supported_outputs(layer, problem.windowed)
    code = forward_code(layer, supports, saved=saved)
    yield forward(costs[f"forward.{layer.id}"], layer, links, code, supports=len(supports), saved=saved), 1
    further = [link for link in links if link.limited]
    if further:
        yield gather(costs[f"gather.{layer.id}"], layer, further), 1
        yield ZERO_VERTEX, len(layer.kernel.inputs) + sum(link.link.chooses for link in further)
    if problem.segment:
        reruns = problem.segments.reruns
        sent = [(layer.outputs.index(source.buffer), source.kind == "spikes") for source in layer.sent if reruns]
        yield boundary(costs, state_types(layer.kernel), sent), 1 + reruns  # one restores; if segments run again, another saves
    if layer.computes_statistics:
        yield block_moments(costs), 1
    if not (problem.training and layer.gradient):
        return
    adjoint, returning, limited = backward_code(layer), problem.returned_buses(layer), problem.limited(backward=True)
    yield backward(costs[f"backward.{layer.id}"], layer, links, adjoint, [bus.source for bus in returning]), 1
    out = [link for link in layer.outgoing if problem.copies(link)]
    if out:
        forms = [(link, None if link.indexed is None else form(link.indexed, "source")) for link in out]
        yield source_gradient(costs[f"source_gradient.{layer.id}"], layer, forms), 1
    further_back = [link for link in links if link.limited_back and (link.read_backward or link.returned)]
    returning_sources = returning_to(layer, adjoint, [bus.source for bus in returning if bus in limited])
    if further_back or returning_sources:
        yield weight_round(costs[f"weight_round.{layer.id}"], layer, further_back, returning_sources), 1


def block_loops(problem: MappingProblem, layer: Layer, name: str) -> LoopsByPlace:
    """Return the loops of a vertex of `layer`, grouped by link and purpose; they cover all forms of tables."""
    return problem.memo.get(("loops", name, layer.id), lambda: LoopsByPlace(_loops(problem, layer, name)))


def _loops(problem: MappingProblem, layer: Layer, name: str) -> tuple[Loop, ...]:
    links, cost = block_links(problem, layer, None), problem.costs[f"{name}.{layer.id}"]
    if name == "source_gradient":
        return source_loops(cost, [(link, None) for link in layer.outgoing if problem.copies(link)])
    if name in ("forward", "gather"):
        tested = with_support_tests(cost, len(supported_outputs(layer, problem.windowed))) if name == "forward" else cost
        return forward_loops(tested, links)
    read, back = [link for link in links if link.read_backward], [link for link in links if link.returned]
    return backward_loops(cost, read, back, len(problem.returned_buses(layer)))


def block_links(problem: MappingProblem, layer: Layer, form: FormOf | None = estimated_form) -> list[BlockLink]:
    """Return all connections into `layer`, with the properties that determine the code of its vertices."""
    limited, limited_back = ({bus.id for bus in problem.limited(backward=backward)} for backward in (False, True))
    return [
        BlockLink(
            index,
            link,
            problem.returns(link),
            problem.bus_of[link.id] in limited,
            problem.bus_of[link.id] in limited_back,
            None if link.indexed is None or form is None else form(link.indexed, "target"),
        )
        for index, link in enumerate(layer.incoming)
    ]


def supported_outputs(layer: Layer, windowed: Collection[BusSource]) -> list[int]:
    """Return the spike outputs whose masks also mark neurons in the support of the surrogate."""
    return sorted(layer.outputs.index(source.buffer) for source in layer.sent if source in windowed)


def layer_code_bytes(problem: MappingProblem, layer: Layer) -> int:
    """Estimate, before placement, the bytes of codelets on a tile with blocks of `layer` and a relay of each of its outputs."""
    return problem.memo.get(("code of a layer", layer.id), lambda: _code_of(problem, layer))


def _code_of(problem: MappingProblem, layer: Layer) -> int:
    costs = [vertex.cost for vertex, _ in block_codelets(problem, layer)]
    costs += [vertex.cost for source in layer.sent for _, vertex, _ in relay_codelets(problem, source)]
    network = problem.network
    halves = ["update_half"] if network.rounding is not None else []
    rows = "weight_rows_half" if network.half_weights else "weight_rows"
    of_update = ("update", *halves, *(["squares"] if network.norm_cycles else []), rows, *(["pack_rows"] if problem.packed else []))
    costs += [problem.costs[name] for name in of_update if problem.training]
    loops = dict(loop for cost in costs for loop in cost.loops)
    return problem.target.instruction_bytes * (sum(cost.instructions for cost in costs) + sum(loops.values()))
