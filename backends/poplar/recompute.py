"""Recompute as printed: rings of the steps of a segment, what is kept at boundaries, and the vertices that copy it.

Without recompute a state with a history has a slot for each step and one for the initial value. With it, slots are a ring: the states
before step t stand in slot ``t % (STEPS_KEPT + 1)``, saved values in ``t % STEPS_KEPT``; the initial values are boundary 0. Relays of
populations keep a ring of the steps that a segment shows, behind the slot of a given initial value; inputs keep all steps.
"""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import Network, Store
from snnc.backends.poplar.parts import Access, Assembly, Body, Field, VertexLoop, integer, number, scalar, vector
from snnc.compiler.step_program import PopulationInfo

KEPT: Final = "STEPS_KEPT"
"""C++ name of the most steps of a segment."""
SAVE: Final = "save_states"
RESTORE: Final = "restore_states"
AGAIN: Final = "relay_again"
"""Compute sets of recompute."""


def keeps_history(net: Network, population: PopulationInfo, index: int) -> bool:
    """Whether a state is kept for every step, or for every step of a segment."""
    return net.adjoint(population.id) is not None and population.kernel.states[index] in population.kernel.history


def state_cells(net: Network, assembly: Assembly, population: PopulationInfo, index: int, buffer: str) -> tuple[str, str]:
    """Declare what holds a state; return the variable that begins with its initial values, and its slots."""
    history, shown = keeps_history(net, population, index), f"state {population.label}"
    if not net.plan.segment:
        slots = "STEPS + 1" if history else "2"
        return assembly.cells(population.id, buffer, slots, shown), slots
    assembly.cells(population.id, buffer, f"{KEPT} + 1" if history else "1", shown)
    return assembly.cells(population.id, f"{buffer}_boundary", "SEGMENTS", "the same at boundaries of segments"), "SEGMENTS"


def state_slots(net: Network, population: PopulationInfo, index: int) -> tuple[str, str]:
    """C++ offsets, in a state's array, of its values before and after step t."""
    if not keeps_history(net, population, index):
        return ("0", "0") if net.plan.segment else ("(t == 0 ? 0 : size)", "size")
    return _slot(net, "t", 1), _slot(net, "(t + 1)", 1)


def saved_slot(net: Network) -> str:
    """C++ offset, in the array of a saved value, of its values in step t."""
    return _slot(net, "t", 0)


def _slot(net: Network, step: str, more: int) -> str:
    return f"{step} % {net.plan.segments.steps_kept + more} * size" if net.plan.segment else f"{step} * size"


def add_recompute(net: Network, assembly: Assembly) -> None:
    """Add the vertices that keep states at the boundaries of segments and bring them back, and the clock that goes back with them."""
    if not net.plan.segment:
        return
    for population in net.program.populations:
        _add_boundary(net, assembly, population, SAVE)
        _add_boundary(net, assembly, population, RESTORE)
    fields = (scalar("Input", "int", "from", "second_clock"), scalar("Output", "int", "to", "first_clock"), integer("add", "-SEGMENT"))
    assembly.loop("clocks", VertexLoop(RESTORE, "", "", "", RESTORE, "Clock", "0", fields))


def _boundary_fields(net: Network, population: str, compute_set: str, samples: str) -> list[Field]:
    """Fields that tell a vertex at which boundary it works."""
    return [
        scalar("Input", "int", "k", "second_clock" if compute_set == RESTORE else "first_clock"),
        integer("stage", net.stages[population]),
        integer("interval", "INTERVAL"),
        integer("steps", "STEPS"),
        integer("segment", "SEGMENT"),
        number("samples", samples),
    ]


