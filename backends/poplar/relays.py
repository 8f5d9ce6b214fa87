"""The relays of every source: stores, windows, and the vertices that fill and show them."""

from __future__ import annotations

from snnc.backends.poplar.gradient_windows import compact_fields, counts_lost, shown_fields, window_variables
from snnc.backends.poplar.network import Network, Store
from snnc.backends.poplar.parts import Access, Assembly, Body, Field, VertexLoop, integer, number, scalar, vector
from snnc.backends.poplar.recompute import AGAIN
from snnc.backends.poplar.relay_segments import add_relay_boundaries, compacting_fields, finished_when, slot, slots
from snnc.compiler.mapping.cost import CodeletCost
from snnc.compiler.plan import BusPlan


def add_relays(net: Network, assembly: Assembly, store: Store) -> None:
    """Add one source's store, the windows of its buses, and its relay vertices in both directions."""
    _variables(net, assembly, store)
    if store.external:
        _input(net, assembly, store)
    elif store.before:
        _initial(net, assembly, store)
    _vertex(net, assembly, store, "relay_forward", forward=True)
    if net.plan.segment:
        _vertex(net, assembly, store, AGAIN, forward=True, again=True)
        add_relay_boundaries(net, assembly, store)
    if net.training:
        _vertex(net, assembly, store, "relay_backward", forward=False)
    _next_window(net, assembly, store, "forward_next", backward=False)
    if net.training:
        _next_window(net, assembly, store, "backward_next", backward=True)


def _variables(net: Network, assembly: Assembly, store: Store) -> None:
    name = store.buffer
    relays = f"{name}_relays"
    if store.kind == "events":
        assembly.variable(
            "Parts",
            f"{name}_ids",
            f'layout.kept({relays}, {store.poplar_type}, "{name}_ids", ({slots(net, store)}) * {store.stored})',
            f"ids of all steps of {name}",
        )
        assembly.variable(
            "Parts",
            f"{name}_numbers",
            f'layout.kept({relays}, poplar::UNSIGNED_INT, "{name}_numbers", {slots(net, store)})',
            "their numbers",
        )
        if store.near:
            assembly.variable(
                "Parts",
                f"{name}_ends",
                f'layout.kept({relays}, poplar::UNSIGNED_INT, "{name}_ends", {slots(net, store)})',
                "with neurons near",
            )
        if counts_lost(store):
            lost = assembly.variable("Parts", f"{name}_lost_near", f'layout.relay_numbers({relays}, "{name}_lost_near")')
            assembly.tensors.append(f'counter("{name}_lost_near", {lost}.all);')
            if net.plan.segment:
                assembly.variable("Parts", f"{lost}_again", f'layout.relay_numbers({relays}, "{lost}_again")', "in second runs")
    else:
        assembly.variable(
            "Parts",
            f"{name}_store",
            f'layout.kept({relays}, poplar::FLOAT, "{name}_store", ({slots(net, store)}) * {store.width})',
            f"values of all steps of {name}",
        )
    for bus in store.buses:
        comment = f"bus {bus.id}: {bus.source}, lag {bus.lag}"
        if store.kind == "values":
            assembly.variable(
                "Tensor", f"{bus.id}_values", f'layout.window({relays}, poplar::FLOAT, "{bus.id}_values", {bus.width})', comment
            )
            continue
        assembly.variable(
            "Tensor", f"{bus.id}_ids", f'layout.window({relays}, {store.poplar_type}, "{bus.id}_ids", {store.room(bus.capacity)})', comment
        )
        assembly.variable("Tensor", f"{bus.id}_number", f'layout.window({relays}, poplar::UNSIGNED_INT, "{bus.id}_number", 1)')
        if bus.gradient is not None:
            window_variables(assembly, store, bus)
        if net.limited(bus) or net.limited(bus, backward=net.training):
            assembly.variable("Tensor", f"{bus.id}_position", f'layout.window({relays}, poplar::UNSIGNED_INT, "{bus.id}_position", 1)')
            assembly.variable("Parts", f"{bus.id}_more", f'layout.relay_numbers({relays}, "{bus.id}_more")')
        if bus.capacity < bus.width:
            lost = assembly.variable("Parts", f"{bus.id}_lost", f'layout.relay_numbers({relays}, "{bus.id}_lost")')
            assembly.tensors.append(f'counter("{counter_name(net, bus)}", {lost}.all);')
            if net.plan.segment:
                assembly.variable("Parts", f"{lost}_again", f'layout.relay_numbers({relays}, "{lost}_again")', "in second runs")


