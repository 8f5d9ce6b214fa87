"""Relays of sources: their stores and windows, and the vertices that fill them.

A relay is a tile that stores the values of a source at all steps and lists the ids of its spikes, which the source marks in masks. A bus
connects a source through its relays to the tiles that read it a certain number of iterations later. A window contains the data of one step
on a bus. All vertices of a compute set run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from snnc.backends.codegen.printing import c_literal
from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import Assembly, Body
from snnc.backends.poplar.vertices.gradient_windows import shown_body, support_values, window_variables
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

Values: TypeAlias = dict[str, object]
"""C++ expressions by field."""

JOIN: Final = "relay_windows"
"""Compute set in which relays merge the ids that their workers found, and write windows."""


def joins(net: PoplarNetwork) -> bool:
    """Return whether any relay merges results or writes windows in :data:`JOIN`."""
    return net.fused or any(store.kind == "events" and not store.external for store in net.stores.values())


def _forward_set(net: PoplarNetwork) -> str:
    """Return the compute set for windows that a relay writes without searching for spikes."""
    return JOIN if net.fused else "relay_forward"


def _forward_clock(net: PoplarNetwork, store: Store) -> str:
    """Return the C++ of the iteration number; if relays and neurons share a superstep, a vertex wrote it on the tile before."""
    return f"{store.buffer}_iteration[r.index][0]" if net.fused else "first_clock[r.tile]"


def _masks_for_relays(net: PoplarNetwork, assembly: Assembly, store: Store) -> str:
    """Declare copies of the masks, which relays search while blocks write the masks of the next step, and the vertices that copy them."""
    owner, mask, unit = store.owner, f"{store.buffer}_mask", net.mask_unit(store)
    made = f'layout.sent({owner}, poplar::UNSIGNED_INT, "{mask}_before", {unit} * {owner}.units())'
    before = assembly.variable("Sent", f"{mask}_before", made, "masks of the previous iteration")
    vertex, title, copy = copy_mask(net.costs), "Copies the masks of a tile for the relays.", f"{before}.of_tile({owner}, h)"
    values, homes = {"mask": f"{mask}.of_tile({owner}, h)", "copy": copy, "count": f"{copy}.numElements()"}, ("Home", "h", f"{owner}.homes")
    assembly.add_codelet("relays_forward", f"{store.buffer}: {title}", homes, [JOIN], vertex, values, title, store.buffer)
    return before


def add_relays(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the store of a source, the windows of its buses, and its relay vertices of both passes."""
    _variables(net, assembly, store)
    if store.external:
        _input(net, assembly, store)
    elif store.before:
        _initial(net, assembly, store)
    if net.fused:
        _advance_iteration(net, assembly, store)
    if store.external or store.kind == "values":
        _write_windows(net, assembly, store, _forward_set(net), store.buses, forward=True)
    else:
        _compact(net, assembly, store)
        _join(net, assembly, store)
    if net.training:
        _write_windows(net, assembly, store, "relay_backward", store.buses, forward=False)
    if net.plan.segment and not store.external:
        add_relay_boundaries(net, assembly, store)
    _next_window(net, assembly, store, "forward_next", backward=False)
    if net.training:
        _next_window(net, assembly, store, "backward_next", backward=True)