def _add_boundary(net: Network, assembly: Assembly, population: PopulationInfo, compute_set: str) -> None:
    restores = compute_set == RESTORE
    fields = [*_boundary_fields(net, population.id, compute_set, "b.samples"), number("count", "b.count")]
    states: list[Body] = []
    for index, buffer in enumerate(net.step(population.id).states):
        kept, cells = (f"{name}[b.index]" for name in (f"{buffer}_boundary", buffer))
        fields.append(vector("Input" if restores else "InOut", "float", f"boundary{index}", kept))
        fields.append(vector("InOut" if restores else "Input", "float", f"state{index}", cells))
        states.append({"index": index, "slot": state_slots(net, population, index)[0]})
    title = "Brings the states at a boundary back." if restores else "Keeps the states at a boundary."
    body: Body = {"states": states, "back": restores}
    shown, given = f"{population.id} {population.label}", tuple(fields)
    prefix = "Restore" if restores else "Save"
    name = assembly.codelet("boundary", prefix, title, shown, given, net.cost("boundary"), body)
    comment = f"{shown}: {title[:1].lower()}{title[1:]}"
    assembly.loop("recompute", VertexLoop(comment, "Block", "b", f"{population.id}.blocks", compute_set, name, "b.tile", given))


# ---- relays ----------------------------------------------------------------------------------------------------------------


def slots(net: Network, store: Store) -> str:
    """Slots of a store, as C++."""
    if store.static:
        return "1"
    before = int(store.before)
    if _in_ring(net, store):
        return str(before + net.plan.segments.steps_relayed(_lag(store)))
    return "STEPS + 1" if before else "STEPS"


def slot(net: Network, store: Store, step: str) -> str:
    """C++ slot of a step; a step before the first stands in slot 0."""
    if store.static:
        return "before"
    ring = f" % {net.plan.segments.steps_relayed(_lag(store))}" if _in_ring(net, store) else ""
    return f"static_cast<unsigned long>({step} < 0 ? 0 : {step}{ring} + static_cast<int>(before))"


def _in_ring(net: Network, store: Store) -> bool:
    return net.plan.segment > 0 and not store.external


def _lag(store: Store) -> int:
    return max(bus.lag for bus in store.buses)


def add_relay_boundaries(net: Network, assembly: Assembly, store: Store) -> None:
    """Add what the relays of a population keep at boundaries, and the vertices that copy it."""
    if store.external:
        return
    name, events = store.buffer, store.kind == "events"
    held = [("store", "float", "poplar::FLOAT", store.width)]
    if events:
        held = [("ids", store.id_type, store.poplar_type, store.stored), ("numbers", "unsigned", "poplar::UNSIGNED_INT", 1)]
        held += [("ends", "unsigned", "poplar::UNSIGNED_INT", 1)] if store.near else []
    behind = net.plan.segments.steps_behind(_lag(store))
    for part, _, kind, width in held:
        rows = f"(SEGMENTS - 1) * {behind} * {width}"
        assembly.variable(
            "Parts", f"{name}_kept_{part}", f'layout.kept({name}_relays, {kind}, "{name}_kept_{part}", {rows})', "at boundaries"
        )
    for compute_set in (SAVE, RESTORE):
        fields = _boundary_fields(net, store.owner, compute_set, "r.samples")
        fields += [integer("lag", _lag(store)), number("before", int(store.before)), integer("behind", behind)]
        fields.append(number("stored", store.stored) if events else number("width", store.width))
        for part, element, _, _ in held:
            align = 4 if part == "ids" else 0
            accesses: tuple[Access, Access] = ("InOut", "Input") if compute_set == RESTORE else ("Input", "InOut")
            fields.append(vector(accesses[0], element, part, f"{name}_{part}[r.index]", align))
            fields.append(vector(accesses[1], element, f"kept_{part}", f"{name}_kept_{part}[r.index]", align))
        lists = "ends" if store.near else "numbers"
        body: Body = {
            "back": compute_set == RESTORE,
            "slot": slot(net, store, "t"),
            "lists": lists,
            "counts": [p for p, *_ in held[1:]],
            "id_type": store.id_type,
        }
        title = (
            "Brings the steps back that are shown behind a boundary."
            if body["back"]
            else "Keeps the steps that are shown behind a boundary."
        )
        template, cost = ("boundary_events", "boundary_events") if events else ("boundary_values", "boundary")
        prefix = "RestoreSteps" if body["back"] else "SaveSteps"
        shown, given = f"{store.owner} {net.population(store.owner).label}", tuple(fields)
        codelet = assembly.codelet(template, prefix + ("Events" if events else "Values"), title, shown, given, net.cost(cost), body)
        comment = f"{shown}: {title[:1].lower()}{title[1:]}"
        assembly.loop("recompute", VertexLoop(comment, "Relay", "r", f"{name}_relays", compute_set, codelet, "r.tile", given))