def counter_name(net: Network, bus: BusPlan) -> str:
    """ABI name of what a bus counts."""
    return f"{bus.id}_{'further' if net.limited(bus) else 'dropped'}"


def _input(net: Network, assembly: Assembly, store: Store) -> None:
    name, shape = store.buffer, f"{{BATCH, {store.width}}}" if store.static else f"{{STEPS, BATCH, {store.width}}}"
    if store.kind == "events":
        assembly.start.append(
            f'event_input<{store.id_type}>("{store.owner}", {shape}, {name}_relays, {name}_ids, {name}_numbers, '
            f"{store.stored}, load_inputs);"
        )
    else:
        assembly.start.append(f'value_input("{store.owner}", {shape}, {name}_relays, {name}_store, load_inputs);')


def _initial(net: Network, assembly: Assembly, store: Store) -> None:
    name = store.buffer
    if store.kind == "events":
        assembly.tensors.append(
            f'initial_events<{store.id_type}>("{name}_initial", BATCH, {store.width}, {name}_relays, {name}_ids, {name}_numbers, '
            f"{slots(net, store)}, {store.stored});"
        )
    else:
        assembly.tensors.append(
            f'tensor("{name}_initial", SNNC_STATE, {{BATCH, {store.width}}}, first_slots({name}_store, {slots(net, store)}), {{}}, true);'
        )


def _common(net: Network, store: Store, clock: str) -> list[Field]:
    return [
        scalar("Input", "int", "k", clock),
        integer("interval", "INTERVAL"),
        number("samples", "r.samples"),
        number("before", int(store.before)),
    ]


def _offsets(net: Network, buses: tuple[BusPlan, ...]) -> list[Field]:
    fields = []
    for index, bus in enumerate(buses):
        fields += [integer(f"offset{index}", net.stages[bus.source] + bus.lag), integer(f"last{index}", net.last_step(bus))]
    return fields


def _vertex(net: Network, assembly: Assembly, store: Store, compute_set: str, forward: bool, again: bool = False) -> None:
    """Add the vertices of one direction; those that run a segment `again` count apart what finds no room."""
    compacts = forward and not store.external
    fields = _common(net, store, "first_clock") + _offsets(net, store.buses)
    if compacts:
        fields += [integer("stage", net.stages[store.owner]), integer("steps", "STEPS")]
        fields += compacting_fields(net, again=again)
    template = f"relay_{store.kind}"
    fields += (_event_fields if store.kind == "events" else _value_fields)(net, store, compacts, forward, again)
    near = [i for i, bus in enumerate(store.buses) if bus.gradient is not None and not forward]
    kept: Body = {"slot": slot(net, store, "finished"), "when": finished_when(net)}
    body: Body = {
        "compact": [kept | {"id_type": store.id_type}] if compacts and not store.near else [],
        "compact_near": [kept | compact_fields(net, store, again=again)[1]] if compacts and store.near else [],
        "id_type": store.id_type,
        "buses": [_bus(net, index, bus, forward) for index, bus in enumerate(store.buses) if index not in near],
        "near_buses": [shown_fields(net, store, index, store.buses[index], again=False)[1] for index in near],
        "slot": slot(net, store, "t"),
    }
    cost = net.cost("relay_values" if store.kind == "values" else "relay_events" if compacts else "relay_input")
    title = "Compacts what the source sent and shows a step's windows." if compacts else "Shows a step's windows."
    _add(net, assembly, store, compute_set, template, title, tuple(fields), body, cost)


def _add(
    net: Network, assembly: Assembly, store: Store, compute_set: str, template: str, title: str, fields: tuple[Field, ...], body: Body,
    cost: CodeletCost,
) -> None:  # fmt: skip
    label = {i.id: i.label for i in net.program.inputs} | {p.id: p.label for p in net.program.populations}
    shown = f"{store.owner} {label.get(store.owner, '')}"
    prefix = {"relay_events": "RelayEvents", "relay_values": "RelayValues", "next_window": "NextWindow"}[template]
    name = assembly.codelet(template, prefix, title, shown, fields, cost, body)
    group = "relays_backward" if "backward" in compute_set else "relays_forward"
    assembly.loop(group, VertexLoop(f"{shown}: {title}", "Relay", "r", f"{store.buffer}_relays", compute_set, name, "r.tile", fields))


