"""Hypergraph of neurons, which partitioners cut into parts so that few events are sent between parts.

A net contains a neuron and its targets. The neuron sends its events once to each part, except its own, that contains neurons of the net.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """Vertices, which are neurons, and nets, which are sets of vertices. The vertices of a net are called its pins.

    In the methods, `part` is the part of each vertex, and `parts` the number of parts.
    """

    start: Ints
    pins: Ints
    """The pins of net n are ``pins[start[n] : start[n + 1]]``, distinct and ascending."""
    rate: Floats
    """Weight of each net: events per step."""
    work: Floats

    @classmethod
    def of(cls, nets: Ints, pins: Ints, rate: Floats, work: Floats) -> Hypergraph:
        """Build a hypergraph from pairs (net, pin); pairs may repeat."""
        net, pin = np.divmod(np.unique(nets.astype(np.int64) * len(work) + pins), len(work))
        start = np.concatenate([[0], np.cumsum(np.bincount(net, minlength=len(rate)))])
        return cls(start.astype(np.int64), pin.astype(np.int64), np.asarray(rate, np.float64), np.asarray(work, np.float64))

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.work)

    @property
    def nets(self) -> int:
        """Number of nets."""
        return len(self.rate)

    @cached_property
    def net_of_pin(self) -> Ints:
        """Net of each pin."""
        return np.repeat(np.arange(self.nets, dtype=np.int64), np.diff(self.start))

    @cached_property
    def incidence(self) -> Any:
        """Sparse matrix [nets, vertices] of ones."""
        from scipy.sparse import csr_array

        return csr_array((np.ones(len(self.pins)), self.pins, self.start), shape=(self.nets, self.vertices))

    def cut(self, part: Ints, parts: int) -> float:
        """Return the spikes per step between parts, once for each receiving part: a net in n parts counts its rate n - 1 times."""
        touched = np.unique(self.net_of_pin * parts + part[self.pins])
        return float((self.rate * (np.bincount(touched // parts, minlength=self.nets) - 1)).sum())

    def loads(self, part: Ints, parts: int) -> Floats:
        """Return the work of each part."""
        return np.bincount(part, self.work, parts).astype(np.float64)

    def imbalance(self, part: Ints, parts: int) -> float:
        """Return the work of the fullest part over the mean, minus 1."""
        return float(self.loads(part, parts).max() * parts / self.work.sum() - 1)

    def max_work(self, parts: int, imbalance: float) -> float:
        """Return the maximum work of a part: the mean plus the fraction `imbalance` of it, or plus the heaviest vertex if that is more."""
        mean = float(self.work.sum()) / parts
        return max(mean * (1 + imbalance), mean + float(self.work.max(initial=0.0)))
