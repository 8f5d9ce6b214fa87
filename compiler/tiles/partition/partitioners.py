"""Partitioners of hypergraphs: Mt-KaHyPar or METIS if installed, else the built-in one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.errors import PartitionerCrashError, PartitionerError
from snnc.compiler.tiles.partition.child_process import run_partitioner
from snnc.compiler.tiles.partition.greedy import balanced, grow_and_move, moved
from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph, Ints

MAX_PINS: Final = 300_000
"""Mt-KaHyPar is not chosen if the number of pins times the number of parts is larger: it would take longer than all other planning."""
UNITS: Final = 1000
"""Average work of a vertex and average rate of a net, in the integer weights of partitioners."""
Partitioner: TypeAlias = Callable[[Hypergraph, int, float, int], Ints]
"""Function that assigns the vertices of a hypergraph to parts of even work with few events between parts, and returns the part of each.

Its arguments are the hypergraph, the number of parts, the imbalance, and a seed. The work of a part may exceed the mean by the fraction
`imbalance` of it; one more vertex is always allowed. Equal seeds give equal results.
"""


def mt_kahypar(graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
    """Partition with Mt-KaHyPar (Gottesbueren et al. 2023): deterministic preset, one thread, connectivity metric."""
    work, rate = integer_weights(graph.work), integer_weights(graph.rate)
    numbers = {"parts": parts, "imbalance": imbalance, "seed": seed}
    part = run_partitioner("mtkahypar", start=graph.start, pins=graph.pins, work=work, rate=rate, **numbers)
    return balanced(graph, part, parts, graph.max_work(parts, imbalance))


def metis(graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
    """Partition with METIS (Karypis and Kumar 1998), then with moves of the built-in partitioner.

    METIS cuts the star expansion: a net is a vertex without work, connected to its pins.
    """
    star = _star_expansion(graph)
    work = np.concatenate([integer_weights(graph.work), np.zeros(graph.nets, dtype=np.int64)])
    numbers = {"parts": parts, "recursive": False, "seed": seed}
    part_of_vertex = run_partitioner("metis", start=star.indptr, neighbours=star.indices, work=work, edges=star.data, **numbers)
    max_work = graph.max_work(parts, imbalance)
    return moved(graph, balanced(graph, part_of_vertex[: graph.vertices], parts, max_work), parts, max_work, seed)


def _star_expansion(graph: Hypergraph) -> Any:
    from scipy.sparse import block_array, csr_array

    incidence = csr_array((integer_weights(graph.rate)[graph.net_of_pin], graph.pins, graph.start), shape=(graph.nets, graph.vertices))
    adjacency = block_array([[None, incidence.T], [incidence, None]]).tocsr()
    adjacency.data = adjacency.data.astype(np.int64)
    return adjacency


def integer_weights(weights: Floats) -> Ints:
    """Return weights as integers of at least 1, scaled so that their average is :data:`UNITS`."""
    mean = float(weights.mean()) if len(weights) else 0.0
    return np.maximum(np.rint(weights * (UNITS / mean if mean > 0 else 0.0)), 1).astype(np.int64)


PARTITIONERS: Final[Mapping[str, tuple[Partitioner, str]]] = {
    "mtkahypar": (mt_kahypar, "mtkahypar"),
    "metis": (metis, "pymetis"),
    "snnc": (grow_and_move, "snnc"),
}
"""Partitioners by name, best first, each with the Python package that it needs."""


def partitioners() -> dict[str, Partitioner]:
    """Return the installed partitioners by name, best first."""
    return {name: by for name, (by, package) in PARTITIONERS.items() if find_spec(package) is not None}


def partitioner(name: str) -> Partitioner:
    """Return the partitioner `name`; raise a PartitionerError if it is unknown or not installed."""
    installed = partitioners()
    if name not in installed:
        raise PartitionerError(
            f"the partitioner {name!r} is not installed; installed are {', '.join(installed)}; for more, run pip install 'snnc[partition]'."
        )
    return installed[name]


def first_that_works(graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
    """Partition with the best installed partitioner that suits the size of the hypergraph; after a crash, warn and use the next one."""
    *others, last = [name for name in partitioners() if name != "mtkahypar" or len(graph.pins) * parts <= MAX_PINS]
    for name, following in zip(others, [*others, last][1:], strict=True):
        try:
            return PARTITIONERS[name][0](graph, parts, imbalance, seed)
        except PartitionerCrashError as error:
            warnings.warn(f"{error.text} {following!r} partitions instead.", UserWarning, stacklevel=2)
    return PARTITIONERS[last][0](graph, parts, imbalance, seed)
