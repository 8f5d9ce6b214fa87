"""Emitted code for windowed gradients, which return to only a few neurons of a source (docs/decisions/0007-windowed-gradients.md).

Relays send a window, a list of these neurons. Targets compute partial products for its entries, two stages of vertices sum these, and
relays return the sums to the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from snnc.backends.codegen.printing import c_literal
from snnc.backends.poplar.network import PoplarNetwork, Store
from snnc.backends.poplar.parts import Assembly, Body, Values
from snnc.backends.poplar.vertices.counting import counted
from snnc.backends.poplar.vertices.links import Incoming
from snnc.compiler.ir.plan import BusPlan, GradientPlan
from snnc.compiler.ir.step_program import ConnectionInfo, PopulationInfo
from snnc.compiler.lowering.gradient_support import argument_name, support_bounds
from snnc.compiler.tiles.codelets.block_code import BackwardCode
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.vertices.gradient_vertices import gradient_window, reduce_partials, remember
from snnc.compiler.tiles.vertices.loops import LoopsByPlace

REDUCE: Final = "reduce_gradients"
"""Compute set of the first stage, which sums partial products."""


def add_gradient_windows(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the partial products and both stages of their sums, for every bus on which gradients return in windows."""
    for bus in net.gradient_buses:
        assert bus.gradient is not None
        links = [c for c in net.program.connections if net.buses[c.id] == bus and c.id in net.returning]
        for link in links:
            name = f"{link.id}_partial"
            expression = f'layout.sample_rows({link.target}, "{name}", {bus.gradient.capacity})'
            assembly.forget("backward", assembly.variable("Parts", name, expression, f"partial products of {link.label}"))
        _stage_one(net, assembly, bus, bus.gradient, links)
        _stage_two(net, assembly, bus, bus.gradient)


def partial_values(net: PoplarNetwork, links: Iterable[Incoming]) -> Values:
    """Return the fields with which a block writes the partial products of connections."""
    values: Values = {}
    for link in links:
        gradient = net.buses[link.connection.id].gradient
        assert gradient is not None
        values[f"capacity{link.index}"] = gradient.capacity
        values[f"partial{link.index}"] = f"{link.connection.id}_partial[b.index]"
    return values


def _stage_one(net: PoplarNetwork, assembly: Assembly, bus: BusPlan, gradient: GradientPlan, links: Sequence[ConnectionInfo]) -> None:
    """Add the vertices that sum the partial products of all column groups that read a bus."""
    of_groups = ", ".join(f"{{{c.target}, {c.id}_partial}}" for c in links)
    producers = f"Producers({gradient.capacity}, {{{of_groups}}})"
    assembly.variable("Producers", f"{bus.id}_producers", producers, "groups whose partial products are summed")
    expression = f'layout.pieces({bus.id}_sums, "{bus.id}_reduced", {gradient.parts}, {gradient.capacity})'
    reduced = assembly.variable("Tensor", f"{bus.id}_reduced", expression, "sums of partial products")
    values = {
        "partials": f"{bus.id}_producers.of(p)",
        "sums": f"Layout::part_of({reduced}, p)",
        "entries": "p.samples * p.entries",
        "producers": "p.producers",
    }
    vertex, title = reduce_partials(net.costs), "Sums the partial products of a window's entries."
    sums = ("PartialSum", "p", f"{bus.id}_sums")
    assembly.add_codelet("reduction", f"{bus.id}: {title}", sums, [REDUCE], vertex, values, title, bus.id)


def _stage_two(net: PoplarNetwork, assembly: Assembly, bus: BusPlan, gradient: GradientPlan) -> None:
    """Add the vertices with which relays store the number of entries of a window, and compute the last sums of their gradients."""
    relays = f"{bus.buffer}_relays"
    counts = assembly.relay_rows(relays, "poplar::UNSIGNED_INT", f"{bus.id}_counts", 1, "number of entries in the previous window")
    limited, items = net.limited(bus, backward=True), ("Relay", "r", relays)
    values: Values = {"samples": "r.samples", "number": f"Layout::samples({bus.id}_support_number, r)", "counts": f"{counts}[r.index]"}
    title, sets = "Stores the number of entries of a window.", ["backward_neurons", *(["backward_rounds"] if limited else [])]
    assembly.add_codelet("reduction", f"{bus.id}: {title}", items, sets, remember(net.costs), values, title, bus.id)
    values = {
        "samples": "r.samples",
        "capacity": gradient.capacity,
        "parts": gradient.parts,
        "counts": f"{counts}[r.index]",
        "sums": f"sums_of({bus.id}_reduced, r)",
        "values": f"Layout::samples({bus.id}_back_values, r)",
    }
    title = "Computes the last sums of a window's gradients; workers share its entries."
    sets = ["relay_backward", *(["backward_next"] if limited else [])]
    assembly.add_codelet("reduction", f"{bus.id}: {title}", items, sets, gradient_window(net.costs), values, title, bus.id)


