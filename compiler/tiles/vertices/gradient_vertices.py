"""Vertices of windowed gradients, which return only to the neurons that spiked in a step or were near the threshold.

A window lists these neurons. Target blocks compute partial products for its entries, which are added in two
stages: :func:`reduce_partials`, and in the next iteration :func:`gradient_window` (docs/decisions/0007-windowed-gradients.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, as_formula, looping, pairs
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec, constant, many

PAIRS: Final = "pairs of entries"
"""Loop over pairs of a window's entries, in both stages of the reduction."""
_REDUCE_PARTIALS: Final = (
    many("input", "float", "partials", "partial products of a window's entries, ordered by producer"),
    many("output", "float", "sums", "their sums"),
    constant("entries", "number of entries of all samples"),
    constant("producers", "number of tiles that made partial products"),
)
_REMEMBER: Final = (
    constant("samples", "samples"),
    many("input", "unsigned", "number", "number of spikes and of all entries of each window"),
    many("output", "unsigned", "counts", "number of entries of each window"),
)
_GRADIENT_WINDOW: Final = (
    constant("samples", "samples"),
    constant("capacity", "capacity of a window in entries"),
    constant("parts", "number of sums per entry"),
    many("input", "unsigned", "counts", "number of entries of each window"),
    many("input", "float", "sums", "sums of partial products"),
    many("output", "float", "values", "gradients of the entries"),
)


def reduce_partials(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that sums the partial products of a window's entries."""
    cost = costs["reduce_partials"]
    each = as_formula(cost.row) + as_formula(cost.product) * Amount("producers")
    return VertexSpec("reduce_partials", _REDUCE_PARTIALS, cost, tuple(looping(PAIRS, pairs(Amount("entries")), each)))


def remember(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that stores the number of entries of each window until :func:`gradient_window` runs."""
    cost = costs["transpose"]
    return VertexSpec("remember", _REMEMBER, cost, tuple(looping("samples", Amount("samples"), cost.element)))


def gradient_window(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that computes the final sums of a window's gradients."""
    cost = costs["gradient_window"]
    lists = looping("windows of samples", Amount("lists"), cost.sample)
    each = as_formula(cost.row) + as_formula(cost.product) * Amount("parts")
    return VertexSpec("gradient_window", _GRADIENT_WINDOW, cost, (*lists, *looping(PAIRS, Amount("pairs"), each)))