def _variables(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Declare the store of a source and the windows of its buses."""
    _stored(net, assembly, store)
    if not (store.external or store.before):
        for part, *_ in stored_parts(store):
            assembly.forget("forward", f"{store.buffer}_{part}")
    for bus in store.buses:
        _window(net, assembly, store, bus)


def _stored(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Declare the bits, ids or values that relays store for all steps, or for the steps of a ring buffer."""
    name = store.buffer
    relays, stored = f"{name}_relays", slots(net, store)
    if store.bits:
        words = f"({stored}) * {bit_words(store.width)}"
        assembly.kept(relays, "poplar::UNSIGNED_INT", f"{name}_bits", words, f"one bit per value and step of {name}")
    elif store.kind == "events":
        assembly.kept(relays, store.poplar_type, f"{name}_ids", f"({stored}) * {store.stored}", f"ids of all steps of {name}")
        assembly.kept(relays, "poplar::UNSIGNED_INT", f"{name}_numbers", stored, "their numbers")
        if store.with_support:
            ends = "number of spikes, plus neurons in the surrogate's support"
            assembly.kept(relays, "poplar::UNSIGNED_INT", f"{name}_ends", stored, ends)
        if store.drops_support:
            _counter(net, assembly, relays, f"{name}_lost_near", f"{name}_lost_near")
        if store.limited:
            _limit(net, assembly, store)
    else:
        assembly.kept(relays, "poplar::FLOAT", f"{name}_store", f"({stored}) * {store.width}", f"values of all steps of {name}")


def _window(net: PoplarNetwork, assembly: Assembly, store: Store, bus: BusPlan) -> None:
    """Declare the windows of a bus, and the requests for further ones."""
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
        shares = net.workers if store.bits else 1
        about = "start of the next window" + (", for each worker" * store.bits)
        assembly.window(relays, "poplar::UNSIGNED_INT", f"{bus.id}_position", shares, about)
        numbers = net.numbers_of_relay(bus) * (1 + net.further.both)
        assembly.relay_numbers(relays, "UNSIGNED_INT", f"{bus.id}_more", numbers, "further windows that relays need")
    if bus.capacity < bus.width:
        _counter(net, assembly, relays, f"{bus.id}_lost", counter_name(net, bus))


def _limit(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Declare the limit on the spikes sent per step (capacity and random key), if a run may change it, and the count of dropped spikes."""
    name, relays = store.buffer, f"{store.buffer}_relays"
    if name in net.limits:
        limit = assembly.relay_numbers(relays, "FLOAT", f"{name}_limit", 2)
        order = f"repeated(2, {limit}.all.numElements())"
        role = "PARAMETER" if net.operation else "SETTING"
        assembly.tensor(role, f"{name}_limit", "{2}", f"{limit}.all", order, True)
    _counter(net, assembly, relays, f"{name}_dropped", f"{name}_dropped")


def _limit_values(net: PoplarNetwork, store: Store, most: int) -> Values:
    """Return the fields of the limit on sent spikes, as C++ expressions; a fixed limit sends the `most` lowest ids."""
    fixed = f"layout.numbers({{{c_literal(most)}, {c_literal(LOWEST)}}}, r.tile)"
    limit = f"{store.buffer}_limit[r.index]" if store.buffer in net.limits else fixed
    return {"limit": limit, "dropped": f"{store.buffer}_dropped[r.index]"}


def _counter(net: PoplarNetwork, assembly: Assembly, relays: str, name: str, shown: str) -> None:
    """Declare a count for each worker of each relay, exposed to the host as the counter `shown`."""
    count = assembly.relay_numbers(relays, "UNSIGNED_INT", name, net.workers)
    assembly.tensors.append(f'counter("{shown}", {count}.all);')
    keep_count(net, assembly, count)


def counter_name(net: PoplarNetwork, bus: BusPlan) -> str:
    """Return the ABI name of a bus's counter."""
    return f"{bus.id}_{'further' if net.limited(bus) else 'dropped'}"


def _input(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the statement with which the host writes an input of the network into its relays."""
    name, shape = store.buffer, f"{{BATCH, {store.width}}}" if store.static else f"{{STEPS, BATCH, {store.width}}}"
    given = f"{host_ring(net, store)}, {'load_segment' if in_segments(net, store) else 'load_inputs'}"
    if store.bits:
        assembly.start.append(f'bit_input("{store.owner}", {shape}, {name}_relays, {name}_bits, {given});')
    elif store.kind == "events":
        assembly.start.append(
            f'event_input<{store.id_type}>("{store.owner}", {shape}, {name}_relays, {name}_ids, {name}_numbers, {store.stored}, {given});'
        )
    else:
        assembly.start.append(f'value_input("{store.owner}", {shape}, {name}_relays, {name}_store, {given});')


def _initial(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the statement that lets the host set the output of a population before the first step."""
    name = store.buffer
    if store.bits:
        given = f"{name}_relays, {name}_bits, {slots(net, store)}"
        assembly.tensors.append(f'initial_bits("{name}_initial", BATCH, {store.width}, {given});')
    elif store.kind == "events":
        assembly.tensors.append(
            f'initial_events<{store.id_type}>("{name}_initial", BATCH, {store.width}, {name}_relays, {name}_ids, {name}_numbers, '
            f"{slots(net, store)}, {store.stored});"
        )
    else:
        assembly.tensors.append(
            f'tensor("{name}_initial", SNNC_STATE, {{BATCH, {store.width}}}, first_slots({name}_store, {slots(net, store)}), {{}}, true);'
        )


def _common(net: PoplarNetwork, store: Store, buses: Sequence[BusPlan], clock: str, *, forward: bool) -> Values:
    """Return the fields that all vertices that write windows have; `clock` is the C++ of the iteration number."""
    values: Values = {"k": clock, "interval": "INTERVAL", "samples": "r.samples", "before": int(store.before)}
    for index, bus in enumerate(buses):
        values |= {f"offset{index}": net.offset_shown(bus, forward=forward), f"last{index}": net.last_step(bus)}
    return values


def _advance_iteration(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the vertices that write the next iteration's number on relay tiles, so that its windows can be written before any exchange."""
    name = store.buffer
    iteration = assembly.relay_numbers(f"{name}_relays", "INT", f"{name}_iteration", comment="iteration k")
    values = {"from": "second_clock[r.tile]", "to": f"{iteration}[r.index][0]", "add": 1}
    comment = f"{store.owner}: iteration number for the vertices of the next compute set"
    assembly.add("clocks", comment, ("Relay", "r", f"{name}_relays"), "forward_neurons", CLOCK_VERTEX, values)


def _compact(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the vertices that search masks, and their results: ids of neurons that spike, or only receive a gradient."""
    name, owner = store.buffer, store.owner
    relays, workers = f"{name}_relays", net.workers
    assembly.kept(relays, "poplar::UNSIGNED_INT", f"{name}_found", store.width, "ids found")
    counts = f'layout.piece_counts({relays}, "{name}_counts", {workers})'
    assembly.variable("Parts", f"{name}_counts", counts, "number of ids found, by worker and sample")
    for part in ("found", "counts"):
        assembly.forget("forward", f"{name}_{part}")
    kind, unit, mask = net.mask_kind(store), net.mask_unit(store), f"{name}_mask"
    handed_on: Values = {}
    if net.fused:
        mask = _masks_for_relays(net, assembly, store)
    else:
        iteration = assembly.relay_numbers(relays, "INT", f"{name}_iteration", comment="iteration k")
        handed_on["iteration"] = f"{iteration}[r.index][0]"
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
    title = "Each worker searches its share of the masks for spikes."
    body: Body = {"mask": kind, "outputs": list(handed_on)}
    compute_set = "forward_neurons" if net.fused else "relay_forward"
    _add(net, assembly, store, compute_set, relay_compact(net.costs, writes_iteration=bool(handed_on)), title, values | handed_on, body)


def _join(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the vertices that store a step and write windows; windows of buses with a lag above 1 are written from stored bits, if any."""
    if not store.bits:
        _write_windows(net, assembly, store, JOIN, store.buses, forward=True)
        return
    now = tuple(bus for bus in store.buses if bus.lag == 1)
    _write_windows(net, assembly, store, JOIN, now, forward=True)
    for bus in store.buses:
        if bus not in now:
            _write_bits(net, assembly, store, bus, "relay_forward")


def _write_bits(net: PoplarNetwork, assembly: Assembly, store: Store, bus: BusPlan, compute_set: str, *, again: bool = False) -> None:
    """Add the vertices that list the bits of a step in the window of a bus, or in its next window."""
    forward = "backward" not in compute_set
    clock = "second_clock[r.tile]" if again else _forward_clock(net, store) if forward else "first_clock[r.tile]"
    window = net.further.window(bus.id, forward=forward)
    values = _common(net, store, (bus,), clock, forward=forward)
    values |= {"bit_words": bit_words(store.width), "bits": f"{store.buffer}_bits[r.index]"}
    values |= _window_values(store, 0, bus, window, again=again)
    vertex = relay_bits(net.costs, store.stored_spikes, window, again=again)
    body: Body = {
        "index": 0,
        "slot": slot(net, store, "t"),
        "from": "position0[s * WORKERS + first]" if again else "0",
        "limited": window.limited,
        "requests": 1 + net.further.both if window.requesting_passes and not again else 0,
        "lost": window.lost and not again,
    }
    title = "Lists the bits of a step in its next window." if again else "Lists the bits of a step in its window."
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
        found, join = _event_values(net, store, buses, joins, forward)
        for index, (bus, window) in enumerate(zip(buses, windows, strict=True)):
            found |= _window_values(store, index, bus, window)
    else:
        vertex = relay_values(net.costs, len(buses), joins=joins)
        found, join = _value_values(net, store, buses, joins)
    body: Body = {
        "join": [join] if joins else [],
        "buses": [_bus(net, store, index, bus, forward, joins) for index, bus in enumerate(buses) if index not in support],
        "support_buses": [{**shown_body(net, index, buses[index]), "slot": slot(net, store, "t")} for index in support],
    }
    title = "Stores the values or spikes that the source sent, and writes a step's windows." if joins else "Writes a step's windows."
    _add(net, assembly, store, compute_set, vertex, title, values | found, body)


def _add(
    net: PoplarNetwork, assembly: Assembly, store: Store, compute_set: str, vertex: VertexSpec, title: str, values: Values, body: Body
) -> None:
    """Add a vertex to each relay of a store, in a compute set, and its codelet."""
    label = {i.id: i.label for i in net.program.inputs} | {p.id: p.label for p in net.program.populations}
    shown, relays = f"{store.owner} {label.get(store.owner, '')}", ("Relay", "r", f"{store.buffer}_relays")
    group = "relays_backward" if "backward" in compute_set else "relays_forward"
    assembly.add_codelet(group, f"{shown}: {title}", relays, [compute_set], vertex, values, title, shown, body)


def _event_values(net: PoplarNetwork, store: Store, buses: Sequence[BusPlan], joins: bool, forward: bool) -> tuple[Values, Body]:
    """Return the fields of a vertex that writes windows of spikes, and the template data for storing a step (used if it `joins`)."""
    name = store.buffer
    values: Values = {"stored": store.stored, "ids": f"{name}_ids[r.index]", "numbers": f"{name}_numbers[r.index]"}
    if store.bits:
        values = {"width": store.width, "bit_words": bit_words(store.width), "bits": f"{name}_bits[r.index]"}
    if store.with_support and not forward:
        values["ends"] = f"{name}_ends[r.index]"
    join: Body = {
        "slot": slot(net, store, "finished"),
        "id_type": store.id_type,
        "ids_of_word": 2 if store.id_type == "unsigned short" else 1,
        "bits": store.bits,
        "with_support": store.with_support,
        "drops_support": store.drops_support,
        "limited": store.limited,
    }
    if joins:
        exact = store.bits or store.buses[0].mode == "exact"
        values |= {
            "most_spikes": store.width if exact else max(b.capacity for b in buses),
            "most": store.width if exact else _entries(store),
            "pieces": f"layout.constants(relay_pieces({store.owner}, r, {net.workers}), r.tile)",
            "found_ids": f"{name}_found[r.index]",
            "counts": f"{name}_counts[r.index]",
        }
        if store.limited:
            values |= _limit_values(net, store, max(b.capacity for b in buses))
        if store.with_support:
            values["ends"] = f"{name}_ends[r.index]"
        if store.drops_support:
            values["lost_near"] = f"{name}_lost_near[r.index]"
    return values, join


def _entries(store: Store) -> int:
    """Return the maximum number of ids per step in the store."""
    if store.buses[0].mode == "exact":
        return store.width
    return max([b.capacity for b in store.buses] + [b.gradient.capacity for b in store.buses if b.gradient is not None])


def _window_values(store: Store, index: int, bus: BusPlan, window: ShownWindow, *, again: bool = False) -> Values:
    """Return the fields of a bus's first window of a step or, with `again`, of its next window, as C++ expressions."""
    values: Values = {
        f"capacity{index}": bus.capacity,
        f"room{index}": store.room(bus.capacity),
        f"window{index}": f"Layout::samples({bus.id}_ids, r)",
        f"number{index}": f"Layout::samples({bus.id}_number, r)",
    }
    if window.with_support:
        values = support_values(store, index, bus)
        values |= {} if again else {f"window_before{index}": f"{bus.id}_counts[r.index]"}
    if window.limited:
        values[f"position{index}"] = f"Layout::samples({bus.id}_position, r)"
    if window.requesting_passes and not again:
        values[f"more{index}"] = f"{bus.id}_more[r.index]"
    if window.requesting_passes > 1 and not again:
        values[f"entries{index}"] = bus.gradient.capacity if bus.gradient is not None else 0
    if window.lost and not again:
        values[f"lost{index}"] = f"{bus.id}_lost[r.index]"
    return values


def _value_values(net: PoplarNetwork, store: Store, buses: Sequence[BusPlan], joins: bool) -> tuple[Values, Body]:
    """Return the fields of a vertex that writes windows of values, and the template data for storing a step (used if it `joins`)."""
    name, owner = store.buffer, store.owner
    values: Values = {"width": store.width, "store": f"{name}_store[r.index]"}
    if joins:
        values |= {
            "tiles": f"{owner}.tiles.size()",
            "row": f"{owner}.most_neurons()",
            "first": f"layout.constants({owner}.first_of_tile(), r.tile)",
            "now": f"{name}_now.to(r)",
        }
    values |= {f"window{i}": f"Layout::samples({bus.id}_values, r)" for i, bus in enumerate(buses)}
    return values, {"slot": slot(net, store, "finished")}


def _bus(net: PoplarNetwork, store: Store, index: int, bus: BusPlan, forward: bool, joins: bool) -> Body:
    """Return the template data for writing the windows of a bus, if these contain no neurons that receive a gradient without a spike."""
    body: Body = {
        "index": index,
        "slot": slot(net, store, f"t{index}"),
        "joined": f"joins && shown{index} && t{index} == finished" if joins else "false",
        "comment": f"Bus {index} of the source{': exact, further windows follow' if net.limited(bus) else ''}.",
        "all": "0u" if store.bits else f"shown{index} ? numbers[slot * samples + s] : 0",
        "copied": f"copy_ids(&ids[(slot * samples + s) * stored], &window{index}[s * room{index}], n, first, span)",
        "positions": "",
        "limited": net.limited(bus),
        "lost": forward and bus.kind == "events" and bus.capacity < bus.width,
        "requests": _requests(net, index, bus) if net.further.passes(bus.id, forward=forward) else [],
        "both": net.further.both,
    }
    if store.bits:
        body["copied"] = "{}"
    if net.limited(bus):
        body["positions"] = "of workers" if store.bits else "of samples"
    return body


def _requests(net: PoplarNetwork, index: int, bus: BusPlan) -> list[Body]:
    """Return the template data of the counts with which relays request further windows.

    Worker 0 counts spikes. If windows of the backward pass also contain neurons that receive a gradient without a spike, worker 1 counts
    their entries.
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
    """Add the vertices that write the next window of a step, for buses that may need several."""
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
