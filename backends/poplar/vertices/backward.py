"""Emitted vertices of the backward pass: the adjoint of a step, gradients of sources, and weight gradients from further windows.

docs/decisions/0001-poplar-program.md describes the supersteps; docs/reference/terms.md explains block, window and private gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, Values
from snnc.backends.poplar.vertices.counting import BLOCK, TRIPS, counted
from snnc.backends.poplar.vertices.equations import ZERO, equations, load, load_difference, load_half, loads, pointer
from snnc.backends.poplar.vertices.forward import BlockVertex, add_to_blocks, first_value
from snnc.backends.poplar.vertices.gradient_windows import cleared, partial_values, returning_bodies, returning_buses, returning_values
from snnc.backends.poplar.vertices.indexed import source_values, table_body
from snnc.backends.poplar.vertices.links import Incoming, incoming, weight_gradient_values, weight_values
from snnc.backends.poplar.vertices.recompute import half_slots, is_half, saved_slot, state_slots
from snnc.compiler.ir.step_operations import NeuronAdjoint, RecordAdjoint
from snnc.compiler.ir.step_program import ConnectionInfo, PopulationInfo
from snnc.compiler.tiles.codelets.block_code import BackwardCode, backward_code, half_states
from snnc.compiler.tiles.codelets.block_vertices import backward, sends_deltas, sends_halves, source_gradient, weight_round
from snnc.compiler.tiles.indexed.tables import TableForm
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.vertices.loops import LoopsByPlace


def ring_size(net: PoplarNetwork, buffer: str) -> int:
    """Return for how many steps gradients of an output are stored at once; 0 if they are not computed."""
    lags = [net.buses[c.id].lag for c in net.program.connections if c.source_buffer == buffer and net.links[c.id].input_gradient]
    return 1 + (max(lags) - 1) // net.plan.interval if lags else 0


def add_backward(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add a population's variables, and its vertices for the supersteps B1 (source gradients), B2 (neurons) and BG (further windows)."""
    step = net.adjoint(population.id)
    if step is None:
        return
    _add_adjoint(net, assembly, population, step)
    if net.outgoing(population.id):
        _add_source_gradient(net, assembly, population, step)
    _add_weight_round(net, assembly, population, step)


