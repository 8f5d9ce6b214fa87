"""The codelets of a source's relays: classes, their fields and their vertices."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from snnc.compiler.tiles.network import Source
from snnc.compiler.tiles.problem import Problem
from snnc.compiler.tiles.relays.buses import Bus
from snnc.compiler.tiles.vertices.cost import CodeletCost

Codelet: TypeAlias = tuple[Hashable, CodeletCost, int, int]
"""Identity of the class, its cost, fields, and vertices of a relay."""


def relay_codelets(problem: Problem, source: Source) -> Iterator[Codelet]:
    """The classes that each relay of `source` has a vertex of."""
    buses, bits, joins = problem.buses_of(source), source in problem.bits, not source.external
    if source.kind == "values":
        passes = 1 + problem.training
        for n in range(passes):
            yield _codelet(problem, "relay_values", source, buses, _values_fields(buses, joins and n == 0), forward=n == 0)
        return
    if joins:
        yield ("relay_compact", source in problem.windowed), problem.costs["relay_compact"], 12 - (problem.fused is not None), 1
        yield _windows(problem, source, [bus for bus in buses if bus.lag == 1] if bits else buses, joins=True, forward=True)
    listed = [bus for bus in buses if bus.lag != 1] if joins else buses
    if bits:
        shown = [(bus, True) for bus in listed] + [(bus, False) for bus in buses if problem.training]
        for bus, forward in shown:
            asked = problem.passes_asked_for(bus, forward=forward) > 0
            fields = 12 + _limited(problem, bus, backward=False) + asked + (forward and bus.capacity < source.width)
            yield _codelet(problem, "relay_bits", source, (bus,), fields, forward=forward)
    else:
        if not joins:
            yield _windows(problem, source, buses, joins=False, forward=True)
        if problem.training:
            yield _windows(problem, source, buses, joins=False, forward=False)
    for backward in (False, True) if problem.training else (False,):
        yield from _next(problem, source, [bus for bus in buses if _limited(problem, bus, backward=backward)], backward=backward)
    if source in problem.sources_behind:
        parts = 1 if bits else 2 + (source in problem.windowed)
        yield _codelet(problem, "boundary" if bits else "boundary_events", source, buses, 11 + 2 * parts, forward=True, number=2)


def _limited(problem: Problem, bus: Bus, *, backward: bool) -> bool:
    return bus in problem.limited(backward=backward)


def _codelet(
    problem: Problem, name: str, source: Source, buses: Sequence[Bus], fields: int, *, forward: bool, again: bool = False, number: int = 1
) -> Codelet:
    """A class, of first windows (`forward` or backward) or `again` of further ones; its additional counts are separate fields."""
    asked = tuple((problem.passes_asked_for(bus, forward=forward), problem.asked_for_both) for bus in buses)
    shown = tuple((_limited(problem, bus, backward=not forward), bus.id in problem.windowed_buses and not forward) for bus in buses)
    ring = (source.external, problem.largest_lag(source)) if problem.segment else ()
    key = (name, source.static, source.width > 1 << 16, source in problem.windowed, shown, asked, ring, fields)
    cost = problem.costs[name]
    return key, cost.asking() if any(passes for passes, _ in asked) and not again else cost, fields, number


def _values_fields(buses: Sequence[Bus], joins: bool) -> int:
    return 6 + 3 * len(buses) + 6 * joins


def _windows(problem: Problem, source: Source, buses: Sequence[Bus], *, joins: bool, forward: bool) -> Codelet:
    """Joins the workers' results, or shows windows; those of the backward pass may hold neurons near the threshold."""
    near = source in problem.windowed
    fields = 4 + 2 * max(len(buses), int(joins)) + 3 + (near and not forward)
    fields += (7 + 2 * near) * joins
    for bus in buses:
        if bus.id in problem.windowed_buses and not forward:
            fields += 8 + _limited(problem, bus, backward=True)
        else:
            fields += 4 + _limited(problem, bus, backward=False) + (forward and bus.capacity < source.width)
        # Where it says what it needs and, where that of the backward pass is another number, what a window of that pass holds.
        fields += problem.passes_asked_for(bus, forward=forward)
    return _codelet(problem, "relay_windows", source, buses, fields, forward=forward)


def _next(problem: Problem, source: Source, limited: Sequence[Bus], *, backward: bool) -> Iterator[Codelet]:
    """Further windows: one vertex for all buses, or one for each if relays keep bits."""
    if source in problem.bits:
        for bus in limited:
            yield _codelet(problem, "relay_bits", source, (bus,), 13, forward=not backward, again=True)
        return
    if limited:
        windowed = [bus for bus in limited if backward and bus.id in problem.windowed_buses]
        fields = 7 + 2 * len(limited) + bool(windowed) + 8 * len(windowed) + 5 * (len(limited) - len(windowed))
        yield _codelet(problem, "next_window", source, limited, fields, forward=not backward, again=True)
