"""Relays of populations while segments run twice: a ring of the steps that a segment shows, and what of it is kept at boundaries.

The step that a source finished last is not among that: blocks keep the masks of it, and relays look through them again.
"""

from __future__ import annotations

from snnc.backends.poplar.gradient_windows import counts_lost
from snnc.backends.poplar.network import Network, Store
from snnc.backends.poplar.parts import Assembly, Body, VertexLoop, integer, number, vector
from snnc.backends.poplar.recompute import RESTORE, SAVE, TITLES, boundary_fields
from snnc.compiler.mapping.buses import bit_words


def slots(net: Network, store: Store) -> str:
    """Slots of a store, as C++."""
    if store.static:
        return "1"
    before = int(store.before)
    if _in_ring(net, store):
        return str(before + net.plan.segments.steps_relayed(_lag(net, store)))
    return "STEPS + 1" if before else "STEPS"


def slot(net: Network, store: Store, step: str) -> str:
    """C++ slot of a step; a step before the first stands in slot 0."""
    if store.static:
        return "before"
    ring = f" % {net.plan.segments.steps_relayed(_lag(net, store))}" if _in_ring(net, store) else ""
    return f"static_cast<unsigned long>({step} < 0 ? 0 : {step}{ring} + static_cast<int>(before))"


def _in_ring(net: Network, store: Store) -> bool:
    return net.plan.segment > 0 and not store.external


def _lag(net: Network, store: Store) -> int:
    """The largest lag of all buses of a source; a vertex may show some of them alone."""
    return max(bus.lag for bus in net.stores[store.buffer].buses)


def keep_count(net: Network, assembly: Assembly, name: str) -> None:
    """Declare a copy of what the first run of the sequence counted."""
    if net.plan.segment:
        made = assembly.variables[name]
        assembly.variable(made.type, f"{name}_first", made.value.replace(f'"{name}"', f'"{name}_first"'), "as the first run left it")


def counters(net: Network) -> list[tuple[str, str]]:
    """Variables that the forward pass counts in, and what makes a tensor of each."""
    found = [(f"{name}_lost_near", ".all") for name, store in net.stores.items() if counts_lost(store)]
    found += [(f"{bus.id}_lost", ".all") for bus in net.plan.buses if bus.kind == "events" and bus.capacity < bus.width]
    return found + ([("forward_round_count", "")] if net.rounds else [])


def add_relay_boundaries(net: Network, assembly: Assembly, store: Store) -> None:
    """Add what the relays of a population keep at boundaries, and the vertices that copy it; nothing where all lags are 1."""
    name, behind = store.buffer, net.plan.segments.steps_behind(_lag(net, store))
    if behind == 0:
        return
    for part, _, kind, width in held(store):
        rows = f"(SEGMENTS - 1) * {behind} * {width}"
        made = f'layout.kept({name}_relays, {kind}, "{_kept(name, part)}", {rows})'
        assembly.forget("forward", assembly.variable("Parts", _kept(name, part), made, "at boundaries"))
    for compute_set in (SAVE, RESTORE):
        _add_boundary(net, assembly, store, compute_set, behind)


def held(store: Store) -> list[tuple[str, str, str, int]]:
    """What a step of a sample is made of: part, types in C++ and Poplar, elements."""
    if store.bits:
        return [("bits", "unsigned", "poplar::UNSIGNED_INT", bit_words(store.width))]
    if store.kind != "events":
        return [("store", "float", "poplar::FLOAT", store.width)]
    counts = ["numbers", "ends"] if store.near else ["numbers"]
    return [("ids", store.id_type, store.poplar_type, store.stored), *((part, "unsigned", "poplar::UNSIGNED_INT", 1) for part in counts)]


def _kept(buffer: str, part: str) -> str:
    return f"{buffer}_kept_{part}"


def _add_boundary(net: Network, assembly: Assembly, store: Store, compute_set: str, behind: int) -> None:
    name, parts = store.buffer, held(store)
    fields = boundary_fields(net, store.owner, compute_set, "r.samples")
    fields += [integer("lag", _lag(net, store)), number("before", int(store.before)), integer("behind", behind)]
    lists = parts[0][0] == "ids"
    fields.append(number("stored", store.stored) if lists else number("width", parts[0][3]))
    for part, element, _, _ in parts:
        align = 4 if part == "ids" else 0
        fields.append(vector("InOut", element, part, f"{name}_{part}[r.index]", align))
        fields.append(vector("InOut", element, f"kept_{part}", f"{_kept(name, part)}[r.index]", align))
    body: Body = {"slot": slot(net, store, "t"), "part": parts[0][0], "counts": [part for part, *_ in parts[1:]], "id_type": store.id_type}
    shown, given = f"{store.owner} {net.population(store.owner).label}", tuple(fields)
    template, prefix, cost = (
        ("boundary_events", "BoundaryEvents", "boundary_events") if lists else ("boundary_rows", "BoundaryRows", "boundary")
    )
    codelet = assembly.codelet(template, prefix, "Steps that are still shown, to a boundary or back.", shown, given, net.cost(cost), body)
    comment = f"{shown}: {TITLES[compute_set]} steps"
    assembly.loop("recompute", VertexLoop(comment, "Relay", "r", f"{name}_relays", compute_set, codelet, "r.tile", given))
