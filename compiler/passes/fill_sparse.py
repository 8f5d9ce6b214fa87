"""Pass that stores Sparse weights as dense ones, with zeros, if training does not change them and few entries are missing."""

from __future__ import annotations

from snnc.compiler.ir.arrays.sparse import to_linear
from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.passes.edit import replace_operation


def fill_sparse(graph: Graph, *, trains: bool, least: float = 0.0) -> Graph:
    """Replace Sparse operations by Linear ones, whose weights contain zeros.

    A Sparse is kept if its entries are less than the share `least` of its rows times columns, or if it is learnable and the network
    `trains`, because training would change the added zeros. The pass is not part of the default flow: only targets that are faster with
    dense weights run it.
    """
    graph = graph.copy()
    for name, sparse in list(graph.of_type(Sparse)):
        entries = len(sparse.indices) / (sparse.shape[0] * sparse.shape[1])
        if entries >= least and not (trains and sparse.learnable):
            replace_operation(graph, name, to_linear(sparse))
    return graph
