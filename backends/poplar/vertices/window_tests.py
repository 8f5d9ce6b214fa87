"""Emitted code of the *window test*: how many further windows does an iteration need for ids that exceed the first (mode ``exact``)?

Each relay reports how many further windows its samples need, in one or several numbers, and a tree of vertices finds the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import ONCE, Assembly
from snnc.backends.poplar.vertices.relay_segments import keep_count
from snnc.compiler.tiles.schedule.window_test import ROOT, Direction
from snnc.compiler.tiles.vertices.control_vertices import answer, count_down, known, most, most_of_workers

_TILE: Final = str(ROOT)
"""Tile at the root of the tree."""
_FOLLOWING: Final = {"left": "windows_left", "again": "again"}
"""Fields of several vertices, and their variables: the number of remaining windows, and whether one follows."""


def add_window_test(net: PoplarNetwork, assembly: Assembly, first_table: int) -> None:
    """Add the test, if the program needs one; `first_table` is the index of its first table in ``plan.bin``."""
    test = net.window_test
    if test is None:
        return
    passes = [name for name, has_windows in (("forward", net.further.forward), ("backward", net.further.backward)) if has_windows]
    assembly.on_tile("BOOL", "again", "whether further windows follow", shape="{}", tile=_TILE)
    assembly.on_tile("UNSIGNED_INT", "windows_left", "number of remaining windows", shape="{}", tile=_TILE)
    for name in passes:
        expression = f'layout.on_tile(poplar::UNSIGNED_INT, {{1}}, "{name}_rounds", {_TILE})'
        rounds = assembly.variable("Tensor", f"{name}_round_count", expression)
        assembly.tensors.append(f'counter("{name}_rounds", {rounds});')
    if net.further.forward:
        keep_count(net, assembly, "forward_round_count")
    if net.further.known:
        about = "further windows of each iteration of the backward pass"
        assembly.on_tile("UNSIGNED_INT", "windows_back", about, shape="{ITERATIONS}", tile=_TILE)
    _add_levels(net, assembly, test.direction, first_table)
    # In the forward pass, the vertex `answer` also stores the numbers of windows, which the backward pass reads.
    kept = {"k": f"second_clock[{_TILE}]", "back": "windows_back"} if net.further.known else {}
    values = {"maxima": "worker_maxima", "rounds": f"{test.direction}_round_count[0]", **_FOLLOWING, **kept}
    vertex = answer(net.costs, looks_back=net.further.known)
    assembly.add("clocks", "further windows: decision", ONCE, f"{test.direction}_answer", vertex, values, _TILE)
    if net.further.known:
        values = {"k": f"first_clock[{_TILE}]", "back": "windows_back", "rounds": "backward_round_count[0]", **_FOLLOWING}
        assembly.add("clocks", "backward: further windows", ONCE, "relay_backward", known(net.costs), values, _TILE)
    for name in passes:
        assembly.add("clocks", f"{name}: one window less", ONCE, f"{name}_next", count_down(net.costs), _FOLLOWING, _TILE)


def _add_levels(net: PoplarNetwork, assembly: Assembly, direction: Direction, first_table: int) -> None:
    test = net.window_test
    assert test is not None
    each = ", ".join(f"&{bus.id}_more" for bus in net.requesting_buses)
    assembly.variable("Tensor", "reported", f"in_order({{{each}}}, tables[{first_table}])", "tiles whose reported numbers each test reads")
    below = "reported"
    for level in range(len(test.levels)):
        table, maxima = f"tables[{first_table + 1 + level}]", f"most{level}"
        expression = f'layout.on_tiles({table}, poplar::UNSIGNED_INT, "{maxima}", {test.words})'
        assembly.variable("Parts", maxima, expression, "largest reported number")
        assembly.variable("std::vector<Reader>", f"readers{level}", f"readers_of({table})")
        values = {"more": f"{below}.slice(r.first, r.last)", "most": f"{maxima}[r.index]", "count": f"(r.last - r.first) / {test.words}"}
        name, title = f"{direction}_level{level}", f"further windows, level {level + 1}"
        assembly.add("clocks", title, ("Reader", "r", f"readers{level}"), name, most(net.costs), values)
        below = f"{maxima}.all"
    shape = f"{{{net.plan.target.workers * test.words}}}"
    assembly.on_tile("UNSIGNED_INT", "worker_maxima", "largest number found by each worker", shape=shape, tile=_TILE)
    values = {"more": below, "most": "worker_maxima", "count": f"{below}.numElements() / {test.words}"}
    assembly.add("clocks", "further windows", ONCE, f"{direction}_decide", most_of_workers(net.costs), values, _TILE)


def window_test_tables(net: PoplarNetwork) -> Iterator[list[list[int]]]:
    """Yield the tables of the test: bus and relay of every report, in reading order; then the vertices of each level.

    The row of a vertex contains its tile, the first word that it reads, and the end of these words (exclusive).
    """
    test = net.window_test
    if test is None:
        return
    pieces = [[number, relay] for number, bus in enumerate(net.requesting_buses) for relay in range(len(bus.relays))]
    yield [pieces[place] for place in test.order.tolist()]
    for below, level in zip(test.below, test.levels, strict=True):
        ends = [0, *(test.words * below.end).tolist()]
        yield [[tile, ends[first], ends[last]] for tile, first, last in zip(level.tile, level.first, level.last, strict=True)]


def window_test_table_count(net: PoplarNetwork) -> int:
    """Return the number of tables of the test."""
    return 0 if net.window_test is None else 1 + len(net.window_test.levels)


def window_test_sets(net: PoplarNetwork, direction: Direction) -> dict[str, str]:
    """Return the compute sets of the test in a pass, with their titles."""
    test = net.window_test
    if test is None or test.direction != direction:
        return {}
    code = "FD" if direction == "forward" else "BD"
    levels = {f"{direction}_level{level}": f"{code}{level + 1} further windows" for level in range(len(test.levels))}
    return {**levels, f"{direction}_decide": f"{code} further windows?", f"{direction}_answer": f"{code} answer"}
