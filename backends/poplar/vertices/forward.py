"""The vertices that run a population's step, and those that only add a further window to its currents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from snnc.backends.codegen.assignments import needed, reads
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, CodeletField, VertexLoop, integer, number, scalar, vector
from snnc.backends.poplar.vertices.equations import ZERO, loads, statements, store
from snnc.backends.poplar.vertices.gradient_windows import near_code
from snnc.backends.poplar.vertices.indexed import zeroed
from snnc.backends.poplar.vertices.links import bus_fields, incoming, parameter_field, weight_fields
from snnc.backends.poplar.vertices.recompute import KEPT, saved_slot, state_cells, state_slots
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.lowering.gradient_support import argument_name, with_arguments
from snnc.compiler.tiles.vertices.cost import partial_products


@dataclass(frozen=True)
class BlockVertex:
    """A vertex on every block of a population: its codelet and its purpose."""

    template: str
    prefix: str
    title: str
    compute_set: str
    cost: str

    def add(
        self,
        net: PoplarNetwork,
        assembly: Assembly,
        population: PopulationInfo,
        group: str,
        fields: list[CodeletField],
        body: Body,
        near: int = 0,
        *,
        returns: bool = False,
    ) -> None:
        """Add the codelet and the loop over all blocks to the section `group`.

        `near` outputs have a gradient window; with `returns` it forms products for windows that go back to sources.
        """
        shown, given = f"{population.id} {population.label}", tuple(fields)
        cost = net.cost(f"{self.cost}.{population.id}")
        cost = replace(cost, neuron=cost.neuron + near * cost.near, pair=cost.pair + 2 * near * cost.near)
        cost = cost.calling(partial_products(cost)) if returns else cost
        name = assembly.codelet(self.template, self.prefix, self.title, shown, given, cost, body)
        comment = f"{shown}: {self.title[:1].lower()}{self.title[1:]}"
        assembly.loop(group, VertexLoop(comment, "Block", "b", f"{population.id}.blocks", self.compute_set, name, "b.tile", given))


FORWARD: Final = BlockVertex(
    "forward", "Forward", "One step: currents, equations, what is sent and recorded.", "forward_neurons", "forward"
)
GATHER: Final = BlockVertex("gather", "Gather", "Adds a further window to the currents.", "forward_gather", "gather")


def clock_fields(net: PoplarNetwork, population: str, *, forward: bool) -> list[CodeletField]:
    """The time and the data of a block's vertex."""
    return [
        scalar("Input", "int", "k", "second_clock[b.tile]"),
        integer("stage", (net.forward_stages if forward else net.stages)[population]),
        integer("interval", "INTERVAL"),
        integer("steps", "STEPS"),
        number("samples", "b.samples"),
        number("count", "b.count"),
    ]


def first_field(net: PoplarNetwork, population: str) -> list[CodeletField]:
    """The block's first neuron, where a connection needs it."""
    return [number("first", "b.first")] if any(c.kind == "one_to_one" for c in net.incoming(population)) else []


