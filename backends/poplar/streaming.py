"""Emitted code for streaming memory: the arrays of a row, which contains the boundary or history of a segment, and the numbers of rows."""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import ONCE, Assembly
from snnc.backends.poplar.vertices.recompute import boundary_slots, keeps_history
from snnc.backends.poplar.vertices.relay_segments import boundary_name, keeps_boundary_steps, stored_parts
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.tiles.codelets.block_code import half_states
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX

NEXT_ROW: Final = "next_row"
ROW_BEFORE: Final = "row_before"
"""Compute sets that compute the number of the next and of the previous row."""
TITLES: Final = {NEXT_ROW: "MS next row", ROW_BEFORE: "ML row before"}
COPIES: Final = {NEXT_ROW: "MS row number", ROW_BEFORE: "ML row number"}
"""Compute set -> its name in the profile, and that of the copy that stores the number (MS: to streaming memory, ML: from it)."""
ROW: Final = "remote_row"
"""C++ name of the variable with the number of the current row."""


def add_streaming(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the arrays of a row, and the vertices that compute row numbers."""
    if not net.plan.segments.rows:
        return
    for name in (ROW, f"{ROW}_after"):
        assembly.on_tile("INT", name, "number of the row of streaming memory", shape="{}")
    # A clock vertex adds to an iteration counter, or, as here, to the number of a row; one on tile 0 suffices.
    for compute_set, add in ((NEXT_ROW, 1), (ROW_BEFORE, -1)):
        values = {"from": ROW, "to": f"{ROW}_after", "add": add}
        assembly.add("clocks", TITLES[compute_set], ONCE, compute_set, CLOCK_VERTEX, values, tile="0")
    # Of the slots of a boundary, those from 1 on belong to a row; slot 0, with the initial values, stays on the tile.
    arrays, slot_arguments = (_history, "") if net.plan.streamed == "history" else (_boundaries, f", {boundary_slots(net)}, 1")
    for population in net.program.populations:
        assembly.start += [f"rows.add({array}, {population.id}.blocks{slot_arguments});" for array in arrays(net, population)]
    for store in net.stores.values():
        assembly.start += [f"rows.add({array}, {store.buffer}_relays);" for array in _relay_arrays(net, store)]
    assembly.start.append(f"rows.end({net.plan.segments.rows}, {ROW}.reinterpret(poplar::UNSIGNED_INT), to_streaming, from_streaming);")


def move_row(compute_set: str) -> str:
    """Return, as C++, the Poplar programs that run `compute_set` and store the new row number."""
    return f'Execute({compute_set}), Copy({ROW}_after, {ROW}, false, "{COPIES[compute_set]}")'


def _history(net: PoplarNetwork, population: PopulationInfo) -> list[str]:
    """Return the arrays of states, of float16 roundings of states (see :func:`keeps_history`), and of values saved for the adjoint."""
    step = net.step(population.id)
    states = [buffer for index, buffer in enumerate(step.states) if keeps_history(net, population, index)]
    roundings = [f"{step.states[state.index]}_past" for state in half_states(net.layers[population.id])]
    return [*states, *roundings, *(step.saved if net.adjoint(population.id) is not None else ())]


def _boundaries(net: PoplarNetwork, population: PopulationInfo) -> list[str]:
    """Return the arrays at boundaries: of states, and of the values that the population sent last."""
    step = net.step(population.id)
    return [f"{buffer}_boundary" for buffer in (*step.states, *(buffer for buffer in step.outputs if buffer in net.stores))]


def _relay_arrays(net: PoplarNetwork, store: Store) -> list[str]:
    """Return the arrays of a source's relays: their ring of steps or, at a boundary, the steps that they have yet to send."""
    history = net.plan.streamed == "history"
    if store.static or not (history or keeps_boundary_steps(net, store)):
        return []
    return [f"{store.buffer}_{part}" if history else boundary_name(store.buffer, part) for part, *_ in stored_parts(store)]
