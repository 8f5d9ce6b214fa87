"""Pass that multiplies the weights of a Linear or Conv by a Scale before or after it, if training does not change the Scale."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array, Conv, Edge, Graph, Linear, Scale
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.compiler.passes.edit import bypass, has_initial_value, replace_operation

Weighted: TypeAlias = Linear | Conv


def fold_scale(graph: Graph) -> Graph:
    """Fold each Scale that is not learnable into the Linear or Conv before it or, if its factor is one number, after it.

    In a file, a Scale is often the batch normalisation of a trained network. A Scale stays if folding would change values that other nodes
    read, or if its factors or its bias do not fit the weights. Products are computed in float64 and rounded once, to the type of the
    weight. The pass is not part of the default flow, because it changes weights that users read: a frontend runs it if the original weights
    of the file are not needed.
    """
    graph = graph.copy()
    for name, scale in list(graph.of_type(Scale)):
        if not scale.learnable and not _fold_into_source(graph, name, scale, port_map(graph)):
            _fold_into_target(graph, name, scale)
    return graph


def _fold_into_source(graph: Graph, name: str, scale: Scale, ports: PortMap) -> bool:
    """Multiply the weights before a Scale by its factors, if possible, and remove the Scale; return whether it was removed."""
    (before,) = graph.incoming(name)
    weighted = graph.operation(before.source)
    if not isinstance(weighted, Linear | Conv) or before.delay or len(graph.outgoing(before.source)) > 1:
        return False
    shape = ports[before.source, "out"].shape
    factor, shift = _per_channel(scale.weight, shape), _per_channel(scale.bias, shape)
    if factor is None or shift is None:
        return False
    weight = _double(weighted.weight) * factor.reshape(-1, *(1,) * (weighted.weight.ndim - 1))
    bias = (0.0 if weighted.bias is None else _double(weighted.bias)) * factor + shift
    has_bias = weighted.bias is not None or scale.bias is not None
    replace_operation(graph, before.source, _with(weighted, weight, bias if has_bias else None))
    bypass(graph, name)
    return True


def _per_channel(values: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return `values`, zeros if None, as one number per position of the first axis of `shape`; None if another axis is longer than 1."""
    if values is None:
        return np.zeros(shape[0])
    values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if any(n != 1 for n in values.shape[1:]):
        return None
    return np.broadcast_to(_double(values).reshape(-1), shape[:1])


def _fold_into_target(graph: Graph, name: str, scale: Scale) -> None:
    (before,), (after, *others) = graph.incoming(name), graph.outgoing(name)
    weighted = graph.operation(after.target)
    if (
        others
        or not isinstance(weighted, Linear | Conv)
        or scale.weight.size != 1
        or not _shift_reaches_all_weights(graph, scale, before, after)
    ):
        return
    bias = weighted.bias
    if scale.bias is not None:
        through = _double(weighted.weight).reshape(len(weighted.weight), -1).sum(axis=1) * float(scale.bias.reshape(()))
        bias = through if bias is None else _double(bias) + through
    replace_operation(graph, after.target, _with(weighted, _double(weighted.weight) * float(scale.weight.reshape(())), bias))
    bypass(graph, name)


def _shift_reaches_all_weights(graph: Graph, scale: Scale, before: Edge, after: Edge) -> bool:
    """Return whether the edges around `scale` can be joined, and its bias, if any, is one number that reaches every weight every step."""
    if after.delay and has_initial_value(graph, before):
        return False
    if scale.bias is None:
        return True
    target = graph.operation(after.target)
    padded = isinstance(target, Conv) and any(map(any, target.padding))
    return scale.bias.size == 1 and not after.delay and not padded


def _double(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)


def _with(weighted: Weighted, weight: Array, bias: Array | None) -> Weighted:
    dtype = weighted.weight.dtype
    return replace(weighted, weight=weight.astype(dtype), bias=None if bias is None else bias.astype(dtype))