# ---- relays ------------------------------------------------------------------------------------------------------------------


def window_variables(assembly: Assembly, store: Store, bus: BusPlan) -> None:
    """Declare the windows of the backward pass: neurons that receive a gradient, and the gradients and ids of the previous window."""
    assert bus.gradient is not None
    relays, capacity = f"{store.buffer}_relays", bus.gradient.capacity
    for part, comment in (("support", "neurons that receive a gradient"), ("back", "neurons whose gradients return")):
        assembly.window(relays, store.poplar_type, f"{bus.id}_{part}_ids", store.room(capacity), f"bus {bus.id}: {comment}")
        assembly.window(relays, "poplar::UNSIGNED_INT", f"{bus.id}_{part}_number", 2, "spikes, entries")
    assembly.window(relays, "poplar::FLOAT", f"{bus.id}_back_values", capacity, "gradients")


def first_window_body(net: PoplarNetwork, index: int, bus: BusPlan) -> Body:
    """Return the template data with which a relay writes the first window of a bus in the backward pass."""
    window = net.further.window(bus.id, forward=False)
    return {"index": index, "comment": "Returned window.", "limited": window.may_continue, "requests": window.requesting_passes > 0}


def support_values(store: Store, index: int, bus: BusPlan) -> Values:
    """Return the fields with which a relay writes a window of the backward pass."""
    assert bus.gradient is not None
    return {
        f"entries{index}": bus.gradient.capacity,
        f"support_room{index}": store.room(bus.gradient.capacity),
        f"kept{index}": bus.width if bus.mode == "exact" else bus.capacity,
        f"support_ids{index}": f"Layout::samples({bus.id}_support_ids, r)",
        f"support_number{index}": f"Layout::samples({bus.id}_support_number, r)",
        f"back_ids{index}": f"Layout::samples({bus.id}_back_ids, r)",
        f"back_number{index}": f"Layout::samples({bus.id}_back_number, r)",
    }


# ---- blocks ------------------------------------------------------------------------------------------------------------------


def support_condition(population: PopulationInfo, index: int) -> str:
    """Return the C++ condition under which a neuron that did not spike receives a gradient through output `index`."""
    name = population.kernel.outputs[index]
    bounds = support_bounds(population, name)
    assert bounds is not None
    low, high = bounds
    if low > high:
        return "false"
    x = argument_name(name)
    tests = [f"{x} >= {c_literal(low)}"] if low > float("-inf") else []
    tests += [f"{x} <= {c_literal(high)}"] if high < float("inf") else []
    return " && ".join(tests) or "true"


def returning_buses(net: PoplarNetwork, layer: Layer, code: BackwardCode, *, limited: bool = False) -> list[BusPlan]:
    """Return the buses on which gradients return to a population, for those outputs whose gradients its backward code reads.

    If `limited`, only those that may need several windows per step.
    """
    buses = [bus for bus in net.gradient_buses if bus.source == layer.id and f"d_o{layer.outputs.index(bus.buffer)}" in code.reads]
    return [bus for bus in buses if net.limited(bus, backward=True) or not limited]


def returning_values(net: PoplarNetwork, buses: Sequence[BusPlan]) -> Values:
    """Return the fields of the windows in which gradients return to a block."""
    values: Values = {}
    for i, bus in enumerate(buses):
        assert bus.gradient is not None
        values |= {
            f"offset_back{i}": net.stages[bus.source] + bus.lag,
            f"last_back{i}": net.last_step(bus),
            f"capacity_back{i}": bus.gradient.capacity,
            f"room_back{i}": net.stores[bus.buffer].room(bus.gradient.capacity),
            f"ids_back{i}": f"Layout::samples({bus.id}_back_ids, b)",
            f"number_back{i}": f"Layout::samples({bus.id}_back_number, b)",
            f"value_back{i}": f"Layout::samples({bus.id}_back_values, b)",
        }
    return values


def returning_bodies(layer: Layer, buses: Sequence[BusPlan], loops: LoopsByPlace, ahead: int) -> list[Body]:
    """Return the template data of windows in which gradients return; relays wrote their ids `ahead` iterations earlier."""
    iteration = "iteration k + 1" if ahead else "this iteration"
    comment = f"Gradient of the values that the targets read in {iteration}."
    texts = {"windows": "samples", "searches": "searches", "own": "own"}
    return [
        {
            "index": i,
            "output": layer.outputs.index(bus.buffer),
            "ahead": ahead,
            "comment": comment,
            "counts": counted(loops["returned", i], texts),
        }
        for i, bus in enumerate(buses)
    ]


def cleared(net: PoplarNetwork, connection: ConnectionInfo) -> bool:
    """Return whether an idle target must clear its partial products: they are summed with those of targets that read the window then."""
    bus = net.buses[connection.id]
    return len({(net.stages[c.target], c.delay) for c in net.program.connections if net.buses[c.id] == bus}) > 1
