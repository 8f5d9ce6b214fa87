"""Emitted code for segments (docs/decisions/0009-recompute.md): histories of a segment, and states saved at boundaries.

Without segments, a state with a history has a slot for each step and one for the initial value. With segments, the slots form a ring: the
states before step t are in slot ``t % (STEPS_KEPT + 1)``, and values that a kernel saves for its adjoint are in slot ``t % STEPS_KEPT``.
Initial values are in boundary 0. At each boundary, a block saves its states and the masks or values that it sent last. If boundaries are
in streaming memory, the block has a slot for the initial values and one for any other boundary. If histories are in streaming memory, it
has only the slot for initial values.
"""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import Assembly, Body, clock
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.tiles.vertices.boundary_vertices import boundary, state_types

KEPT: Final = "STEPS_KEPT"
"""C++ constant: the number of steps in a history."""
SAVE: Final = "save_states"
RESTORE: Final = "restore_states"
"""Compute sets that save and restore boundaries."""
TITLES: Final = {SAVE: "saves", RESTORE: "restores"}


def keeps_history(net: PoplarNetwork, population: PopulationInfo, index: int) -> bool:
    """Return whether the array of a state contains its history.

    If the backward pass reads float16 roundings of a float32 state, a separate array contains these instead.
    """
    kernel = population.kernel
    state = kernel.states[index]
    unrounded = state in kernel.halves or state not in kernel.rounded
    return net.adjoint(population.id) is not None and state in kernel.history and unrounded


def is_half(population: PopulationInfo, index: int) -> bool:
    """Return whether a state is stored as float16."""
    return population.kernel.states[index] in population.kernel.halves


def state_cells(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, index: int, buffer: str) -> tuple[str, str]:
    """Declare the arrays of a state; return the one with its initial values, and the number of its slots as C++."""
    history, comment = keeps_history(net, population, index), f"state {population.label}"
    cells = assembly.half_cells if is_half(population, index) else assembly.cells
    if not net.plan.segment:
        slots, initial = "STEPS + 1" if history else "1", f"{buffer}_initial"
        assembly.forget("forward", cells(population.id, buffer, slots, comment))
        assembly.start.append(f"initial_states.add({initial}.all, first_slots({buffer}, {slots}));")
        return cells(population.id, initial, "1", f"initial values of the {comment}"), "1"
    assembly.forget("forward", cells(population.id, buffer, f"{KEPT} + 1" if history else "1", comment))
    slots = boundary_slots(net)
    return cells(population.id, f"{buffer}_boundary", slots, f"{comment} at boundaries of segments"), slots


def boundary_slots(net: PoplarNetwork) -> str:
    """Return the number of slots for boundaries as C++."""
    return "SEGMENTS" if net.plan.streamed in ("off", "inputs") else str(net.plan.segments.boundaries)


def state_slots(net: PoplarNetwork, population: PopulationInfo, index: int) -> tuple[str, str]:
    """Return the C++ offsets of the values before and after step t in the array of a state."""
    if not keeps_history(net, population, index):
        return "0", "0"
    if is_half(population, index):
        return half_slots(net)
    return _slot(net, "t", 1), _slot(net, "(t + 1)", 1)


def saved_slot(net: PoplarNetwork, size: str = "size") -> str:
    """Return the C++ offset of the values at step t in the array of a saved value."""
    return _slot(net, "t", 0, size)


def half_slots(net: PoplarNetwork) -> tuple[str, str]:
    """Return the C++ offsets of the values before and after step t in a float16 history."""
    return _slot(net, "t", 1, "halves"), _slot(net, "(t + 1)", 1, "halves")


def _slot(net: PoplarNetwork, step: str, more: int, size: str = "size") -> str:
    return f"{step} % {net.plan.segments.steps_in_history + more} * {size}" if net.plan.segment else f"{step} * {size}"


def add_recompute(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the vertices that restore states from boundaries and reset the clock; if segments run again, also those that save states."""
    if not net.plan.segment:
        return
    for population in net.program.populations:
        if net.plan.segments.reruns:
            _add_boundary(net, assembly, population, SAVE)
        _add_boundary(net, assembly, population, RESTORE)
    assembly.loop("clocks", clock(RESTORE, "second_clock", "first_clock", "-SEGMENT"))


def boundary_values(net: PoplarNetwork, population: str, compute_set: str, item: str) -> dict[str, object]:
    """Return the fields for the boundary that a vertex saves or restores."""
    return {
        "k": f"{'second_clock' if compute_set == RESTORE else 'first_clock'}[{item}.tile]",
        "back": "SEGMENT" if compute_set == RESTORE else 0,
        "stage": net.stages[population],
        "interval": "INTERVAL",
        "steps": "STEPS",
        "segment": "SEGMENT",
        "samples": f"{item}.samples",
    }


def _add_boundary(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, compute_set: str) -> None:
    values = {**boundary_values(net, population.id, compute_set, "b"), "count": "b.count"}
    sent: list[tuple[int, bool]] = []
    copies: list[Body] = []
    for index, buffer in enumerate(net.step(population.id).states):
        values |= _fields(f"state{index}", f"{buffer}_boundary[b.index]", f"{buffer}[b.index]")
        number = "halves / 2" if is_half(population, index) else "size"
        copies.append({"name": f"state{index}", "slot": state_slots(net, population, index)[0], "number": number})
    for index, buffer in enumerate(net.step(population.id).outputs if net.plan.segments.reruns else ()):
        if buffer in net.stores:
            fields, copy = _add_last_sent(net, assembly, population, net.stores[buffer], index)
            values |= fields
            copies.append(copy)
            sent.append((index, net.stores[buffer].kind == "events"))
    vertex, subject = boundary(net.costs, state_types(population.kernel), sent), f"{population.id} {population.label}"
    slot = {"boundaries": "(start == 0 ? 0 : 1)", "history": "0"}.get(net.plan.streamed, "start / segment")
    body: Body = {"copies": copies, "slot": slot, "pairs": bool(population.kernel.halves)}
    title, blocks = "Saves the initial values of a segment at a boundary, or restores them.", ("Block", "b", f"{population.id}.blocks")
    comment = f"{subject}: {TITLES[compute_set]} the initial values of a segment"
    assembly.add_codelet("recompute", comment, blocks, [compute_set], vertex, values, title, subject, body)


def _fields(name: str, at_boundary: str, current: str) -> dict[str, object]:
    return {f"boundary_{name}": at_boundary, name: current}


def _add_last_sent(
    net: PoplarNetwork, assembly: Assembly, population: PopulationInfo, store: Store, index: int
) -> tuple[dict[str, object], Body]:
    """Add an array for the values that a block sent last, which relays read in the first iteration of the next segment."""
    name, saved, label = store.buffer, f"{store.buffer}_boundary", f"last values sent by {population.label}, at boundaries"
    if store.kind != "events":
        assembly.forget("forward", assembly.cells(population.id, saved, boundary_slots(net), label))
        values, number = _fields(f"sent{index}", f"{saved}[b.index]", f"own_values({name}_now, {population.id}, b)"), "size"
    else:
        unit = net.mask_unit(store)
        expression = f'layout.block_words({population.id}, "{saved}", {boundary_slots(net)}, {unit})'
        assembly.forget("forward", assembly.variable("Parts", saved, expression, label))
        values = _fields(f"sent{index}", f"{saved}[b.index]", f"own_mask({name}_mask, {population.id}, b, {unit})")
        values[f"words{index}"], number = f"{population.id}.words_of(b, {unit})", f"static_cast<unsigned long>(samples) * words{index}"
    return values, {"name": f"sent{index}", "slot": "0", "number": number}
