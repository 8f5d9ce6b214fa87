"""Pass that converts nearly dense Sparse weights that training does not change to Linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.arrays.sparse import to_linear
from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.passes.edit import replace_operation


@dataclass(frozen=True)
class FillSparse:
    """Store sparse weights as dense weights, with zeros.

    The pass is not part of the default flow: only targets that are faster with dense weights run it.

    Parameters
    ----------
    trains
        Whether the network will be trained: if so, a learnable Sparse is kept, because training would change the added zeros.
    least
        Minimum number of entries, as a fraction of rows times columns, from which a Sparse is converted.
    """

    trains: bool
    least: float = 0.0
    name: ClassVar[str] = "fill-sparse"

    def __call__(self, graph: Graph) -> Graph:
        """Return a copy of the graph in which these Sparse nodes are Linear."""
        graph = graph.copy()
        for name, sparse in list(graph.of_type(Sparse)):
            entries = len(sparse.indices) / (sparse.shape[0] * sparse.shape[1])
            if entries >= self.least and not (self.trains and sparse.learnable):
                replace_operation(graph, name, to_linear(sparse))
        return graph
