"""Partitioners of hypergraphs: Mt-KaHyPar or METIS if installed, else the built-in one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from snnc.compiler.tiles.partition.child_process import run_partitioner
from snnc.compiler.tiles.partition.errors import PartitionerCrashError, PartitionerError
from snnc.compiler.tiles.partition.greedy import BuiltInPartitioner, balanced, moved
from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph, Ints

MAX_PINS: Final = 300_000
"""Mt-KaHyPar is not chosen if the number of pins times the number of parts is larger: it would take longer than all other planning."""
UNITS: Final = 1000
"""Average work of a vertex and average rate of a net, in the integer weights of partitioners."""


class Partitioner(Protocol):
    """Assigns the vertices of a hypergraph to parts of even work with few events between parts."""

    name: ClassVar[str]

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """Return the part of every vertex; equal seeds give equal results.

        The work of a part may exceed the mean by the fraction `imbalance` of it; one more vertex is always allowed.
        """
        ...


@dataclass(frozen=True)
class MtKahypar:
    """Partitioner that uses Mt-KaHyPar (Gottesbueren et al. 2023): deterministic preset, one thread, connectivity metric."""

    name: ClassVar[str] = "mtkahypar"

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        part = run_partitioner(
            "mtkahypar",
            start=graph.start,
            pins=graph.pins,
            work=integer_weights(graph.work),
            rate=integer_weights(graph.rate),
            parts=parts,
            imbalance=imbalance,
            seed=seed,
        )
        return balanced(graph, part, parts, graph.most_work(parts, imbalance))


@dataclass(frozen=True)
class Metis:
    """Partitioner that uses METIS (Karypis and Kumar 1998), then moves of the built-in partitioner.

    METIS cuts the star expansion: a net is a vertex without work, connected to its pins.
    """

    name: ClassVar[str] = "metis"

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        star = _star_expansion(graph)
        part_of_vertex = run_partitioner(
            "metis",
            start=star.indptr,
            neighbours=star.indices,
            work=np.concatenate([integer_weights(graph.work), np.zeros(graph.nets, dtype=np.int64)]),
            edges=star.data,
            parts=parts,
            recursive=False,
            seed=seed,
        )
        most = graph.most_work(parts, imbalance)
        part = balanced(graph, part_of_vertex[: graph.vertices], parts, most)
        return moved(graph, part, parts, most, seed)


def _star_expansion(graph: Hypergraph) -> Any:
    """Return the weighted adjacency matrix of vertices and nets."""
    from scipy.sparse import block_array, csr_array

    incidence = csr_array((integer_weights(graph.rate)[graph.net_of_pin], graph.pins, graph.start), shape=(graph.nets, graph.vertices))
    adjacency = block_array([[None, incidence.T], [incidence, None]]).tocsr()
    adjacency.data = adjacency.data.astype(np.int64)
    return adjacency


def integer_weights(weights: Floats) -> Ints:
    """Return weights as integers of at least 1, scaled so that their average is :data:`UNITS`."""
    mean = float(weights.mean()) if len(weights) else 0.0
    return np.maximum(np.rint(weights * (UNITS / mean if mean > 0 else 0.0)), 1).astype(np.int64)


@dataclass(frozen=True)
class FirstThatWorks:
    """Partitioner that tries other partitioners in order: after a crash, it warns and tries the next one."""

    name: ClassVar[str] = "first"
    choices: tuple[Partitioner, ...]

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        *others, last = self.choices
        for choice, following in zip(others, self.choices[1:], strict=True):
            try:
                return choice(graph, parts, imbalance, seed)
            except PartitionerCrashError as error:
                warnings.warn(f"{error.text} {following.name!r} partitions instead.", UserWarning, stacklevel=2)
        return last(graph, parts, imbalance, seed)


_MODULES: Final = {"mtkahypar": "mtkahypar", "metis": "pymetis", "snnc": ""}
"""Python module that each partitioner needs, by name."""


def partitioners() -> tuple[Partitioner, ...]:
    """Return the installed partitioners, best first."""
    return tuple(p for p in (MtKahypar(), Metis(), BuiltInPartitioner()) if not _MODULES[p.name] or find_spec(_MODULES[p.name]) is not None)


def partitioner(name: str | None = None, pins: int = 0) -> Partitioner:
    """Return the partitioner `name`, by default the best installed one; `pins` is the number of pins of the hypergraph, times the parts.

    Raises
    ------
    PartitionerError
        The partitioner is unknown or not installed.
    """
    installed = {p.name: p for p in partitioners()}
    if name is None:
        return FirstThatWorks(tuple(p for p in installed.values() if not isinstance(p, MtKahypar) or pins <= MAX_PINS))
    if name not in installed:
        raise PartitionerError(
            f"the partitioner {name!r} is not installed; installed are {', '.join(installed)}; for more, run pip install 'snnc[partition]'."
        )
    return installed[name]
