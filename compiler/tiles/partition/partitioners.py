"""The partitioners of a hypergraph: Mt-KaHyPar or METIS if installed, else snnc's own pass."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from snnc.compiler.tiles.partition.child_process import ask
from snnc.compiler.tiles.partition.errors import PartitionerCrashError, PartitionerError
from snnc.compiler.tiles.partition.greedy import OwnPartitioner, balanced, moved
from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph, Ints

MOST_PINS: Final = 300_000
"""Pins times parts above which Mt-KaHyPar, on one thread, takes longer than planning."""
UNITS: Final = 1000
"""Work of an average vertex, and rate of an average net, in the partitioners' integers."""


class Partitioner(Protocol):
    """Cuts the vertices of a hypergraph into parts of even work with few events between parts."""

    name: ClassVar[str]

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """Return the part of every vertex; the same for the same seed.

        Parameters
        ----------
        graph
            The hypergraph.
        parts
            Number of parts.
        imbalance
            Work that a part may hold above the mean, relative to it; one vertex more is always allowed.
        seed
            Seed of all random choices.
        """
        ...


@dataclass(frozen=True)
class MtKahypar:
    """Mt-KaHyPar (Gottesbueren et al. 2023), its deterministic preset on one thread, for the metric of connectivity."""

    name: ClassVar[str] = "mtkahypar"

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        part = ask(
            "mtkahypar",
            start=graph.start,
            pins=graph.pins,
            work=whole(graph.work),
            rate=whole(graph.rate),
            parts=parts,
            imbalance=imbalance,
            seed=seed,
        )
        return balanced(graph, part, parts, graph.most_work(parts, imbalance))


@dataclass(frozen=True)
class Metis:
    """METIS (Karypis and Kumar 1998) on the star expansion: every net a vertex without work, joined to its pins; then snnc's own moves."""

    name: ClassVar[str] = "metis"

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        both = _star(graph)
        found = ask(
            "metis",
            start=both.indptr,
            neighbours=both.indices,
            work=np.concatenate([whole(graph.work), np.zeros(graph.nets, dtype=np.int64)]),
            edges=both.data,
            parts=parts,
            recursive=False,
            seed=seed,
        )
        most = graph.most_work(parts, imbalance)
        part = balanced(graph, found[: graph.vertices], parts, most)
        return moved(graph, part, parts, most, seed)


def _star(graph: Hypergraph) -> Any:
    from scipy.sparse import block_array, csr_array

    one = csr_array((whole(graph.rate)[graph.net_of_pin], graph.pins, graph.start), shape=(graph.nets, graph.vertices))
    found = block_array([[None, one.T], [one, None]]).tocsr()
    found.data = found.data.astype(np.int64)
    return found


def whole(weights: Floats) -> Ints:
    """Weights as integers of at least 1, the average at :data:`UNITS`."""
    mean = float(weights.mean()) if len(weights) else 0.0
    found: Ints = np.maximum(np.rint(weights * (UNITS / mean if mean > 0 else 0.0)), 1).astype(np.int64)
    return found


@dataclass(frozen=True)
class FirstThatWorks:
    """Tries partitioners one after the other; if one crashes, it warns and tries the next."""

    name: ClassVar[str] = "first"
    choices: tuple[Partitioner, ...]

    def __call__(self, graph: Hypergraph, parts: int, imbalance: float, seed: int) -> Ints:
        """See :class:`Partitioner`."""
        *others, last = self.choices
        for choice, after in zip(others, self.choices[1:], strict=True):
            try:
                return choice(graph, parts, imbalance, seed)
            except PartitionerCrashError as error:
                warnings.warn(f"{error.text} {after.name!r} cuts instead.", UserWarning, stacklevel=2)
        return last(graph, parts, imbalance, seed)


_MODULES: Final = {"mtkahypar": "mtkahypar", "metis": "pymetis", "snnc": ""}


def partitioners() -> tuple[Partitioner, ...]:
    """Return the installed partitioners, best first."""
    return tuple(p for p in (MtKahypar(), Metis(), OwnPartitioner()) if not _MODULES[p.name] or find_spec(_MODULES[p.name]) is not None)


def partitioner(name: str | None = None, pins: int = 0) -> Partitioner:
    """Return the partitioner with that name, or the best available one for `pins`, the number of pins times parts.

    Raises
    ------
    PartitionerError
        It is not known or not installed.
    """
    found = {p.name: p for p in partitioners()}
    if name is None:
        return FirstThatWorks(tuple(p for p in found.values() if not isinstance(p, MtKahypar) or pins <= MOST_PINS))
    if name not in found:
        raise PartitionerError(
            f"the partitioner {name!r} is not here; there are {', '.join(found)}; more with: pip install 'snnc[partition]'."
        )
    return found[name]
