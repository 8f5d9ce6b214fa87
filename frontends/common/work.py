"""Estimate the number of operations of a graph before running it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from snnc.compiler.ir.graph import Conv, Graph, Linear, Operation, Pool, Population, Sparse
from snnc.compiler.ir.shapes import PortMap, size
from snnc.compiler.neurons.expression import calls

MAX_WORK: Final = 4e10
"""Maximum number of operations when snnc compares the network read from a file with the file.

If a network recovered from the nodes of an ONNX file needs more, only its first steps are compared. A *description* (the network as snnc
wrote it to the metadata of an ONNX or NIR file) is then not used."""
_FACTOR: Final = 16
_ALLOWANCE: Final = 1_000_000
"""A described network may need `_FACTOR` times the operations of the file's nodes, plus `_ALLOWANCE`."""


def far_more_work(described: int, nodes: int) -> bool:
    """Return whether the network of a description needs far more operations than the file's own nodes."""
    return described > _FACTOR * nodes + _ALLOWANCE


def work_of(graph: Graph, ports: PortMap) -> int:
    """Return the number of operations of one step for one sample.

    Layers with weights count multiplications, sparse ones as if they were dense; poolings, the values of all windows; populations, their
    values and the function calls of their equations; other nodes, their values.
    """
    values = Counter[str]()
    for (name, _), port in ports.items():
        values[name] += size(port.shape)
    return sum(_work(graph.operation(name), values[name]) for name in graph.names)


def _work(operation: Operation, values: int) -> int:
    match operation:
        case Linear(weight=weight) | Conv(weight=weight):
            return values * math.prod(weight.shape[1:])
        case Sparse(shape=shape):
            return math.prod(shape)
        case Pool(kernel=kernel):
            return values * math.prod(kernel)
        case Population(model=model, shape=shape):
            return values + size(shape) * sum(1 for line in model.equations for _ in calls(line.value))
        case _:
            return values
