"""Vertices that bring gradients back to sources in windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec, constant, run

_REDUCE_PARTIALS: Final = (
    run("input", "float", "partials", "partial products of a window's entries, producer after producer"),
    run("output", "float", "sums", "their sums"),
    constant("entries", "entries of all samples"),
    constant("producers", "tiles that made partial products"),
)
_REMEMBER: Final = (
    constant("samples", "samples"),
    run("input", "unsigned", "number", "spikes and entries of each window"),
    run("output", "unsigned", "counts", "entries of each window"),
)
_GRADIENT_WINDOW: Final = (
    constant("samples", "samples"),
    constant("capacity", "entries that a window has room for"),
    constant("parts", "sums of each entry"),
    run("input", "unsigned", "counts", "entries of each window"),
    run("input", "float", "sums", "sums of partial products"),
    run("output", "float", "values", "gradients of the entries"),
)


def reduce_partials(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return what adds partial products of a window's entries."""
    return VertexSpec("reduce_partials", _REDUCE_PARTIALS, costs["reduce_partials"])


def remember(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return what keeps how many entries a window holds."""
    return VertexSpec("remember", _REMEMBER, costs["transpose"])


def gradient_window(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return what adds the last sums of a window's gradients."""
    return VertexSpec("gradient_window", _GRADIENT_WINDOW, costs["gradient_window"])
