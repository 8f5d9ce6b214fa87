"""Emitted code for relays if the sequence is divided into segments: a ring of steps, and the steps that relays save at boundaries.

A relay does not save what its source sent last: the blocks of the source save these masks or values, and the relay reads them again.
"""

from __future__ import annotations

from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import Assembly, Body
from snnc.backends.poplar.vertices.recompute import RESTORE, SAVE, TITLES, boundary_values
from snnc.compiler.tiles.schedule.buses import bit_words
from snnc.compiler.tiles.vertices.relay_vertices import relay_boundary


def slots(net: PoplarNetwork, store: Store) -> str:
    """Return the number of slots of a store (one per step) as C++."""
    if store.static:
        return "1"
    before = int(store.before)
    if _in_ring(net, store):
        return str(before + _ring(net, store))
    return "STEPS + 1" if before else "STEPS"


def slot(net: PoplarNetwork, store: Store, step: str) -> str:
    """Return the C++ for the slot of a step; steps before the first one are in slot 0."""
    if store.static:
        return "before"
    ring = f" % {_ring(net, store)}" if _in_ring(net, store) else ""
    return f"static_cast<unsigned long>({step} < 0 ? 0 : {step}{ring} + static_cast<int>(before))"


def _in_ring(net: PoplarNetwork, store: Store) -> bool:
    return net.plan.segment > 0 and (not store.external or in_segments(net, store))


def in_segments(net: PoplarNetwork, store: Store) -> bool:
    """Return whether the host sends an input segment by segment."""
    return net.plan.segment > 0 and store.external and not store.static and net.plan.streamed != "off"


def _ring(net: PoplarNetwork, store: Store) -> int:
    segments = net.plan.segments
    return segments.steps_streamed(min(b.lag for b in store.buses), store.lag) if store.external else segments.steps_relayed(store.lag)


def host_ring(net: PoplarNetwork, store: Store) -> str:
    """Return the C++ argument that describes the ring of an input, if the host sends it segment by segment."""
    return f"Ring{{{_ring(net, store)}, {net.stages[store.owner] + store.lag}, &turns}}" if in_segments(net, store) else "Ring{}"


def keep_count(net: PoplarNetwork, assembly: Assembly, name: str) -> None:
    """Declare a copy of a counter for its value after the first run of a segment; later runs of the segment do not count."""
    if net.plan.segments.reruns:
        counter = assembly.variables[name]
        value = counter.value.replace(f'"{name}"', f'"{name}_first"')
        assembly.variable(counter.type, f"{name}_first", value, "after the first run of the segment")


def counters(net: PoplarNetwork) -> list[tuple[str, str]]:
    """Return the counters of the forward pass (entries that do not fit, dropped spikes, rounds), with the C++ suffix of their elements."""
    names = [f"{name}_lost_near" for name, store in net.stores.items() if store.drops_support]
    names += [f"{bus.id}_lost" for bus in net.plan.buses if bus.kind == "events" and bus.capacity < bus.width]
    names += [f"{name}_dropped" for name, store in net.stores.items() if store.drops_spikes]
    return [(name, ".all") for name in names] + ([("forward_round_count", "")] if net.further.forward else [])


def add_relay_boundaries(net: PoplarNetwork, assembly: Assembly, store: Store) -> None:
    """Add the arrays for the steps that the relays of a population save at boundaries, if any, and the vertices that copy them."""
    name, behind = store.buffer, net.plan.segments.steps_before(store.lag)
    if not keeps_boundary_steps(net, store):
        return
    for part, kind, width in stored_parts(store):
        rows = f"{'1' if net.plan.streamed == 'boundaries' else '(SEGMENTS - 1)'} * {behind} * {width}"
        assembly.forget("forward", assembly.relay_rows(f"{name}_relays", kind, boundary_name(name, part), rows, "at boundaries"))
    for compute_set in (SAVE, RESTORE):
        _add_boundary(net, assembly, store, compute_set, behind)


def keeps_boundary_steps(net: PoplarNetwork, store: Store) -> bool:
    """Return whether the relays of a source save steps at boundaries."""
    return not store.external and net.plan.segments.steps_before(store.lag) > 0


def stored_parts(store: Store) -> list[tuple[str, str, int]]:
    """Return the arrays in which relays store a step of a sample: end of the name, Poplar type, number of elements."""
    if store.bits:
        return [("bits", "poplar::UNSIGNED_INT", bit_words(store.width))]
    if store.kind != "events":
        return [("store", "poplar::FLOAT", store.width)]
    counts = ["numbers", "ends"] if store.with_support else ["numbers"]
    return [("ids", store.poplar_type, store.stored), *((part, "poplar::UNSIGNED_INT", 1) for part in counts)]


def boundary_name(buffer: str, part: str) -> str:
    """Return the name of the copy of an array that relays save at boundaries."""
    return f"{buffer}_kept_{part}"


def _add_boundary(net: PoplarNetwork, assembly: Assembly, store: Store, compute_set: str, behind: int) -> None:
    name, parts = store.buffer, stored_parts(store)
    vertex = relay_boundary(net.costs, store.stored_spikes if store.kind == "events" else None)
    values = boundary_values(net, store.owner, compute_set, "r")
    values |= {"lag": store.lag, "before": int(store.before), "behind": behind}
    values["stored" if parts[0][0] == "ids" else "width"] = parts[0][2]
    for part, *_ in parts:
        values |= {part: f"{name}_{part}[r.index]", f"kept_{part}": f"{boundary_name(name, part)}[r.index]"}
    body: Body = {
        "slot": slot(net, store, "t"),
        "row": "0" if net.plan.streamed == "boundaries" else "(start / segment - 1)",
        "part": parts[0][0],
        "counts": [part for part, *_ in parts[1:]],
        "id_type": store.id_type,
    }
    subject, relays = f"{store.owner} {net.program.population(store.owner).label}", ("Relay", "r", f"{name}_relays")
    title = "Saves the steps that relays have yet to send, at a boundary, or restores them."
    comment = f"{subject}: {TITLES[compute_set]} steps"
    assembly.add_codelet("recompute", comment, relays, [compute_set], vertex, values, title, subject, body)
