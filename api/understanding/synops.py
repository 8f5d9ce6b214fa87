"""Count synaptic operations: a synaptic operation is one weight applied because one source neuron sent a value.

A spike costs one addition per weight (an accumulate, AC), a graded value also a multiplication (MAC). NeuroBench counts in this way
(:mod:`snnc.understanding.neurobench`), as do the makers of neuromorphic chips (Merolla et al. 2014, "A million spiking-neuron integrated
circuit"; Davies et al. 2018, "Loihi"). Biases, neuron updates, and weights of a convolution that fall on the padding are not counted.
Effective operations are those whose stored weight is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.windows import Windows, windows_of
from snnc.compiler.ir.graph import Conv, Edge, Graph, Linear, OneToOne, Operation, Pool, Reduce, Scale, Shape, Sparse
from snnc.compiler.ir.shapes import PortMap

Counting: TypeAlias = Literal["AC", "MAC"]
Counts: TypeAlias = npt.NDArray[np.int64]
SYNAPSES: Final = (Linear, Sparse, Conv, OneToOne)
"""Operations whose weights are synapses."""
APART: Final = (Pool, Reduce, Scale)
"""Operations without synapses, whose arithmetic is counted separately."""


@dataclass(frozen=True)
class MeasuredSynops:
    """Synaptic operations per step and sample, and firing rates, on the data `source`.

    Attributes
    ----------
    operations, effective
        Number of synaptic operations, with their kind ("AC" or "MAC"), and number of those with a nonzero weight, by node name.
    rates
        Mean number of spikes per neuron and step, by name of the spiking population or input.
    silent, saturated
        Share of the neurons of each population that never fired, and that fired in at least 95 % of the steps.
    activations
        Number of nonzero values, and of all values, sent by the first output port over all samples and steps, by population.
    """

    source: str
    samples: int
    steps: int
    operations: Mapping[str, tuple[float, Counting]]
    rates: Mapping[str, float]
    silent: Mapping[str, float]
    saturated: Mapping[str, float]
    effective: Mapping[str, float]
    activations: Mapping[str, tuple[int, int]]


def has_synapses(operation: Operation) -> bool:
    """Return whether `operation` has synaptic weights."""
    return isinstance(operation, SYNAPSES) and operation.weight is not None


def connections(name: str, operation: Operation, shape: Shape) -> int:
    """Return the number of pairs of source value and target that node `name` connects, for an input of `shape`; 0 without arithmetic.

    A convolution's weight is shared by many pairs; pairs in the padding do not count.
    """
    match operation:
        case Linear(weight=weight) | Sparse(weight=weight):
            return int(weight.size)
        case Conv() | Pool():
            targets = operation.weight.shape[0] // operation.groups if isinstance(operation, Conv) else 1
            return shape[0] * targets * math.prod(int(reads.sum()) for reads in _reads(windows_of(name, operation, shape)))
        case OneToOne(weight=None):
            return 0
        case OneToOne() | Scale() | Reduce():
            return math.prod(shape)
    return 0


def fan_out(name: str, operation: Operation, shape: Shape) -> Counts:
    """Return, for each value of an input of `shape`, the number of weights applied to it; fewer near the border of a convolution."""
    match operation:
        case Linear(weight=weight):
            return np.full(shape, weight.shape[0], np.int64)
        case Sparse(indices=indices):
            return np.bincount(indices, minlength=math.prod(shape)).astype(np.int64).reshape(shape)
        case Conv(weight=weight, groups=groups):
            counts = np.full(shape, weight.shape[0] // groups, np.int64)
            for axis, reads in enumerate(_reads(windows_of(name, operation, shape)), start=1):
                counts *= reads.sum(axis=0).reshape([-1 if a == axis else 1 for a in range(len(shape))])
            return counts
    return np.full(shape, int(has_synapses(operation)), np.int64)


def effective_fan_out(name: str, operation: Operation, shape: Shape) -> Counts:
    """Return, for each value of an input of `shape`, the number of nonzero weights applied to it."""
    weight = getattr(operation, "weight", None)
    if weight is None or np.all(weight):
        return fan_out(name, operation, shape)
    match operation:
        case Linear():
            return np.asarray(np.count_nonzero(weight, axis=0), np.int64).reshape(shape)
        case Sparse(indices=indices):
            return np.bincount(indices[weight != 0], minlength=math.prod(shape)).astype(np.int64).reshape(shape)
        case Conv(groups=groups):
            taps = np.count_nonzero(weight.reshape(groups, -1, *weight.shape[1:]), axis=1).reshape(shape[0], *weight.shape[2:])
            counts = np.zeros(shape, np.int64)
            by_axis = _reads(windows_of(name, operation, shape))
            for tap in np.ndindex(*weight.shape[2:]):
                where = reduce(np.multiply.outer, (reads[j] for reads, j in zip(by_axis, tap, strict=True)))
                counts += taps[(slice(None), *tap)].reshape(-1, *[1] * where.ndim) * where
            return counts
    return np.broadcast_to(np.not_equal(weight, 0), shape).astype(np.int64)


def counting(graph: Graph, ports: PortMap, name: str) -> Counting:
    """Return whether the synaptic operations of the node `name` are ACs (its inputs are spikes) or MACs (graded values)."""
    return "AC" if all(ports[e.source, e.source_port].kind == "spikes" for e in graph.incoming(name)) else "MAC"


def source_of(graph: Graph, name: str) -> Edge:
    """Return the only edge into an operation between populations."""
    return graph.incoming(name)[0]


def _reads(windows: Windows) -> list[Counts]:
    """Return [taps, positions] for each dimension: how many windows read the position of the input through the tap of the kernel."""
    by_axis = []
    for size, kernel, stride, (before, _), dilation, count in zip(
        *(windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.output), strict=True
    ):
        position = (np.arange(count) * stride - before)[None] + (np.arange(kernel) * dilation)[:, None]
        rows = [np.bincount(row[(row >= 0) & (row < size)], minlength=size) for row in position]
        by_axis.append(np.stack(rows).astype(np.int64))
    return by_axis
