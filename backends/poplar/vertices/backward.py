"""The vertices of the backward pass: adjoint of a step, further windows of weight gradients, gradients of sources."""

from __future__ import annotations

from typing import Final

from snnc.backends.codegen.assignments import needed, reads
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, CodeletField, integer, number, scalar, vector
from snnc.backends.poplar.vertices.equations import ZERO, load, loads, statements, store
from snnc.backends.poplar.vertices.forward import BlockVertex, clock_fields, first_field
from snnc.backends.poplar.vertices.gradient_windows import cleared, partial_fields, returned
from snnc.backends.poplar.vertices.indexed import source_fields, table_body
from snnc.backends.poplar.vertices.links import bus_fields, gradient_fields, incoming, is_shared, parameter_field, weight_fields
from snnc.backends.poplar.vertices.recompute import saved_slot, state_slots
from snnc.compiler.ir.step_operations import NeuronAdjoint, RecordAdjoint
from snnc.compiler.ir.step_program import ConnectionInfo, PopulationInfo

BACKWARD: Final = BlockVertex(
    "backward", "Backward", "The adjoint of one step, and what it adds to gradients.", "backward_neurons", "backward"
)
SOURCES: Final = BlockVertex(
    "source_gradient",
    "SourceGradient",
    "Adds what the targets' deltas mean for the outputs of the block.",
    "relay_backward",
    "source_gradient",
)
ROUND: Final = BlockVertex(
    "weight_gradient", "WeightRound", "Adds a further window to the weight gradients.", "backward_rounds", "weight_round"
)


def ring_size(net: PoplarNetwork, buffer: str) -> int:
    """Number of steps for which gradients of an output are pending at once; 0 if none arrive over connections."""
    lags = [net.buses[c.id].lag for c in net.program.connections if c.source_buffer == buffer and net.input_gradient(c.id)]
    return 1 + (max(lags) - 1) // net.plan.interval if lags else 0


