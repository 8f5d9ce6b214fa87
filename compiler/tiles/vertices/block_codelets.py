"""The codelets of a population's blocks: classes, their fields and their vertices, as backends/poplar prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from snnc.compiler.tiles.gradients.gradient_counts import returned_buses
from snnc.compiler.tiles.network import Layer, Link
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.boundary_vertices import boundary
from snnc.compiler.tiles.vertices.control_vertices import ZERO_VERTEX
from snnc.compiler.tiles.vertices.cost import CodeletCost, partial_products
from snnc.compiler.tiles.vertices.relay_codelets import relay_codelets


def block_codelets(problem: MappingProblem, layer: Layer) -> Iterator[tuple[str, CodeletCost, int, int]]:
    """Name, cost, fields and vertices of a block of each class that its compute sets have."""
    limited = {backward: {bus.id for bus in problem.limited(backward=backward)} for backward in (False, True)}
    further = [link for link in layer.incoming if problem.bus_of[link.id] in limited[False]]
    near = sum(source in problem.windowed for source in layer.sent)
    cost = problem.costs[f"forward.{layer.id}"]
    yield "forward", replace(cost, neuron=cost.neuron + near * cost.near), _forward_fields(problem, layer), 1
    if further:
        ports = len({link.port for link in further})
        yield "gather", problem.costs[f"gather.{layer.id}"], 6 + _first(layer) + _read(further) + _weights(further) + ports, 1
        yield ZERO_VERTEX.name, ZERO_VERTEX.cost, len(ZERO_VERTEX.fields), len(layer.kernel.inputs)
    if problem.segment:
        reruns = problem.segments.reruns
        sent = [(index, source.kind == "spikes") for index, source in enumerate(layer.sent) if reruns]
        vertex = boundary(problem.costs, len(layer.kernel.states), sent)
        yield vertex.name, vertex.cost, len(vertex.fields), 1 + reruns
    if not (problem.training and layer.gradient):
        return
    cost, back = problem.costs[f"backward.{layer.id}"], [link for link in layer.incoming if problem.returns(link)]
    yield "backward", cost.calling(partial_products(cost)) if back else cost, _backward_fields(problem, layer, back), 1
    if problem.deltas_into(layer):
        yield "source_gradient", problem.costs[f"source_gradient.{layer.id}"], _source_fields(problem, layer), 1
    again = [link for link in layer.incoming if problem.bus_of[link.id] in limited[True] and (link.read_backward or problem.returns(link))]
    came = [bus for bus in returned_buses(problem, layer) if bus.id in limited[True]]
    if again or came:
        both = [link for link in again if problem.returns(link)]
        cost = problem.costs[f"weight_round.{layer.id}"]
        fields = 6 + _first(layer) + _read(again) + _gradients(again) + _weights(both) + 2 * len(both)
        fields += len({link.port for link in again}) + 9 * len(came)
        yield "weight_round", cost.calling(partial_products(cost)) if both else cost, fields, 1


# ---- fields of blocks --------------------------------------------------------------------------------------------------------


def _first(layer: Layer) -> int:
    return int(any(link.one_to_one for link in layer.incoming))


def _read(links: Iterable[Link]) -> int:
    """Windows: ids, counts, room and width of events, else values and width."""
    return sum((3 + link.dense if link.events else 2) + link.one_to_one for link in links)


def tables_of(link: Link) -> int:
    """Tables of runs of an indexed connection: rows, places, starts, and lengths where runs are longer than one."""
    return 0 if link.indexed is None else 3 + (link.indexed.map.length > 1)


def _weights(links: Iterable[Link]) -> int:
    """Weights at the target; for indexed connections tables, keys (or the first row), rows, and weights or the chosen entries."""
    return sum(tables_of(link) + 3 if link.indexed is not None else int(link.weight_elements > 0) for link in links)


def _gradients(links: Iterable[Link]) -> int:
    """Private sums of weight gradients; a maximum with a source gradient has its chosen entries."""
    found = 0
    for link in links:
        if link.indexed is not None:
            found += tables_of(link) + 4 + (link.chooses and not link.events)
        else:
            found += link.weight_gradient
    return found


def _parameters(layer: Layer) -> int:
    return layer.neuron_parameters + layer.scalar_parameters


def _forward_fields(problem: MappingProblem, layer: Layer) -> int:
    kernel, kept = layer.kernel, problem.training and layer.gradient
    own = len(kernel.inputs) + len(kernel.states) + _parameters(layer) + (len(kernel.saved) if kept else 0)
    sent = sum(2 if source.kind == "spikes" else 1 for source in layer.sent)
    return 6 + _first(layer) + _read(layer.incoming) + _weights(layer.incoming) + own + sent + layer.records


def _backward_fields(problem: MappingProblem, layer: Layer, back: list[Link]) -> int:
    kernel = layer.kernel
    learned = [link for link in layer.incoming if link.read_backward]
    both = [link for link in layer.incoming if link in learned or link in back]
    ports = {link.port for link in layer.incoming if link.weight_gradient or link.input_gradient}
    sent = {link.port for link in layer.incoming if link.input_gradient and not problem.returns(link)}
    own = len(kernel.states) + layer.learnable_neuron_parameters + layer.learnable_scalars + len(ports) + len(sent)
    own += len(kernel.parameters) + len(kernel.history) + len(kernel.saved) + len(layer.adjoint_outputs)
    rings = sum(problem.ring_slots(source) > 0 for source in layer.sent)
    came = len(returned_buses(problem, layer))
    own += 2 * rings + 7 * came + max(_first(layer), int(came > 0)) + (came > 0)
    return 6 + _read(both) + _gradients(learned) + _weights(back) + 2 * len(back) + own


def _source_fields(problem: MappingProblem, layer: Layer) -> int:
    links = [link for link in layer.outgoing if problem.copies(link)]
    found = 8 + 2 * len({link.source for link in links})
    for link in links:
        found += 2 + (3 if link.dense else tables_of(link) + 2 if link.indexed is not None else 1 + (link.weight_elements > 0))
    return found


# ---- an estimate --------------------------------------------------------------------------------------------------------------


def layer_code_bytes(problem: MappingProblem, layer: Layer) -> int:
    """Bytes of codelets on a tile of `layer` that also has a relay of its output, before anything is placed."""
    return problem.kept.get(("code of a layer", layer.id), lambda: _code_of(problem, layer))


def _code_of(problem: MappingProblem, layer: Layer) -> int:
    costs = [cost for _, cost, _, _ in block_codelets(problem, layer)]
    costs += [vertex.cost for source in layer.sent for _, vertex, _ in relay_codelets(problem, source)]
    costs += [problem.costs[name] for name in ("update", "weight_rows", *(["pack_rows"] if problem.packed else [])) if problem.training]
    loops = dict(loop for cost in costs for loop in cost.loops)
    return problem.target.instruction_bytes * (sum(cost.instructions for cost in costs) + sum(loops.values()))
