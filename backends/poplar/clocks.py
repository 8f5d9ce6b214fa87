"""Counters of the iteration, one for each IPU, so that no IPU waits for another to read it."""

from __future__ import annotations

from snnc.backends.poplar.parts import VertexLoop, class_name, connected
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX


def clock(compute_set: str, source: str, target: str, add: int | str) -> VertexLoop:
    """Vertices that set one counter of each IPU by the other."""
    fields = connected(CLOCK_VERTEX, {"from": f"{source}[p.tile]", "to": f"{target}[p.tile]", "add": add})
    return VertexLoop(compute_set, "auto", "p", f"{target}.places", compute_set, class_name(CLOCK_VERTEX), "p.tile", fields)


def set_clock(name: str, value: str) -> str:
    """C++ program that sets the counters of all IPUs."""
    return f"Copy(layout.on_ipus({value}, IPUS).all, {name}.all)"