def _event_fields(net: Network, store: Store, compacts: bool, forward: bool, again: bool) -> list[Field]:
    name = store.buffer
    access: Access = "InOut" if compacts else "Input"
    fields = [
        number("stored", store.stored),
        vector(access, store.id_type, "ids", f"{name}_ids[r.index]", 4),
        vector(access, "unsigned", "numbers", f"{name}_numbers[r.index]"),
    ]
    if compacts and store.near:
        fields += compact_fields(net, store, again=again)[0]
    elif store.near and not forward:
        fields.append(vector("Input", "unsigned", "ends", f"{name}_ends[r.index]"))
    if compacts and not store.near:
        fields += [
            number("words", f"{store.owner}.words()"),
            vector("Input", "unsigned", "mask", f"Layout::columns({name}_mask, r)"),
            vector("Input", "unsigned", "first", f"layout.constants({store.owner}.first_of_word, r.tile)"),
        ]
    for index, bus in enumerate(store.buses):
        if bus.gradient is not None and not forward:
            fields += shown_fields(net, store, index, bus, again=False)[0]
            continue
        fields += _window_fields(net, store, index, bus)
        if bus.capacity < bus.width and forward:
            counts = "lost_again" if again else "lost"
            fields.append(scalar("InOut", "unsigned", f"lost{index}", f"{bus.id}_{counts}[r.index][0]"))
    return fields


def _window_fields(net: Network, store: Store, index: int, bus: BusPlan, again: bool = False) -> list[Field]:
    fields = [
        number(f"capacity{index}", bus.capacity),
        number(f"room{index}", store.room(bus.capacity)),
        vector("Output", store.id_type, f"window{index}", f"Layout::samples({bus.id}_ids, r)", 4),
        vector("Output", "unsigned", f"number{index}", f"Layout::samples({bus.id}_number, r)"),
    ]
    if net.limited(bus):
        fields += [
            vector("InOut" if again else "Output", "unsigned", f"position{index}", f"Layout::samples({bus.id}_position, r)"),
            scalar("Output", "unsigned", f"more{index}", f"{bus.id}_more[r.index][0]"),
        ]
    return fields


def _value_fields(net: Network, store: Store, compacts: bool, forward: bool, again: bool) -> list[Field]:
    name = store.buffer
    fields = [number("width", store.width), vector("InOut" if compacts else "Input", "float", "store", f"{name}_store[r.index]")]
    if compacts:
        fields.append(vector("Input", "float", "now", f"Layout::columns({name}_now, r)"))
    return fields + [vector("Output", "float", f"window{i}", f"Layout::samples({b.id}_values, r)") for i, b in enumerate(store.buses)]


def _bus(net: Network, index: int, bus: BusPlan, forward: bool) -> Body:
    """What the relay keeps beside the first window."""
    start, each, end = [], [], []
    if net.limited(bus):
        start = ["unsigned left = 0;"]
        each = [f"position{index}[s] = n;", "left += all - n;"]
        end = [f"*more{index} = left;"]
        if forward:
            each.append(f"*lost{index} = *lost{index} + (all > n ? (all - 1) / capacity{index} : 0);")
    elif forward and bus.capacity < bus.width:
        each = [f"*lost{index} = *lost{index} + (all - n);"]
    return {
        "index": index,
        "comment": "Exact: further windows follow." if net.limited(bus) else "One window.",
        "start": start,
        "each": each,
        "end": end,
    }


def _next_window(net: Network, assembly: Assembly, store: Store, compute_set: str, *, backward: bool) -> None:
    limited = tuple(bus for bus in store.buses if net.limited(bus, backward=backward))
    if not limited:
        return
    fields = _common(net, store, "second_clock") + _offsets(net, limited)
    fields += [
        number("stored", store.stored),
        vector("Input", store.id_type, "ids", f"{store.buffer}_ids[r.index]"),
        vector("Input", "unsigned", "numbers", f"{store.buffer}_numbers[r.index]"),
    ]
    body: Body = {"buses": [], "near_buses": [], "id_type": store.id_type, "slot": slot(net, store, "t")}
    if any(bus.gradient is not None for bus in limited) and backward:
        fields.append(vector("Input", "unsigned", "ends", f"{store.buffer}_ends[r.index]"))
    for index, bus in enumerate(limited):
        if bus.gradient is not None and backward:
            found, shown = shown_fields(net, store, index, bus, again=True)
            fields += found
            body["near_buses"].append(shown)
        else:
            fields += _window_fields(net, store, index, bus, again=True)
            body["buses"].append({"index": index, "comment": "The next window."})
    _add(net, assembly, store, compute_set, "next_window", "Shows the next window of a step.", tuple(fields), body, net.cost("next_window"))
