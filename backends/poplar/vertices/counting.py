"""Statements with which a codelet counts its cycles: one for each loop in the description of its vertex."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from snnc.compiler.tiles.vertices.loops import Loop, Place, Texts
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

BLOCK: Final[Texts] = {"samples": "samples", "count": "count"}
"""C++ expressions of the trip counts (numbers of iterations of a loop) of a block."""
TRIPS: Final[Texts] = {
    "searches": "trips.searches",
    "lookups": "trips.lookups",
    "found_rows": "trips.found",
    "singles": "trips.runs",  # a table has only runs of one value (singles), or runs of any length
    "runs": "trips.runs",
    "values": "trips.values",
    "sample_values": "trips.products",
}
"""C++ expressions of the trip counts in the class ``Trips`` of ``codelets/indexed_runs.hpp``."""


def counted(loops: Iterable[Loop], texts: Texts = BLOCK) -> list[str]:
    """Return C++ statements that add the cycles of loops; `texts` contains C++ for their trip counts."""
    return [f"cycles += {loop.total.text(texts)};  // {loop.name}" for loop in loops]


def counts(vertex: VertexSpec, place: Place | None = None, **texts: str) -> list[str]:
    """Return :func:`counted` for the loops in the part `place` of `vertex` (None: in no part); templates use it as a filter."""
    return counted(vertex.by_place[place], texts)
