"""Emitted vertices that run a step of a population, or add a further window of spikes to its currents.

docs/reference/terms.md explains block, relay and window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, Values
from snnc.backends.poplar.vertices.counting import counted
from snnc.backends.poplar.vertices.equations import equations, load_half, loads, offset_from, pointer
from snnc.backends.poplar.vertices.gradient_windows import support_condition
from snnc.backends.poplar.vertices.indexed import add_zeroing
from snnc.backends.poplar.vertices.links import Incoming, incoming, parameter_place, parameter_value, weight_values, window_values
from snnc.backends.poplar.vertices.recompute import KEPT, half_slots, is_half, saved_slot, state_cells, state_slots
from snnc.backends.poplar.vertices.statistics import add_moments
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.lowering.gradient_support import argument_name
from snnc.compiler.tiles.codelets.block_code import BlockCode, forward_code, half_states
from snnc.compiler.tiles.codelets.block_vertices import forward, gather
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.vertices.loops import LoopsByPlace
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

TITLES: Final = {
    "forward": "One step: currents, neuron equations, sent and recorded outputs.",
    "gather": "Adds the spikes of a further window to the currents.",
    "backward": "Adjoint of one step, and its contributions to the gradients.",
    "source_gradient": "Propagates the targets' deltas to the gradients of the block's outputs.",
    "weight_round": "Adds the entries of a further window to the weight gradients.",
}
"""Comment of each vertex on blocks."""


def add_to_blocks(assembly: Assembly, population: PopulationInfo, vertex: VertexSpec, values: Values, body: Body, compute_set: str) -> None:
    """Add a codelet of a population, and a vertex on each of its blocks."""
    title, subject = TITLES[vertex.name], f"{population.id} {population.label}"
    comment, group = f"{subject}: {title[:1].lower()}{title[1:]}", "forward" if vertex.name in ("forward", "gather") else "backward"
    assembly.add_codelet(group, comment, ("Block", "b", f"{population.id}.blocks"), [compute_set], vertex, values, title, subject, body)


class BlockVertex:
    """A vertex on the blocks of a population, while its fields (`values`) and the data of its template are collected.

    The template data are pointers, stores of float32 values, stores and loads of float16 values, and the C++ `places` from which float32
    values are loaded, by their names in the kernel.
    """

    def __init__(
        self, net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, links: Sequence[Incoming], *, forward: bool
    ) -> None:
        self.net, self.assembly, self.population, self.layer = net, assembly, population, net.layers[population.id]
        self.values: Values = {
            "k": "second_clock[b.tile]",
            "stage": (net.forward_stages if forward else net.stages)[population.id],
            "interval": "INTERVAL",
            "steps": "STEPS",
            "samples": "b.samples",
            "count": "b.count",
            **window_values(net, links, backward=not forward),
        }
        self.places: dict[str, str] = {}
        self.pointers: list[Body] = []
        self.stores: list[Body] = []
        self.half_stores: list[Body] = []
        self.half_loads: list[Body] = []

    def read_parameters(self, parameters: Sequence[str], code: BlockCode) -> None:
        """Add the parameters that the code reads."""
        for index, (parameter, shared) in enumerate(zip(parameters, self.layer.parameters, strict=True)):
            if f"a{index}" in code.reads:
                self.values[f"param{index}"] = parameter_value(parameter, shared)
                self.places[f"a{index}"] = parameter_place(f"param{index}", shared)

    def add(self, vertex: VertexSpec, body: Body, compute_set: str) -> None:
        """Add a codelet of the population, and a vertex on each of its blocks."""
        add_to_blocks(self.assembly, self.population, vertex, self.values, body, compute_set)


def first_value(layer: Layer, *, always: bool = False) -> Values:
    """Return the field for the first neuron of a block, if a one-to-one connection needs it or `always` is set."""
    return {"first": "b.first"} if always or any(link.one_to_one for link in layer.incoming) else {}


def add_forward(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add a population's variables and vertices for a step (superstep F2), and the vertices for further windows."""
    step, layer, links = net.step(population.id), net.layers[population.id], incoming(net, population.id)
    limited = [link for link in links if link.limited]
    saved = net.training and layer.gradient
    supports = [o for o, buffer in enumerate(step.outputs) if buffer in net.stores and net.stores[buffer].with_support]
    code = forward_code(layer, supports, saved=saved)
    vertex = forward(net.costs[f"forward.{population.id}"], layer, links, code, supports=len(supports), saved=saved)
    block = BlockVertex(net, assembly, population, links, forward=True)
    block.values |= first_value(layer) | weight_values(links)
    ports = _ports(block, rounds=bool(limited))
    half_states_stores = _states(block, step)
    block.read_parameters(step.parameters, code)
    if saved:
        _past_halves(block, step)
        _saved(block, step)
    block.half_stores += half_states_stores  # after the histories of the states
    masks, records = _sent(block, step), _records(block, step)
    read = {*code.reads, *(r["first"] for r in records if r["first"] is not None)}
    loops = LoopsByPlace(vertex.loops)
    arguments = {o: [argument_name(population.kernel.outputs[o])] for o in supports}
    body: Body = {
        "counts": counted(loops[None]),
        "pointers": block.pointers,
        "ports": ports,
        "incoming": [link.step_body(loops) for link in links],
        "masks": [{"index": o, **_bits(net, population, step, o), "names": [f"o{o}", *arguments.get(o, [])]} for o in masks],
        "loads": loads(read, block.places) + [p for p in block.half_loads if p["name"] in read],
        "equations": equations(code.assignments),
        "stores": block.stores,
        "halves": block.half_stores,
        "half_states": bool(block.half_loads),
        "records": records,
    }
    block.add(vertex, body, "forward_neurons")
    if limited:
        _add_gather(net, assembly, population, limited)


