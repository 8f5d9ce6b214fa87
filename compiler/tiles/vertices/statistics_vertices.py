"""Vertices that compute statistics of a batch, for batch normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, looping
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec, constant, many

_BLOCK: Final = (
    many("input", "float", "values", "values of all samples and steps, neuron by neuron in each row"),
    many("output", "float", "found", "the mean of each neuron, then the sum of its squared distances from the mean"),
    constant("rows", "samples times steps"),
    constant("count", "neurons of the block"),
)


def block_moments(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that computes, for each neuron of a block, the mean and the sum of squared distances from the mean."""
    cost = costs["block_moments"]
    loops = (
        *looping("rows", Amount("rows"), cost.row),
        *looping("values", Amount("rows") * Amount("count"), cost.value),
        *looping("neurons", Amount("count"), cost.element),
    )
    return VertexSpec("block_moments", _BLOCK, cost, loops)
