"""Pass that stores Sparse weights as dense ones, with zeros, if training does not change them and few entries are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.arrays.sparse import to_linear
from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.passes.edit import replace_operation


@dataclass(frozen=True)
class FillSparse:
    """Replace Sparse operations by Linear ones, whose weights contain zeros.

    The pass is not part of the default flow: only targets that are faster with dense weights run it.
    """

    trains: bool  # whether the network will be trained; a learnable Sparse is then kept, because training would change added zeros
    least: float = 0.0  # minimum share of rows times columns that are entries; a Sparse with fewer entries is kept
    name: ClassVar[str] = "fill-sparse"

    def __call__(self, graph: Graph) -> Graph:
        """Return a copy of the graph with these operations replaced."""
        graph = graph.copy()
        for name, sparse in list(graph.of_type(Sparse)):
            entries = len(sparse.indices) / (sparse.shape[0] * sparse.shape[1])
            if entries >= self.least and not (self.trains and sparse.learnable):
                replace_operation(graph, name, to_linear(sparse))
        return graph
