"""Compute NeuroBench's metrics of a network.

Yik et al. 2025, "The NeuroBench framework for benchmarking neuromorphic computing algorithms and systems", Nature Communications 16,
1545, section "Algorithm track metrics"; the harness ``neurobench`` 2.3 computes the same sparsities and operations.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.graph import Graph, Sparse
from snnc.compiler.ir.operation_text import parameter_counts
from snnc.compiler.ir.shapes import port_map
from snnc.understanding.synops import MeasuredSynops, connections, has_synapses, source_of

DIGITS: Final = 6
"""Decimals to which sparsities are rounded."""


def neurobench(graph: Graph, measured: MeasuredSynops | None = None) -> dict[str, Any]:
    """Return the static metrics and, with `measured`, the workload metrics (else None), as JSON types under NeuroBench's names.

    - ``footprint``: bytes of all stored values, 4 each: weights, biases, neuron parameters; ``parameter_count`` is their number. NeuroBench
      also counts other buffers of the framework, such as states.
    - ``connection_sparsity``: share of zeros among the weights of all synapses. Connections that a sparse layer does not store are zeros.
    - ``activation_sparsity``: share of zeros among all values sent by the first output ports of populations.
    - ``synaptic_operations`` per sample, over all its steps: ``Effective_ACs`` and ``Effective_MACs`` (neither value nor weight is 0), and
      ``Dense`` (all).
    """
    stored = sum(parameter_counts(graph.operation(name))[0] for name in graph.names)
    zeros, weights = _weights(graph)
    return {
        "footprint": FLOAT * stored,
        "parameter_count": stored,
        "connection_sparsity": round(zeros / weights, DIGITS) if weights else 0.0,
        "activation_sparsity": None if measured is None else _activation_sparsity(measured),
        "synaptic_operations": None if measured is None else _synaptic_operations(graph, measured),
    }


def _weights(graph: Graph) -> tuple[int, int]:
    zeros = weights = 0
    for name in graph.names:
        operation = graph.operation(name)
        if has_synapses(operation):
            weight = np.asarray(getattr(operation, "weight", 0.0))
            size = math.prod(operation.shape) if isinstance(operation, Sparse) else weight.size
            zeros += size - int(np.count_nonzero(weight))
            weights += size
    return zeros, weights


def _activation_sparsity(measured: MeasuredSynops) -> float:
    sent = sum(count for count, _ in measured.activations.values())
    total = sum(size for _, size in measured.activations.values())
    return round(1 - sent / total, DIGITS) if total else 0.0


def _synaptic_operations(graph: Graph, measured: MeasuredSynops) -> dict[str, float]:
    ports = port_map(graph)
    operations = {"Effective_MACs": 0.0, "Effective_ACs": 0.0, "Dense": 0.0}
    for name, (_, counted) in measured.operations.items():
        edge, operation = source_of(graph, name), graph.operation(name)
        shape = ports[edge.source, edge.source_port].shape
        pairs = math.prod(operation.shape) if isinstance(operation, Sparse) else connections(name, operation, shape)
        operations[f"Effective_{counted}s"] += measured.effective[name] * measured.steps
        operations["Dense"] += pairs * measured.steps
    return operations