def _bits(net: PoplarNetwork, population: PopulationInfo, step: NeuronStep, output: int) -> Body:
    """Return C++ for the word of neuron c and sample s in a mask, and for the bits to set in it."""
    kind, words, spike = net.mask_kind(net.stores[step.outputs[output]]), f"mask{output}[s * words{output}", f"o{output} != 0.0f"
    if kind == "SPIKES":
        return {"word": f"{words} + c / 32]", "bits": f"({spike} ? 0x80000000u : 0u) >> c % 32"}
    support = support_condition(population, output)
    if kind == "HALVES":
        return {"word": f"{words}]", "bits": f"({spike} ? 0x80000000u : ({support}) ? 0x8000u : 0u) >> c"}
    return {"word": f"{words} + c / 32 * 2 + ({spike} ? 0 : 1)]", "bits": f"({spike} || ({support}) ? 0x80000000u : 0u) >> c % 32"}


def _ports(block: BlockVertex, *, rounds: bool) -> list[Body]:
    """Add the currents; if further windows add to them (`rounds`), each step sets them to zero for the next one."""
    population, ports = block.population, []
    for index, (port, shared) in enumerate(zip(population.ports, block.layer.biases, strict=True)):
        cells = block.assembly.cells(population.id, port, "1", f"current {population.label}")
        block.values[f"current{index}"] = f"{cells}[b.index]"
        block.places[f"i{index}"] = f"current{index}[n]"
        starts = []
        for n, (bias, is_shared) in enumerate(zip(block.net.biases(port), shared, strict=True)):
            block.values[f"bias{index}_{n}"] = parameter_value(bias, is_shared)
            starts.append(parameter_place(f"bias{index}_{n}", is_shared))
        ports.append({"index": index, "assign": "+=" if rounds else "=", "start": " + ".join(starts) or "0.0f", "rounds": rounds})
        if rounds:
            add_zeroing(block.assembly, population.id, cells, "sets currents to zero")
    return ports


def _states(block: BlockVertex, step: NeuronStep) -> list[Body]:
    """Add the states; return the stores of float16 states."""
    net, assembly, population, half_stores = block.net, block.assembly, block.population, []
    for index, (state, buffer) in enumerate(zip(population.kernel.states, step.states, strict=True)):
        cells, slots = state_cells(net, assembly, population, index, buffer)
        half = is_half(population, index)
        shape, first = f"{{BATCH, {net.layers[population.id].neurons}}}", f"first_slots({cells}, {slots})"
        if half:
            assembly.tensors.append(f'half_state("{buffer}_initial", {shape}, {first}, order_of_half_states({population.id}));')
        else:
            assembly.tensor("STATE", f"{buffer}_initial", shape, first, f"order_of_states({population.id})", True)
        block.values[f"state{index}"] = f"{buffer}[b.index]"
        before, after = state_slots(net, population, index)
        block.pointers += [
            pointer(f"[[maybe_unused]] const {'half' if half else 'float'}", f"before{index}", f"state{index}[{before}]"),
            pointer("half" if half else "float", f"after{index}", f"state{index}[{after}]"),
        ]
        if half:
            block.half_loads.append({"name": f"{state}_prev", "value": load_half(f"before{index}[m]")})
            half_stores.append({"name": f"after{index}[m]", "value": state, "when": ""})
        else:
            block.places[f"{state}_prev"] = f"before{index}[n]"
            block.stores.append({"name": f"after{index}[n]", "value": state})
    return half_stores


def _past_halves(block: BlockVertex, step: NeuronStep) -> None:
    """Add the float16 histories of states, which contain values before or after each step."""
    segment = block.net.plan.segment
    slots = f"{KEPT} + 1" if segment else "STEPS + 1"
    # If values after each step are stored, values before it are already there, except in the first step of a segment.
    first = f"t == 0 || *k % {segment} < interval" if segment else "t == 0"
    before, after = half_slots(block.net)
    for state in half_states(block.layer):
        index, buffer = state.index, step.states[state.index]
        cells = block.assembly.half_cells(block.population.id, f"{buffer}_past", slots, f"past {block.population.label}")
        block.values[f"past{index}"] = f"{block.assembly.forget('forward', cells)}[b.index]"
        if state.before:
            block.pointers.append(pointer("half", f"past_before{index}", f"past{index}[{before}]"))
            when, value = first if state.after else "", offset_from(f"{state.name}_prev", state.offset)
            block.half_stores.append({"name": f"past_before{index}[m]", "value": value, "when": when})
        if state.after:
            block.pointers.append(pointer("half", f"past_after{index}", f"past{index}[{after}]"))
            block.half_stores.append({"name": f"past_after{index}[m]", "value": offset_from(state.name, state.offset), "when": ""})


