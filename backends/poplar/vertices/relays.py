"""Emitted code of relays: stores, windows, and the vertices that fill them.

A relay is a tile that stores the values of a source at all steps and lists the ids of its spikes, which the source marks in masks (one bit
per neuron, and a second one if gradients return in windows). A bus connects the source through its relays to the tiles that read it. A
window contains the data of a step on a bus. In a *fused* forward pass, relays search masks while neurons compute the next iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from snnc.backends.codegen.printing import c_literal
from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import Assembly, Body, Values
from snnc.backends.poplar.vertices.gradient_windows import first_window_body, support_values, window_variables
from snnc.backends.poplar.vertices.relay_segments import add_relay_boundaries, host_ring, in_segments, keep_count, slot, slots, stored_parts
from snnc.compiler.ir.plan import BusPlan
from snnc.compiler.lowering.spike_limits import LOWEST
from snnc.compiler.tiles.schedule.buses import bit_words
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX
from snnc.compiler.tiles.vertices.relay_vertices import (
    ShownWindow,
    copy_mask,
    next_window,
    relay_bits,
    relay_compact,
    relay_values,
    relay_windows,
)
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

JOIN: Final = "relay_windows"
"""Compute set in which relays merge the ids that their workers found and write windows."""


def uses_join(net: PoplarNetwork) -> bool:
    """Return whether any vertices run in :data:`JOIN`."""
    return net.fused or any(store.kind == "events" and not store.external for store in net.stores.values())


def _masks_for_relays(net: PoplarNetwork, assembly: Assembly, store: Store) -> str:
    """Add copies of the masks, which relays search while blocks write the masks of the next step."""
    owner, mask, unit = store.owner, f"{store.buffer}_mask", net.mask_unit(store)
    expression = f'layout.sent({owner}, poplar::UNSIGNED_INT, "{mask}_before", {unit} * {owner}.units())'
    before = assembly.variable("Sent", f"{mask}_before", expression, "masks of the previous iteration")
    vertex, title, copy = copy_mask(net.costs), "Copies the masks of a tile for the relays.", f"{before}.of_tile({owner}, h)"
    values, homes = {"mask": f"{mask}.of_tile({owner}, h)", "copy": copy, "count": f"{copy}.numElements()"}, ("Home", "h", f"{owner}.homes")
    assembly.add_codelet("relays_forward", f"{store.buffer}: {title}", homes, [JOIN], vertex, values, title, store.buffer)
    return before


def add_relays(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the store of a source, the windows of its buses, and the vertices of its relays in both passes."""
    _stored(net, assembly, store)
    for bus in store.buses:
        _window(net, assembly, store, bus)
    if store.external:
        _input(net, assembly, store)
    elif store.before:
        _initial(net, assembly, store)
    if net.fused:
        _advance_iteration(net, assembly, store)
    if store.external or store.kind == "values":
        _write_windows(net, assembly, store, JOIN if net.fused else "relay_forward", store.buses, forward=True)
    else:
        _compact(net, assembly, store)
        # If relays store bits, windows of buses with a lag above 1, which contain earlier steps, are written before the new step is stored.
        now = tuple(bus for bus in store.buses if bus.lag == 1 or not store.bits)
        _write_windows(net, assembly, store, JOIN, now, forward=True)
        for bus in store.buses:
            if bus not in now:
                _write_bits(net, assembly, store, bus, "relay_forward")
    if net.training:
        _write_windows(net, assembly, store, "relay_backward", store.buses, forward=False)
    if net.plan.segment and not store.external:
        add_relay_boundaries(net, assembly, store)
    _next_window(net, assembly, store, "forward_next", backward=False)
    if net.training:
        _next_window(net, assembly, store, "backward_next", backward=True)


