"""Counters of the iteration, one for each IPU, so that no IPU waits for another to read it."""

from __future__ import annotations

from snnc.backends.poplar.parts import VertexLoop, integer, scalar


def clock(compute_set: str, source: str, target: str, add: int | str) -> VertexLoop:
    """Vertices that set one counter of each IPU by the other."""
    fields = (scalar("Input", "int", "from", f"{source}[p.tile]"), scalar("Output", "int", "to", f"{target}[p.tile]"), integer("add", add))
    return VertexLoop(compute_set, "auto", "p", f"{target}.places", compute_set, "Clock", "p.tile", fields)


def set_clock(name: str, value: str) -> str:
    """C++ program that sets the counters of all IPUs."""
    return f"Copy(layout.on_ipus({value}, IPUS).all, {name}.all)"