def _add_adjoint(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    layer, all_links = net.layers[population.id], incoming(net, population.id)
    links = [link for link in all_links if link.read_backward or link.returned]
    read = [link for link in links if link.read_backward]
    returned = [link for link in links if link.returned]
    code = backward_code(layer)
    buses = returning_buses(net, layer, code)
    sources = [source for bus in buses for source in layer.sent if source.buffer == bus.buffer]
    vertex = backward(net.costs[f"backward.{population.id}"], layer, all_links, code, sources)
    block = BlockVertex(net, assembly, population, links, forward=False)
    block.values |= weight_gradient_values(read) | weight_values(returned) | partial_values(net, returned)
    zeros: list[Body] = [{"name": f"gradient{a.index}", "size": _gradient_size(a)} for a in read if a.link.weight_gradient]
    zeros += _state_adjoints(block, step, code)
    for parameter in code.sums:
        block.values[f"sum_{parameter.name}"] = f"d_{parameter.buffer}[b.index]"
        zeros.append({"name": f"sum_{parameter.name}", "size": "1" if parameter.shared else "count"})
    sent = _deltas(block, all_links, code)
    if layer.stores_adjoint:
        _add_record(block, code)
    block.read_parameters(step.parameters, code)
    _stored(block, step, code)
    block.values |= returning_values(net, buses) | first_value(layer, always=bool(buses)) | ({"last": "ITERATIONS - 1"} if buses else {})
    loops = LoopsByPlace(vertex.loops)
    bodies = returning_bodies(layer, buses, loops, ahead=1)  # relays wrote these gradients one iteration earlier
    body: Body = {
        "counts": counted(loops[None]),
        "rings": sorted({body["output"] for body in bodies}),
        "returned": bodies,
        "cleared": [link.body() for link in returned if cleared(net, link.connection)],
        "partials": [link.partials_body(loops) for link in returned],
        "pointers": block.pointers,
        "zeros": zeros,
        "outputs": _outputs(block, step, code),
        "loads": loads(code.reads, block.places) + block.half_loads,
        "halves": block.half_loads,
        "equations": equations(code.assignments),
        "stores": block.stores,
        "sent": sent,
        "sums": [{"name": f"sum_{s.name}[{'0' if s.shared else 'c'}]", "value": s.gradient, "shared": s.shared} for s in code.sums],
        "incoming": [link.adjoint_body(loops) for link in read],
    }
    block.add(vertex, body, "backward_neurons")


def _deltas(block: BlockVertex, links: Sequence[Incoming], code: BackwardCode) -> list[Body]:
    """Add the gradients of currents, for the block and for its sources; return the template data that stores those for the sources."""
    assembly, population, sent = block.assembly, block.population, []
    for port in code.ports:
        current = population.ports[port]
        local = assembly.cells(population.id, f"d_{current}_own", "1", f"gradient of a current of {population.label}")
        block.values[f"delta{port}"] = f"{local}[b.index]"
        block.stores.append({"name": f"delta{port}[n]", "value": f"d_i{port}"})
        if sends_deltas(links, port):
            expression = f'layout.{"half_" if sends_halves(links, port) else ""}matrix({population.id}, "d_{current}")'
            matrix = assembly.variable("Matrix", f"d_{current}", expression, "gradient of a current, for the sources")
            block.values[f"sent{port}"] = f"Layout::own({matrix}, b)"
            sent.append({"name": f"sent{port}[c * samples + s]", "value": f"d_i{port}"})
    return sent


def _add_record(block: BlockVertex, code: BackwardCode) -> None:
    """Store the gradient of a current at all steps, for a caller that reads it."""
    (port,), population, name = code.ports, block.population, f"d_{block.population.id}"
    cells = block.assembly.cells(population.id, name, "STEPS", f"gradient of the values that {population.label} reads")
    block.values[f"shown{port}"] = f"{cells}[b.index]"
    block.stores.append({"name": f"shown{port}[(static_cast<unsigned long>(s) * steps + t) * count + c]", "value": f"d_i{port}"})
    shape, order = f"{{STEPS, BATCH, {block.net.layers[population.id].neurons}}}", f"order_of_records({population.id}, STEPS, BATCH)"
    block.assembly.tensor("RECORD", name, shape, f"{cells}.all", order, False)


def _gradient_size(incoming_link: Incoming) -> str:
    link, index = incoming_link.link, incoming_link.index
    if link.indexed is not None:
        return f"size{index}"
    if link.dense:
        return f"padded({'inputs' if link.events else 'width'}{index}, count)"
    return "1" if link.weight_elements == 1 else "count"


def _state_adjoints(block: BlockVertex, step: NeuronAdjoint, code: BackwardCode) -> list[Body]:
    """Add the adjoints of states, which each step stores for the next one; return the template data that sets them to zero."""
    zeros: list[Body] = []
    for index, (state, buffer) in enumerate(zip(block.population.kernel.states, step.states, strict=True)):
        if state not in code.states:
            continue
        cells = block.assembly.cells(block.population.id, f"d_{buffer}", "1", f"adjoint of a state of {block.population.label}")
        block.values[f"d_state{index}"] = f"{block.assembly.forget('backward', cells)}[b.index]"
        block.places[f"d_{state}"] = f"d_state{index}[n]"
        block.stores.append({"name": f"d_state{index}[n]", "value": f"d_{state}_prev"})
        zeros.append({"name": f"d_state{index}", "size": "size"})
    return zeros


def _stored(block: BlockVertex, step: NeuronAdjoint, code: BackwardCode) -> None:
    """Add the states and saved values that the adjoint reads, with pointers to those of this step."""
    net, population, values = block.net, block.population, block.values
    halves = half_states(block.layer)
    for rounded in halves:
        values[f"past{rounded.index}"] = f"{step.states[rounded.index]}_past[b.index]"
        names = ((rounded.before, "before", f"{rounded.name}_prev"), (rounded.after, "after", rounded.name))
        for (read, place, name), slot in zip(names, half_slots(net), strict=True):
            if read:
                block.pointers.append(pointer("const half", f"past_{place}{rounded.index}", f"past{rounded.index}[{slot}]"))
                block.half_loads.append({"name": name, "value": load_difference(f"past_{place}{rounded.index}[m]", rounded.offset)})
    for index, (state, buffer) in enumerate(zip(population.kernel.states, step.states, strict=True)):
        if state in [rounded.name for rounded in halves]:
            continue
        if code.reads & {state, f"{state}_prev"}:
            values[f"state{index}"] = f"{buffer}[b.index]"
        for name, place, slot in zip((f"{state}_prev", state), ("before", "after"), state_slots(net, population, index), strict=True):
            if name not in code.reads:
                continue
            half = is_half(population, index)
            block.pointers.append(pointer(f"const {'half' if half else 'float'}", f"{place}{index}", f"state{index}[{slot}]"))
            if half:
                block.half_loads.append({"name": name, "value": load_half(f"{place}{index}[m]")})
            else:
                block.places[name] = f"{place}{index}[n]"
    for index, (name, buffer) in enumerate(zip(population.kernel.saved, step.saved, strict=True)):
        if name not in code.reads:
            continue
        values[f"saved{index}"] = f"{buffer}[b.index]"
        offset = population.kernel.rounded.get(name)
        kind, size = ("float", "size") if offset is None else ("half", "halves")
        block.pointers.append(pointer(f"const {kind}", f"kept{index}", f"saved{index}[{saved_slot(net, size)}]"))
        if offset is None:
            block.places[name] = f"kept{index}[n]"
        else:
            block.half_loads.append({"name": name, "value": load_difference(f"kept{index}[m]", offset)})


def _outputs(block: BlockVertex, step: NeuronAdjoint, code: BackwardCode) -> list[Body]:
    """Add the gradients of outputs: those of connections in a ring of steps, and those of records that the loss reads."""
    net, population, outputs = block.net, block.population, []
    for index, buffer in enumerate(step.outputs):
        ring = ring_size(net, buffer)
        if ring:
            cells = block.assembly.cells(population.id, f"d_{buffer}", ring, f"gradient of an output of {population.label}")
            block.assembly.forget("backward", cells)
        if f"d_o{index}" not in code.reads:
            continue
        if ring:
            block.values |= {f"d_output{index}": f"d_{buffer}[b.index]", f"ring{index}": ring}
        place = f"d_output{index}[(static_cast<unsigned>(t) % ring{index}) * size + n]" if ring else ""
        delays = []
        for op in net.program.backward:
            if isinstance(op, RecordAdjoint) and op.source.buffer == buffer and op.output == net.program.loss_output:
                record = block.assembly.cells(population.id, f"d_{op.target}", "STEPS", f"adjoint of a record of {population.label}")
                block.values[f"d_record{index}"] = f"{record}[b.index]"
                delays.append(op.source.delay)
        outputs.append({"index": index, "start": load(place) if ring else ZERO, "ring": place, "record_delays": delays})
    return outputs


def _add_source_gradient(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    """Add the vertices that compute the gradient of a population's outputs from the deltas of its targets."""
    layer, links, p = net.layers[population.id], net.outgoing(population.id), population.id
    values: Values = {
        "k": "first_clock[b.tile]",
        "interval": "INTERVAL",
        "steps": "STEPS",
        "last": "ITERATIONS - 1",
        "batch": f"{p}.replicas[b.replica].samples",
        "sample": f"b.sample - {p}.replicas[b.replica].sample",
        "samples": "b.samples",
        "count": "b.count",
    }
    outputs = sorted({step.outputs.index(c.source_buffer) for c in links})
    for o in outputs:
        ring, cells = ring_size(net, step.outputs[o]), f"d_{step.outputs[o]}"
        assembly.cells(p, cells, ring, f"gradient of an output of {population.label}")
        values |= {f"d_output{o}": f"{cells}[b.index]", f"ring{o}": ring}
    outgoing: list[Body] = []
    forms: list[tuple[Link, TableForm | None]] = []
    for index, connection in enumerate(links):
        link = net.links[connection.id]
        tables = net.indexed[connection.id].source if link.indexed is not None else None
        forms.append((link, None if tables is None else tables.form))
        values |= _outgoing_values(net, index, connection, *forms[-1])
        of_neuron = f"static_cast<float>(weight{index}[c]) * " if link.half else f"weight{index}[c] * "
        weight_times = {0: "", 1: f"*weight{index} * "}.get(link.weight_elements, of_neuron)
        outgoing.append(
            {
                "index": index,
                "output": step.outputs.index(connection.source_buffer),
                "template": connection.kind if tables is None else "maximum" if link.chooses else "indexed",
                "weight_times": weight_times,
                "delta": "half" if link.half_deltas else "float",
                "stored": "half" if link.half else "float",
                "stride": f"even(outputs{index})" if link.half else f"outputs{index}",
                **({} if tables is None else table_body(net, connection.id, index, source=True)),
            }
        )
    vertex = source_gradient(net.costs[f"source_gradient.{p}"], layer, forms)
    loops = LoopsByPlace(vertex.loops)
    outgoing = [body | _source_counts(loops, body) for body in outgoing]
    body: Body = {"counts": counted(loops[None]), "rings": outputs, "outgoing": outgoing}
    add_to_blocks(assembly, population, vertex, values, body, "relay_backward")


def _source_counts(loops: LoopsByPlace, body: Body) -> Body:
    """Return the statements that count the cycles of an outgoing connection, also for replicas with a single sample (``counts_alone``)."""
    index = body["index"]
    texts = {**BLOCK, **TRIPS, "outputs": f"outputs{index}", "unaligned": "(aligned ? 0u : 1u)"}
    if body["template"] == "maximum":
        texts["sample_values"] = "trips.values * samples"
    return {"counts": counted(loops["outgoing", index], texts), "counts_alone": counted(loops["alone", index], texts)}


def _outgoing_values(net: PoplarNetwork, index: int, connection: ConnectionInfo, link: Link, form: TableForm | None) -> Values:
    """Return the fields for an outgoing connection: the deltas of its target, its weights or tables, and when the target runs."""
    target = net.program.population(connection.target)
    delta = f"d_{target.ports[connection.port]}"
    values: Values = {f"stage{index}": net.stages[target.id], f"delay{index}": connection.delay}
    if form is not None:
        return values | source_values(connection.id, index, delta, form, chooses=link.chooses)
    if link.dense:
        values |= {
            f"outputs{index}": net.layers[target.id].neurons,
            f"delta{index}": f"Layout::of_replica({delta}, {connection.source}, b)",
        }
    else:
        values[f"delta{index}"] = f"Layout::own({delta}, b, {net.offset(connection.id)})"
    if link.weight_elements:
        shared = link.one_to_one and link.weight_elements == 1
        values[f"weight{index}"] = f"{connection.weight}_rows[b.group]{'[0]' if shared else ''}"
    return values


def _add_weight_round(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    """Add the vertices for a further window: its weight gradients and partial products, and the gradients returned for the window before.

    Populations that have none of these in further windows get no vertices.
    """
    layer = net.layers[population.id]
    links = [link for link in incoming(net, population.id) if link.limited_back and (link.read_backward or link.returned)]
    buses = returning_buses(net, layer, backward_code(layer), limited=True)
    if not links and not buses:
        return
    read, returned = [link for link in links if link.read_backward], [link for link in links if link.returned]
    sources = [source for bus in buses for source in layer.sent if source.buffer == bus.buffer]
    block = BlockVertex(net, assembly, population, links, forward=False)
    block.values |= weight_gradient_values(read) | weight_values(returned) | partial_values(net, returned)
    block.values |= returning_values(net, buses) | first_value(layer, always=bool(buses))
    block.values |= {f"delta{p}": f"d_{population.ports[p]}_own[b.index]" for p in {link.link.port for link in links}}
    for bus in buses:
        o = step.outputs.index(bus.buffer)
        block.values |= {f"d_output{o}": f"d_{bus.buffer}[b.index]", f"ring{o}": ring_size(net, bus.buffer)}
    vertex = weight_round(net.costs[f"weight_round.{population.id}"], layer, links, sources)
    loops = LoopsByPlace(vertex.loops)
    body: Body = {
        "counts": counted(loops[None]),
        "returned": returning_bodies(layer, buses, loops, ahead=0),  # written in this iteration
        "cleared": [link.body() for link in returned if cleared(net, link.connection)],
        "incoming": [link.body() | {"counts": link.counts(loops, backward=True)} for link in read],
        "partials": [link.partials_body(loops) for link in returned],
    }
    block.add(vertex, body, "backward_rounds")
