"""Vertices of a source's relays: their classes, and the number of vertices of each class.

A relay stores the spikes or values of a source for some samples. For each bus (the readers that receive a step equally many iterations
later), it writes the data of one step as a window: a list of ids with a fixed capacity, or values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.vertices.relay_vertices import (
    StoredSpikes,
    id_type,
    next_window,
    relay_bits,
    relay_boundary,
    relay_compact,
    relay_values,
    relay_windows,
)
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

Codelet: TypeAlias = tuple[Hashable, VertexSpec, int]
"""Key of the class, vertex specification, and number of vertices on a relay."""


def relay_codelets(problem: MappingProblem, source: BusSource) -> Iterator[Codelet]:
    """Yield the classes of vertices on each relay of `source`; if it is a population (`joins`), relays first store what it sent last."""
    buses, bits, joins, costs = problem.buses_of(source), source in problem.bits, not source.external, problem.costs
    if source.kind == "values":
        for forward in (True, False)[: 1 + problem.training]:
            vertex = relay_values(costs, len(buses), joins=joins and forward)
            yield _codelet(problem, vertex, source, buses, forward=forward)
    else:
        stored = stored_spikes(problem, source)
        if joins:
            key = "relay_compact", source in problem.windowed
            yield key, relay_compact(costs, writes_iteration=problem.fused is None), 1
            yield _windows(problem, source, [bus for bus in buses if bus.lag == 1] if bits else buses, joins=True, forward=True)
        listed = [bus for bus in buses if bus.lag != 1] if joins else list(buses)  # windows with a lag of 1 get the ids just merged
        if bits:
            written = [(bus, True) for bus in listed] + [(bus, False) for bus in buses if problem.training]
            for bus, forward in written:
                window = problem.further.window(bus.id, forward=forward)
                yield _codelet(problem, relay_bits(costs, stored, window, again=False), source, (bus,), forward=forward)
        else:
            for forward in (*((True,) if not joins else ()), *((False,) if problem.training else ())):
                yield _windows(problem, source, buses, joins=False, forward=forward)
        for backward in (False, True)[: 1 + problem.training]:
            limited = [bus for bus in buses if problem.further.sizes[bus.id].limited(backward=backward)]
            yield from _next(problem, source, limited, backward=backward)
    if source in problem.sources_at_boundaries:
        vertex = relay_boundary(costs, None if source.kind == "values" else stored_spikes(problem, source))
        yield _codelet(problem, vertex, source, buses, forward=True, number=2)  # one saves steps at a boundary, one restores them


def stored_spikes(problem: MappingProblem, source: BusSource) -> StoredSpikes:
    """Return the form in which relays store the spikes of a source."""
    support = source in problem.windowed
    room = problem.ids_stored(source)
    limited = problem.mode == "drop" and not source.external and source not in problem.bits
    return StoredSpikes(id_type(source.width), source in problem.bits, support, support and room < source.width, limited)


def _codelet(
    problem: MappingProblem, vertex: VertexSpec, source: BusSource, buses: Sequence[Bus], *, forward: bool, number: int = 1
) -> Codelet:
    """Return a codelet of one pass, with a key of everything that its emitted code depends on."""
    requests = tuple((problem.further.passes(bus.id, forward=forward), problem.further.both) for bus in buses)
    limits = tuple(
        (problem.further.sizes[bus.id].limited(backward=not forward), bus.id in problem.returned and not forward) for bus in buses
    )
    ring = (source.external, problem.largest_lag(source)) if problem.segment else ()
    key = (vertex.name, source.static, source.width > 1 << 16, source in problem.windowed, limits, requests, ring, len(vertex.fields))
    return key, vertex, number


def _windows(problem: MappingProblem, source: BusSource, buses: Sequence[Bus], *, joins: bool, forward: bool) -> Codelet:
    """Return the codelet that writes windows in a pass; with `joins`, it first merges the ids that workers found."""
    windows = [problem.further.window(bus.id, forward=forward) for bus in buses]
    vertex = relay_windows(problem.costs, stored_spikes(problem, source), windows, joins=joins, backward=not forward)
    return _codelet(problem, vertex, source, buses, forward=forward)


def _next(problem: MappingProblem, source: BusSource, limited: Sequence[Bus], *, backward: bool) -> Iterator[Codelet]:
    """Yield the codelets that write further windows: one for all buses, or one per bus if relays store bits."""
    stored, windows = stored_spikes(problem, source), [problem.further.window(bus.id, forward=not backward) for bus in limited]
    if source in problem.bits:
        for bus, window in zip(limited, windows, strict=True):
            yield _codelet(problem, relay_bits(problem.costs, stored, window, again=True), source, (bus,), forward=not backward)
    elif limited:
        yield _codelet(problem, next_window(problem.costs, stored, windows), source, limited, forward=not backward)
