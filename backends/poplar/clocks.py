"""Iteration counters, one per IPU, so that no IPU has to read the counter of another."""

from __future__ import annotations

from snnc.backends.poplar.parts import VertexLoop, class_name, connected
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX


def clock(compute_set: str, source: str, target: str, add: int | str) -> VertexLoop:
    """Return vertices that set the counter `target` of each IPU to its counter `source` plus `add`."""
    fields = connected(CLOCK_VERTEX, {"from": f"{source}[p.tile]", "to": f"{target}[p.tile]", "add": add})
    return VertexLoop(compute_set, "auto", "p", f"{target}.places", compute_set, class_name(CLOCK_VERTEX), "p.tile", fields)