def _stored(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Declare the bits, ids or values that relays store for all steps or, with segments, for the steps in a ring buffer."""
    name = store.buffer
    relays, stored = f"{name}_relays", slots(net, store)
    if store.bits:
        words = f"({stored}) * {bit_words(store.width)}"
        assembly.relay_rows(relays, "poplar::UNSIGNED_INT", f"{name}_bits", words, f"one bit per value and step of {name}")
    elif store.kind == "events":
        assembly.relay_rows(relays, store.poplar_type, f"{name}_ids", f"({stored}) * {store.stored}", f"ids of all steps of {name}")
        assembly.relay_rows(relays, "poplar::UNSIGNED_INT", f"{name}_numbers", stored, "their numbers")
        if store.with_support:
            ends = "number of spikes, plus neurons in the surrogate's support"
            assembly.relay_rows(relays, "poplar::UNSIGNED_INT", f"{name}_ends", stored, ends)
        if store.drops_support:
            _counter(net, assembly, relays, f"{name}_lost_near", f"{name}_lost_near")
        if store.drops_spikes:
            _limit(net, assembly, store)
    else:
        assembly.relay_rows(relays, "poplar::FLOAT", f"{name}_store", f"({stored}) * {store.width}", f"values of all steps of {name}")
    if not (store.external or store.before):
        for part, *_ in stored_parts(store):
            assembly.forget("forward", f"{name}_{part}")


def _window(net: PoplarNetwork, assembly: Assembly, store: Store, bus: BusPlan) -> None:
    """Declare the window of a bus: values, or ids and their number, with what relays need to request and count further windows."""
    relays = f"{store.buffer}_relays"
    comment = f"bus {bus.id}: {bus.source}, lag {bus.lag}"
    if store.kind == "values":
        assembly.window(relays, "poplar::FLOAT", f"{bus.id}_values", bus.width, comment)
        return
    assembly.window(relays, store.poplar_type, f"{bus.id}_ids", store.room(bus.capacity), comment)
    assembly.window(relays, "poplar::UNSIGNED_INT", f"{bus.id}_number", 1)
    if bus.gradient is not None:
        window_variables(assembly, store, bus)
    if bus in net.requesting_buses:
        shares = net.plan.target.workers if store.bits else 1
        about = f"start of the next window{', for each worker' if store.bits else ''}"
        assembly.window(relays, "poplar::UNSIGNED_INT", f"{bus.id}_position", shares, about)
        length = net.request_length(bus) * (1 + net.further.both)
        assembly.relay_numbers(relays, "UNSIGNED_INT", f"{bus.id}_more", length, "further windows that relays need")
    if bus.capacity < bus.width:
        _counter(net, assembly, relays, f"{bus.id}_lost", counter_name(net, bus))


def _limit(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Declare the limit on sent spikes (capacity, and key of the random choice), if a run may change it, and the count of dropped ones."""
    name, relays = store.buffer, f"{store.buffer}_relays"
    if name in net.limits:
        limit = assembly.relay_numbers(relays, "FLOAT", f"{name}_limit", 2)
        order, role = f"repeated(2, {limit}.all.numElements())", "PARAMETER" if net.operation else "SETTING"
        assembly.tensor(role, f"{name}_limit", "{2}", f"{limit}.all", order, True)
    _counter(net, assembly, relays, f"{name}_dropped", f"{name}_dropped")


def _counter(net: PoplarNetwork, assembly: Assembly, relays: str, name: str, host_name: str) -> None:
    """Declare a count for each worker of each relay, exposed to the host as the counter `host_name`."""
    count = assembly.relay_numbers(relays, "UNSIGNED_INT", name, net.plan.target.workers)
    assembly.tensors.append(f'counter("{host_name}", {count}.all);')
    keep_count(net, assembly, count)


def counter_name(net: PoplarNetwork, bus: BusPlan) -> str:
    """Return the name of a bus's counter for the host."""
    return f"{bus.id}_{'further' if net.limited(bus) else 'dropped'}"


def _input(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the statement with which the host writes an input of the network into its relays."""
    name, shape = store.buffer, f"{{BATCH, {store.width}}}" if store.static else f"{{STEPS, BATCH, {store.width}}}"
    if store.bits:
        function, arrays = "bit_input", f"{name}_bits"
    elif store.kind == "events":
        function, arrays = f"event_input<{store.id_type}>", f"{name}_ids, {name}_numbers, {store.stored}"
    else:
        function, arrays = "value_input", f"{name}_store"
    load = "load_segment" if in_segments(net, store) else "load_inputs"
    assembly.start.append(f'{function}("{store.owner}", {shape}, {name}_relays, {arrays}, {host_ring(net, store)}, {load});')


def _initial(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the statement that lets the host set the output of a population before the first step."""
    name, number = store.buffer, slots(net, store)
    if store.kind != "events":
        assembly.tensor("STATE", f"{name}_initial", f"{{BATCH, {store.width}}}", f"first_slots({name}_store, {number})", "{}", True)
        return
    function, arrays = "initial_bits", f"{name}_bits, {number}"
    if not store.bits:
        function, arrays = f"initial_events<{store.id_type}>", f"{name}_ids, {name}_numbers, {number}, {store.stored}"
    assembly.tensors.append(f'{function}("{name}_initial", BATCH, {store.width}, {name}_relays, {arrays});')


def _common(net: PoplarNetwork, store: Store, buses: Sequence[BusPlan], clock: str, *, forward: bool) -> Values:
    """Return the fields that all vertices that write windows have; `clock` is the C++ for the iteration number."""
    values: Values = {"k": clock, "interval": "INTERVAL", "samples": "r.samples", "before": int(store.before)}
    for index, bus in enumerate(buses):
        readers = [c for c in net.plan.connections if c.bus == bus.id]
        first = min(net.plan.interval * c.delay + net.forward_stages[c.target] for c in readers)
        values |= {f"offset{index}": first if forward else net.stages[bus.source] + bus.lag, f"last{index}": net.last_step(bus)}
    return values


def _advance_iteration(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the vertices that write the number of the next iteration on relay tiles, where :data:`JOIN` reads it without an exchange."""
    name = store.buffer
    iteration = assembly.relay_numbers(f"{name}_relays", "INT", f"{name}_iteration", comment="iteration k")
    values = {"from": "second_clock[r.tile]", "to": f"{iteration}[r.index][0]", "add": 1}
    comment = f"{store.owner}: iteration number for the vertices of the next compute set"
    assembly.add("clocks", comment, ("Relay", "r", f"{name}_relays"), "forward_neurons", CLOCK_VERTEX, values)


def _compact(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the vertices that search masks, and arrays for the ids of neurons that spike or only receive a gradient."""
    name, owner = store.buffer, store.owner
    relays, workers = f"{name}_relays", net.plan.target.workers
    assembly.relay_rows(relays, "poplar::UNSIGNED_INT", f"{name}_found", store.width, "ids found")
    counts = f'layout.piece_counts({relays}, "{name}_counts", {workers})'
    assembly.variable("Parts", f"{name}_counts", counts, "number of ids found, by worker and sample")
    for part in ("found", "counts"):
        assembly.forget("forward", f"{name}_{part}")
    kind, unit, mask = net.mask_kind(store), net.mask_unit(store), f"{name}_mask"
    if net.fused:
        mask = _masks_for_relays(net, assembly, store)
    values: Values = {
        "k": "second_clock[r.tile]" if net.fused else "first_clock[r.tile]",
        "interval": "INTERVAL",
        "stage": net.forward_stages[owner],
        "steps": "STEPS",
        "row": f"{owner}.units()",
        "skip": f"(r.samples - 1) * {owner}.units() * {unit}",
        "mask": f"{mask}.to(r)",
        "first": f"layout.constants({owner}.first_of_unit(), r.tile)",
        "pieces": f"layout.constants(relay_pieces({owner}, r, {workers}), r.tile)",
        "found_ids": f"{name}_found[r.index]",
        "counts": f"{name}_counts[r.index]",
    }
    if not net.fused:
        iteration = assembly.relay_numbers(relays, "INT", f"{name}_iteration", comment="iteration k")
        values["iteration"] = f"{iteration}[r.index][0]"
    title = "Each worker searches its share of the masks for spikes."
    body: Body = {"mask": kind, "outputs": [] if net.fused else ["iteration"]}
    compute_set = "forward_neurons" if net.fused else "relay_forward"
    _add(net, assembly, store, compute_set, relay_compact(net.costs, writes_iteration=not net.fused), title, values, body)


def _write_bits(net: PoplarNetwork, assembly: Assembly, store: Store, bus: BusPlan, compute_set: str, *, again: bool = False) -> None:
    """Add the vertices that list the bits of a step in the window of a bus, or in its next window."""
    forward = "backward" not in compute_set
    clock = f"{store.buffer}_iteration[r.index][0]" if net.fused and forward else "first_clock[r.tile]"
    window = net.further.window(bus.id, forward=forward)
    values = _common(net, store, (bus,), "second_clock[r.tile]" if again else clock, forward=forward)
    values |= {"bit_words": bit_words(store.width), "bits": f"{store.buffer}_bits[r.index]"}
    values |= _window_values(store, 0, bus, window, again=again)
    vertex = relay_bits(net.costs, store.stored_spikes, window, again=again)
    body: Body = {
        "index": 0,
        "slot": slot(net, store, "t"),
        "from": "position0[s * WORKERS + first]" if again else "0",
        "limited": window.may_continue,
        "requests": 1 + net.further.both if window.requesting_passes and not again else 0,
        "lost": window.lost and not again,
    }
    title = f"Lists the bits of a step in its {'next window' if again else 'window'}."
    _add(net, assembly, store, compute_set, vertex, title, values, body)


def _write_windows(
    net: PoplarNetwork, assembly: Assembly, store: Store, compute_set: str, buses: Sequence[BusPlan], *, forward: bool
) -> None:
    """Add the vertices that write windows of `buses`; in the forward pass, the relays of a population first store its step."""
    joins = forward and not store.external
    if store.bits and not joins:
        for bus in buses:
            _write_bits(net, assembly, store, bus, compute_set)
        return
    clock = "first_clock[r.tile]" if compute_set != JOIN else f"{store.buffer}_iteration[r.index][0]"
    values = _common(net, store, buses, clock, forward=forward)
    if joins:
        values |= {"stage": net.forward_stages[store.owner] + net.plan.latency - 1, "steps": "STEPS"}
    support: list[int] = []
    if store.kind == "events":
        windows = [net.further.window(bus.id, forward=forward) for bus in buses]
        support = [index for index, window in enumerate(windows) if window.with_support]
        vertex = relay_windows(net.costs, store.stored_spikes, windows, joins=joins, backward=not forward)
        fields, join = _event_values(net, store, buses, joins, forward)
        for index, (bus, window) in enumerate(zip(buses, windows, strict=True)):
            fields |= _window_values(store, index, bus, window)
    else:
        vertex = relay_values(net.costs, len(buses), joins=joins)
        fields, join = {"width": store.width, "store": f"{store.buffer}_store[r.index]"}, {"slot": slot(net, store, "finished")}
        fields |= {f"window{i}": f"Layout::samples({bus.id}_values, r)" for i, bus in enumerate(buses)}
        if joins:
            fields |= {"tiles": f"{store.owner}.tiles.size()", "row": f"{store.owner}.most_neurons()", "now": f"{store.buffer}_now.to(r)"}
            fields["first"] = f"layout.constants({store.owner}.first_of_tile(), r.tile)"
    body: Body = {
        "join": [join] if joins else [],
        "buses": [_bus(net, store, index, bus, forward, joins) for index, bus in enumerate(buses) if index not in support],
        "support_buses": [{**first_window_body(net, index, buses[index]), "slot": slot(net, store, "t")} for index in support],
    }
    title = "Stores the values or spikes that the source sent, and writes a step's windows." if joins else "Writes a step's windows."
    _add(net, assembly, store, compute_set, vertex, title, values | fields, body)


def _add(
    net: PoplarNetwork, assembly: Assembly, store: Store, compute_set: str, vertex: VertexSpec, title: str, values: Values, body: Body
) -> None:
    label = {i.id: i.label for i in net.program.inputs} | {p.id: p.label for p in net.program.populations}
    subject, relays = f"{store.owner} {label.get(store.owner, '')}", ("Relay", "r", f"{store.buffer}_relays")
    group = "relays_backward" if "backward" in compute_set else "relays_forward"
    assembly.add_codelet(group, f"{subject}: {title}", relays, [compute_set], vertex, values, title, subject, body)


def _event_values(net: PoplarNetwork, store: Store, buses: Sequence[BusPlan], joins: bool, forward: bool) -> tuple[Values, Body]:
    """Return the fields of a vertex that writes windows of spikes, and its template data for storing a step, used only if it `joins`.

    A vertex that joins merges the ids that the workers of its relay found.
    """
    name = store.buffer
    values: Values = {"stored": store.stored, "ids": f"{name}_ids[r.index]", "numbers": f"{name}_numbers[r.index]"}
    if store.bits:
        values = {"width": store.width, "bit_words": bit_words(store.width), "bits": f"{name}_bits[r.index]"}
    if store.with_support and (joins or not forward):
        values["ends"] = f"{name}_ends[r.index]"
    ids_of_word = 2 if store.id_type == "unsigned short" else 1
    join: Body = {"slot": slot(net, store, "finished"), "ids_of_word": ids_of_word, **asdict(store.stored_spikes)}
    if joins:
        spikes = entries = store.width
        if not store.bits and store.buses[0].mode != "exact":
            spikes = max(b.capacity for b in buses)
            entries = max([spikes, *(b.gradient.capacity for b in buses if b.gradient is not None)])
        values |= {
            "most_spikes": spikes,
            "most": entries,
            "pieces": f"layout.constants(relay_pieces({store.owner}, r, {net.plan.target.workers}), r.tile)",
            "found_ids": f"{name}_found[r.index]",
            "counts": f"{name}_counts[r.index]",
        }
        if store.drops_spikes:
            fixed = f"layout.numbers({{{c_literal(spikes)}, {c_literal(LOWEST)}}}, r.tile)"
            limit = f"{name}_limit[r.index]" if name in net.limits else fixed
            values |= {"limit": limit, "dropped": f"{name}_dropped[r.index]"}
        if store.drops_support:
            values["lost_near"] = f"{name}_lost_near[r.index]"
    return values, join


def _window_values(store: Store, index: int, bus: BusPlan, window: ShownWindow, *, again: bool = False) -> Values:
    """Return the fields of a bus's first window of a step or, with `again`, of its next window."""
    values: Values = {
        f"capacity{index}": bus.capacity,
        f"room{index}": store.room(bus.capacity),
        f"window{index}": f"Layout::samples({bus.id}_ids, r)",
        f"number{index}": f"Layout::samples({bus.id}_number, r)",
    }
    if window.with_support:
        values = support_values(store, index, bus)
        values |= {} if again else {f"window_before{index}": f"{bus.id}_counts[r.index]"}
    if window.may_continue:
        values[f"position{index}"] = f"Layout::samples({bus.id}_position, r)"
    if again:
        return values
    if window.requesting_passes:
        values[f"more{index}"] = f"{bus.id}_more[r.index]"
    if window.requesting_passes > 1:
        values[f"entries{index}"] = bus.gradient.capacity if bus.gradient is not None else 0
    if window.lost:
        values[f"lost{index}"] = f"{bus.id}_lost[r.index]"
    return values


def _bus(net: PoplarNetwork, store: Store, index: int, bus: BusPlan, forward: bool, joins: bool) -> Body:
    """Return the template data for the windows of a bus that contain only neurons that spiked, or values."""
    copied = f"copy_ids(&ids[(slot * samples + s) * stored], &window{index}[s * room{index}], n, first, span)"
    return {
        "index": index,
        "slot": slot(net, store, f"t{index}"),
        "joined": f"joins && shown{index} && t{index} == finished" if joins else "false",
        "comment": f"Bus {index} of the source{': exact, further windows follow' if net.limited(bus) else ''}.",
        "all": "0u" if store.bits else f"shown{index} ? numbers[slot * samples + s] : 0",
        "copied": "{}" if store.bits else copied,
        "positions": "" if not net.limited(bus) else "of workers" if store.bits else "of samples",
        "limited": net.limited(bus),
        "lost": forward and bus.kind == "events" and bus.capacity < bus.width,
        "requests": _requests(net, index, bus) if net.further.passes(bus.id, forward=forward) else [],
        "both": net.further.both,
    }


def _requests(net: PoplarNetwork, index: int, bus: BusPlan) -> list[Body]:
    """Return the template data of the counts with which relays request further windows.

    Worker 0 counts spikes. Worker 1 counts the entries of windows of the backward pass, if these also contain neurons that receive a
    gradient without a spike.
    """
    support = bus.gradient is not None
    spikes: Body = {
        "comment": "Further windows.",
        "worker": 0,
        "room": f"capacity{index}",
        "support": "",
        "kept": "all",
        "words": [0, 1] if net.further.both and not support else [0],
    }
    if not support:
        return [spikes]
    entries: Body = {
        "comment": "Window of the backward pass, which also contains neurons that receive a gradient without a spike.",
        "worker": 1,
        "room": f"entries{index}",
        "support": " + counts[2 * p + 1]",
        "kept": f"t{index} >= 0 ? ends[slot * samples + s] : all",
        "words": [1],
    }
    return [spikes, entries]


def _next_window(net: PoplarNetwork, assembly: Assembly, store: Store, compute_set: str, *, backward: bool) -> None:
    limited = tuple(bus for bus in store.buses if net.limited(bus, backward=backward))
    if store.bits:
        for bus in limited:
            _write_bits(net, assembly, store, bus, compute_set, again=True)
        return
    if not limited:
        return
    values = _common(net, store, limited, "second_clock[r.tile]", forward=not backward)
    values |= {"stored": store.stored, "ids": f"{store.buffer}_ids[r.index]", "numbers": f"{store.buffer}_numbers[r.index]"}
    body: Body = {"buses": [], "support_buses": [], "id_type": store.id_type, "slot": slot(net, store, "t")}
    windows = [net.further.window(bus.id, forward=not backward) for bus in limited]
    if any(window.with_support for window in windows):
        values["ends"] = f"{store.buffer}_ends[r.index]"
    for index, (bus, window) in enumerate(zip(limited, windows, strict=True)):
        values |= _window_values(store, index, bus, window, again=True)
        body["support_buses" if window.with_support else "buses"].append({"index": index, "comment": "Next window."})
    vertex = next_window(net.costs, store.stored_spikes, windows)
    _add(net, assembly, store, compute_set, vertex, "Writes the next window of a step.", values, body)