def _saved(block: BlockVertex, step: NeuronStep) -> None:
    """Add the values of a step that the backward pass reads."""
    assembly, kernel = block.assembly, block.population.kernel
    for index, (name, buffer) in enumerate(zip(kernel.saved, step.saved, strict=True)):
        offset = kernel.rounded.get(name)
        cells, kind, size = (assembly.cells, "float", "size") if offset is None else (assembly.half_cells, "half", "halves")
        array = cells(block.population.id, buffer, KEPT if block.net.plan.segment else "STEPS", f"kept {block.population.label}")
        block.values[f"saved{index}"] = f"{assembly.forget('forward', array)}[b.index]"
        block.pointers.append(pointer(kind, f"kept{index}", f"saved{index}[{saved_slot(block.net, size)}]"))
        if offset is None:
            block.stores.append({"name": f"kept{index}[n]", "value": name})
        else:
            block.half_stores.append({"name": f"kept{index}[m]", "value": offset_from(name, offset), "when": ""})


def _sent(block: BlockVertex, step: NeuronStep) -> list[int]:
    """Add the masks and values that a population sends; return the indices of the outputs that have masks."""
    population, assembly, masks = block.population, block.assembly, []
    for index, buffer in enumerate(step.outputs):
        store = block.net.stores.get(buffer)
        if store is None:
            continue
        if store.kind == "events":
            unit, mask = block.net.mask_unit(store), f"{buffer}_mask"
            expression = f'layout.sent({population.id}, poplar::UNSIGNED_INT, "{mask}", {unit} * {population.id}.units())'
            assembly.variable("Sent", mask, expression, f"bits of the neurons of {population.label}")
            block.values[f"words{index}"] = f"{population.id}.words_of(b, {unit})"
            block.values[f"mask{index}"] = f"own_mask({mask}, {population.id}, b, {unit})"
            masks.append(index)
        else:
            now = f'layout.sent({population.id}, poplar::FLOAT, "{buffer}_now", {population.id}.most_neurons())'
            assembly.variable("Sent", f"{buffer}_now", now, f"values of {population.label}")
            block.values[f"value{index}"] = f"own_values({buffer}_now, {population.id}, b)"
            block.stores.append({"name": f"value{index}[s * count + c]", "value": f"o{index}"})
    return masks


def _records(block: BlockVertex, step: NeuronStep) -> list[Body]:
    net, assembly, population, records = block.net, block.assembly, block.population, []
    for index, output in enumerate(o for o in net.program.outputs if o.source.buffer in step.outputs):
        cells = assembly.cells(population.id, output.record, "STEPS", f"record {output.label}")
        block.values[f"record{index}"] = f"{cells}[b.index]"
        if output in net.moment_outputs(population.id):
            add_moments(net, assembly, population.id, output, cells)
        else:
            order = f"order_of_records({population.id}, STEPS, BATCH)"
            shape = f"{{STEPS, BATCH, {net.layers[population.id].neurons}}}"
            assembly.tensor("RECORD", output.record, shape, f"{cells}.all", order, False)
        delay, buffer = output.source.delay, output.source.buffer
        first = _value_before_first_step(population, buffer) if delay else None
        records.append({"index": index, "delay": delay, "value": f"o{step.outputs.index(buffer)}", "first": first})
    return records


def _value_before_first_step(population: PopulationInfo, buffer: str) -> str | None:
    """Return the kernel's name of the initial value of an output that is a state; None for others, whose delayed records begin with 0."""
    port = next(label for label, name in population.output_buffers.items() if name == buffer)
    return next((f"{s}_prev" for s in population.kernel.states if population.kernel.labels[s] == port), None)


def _add_gather(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, links: Sequence[Incoming]) -> None:
    """Add the vertices that add the spikes of a further window to the currents."""
    layer, block = net.layers[population.id], BlockVertex(net, assembly, population, links, forward=True)
    block.values |= first_value(layer) | weight_values(links)
    block.values |= {f"current{port}": f"{population.ports[port]}[b.index]" for port in {link.link.port for link in links}}
    vertex = gather(net.costs[f"gather.{population.id}"], layer, links)
    loops = LoopsByPlace(vertex.loops)
    body: Body = {"counts": counted(loops[None]), "incoming": [link.body() | {"counts": link.counts(loops)} for link in links]}
    block.add(vertex, body, "forward_gather")
