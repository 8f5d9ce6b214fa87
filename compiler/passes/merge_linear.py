"""Chains of linear operations, merged if the result is the same to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.graph import Graph, OneToOne
from snnc.compiler.passes.edit import without


@dataclass(frozen=True)
class MergeLinear:
    """Remove every OneToOne of weight 1: the operation before or after it takes over its delays.

    Products of weights are not merged: rounding would differ, and learnable weights would be lost.
    """

    name: ClassVar[str] = "merge-linear"

    def __call__(self, graph: Graph) -> Graph:
        """Return the graph without them."""
        return without(graph, [name for name, operation in graph.of_type(OneToOne) if operation.weight is None])