def add_backward(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add the variables and vertices of ``B1 source gradients`` and ``B2 neurons`` for one population."""
    step = net.adjoint(population.id)
    if step is None:
        return
    _add_adjoint(net, assembly, population, step)
    if net.outgoing(population.id):
        _add_source_gradient(net, assembly, population, step)
    _add_weight_round(net, assembly, population, step)


def _add_adjoint(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    links = [link for link in incoming(net, population.id) if link.read_backward]
    back = [link for link in incoming(net, population.id) if link.returned]
    both = [link for link in incoming(net, population.id) if link.read_backward or link.returned]
    fields = [
        *clock_fields(net, population.id, forward=False),
        *bus_fields(net, both, backward=True),
        *gradient_fields(net, links),
        *weight_fields(net, back),
    ]
    for link in back:
        fields += partial_fields(net, link.index, link.connection)
    zeros: list[Body] = [_zero_of(net, link.index, link.connection) for link in links if link.learned]
    places: dict[str, str] = {}
    stores = _state_adjoints(net, assembly, population, step, fields, places, zeros)
    sums = _parameter_sums(net, population, step, fields, zeros)
    ports = _delta_ports(net, population)
    sent_to: list[Body] = []
    for port in ports:
        current = population.ports[port]
        own = assembly.cells(population.id, f"d_{current}_own", "1", f"gradient of a current of {population.label}")
        fields.append(vector("Output", "float", f"delta{port}", f"{own}[b.index]"))
        stores.append({"name": f"delta{port}[n]", "value": f"d_i{port}"})
        if any(c.port == port and net.input_gradient(c.id) and not net.returns(c.id) for c in net.incoming(population.id)):
            sent = assembly.variable(
                "Matrix", f"d_{current}", f'layout.matrix({population.id}, "d_{current}")', "the same, for its sources"
            )
            fields.append(vector("Output", "float", f"sent{port}", f"Layout::own({sent}, b)"))
            sent_to.append({"name": f"sent{port}[c * samples + s]", "value": f"d_i{port}"})
    results = [s["value"] for s in [*stores, *sent_to, *sums]]
    code = needed(population.kernel.backward, results)
    used = reads(code, results)
    for index, parameter in enumerate(step.parameters):
        if f"a{index}" in used:
            found, places[f"a{index}"] = parameter_field(net, population.id, parameter, f"param{index}")
            fields.append(found)
    pointers = _stored(net, population, step, fields, places, used)
    came, bodies, rings = returned(net, population, step, used, [bus for bus in net.plan.buses if bus.gradient], ahead=1)
    fields += [*came, *(first_field(net, population.id) or ([number("first", "b.first")] if bodies else []))]
    fields += [integer("last", "ITERATIONS - 1")] if rings else []
    body: Body = {
        "rings": rings,
        "returned": bodies,
        "cleared": [link.body() for link in back if cleared(net, link.connection)],
        "partials": [link.body() for link in back],
        "pointers": pointers,
        "zeros": zeros,
        "outputs": _outputs(net, assembly, population, step, fields, used),
        "loads": loads(used, places),
        "equations": statements(code),
        "stores": stores,
        "sent": sent_to,
        "sums": [{"text": _add_sum(s["name"], s["value"])} for s in sums],
        "incoming": [body for link in links for body in link.first_bodies()],
    }
    BACKWARD.add(net, assembly, population, "backward", fields, body, returns=bool(back))


def _zero_of(net: PoplarNetwork, index: int, connection: ConnectionInfo) -> Body:
    if connection.id in net.indexed:
        return {"name": f"gradient{index}", "size": f"size{index}"}
    if connection.kind == "dense":
        rows = f"{'inputs' if net.buses[connection.id].kind == 'events' else 'width'}{index}"
        return {"name": f"gradient{index}", "size": f"padded({rows}, count)"}
    shared = connection.weight is not None and net.size(connection.weight) == 1
    return {"name": f"gradient{index}", "size": "1" if shared else "count"}


def _state_adjoints(
    net: PoplarNetwork,
    assembly: Assembly,
    population: PopulationInfo,
    step: NeuronAdjoint,
    fields: list[CodeletField],
    places: dict[str, str],
    zeros: list[Body],
) -> list[Body]:
    """States whose adjoint is passed from step to step."""
    stores: list[Body] = []
    for index, (state, buffer) in enumerate(zip(population.kernel.states, step.states, strict=True)):
        if not any(a.target == f"d_{state}_prev" for a in population.kernel.backward):
            continue
        cells = assembly.cells(population.id, f"d_{buffer}", "1", f"adjoint of a state of {population.label}")
        fields.append(vector("InOut", "float", f"d_state{index}", f"{assembly.forget('backward', cells)}[b.index]"))
        places[f"d_{state}"] = f"d_state{index}[n]"
        stores.append({"name": f"d_state{index}[n]", "value": f"d_{state}_prev"})
        zeros.append({"name": f"d_state{index}", "size": "size"})
    return stores


def _parameter_sums(
    net: PoplarNetwork, population: PopulationInfo, step: NeuronAdjoint, fields: list[CodeletField], zeros: list[Body]
) -> list[Body]:
    """Gradients of parameters and biases: one value a neuron, or one for all."""
    sums: list[Body] = []
    learned = [(step.parameters[population.kernel.parameters.index(a)], f"d_{a}", f"d_{a}") for a in population.kernel.learnable]
    for port, current in enumerate(population.ports):
        learned += [(b, f"d_bias{port}_{n}", f"d_i{port}") for n, b in enumerate(net.biases(current)) if net.bias_learned(b)]
    for parameter, name, value in learned:
        if parameter not in {op.parameter for op in net.program.update}:
            continue
        field = f"sum_{name}"
        shared = is_shared(net, parameter, population.id)
        fields.append(vector("InOut", "float", field, f"d_{parameter}[b.index]"))
        zeros.append({"name": field, "size": "1" if shared else "count"})
        sums.append({"name": f"{field}[{'0' if shared else 'c'}]", "value": value})
    return sums


def _add_sum(place: str, value: str) -> str:
    """C++ statement that adds values to one sum each, or all to the only one."""
    return f"{place} += sum_of({value});" if place.endswith("[0]") else store(place, f"load<Real>(&{place}) + {value}")


def _delta_ports(net: PoplarNetwork, population: PopulationInfo) -> list[int]:
    links = net.incoming(population.id)
    return sorted({c.port for c in links if net.weight_gradient(c.id) or net.input_gradient(c.id)})


def _stored(
    net: PoplarNetwork, population: PopulationInfo, step: NeuronAdjoint, fields: list[CodeletField], places: dict[str, str], used: set[str]
) -> list[str]:
    """States and saved values of the forward pass that the adjoint reads; return where they lie in this step."""
    pointers = []
    for index, (state, buffer) in enumerate(zip(population.kernel.states, step.states, strict=True)):
        if used & {state, f"{state}_prev"}:
            fields.append(vector("Input", "float", f"state{index}", f"{buffer}[b.index]"))
        for name, place, slot in zip((f"{state}_prev", state), ("before", "after"), state_slots(net, population, index), strict=True):
            if name in used:
                pointers.append(f"const float *{place}{index} = &state{index}[{slot}];")
                places[name] = f"{place}{index}[n]"
    for index, (name, buffer) in enumerate(zip(population.kernel.saved, step.saved, strict=True)):
        if name in used:
            fields.append(vector("Input", "float", f"saved{index}", f"{buffer}[b.index]"))
            pointers.append(f"const float *kept{index} = &saved{index}[{saved_slot(net)}];")
            places[name] = f"kept{index}[n]"
    return pointers


def _outputs(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint, fields: list[CodeletField], used: set[str]
) -> list[Body]:
    outputs: list[Body] = []
    for index, buffer in enumerate(step.outputs):
        ring = ring_size(net, buffer)
        if ring:
            cells = assembly.cells(population.id, f"d_{buffer}", ring, f"gradient of an output of {population.label}")
            assembly.forget("backward", cells)
            if f"d_o{index}" in used:
                fields += [vector("InOut", "float", f"d_output{index}", f"{cells}[b.index]"), number(f"ring{index}", ring)]
        if f"d_o{index}" not in used:
            continue
        place = f"d_output{index}[(static_cast<unsigned>(t) % ring{index}) * size + n]"
        lines = [store(place, ZERO)] if ring else []
        lines += _record_lines(net, assembly, population, buffer, index, fields)
        outputs.append({"index": index, "start": load(place) if ring else ZERO, "lines": lines})
    return outputs


def _record_lines(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, buffer: str, index: int, fields: list[CodeletField]
) -> list[str]:
    lines = []
    for op in net.program.backward:
        if not isinstance(op, RecordAdjoint) or op.source.buffer != buffer or op.output != net.program.loss_output:
            continue
        name = f"d_{op.target.removeprefix('d_')}"
        cells = assembly.cells(population.id, name, "STEPS", f"adjoint of a record of {population.label}")
        field, delay = f"d_record{index}", op.source.delay
        fields.append(vector("Input", "float", field, f"{cells}[b.index]"))
        lines += [
            f"if (t + {delay} < steps)",
            f"  d_o{index} += load<Real>(&{field}[(static_cast<unsigned long>(s) * steps + t + {delay}) * count + c]);",
        ]
    return lines


def _add_source_gradient(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    fields = [scalar("Input", "int", "k", "first_clock[b.tile]"), integer("interval", "INTERVAL"), integer("steps", "STEPS"),
              integer("last", "ITERATIONS - 1"), number("batch", f"{population.id}.replicas[b.replica].samples"),
              number("sample", f"b.sample - {population.id}.replicas[b.replica].sample"), number("samples", "b.samples"),
              number("count", "b.count")]  # fmt: skip
    links = net.outgoing(population.id)
    outputs = sorted({step.outputs.index(c.source_buffer) for c in links})
    for o in outputs:
        ring, cells = ring_size(net, step.outputs[o]), f"d_{step.outputs[o]}"
        assembly.cells(population.id, cells, ring, f"gradient of an output of {population.label}")
        fields += [vector("InOut", "float", f"d_output{o}", f"{cells}[b.index]"), number(f"ring{o}", ring)]
    outgoing: list[Body] = []
    for index, connection in enumerate(links):
        fields += _outgoing_fields(net, index, connection)
        shared = connection.weight is not None and connection.kind == "one_to_one" and net.size(connection.weight) == 1
        tables = table_body(net, connection.id, index, source=True) if connection.id in net.indexed else {}
        times = "" if connection.weight is None else f"*weight{index} * " if shared else f"weight{index}[c] * "
        outgoing.append(
            {
                "index": index,
                "output": step.outputs.index(connection.source_buffer),
                "template": connection.kind if not tables else "maximum" if net.indexed[connection.id].map.maximum else "indexed",
                "weight_times": times,
                **tables,
            }
        )
    SOURCES.add(net, assembly, population, "backward", fields, {"rings": outputs, "outgoing": outgoing})


def _outgoing_fields(net: PoplarNetwork, index: int, connection: ConnectionInfo) -> list[CodeletField]:
    target = net.population(connection.target)
    delta = f"d_{target.ports[connection.port]}"
    fields = [integer(f"stage{index}", net.stages[target.id]), integer(f"delay{index}", connection.delay)]
    if connection.id in net.indexed:
        return [*fields, *source_fields(net, connection.id, index, delta)]
    if connection.kind == "dense":
        return [
            *fields,
            number(f"outputs{index}", net.neurons[target.id]),
            vector("Input", "float", f"delta{index}", f"Layout::of_replica({delta}, {connection.source}, b)", 8),
            vector("Input", "float", f"weight{index}", f"{connection.weight}_rows[b.group]"),
        ]
    fields.append(vector("Input", "float", f"delta{index}", f"Layout::own({delta}, b, {net.offset(connection.id)})"))
    if connection.weight and net.size(connection.weight) == 1:
        fields.append(scalar("Input", "float", f"weight{index}", f"{connection.weight}_rows[b.group][0]"))
    elif connection.weight:
        fields.append(vector("Input", "float", f"weight{index}", f"{connection.weight}_rows[b.group]"))
    return fields


def _add_weight_round(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronAdjoint) -> None:
    """Further windows: their contribution to weight gradients and partial products, and the gradients returned by the last one."""
    links = [link for link in incoming(net, population.id) if link.limited_back and link.read_backward]
    back = [link for link in incoming(net, population.id) if link.limited_back and link.returned]
    both = [link for link in incoming(net, population.id) if link in links or link in back]
    used = {f"d_o{o}" for o in range(len(step.outputs)) if f"d_o{o}" in reads(population.kernel.backward, [])}
    limited = [bus for bus in net.plan.buses if net.limited(bus, backward=True)]
    came, bodies, rings = returned(net, population, step, used, limited, ahead=0)
    if not both and not bodies:
        return
    ports = sorted({link.connection.port for link in both})
    fields = [
        *clock_fields(net, population.id, forward=False),
        *bus_fields(net, both, backward=True),
        *gradient_fields(net, links),
        *weight_fields(net, back),
        *came,
    ]
    fields += first_field(net, population.id) or ([number("first", "b.first")] if bodies else [])
    for link in back:
        fields += partial_fields(net, link.index, link.connection)
    fields += [vector("Input", "float", f"delta{p}", f"d_{population.ports[p]}_own[b.index]") for p in ports]
    for o in rings:
        cells, ring = f"d_{step.outputs[o]}", ring_size(net, step.outputs[o])
        fields += [vector("InOut", "float", f"d_output{o}", f"{cells}[b.index]"), number(f"ring{o}", ring)]
    body: Body = {
        "returned": bodies,
        "cleared": [link.body() for link in back if cleared(net, link.connection)],
        "incoming": [link.body() for link in links],
        "partials": [link.body() for link in back],
    }
    ROUND.add(net, assembly, population, "backward", fields, body, returns=bool(back))
