"""Pass that removes one-to-one connections of weight 1, which do not change values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.graph import Graph, OneToOne
from snnc.compiler.passes.edit import without


@dataclass(frozen=True)
class MergeLinear:
    """Remove each OneToOne without a weight (that is, of weight 1), and join the edges around it, adding their delays.

    It stays if the nodes that read it cannot read its source (:func:`~snnc.compiler.passes.edit.can_bypass`).

    Products of weights are not merged: rounding would differ, and learnable weights would be lost.
    """

    name: ClassVar[str] = "merge-linear"

    def __call__(self, graph: Graph) -> Graph:
        """Return a copy of the graph without these nodes."""
        return without(graph, [name for name, operation in graph.of_type(OneToOne) if operation.weight is None])
