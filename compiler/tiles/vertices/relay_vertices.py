"""Vertices of relays: what keeps the spikes and values of sources, and shows them to their targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec, constant, run

_COPY_MASK: Final = (
    run("input", "unsigned", "mask", "a bit for each neuron of a tile and sample", align=8),
    run("output", "unsigned", "copy", "the same for the next iteration", align=8),
    constant("count", "words"),
)


def copy_mask(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return what keeps the masks of a tile for relays that look through them in the next iteration."""
    return VertexSpec("copy_mask", _COPY_MASK, costs["copy_mask"])
