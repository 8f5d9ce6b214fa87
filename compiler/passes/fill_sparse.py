"""A Sparse that is hardly sparse and that training does not change becomes a Linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.arrays.sparse import to_linear
from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.passes.edit import replace_operation


@dataclass(frozen=True)
class FillSparse:
    """Write the zeros of sparse weights out.

    Parameters
    ----------
    trains
        Whether the network will be trained: then a learnable Sparse stays, because training would change its zeros.
    least
        Smallest fraction of places with an entry for which a Sparse is filled.

    The pass is not part of the default flow, because the reference runs only the entries.
    """

    trains: bool
    least: float = 0.0
    name: ClassVar[str] = "fill-sparse"

    def __call__(self, graph: Graph) -> Graph:
        """Return the graph with a Linear for each such Sparse."""
        graph = graph.copy()
        for name, sparse in list(graph.of_type(Sparse)):
            entries = len(sparse.indices) / (sparse.shape[0] * sparse.shape[1])
            if entries >= self.least and not (self.trains and sparse.learnable):
                replace_operation(graph, name, to_linear(sparse))
        return graph