def add_forward(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add the variables and vertices of ``F2 neurons`` for one population, and of its further windows."""
    step, kernel = net.step(population.id), population.kernel
    links = incoming(net, population.id)
    fields = [*clock_fields(net, population.id, forward=True), *first_field(net, population.id)]
    fields += [*bus_fields(net, links), *weight_fields(net, links)]
    ports, port_fields = _ports(net, assembly, population, any(link.limited for link in links))
    fields += port_fields
    places = {f"i{p['index']}": f"current{p['index']}[n]" for p in ports}
    pointers, stores = _states(net, assembly, population, step, fields, places)
    for index, parameter in enumerate(step.parameters):
        found, places[f"a{index}"] = parameter_field(net, population.id, parameter, f"param{index}")
        fields.append(found)
    stores += _saved(net, assembly, population, step, fields, pointers)
    masks, sent = _sent(net, assembly, population, step, fields)
    records = _records(net, assembly, population, step, fields)
    results = [s["value"] for s in [*stores, *sent]] + [f"o{o}" for o in masks] + [r["value"] for r in records]
    results += [r["first"] for r in records if r["first"] is not None]
    near = [o for o in masks if net.stores[step.outputs[o]].near]
    results += [argument_name(kernel.outputs[o]) for o in near]
    code = needed(with_arguments(kernel, [kernel.outputs[o] for o in near]), results)
    used = reads(code, results)
    body: Body = {
        "pointers": pointers,
        "ports": ports,
        "incoming": [body for link in links for body in link.bodies()],
        "masks": [
            {
                "index": o,
                "bits": _bits(net, population, step, o),
                "names": [f"o{o}", *([argument_name(kernel.outputs[o])] if o in near else [])],
            }
            for o in masks
        ],
        "loads": loads(used, places),
        "equations": statements(code),
        "stores": stores + sent,
        "records": records,
    }
    _drop_unused_parameters(fields, used, len(step.parameters))
    FORWARD.add(net, assembly, population, "forward", fields, body, len(near))
    if any(link.limited for link in links):
        _add_gather(net, assembly, population)


def _bits(net: PoplarNetwork, population: PopulationInfo, step: NeuronStep, output: int) -> str:
    """C++ statement that sets the bits of neuron c of sample s: of a spike, or of a neuron that takes gradient without one."""
    kind, words, spike = net.mask_kind(net.stores[step.outputs[output]]), f"mask{output}[s * words{output}", f"o{output} != 0.0f"
    if kind == "SPIKES":
        return f"{words} + c / 32] |= ({spike} ? 0x80000000u : 0u) >> c % 32;"
    near = near_code(population, output)
    if kind == "HALVES":
        return f"{words}] |= ({spike} ? 0x80000000u : ({near}) ? 0x8000u : 0u) >> c;"
    return f"{words} + c / 32 * 2 + ({spike} ? 0 : 1)] |= ({spike} || ({near}) ? 0x80000000u : 0u) >> c % 32;"


def _drop_unused_parameters(fields: list[CodeletField], used: set[str], parameters: int) -> None:
    """Remove the fields of parameters that the code does not read."""
    unread = {f"param{i}" for i in range(parameters) if f"a{i}" not in used}
    fields[:] = [f for f in fields if f.name not in unread]


def _ports(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, rounds: bool) -> tuple[list[Body], list[CodeletField]]:
    ports: list[Body] = []
    fields: list[CodeletField] = []
    for index, port in enumerate(population.ports):
        cells = assembly.cells(population.id, port, "1", f"current {population.label}")
        fields.append(vector("InOut" if rounds else "Output", "float", f"current{index}", f"{cells}[b.index]"))
        starts = []
        for n, bias in enumerate(net.biases(port)):
            found, place = parameter_field(net, population.id, bias, f"bias{index}_{n}")
            fields.append(found)
            starts.append(place)
        after = [f"for (unsigned c = 0; c < count; ++c)\n        current{index}[s * count + c] = 0.0f;"] if rounds else []
        ports.append({"index": index, "assign": "+=" if rounds else "=", "start": " + ".join(starts) or "0.0f", "after": after})
        if rounds:
            assembly.loop("start", zeroed(population.id, cells, "currents at zero"))
    return ports, fields


def _states(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronStep, fields: list[CodeletField], places: dict[str, str]
) -> tuple[list[str], list[Body]]:
    pointers, stores = [], []
    for index, (state, buffer) in enumerate(zip(population.kernel.states, step.states, strict=True)):
        cells, slots = state_cells(net, assembly, population, index, buffer)
        shape, first = f"{{BATCH, {net.neurons[population.id]}}}", f"first_slots({cells}, {slots})"
        assembly.tensor("STATE", f"{buffer}_initial", shape, first, f"order_of_states({population.id})", True)
        fields.append(vector("InOut", "float", f"state{index}", f"{buffer}[b.index]"))
        before, after = state_slots(net, population, index)
        pointers += [
            f"[[maybe_unused]] const float *before{index} = &state{index}[{before}];",
            f"float *after{index} = &state{index}[{after}];",
        ]
        places[f"{state}_prev"] = f"before{index}[n]"
        stores.append({"name": f"after{index}[n]", "value": state})
    return pointers, stores


def _saved(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronStep, fields: list[CodeletField], pointers: list[str]
) -> list[Body]:
    stores: list[Body] = []
    if not net.training or net.adjoint(population.id) is None:
        return stores
    for index, (name, buffer) in enumerate(zip(population.kernel.saved, step.saved, strict=True)):
        cells = assembly.cells(population.id, buffer, KEPT if net.plan.segment else "STEPS", f"kept {population.label}")
        fields.append(vector("InOut", "float", f"saved{index}", f"{assembly.forget('forward', cells)}[b.index]"))
        pointers.append(f"float *kept{index} = &saved{index}[{saved_slot(net)}];")
        stores.append({"name": f"kept{index}[n]", "value": name})
    return stores


def _sent(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronStep, fields: list[CodeletField]
) -> tuple[list[int], list[Body]]:
    masks: list[int] = []
    stores: list[Body] = []
    for index, buffer in enumerate(step.outputs):
        store = net.stores.get(buffer)
        if store is None:
            continue
        if store.kind == "events":
            unit, mask = net.mask_unit(store), f"{buffer}_mask"
            made = f'layout.sent({population.id}, poplar::UNSIGNED_INT, "{mask}", {unit} * {population.id}.units())'
            assembly.variable("Sent", mask, made, f"bits of the neurons of {population.label}")
            fields.append(number(f"words{index}", f"{population.id}.words_of(b, {unit})"))
            fields.append(vector("Output", "unsigned", f"mask{index}", f"own_mask({mask}, {population.id}, b, {unit})"))
            masks.append(index)
        else:
            now = f'layout.sent({population.id}, poplar::FLOAT, "{buffer}_now", {population.id}.most_neurons())'
            assembly.variable("Sent", f"{buffer}_now", now, f"values of {population.label}")
            fields.append(vector("Output", "float", f"value{index}", f"own_values({buffer}_now, {population.id}, b)"))
            stores.append({"name": f"value{index}[s * count + c]", "value": f"o{index}"})
    return masks, stores


def _records(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, step: NeuronStep, fields: list[CodeletField]
) -> list[Body]:
    records: list[Body] = []
    n = net.neurons[population.id]
    for index, output in enumerate(net.records(population.id)):
        cells = assembly.cells(population.id, output.record, "STEPS", f"record {output.label}")
        fields.append(vector("InOut", "float", f"record{index}", f"{cells}[b.index]"))
        assembly.tensor(
            "RECORD", output.record, f"{{STEPS, BATCH, {n}}}", f"{cells}.all", f"order_of_records({population.id}, STEPS, BATCH)", False
        )
        delay, buffer = output.source.delay, output.source.buffer
        first = _first_value(population, buffer) if delay else None
        records.append(
            {
                "index": index,
                "delay": delay,
                "value": f"o{step.outputs.index(buffer)}",
                "first": first,
                "before": _before_record(f"record{index}", delay, first) if delay else [],
            }
        )
    return records


def _first_value(population: PopulationInfo, buffer: str) -> str | None:
    """The symbol of an output's value before the first step, if it is a state."""
    port = next(label for label, name in population.output_buffers.items() if name == buffer)
    return next((f"{s}_prev" for s in population.kernel.states if population.kernel.labels[s] == port), None)


def _before_record(record: str, delay: int, first: str | None) -> list[str]:
    """Statements that write the steps of a late output which nothing is computed for: what a state was at the start, or 0."""
    place = record + "[(static_cast<unsigned long>(s) * steps + {}) * count + c]"
    if first is None:
        return [f"if (t < {delay})\n        {store(place.format('t'), ZERO)}"]
    return [f"for (int d = 0; t == 0 && d < {delay} && d < steps; ++d)\n        {store(place.format('d'), first)}"]


def _add_gather(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    links = [link for link in incoming(net, population.id) if link.limited]
    ports = sorted({link.connection.port for link in links})
    fields = [*clock_fields(net, population.id, forward=True), *first_field(net, population.id)]
    fields += [*bus_fields(net, links), *weight_fields(net, links)]
    fields += [vector("InOut", "float", f"current{p}", f"{population.ports[p]}[b.index]") for p in ports]
    body: Body = {"ports": [{"index": p} for p in ports], "incoming": [link.body() for link in links]}
    GATHER.add(net, assembly, population, "forward", fields, body)
