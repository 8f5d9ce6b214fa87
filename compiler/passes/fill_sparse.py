"""A Sparse that training leaves alone becomes a Linear, which every machine runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.graph import Graph, Sparse
from snnc.compiler.passes.edit import replace_operation
from snnc.compiler.sparse import to_linear


@dataclass(frozen=True)
class FillSparse:
    """Write the zeros of sparse weights out.

    Parameters
    ----------
    trains
        Whether the network is to be trained: then a Sparse that learns stays, because training would change its zeros.

    The pass is not part of the default flow, because the reference runs the entries alone.
    """

    trains: bool
    name: ClassVar[str] = "fill-sparse"

    def __call__(self, graph: Graph) -> Graph:
        """Return the graph with a Linear for each Sparse that does not learn."""
        graph = graph.copy()
        for name, sparse in list(graph.of_type(Sparse)):
            if not (self.trains and sparse.learnable):
                replace_operation(graph, name, to_linear(sparse))
        return graph
