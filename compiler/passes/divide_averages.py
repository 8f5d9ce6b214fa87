"""Pass that splits averages into a sum and one division, as frameworks do, so that results agree bit for bit on every backend."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np

from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import Array, Graph, Pool, Population, Reduce, Shape
from snnc.compiler.ir.shapes import port_map, reduced_axes
from snnc.compiler.neurons.library import Quotient
from snnc.compiler.passes.edit import insert_population, replace_operation


def divide_averages(graph: Graph) -> Graph:
    """Split averages over windows (Pool) and axes (Reduce), unless every divisor is a power of two.

    Backends sum weighted values, ``x / 3 + y / 3 + z / 3``, which rounds differently from ``(x + y + z) / 3``; at a threshold this can
    change a spike. Division by a power of two does not round, so such averages are kept.
    """
    changed, ports = graph.copy(), port_map(graph)
    for name, operation in graph.of_type(Pool, Reduce):
        (before,) = graph.incoming(name)
        counts = _counts(name, operation, ports[before.source, before.source_port].shape)
        if counts is not None and np.any(np.frexp(counts)[0] != 0.5):  # powers of two have the mantissa 0.5
            counts = np.broadcast_to(counts, ports[name, "out"].shape)
            divisor = counts.flat[0] if (counts == counts.flat[0]).all() else counts
            replace_operation(changed, name, replace(operation, kind="sum"))
            quotient = Population(Quotient(), counts.shape, {"divisor": np.asarray(divisor, np.float32)})
            insert_population(changed, name, f"{name}.average", quotient)
    return changed


def _counts(name: str, operation: Pool | Reduce, shape: Shape) -> Array | None:
    """Return the divisors of an average over an input of `shape`: one, or one per window. None for other operations."""
    match operation:
        case Pool(kind="average"):
            return functools.reduce(np.multiply.outer, windows_of(name, operation, shape).taps_inside(operation.count_padding))
        case Reduce(kind="mean"):
            return np.asarray(math.prod(shape[a] for a in reduced_axes(name, operation, shape)))
    return None
