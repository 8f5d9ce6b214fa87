"""Operations of a connection in a step program: the forward operation from the graph, and its adjoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np

from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.arrays.sparse import pattern_of
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.connections import PopulationLink
from snnc.compiler.ir.graph import Array, Conv, Linear, OneToOne, Pad, Pool, Reduce, Scale, Slice, Sparse, Weighted
from snnc.compiler.ir.shapes import reduced_axes, size, sliced_axis
from snnc.compiler.ir.step_operations import AnyBiasGradient, BufferValue, ConnectionOp, InputGradient, WeightGradient
from snnc.compiler.ir.step_program import ConnectionInfo, ConnectionKind

_KINDS: Final[Mapping[type, ConnectionKind]] = {
    Linear: "dense",
    Sparse: "sparse",
    Conv: "convolution",
    Pool: "pooling",
    Reduce: "reduction",
    Slice: "slice",
    Pad: "pad",
}


def kind_of(link: PopulationLink) -> ConnectionKind:
    """Return the kind of the connection of `link`; a Scale whose factor and bias each have one number, or one per value, is one to one.

    A learnable bias of one number for several values is an exception: such a Scale has the kind ``"scale"``.
    """
    if isinstance(link.operation, Scale):
        values, weight, bias = size(link.shape), link.operation.weight, link.operation.bias
        fits = weight.size in (1, values) and (bias is None or bias.size == values or (bias.size == 1 and not link.operation.learnable))
        return "one_to_one" if fits else "scale"
    return _KINDS.get(type(link.operation), "one_to_one")


def weights_of(link: PopulationLink) -> tuple[Array | None, Array | None]:
    """Return the weight and bias of a connection in the form stored in its parameters."""
    operation = link.operation
    if not isinstance(operation, Weighted):
        return None, None
    weight, bias = operation.weight, None if isinstance(operation, OneToOne) else operation.bias
    if kind_of(link) != "one_to_one" or weight is None:
        return weight, bias
    if isinstance(operation, Scale) and weight.size == 1:
        weight = weight.reshape(())
    flat = None if bias is None else np.broadcast_to(bias, link.shape).reshape(-1)
    return weight.reshape(-1) if weight.ndim else weight, flat


def connection_op(info: ConnectionInfo, link: PopulationLink, current: str) -> ConnectionOp:
    """Return the operation that adds the connection's contribution to the buffer `current`."""
    id_, source, weight, shape = info.id, BufferValue(info.source_buffer, info.delay), info.weight, link.shape
    match info.kind, link.operation:
        case "dense", Linear() if weight is not None:
            return ops.DenseProduct(id_, source, weight, current)
        case "sparse", Sparse() as sparse if weight is not None:
            return ops.SparseProduct(id_, source, weight, current, pattern_of(sparse))
        case "convolution", Conv(groups=groups) as conv if weight is not None:
            return ops.Convolve(id_, source, weight, current, windows_of(link.label, conv, shape), groups, info.bias)
        case "pooling", Pool(kind=kind, count_padding=count) as pool:
            return ops.Pooling(id_, source, current, windows_of(link.label, pool, shape), kind, count)
        case "scale", Scale() if weight is not None:
            return ops.Rescale(id_, source, weight, current, shape, info.bias)
        case "reduction", Reduce(kind=reduction) as reduce:
            return ops.AddReduced(id_, source, current, shape, reduced_axes(link.label, reduce, shape), reduction)
        case "slice", Slice(start=start, stop=stop) as part:
            return ops.AddSlice(id_, source, current, shape, sliced_axis(link.label, part, shape), start, stop)
        case "pad", Pad(padding=padding):
            return ops.AddPadded(id_, source, current, shape, padding)
        case _:
            return ops.AddOneToOne(id_, source, weight, current, link.offset)


def bias_initialises_current(info: ConnectionInfo) -> bool:
    """Return whether the connection has a bias of one value per neuron, to which :class:`Fill` sets the current.

    The operation of the connection adds any other bias.
    """
    return info.bias is not None and info.kind in ("dense", "sparse", "one_to_one")


_INPUT_GRADIENTS: Final[Mapping[type, Any]] = {
    ops.DenseProduct: ops.DenseInputGradient,
    ops.SparseProduct: ops.SparseInputGradient,
    ops.AddOneToOne: ops.OneToOneInputGradient,
    ops.Convolve: ops.ConvolveInputGradient,
    ops.Pooling: ops.PoolingGradient,
    ops.Rescale: ops.RescaleInputGradient,
    ops.AddReduced: ops.ReduceGradient,
    ops.AddSlice: ops.SliceGradient,
    ops.AddPadded: ops.PadGradient,
}
_WEIGHT_GRADIENTS: Final[Mapping[type, Any]] = {
    ops.DenseProduct: ops.DenseWeightGradient,
    ops.SparseProduct: ops.SparseWeightGradient,
    ops.AddOneToOne: ops.OneToOneWeightGradient,
    ops.Convolve: ops.ConvolveWeightGradient,
    ops.Rescale: ops.RescaleWeightGradient,
}
_BIAS_GRADIENTS: Final[Mapping[type, Any]] = {ops.Convolve: ops.ConvolveBiasGradient, ops.Rescale: ops.RescaleBiasGradient}


def input_gradient(op: ConnectionOp) -> InputGradient:
    """Return the operation that adds to the adjoint of the source of `op`."""
    adjoint: InputGradient = _adjoint(_INPUT_GRADIENTS[type(op)], op)
    return adjoint


def weight_gradient(op: ConnectionOp, gradient: str) -> WeightGradient:
    """Return the operation that adds to the gradient of the weight of `op`."""
    adjoint: WeightGradient = _adjoint(_WEIGHT_GRADIENTS[type(op)], op, gradient=gradient)
    return adjoint


def bias_gradient(op: ConnectionOp, gradient: str) -> AnyBiasGradient:
    """Return the operation that adds to the gradient of the bias of `op`."""
    adjoint: AnyBiasGradient = _adjoint(_BIAS_GRADIENTS.get(type(op), ops.BiasGradient), op, gradient=gradient)
    return adjoint


def _adjoint(kind: Any, op: ConnectionOp, **more: str) -> Any:
    """Return an operation of `kind` with the fields of `op` that have the same names."""
    return kind(**{f.name: getattr(op, f.name) for f in fields(kind) if f.name not in more and hasattr(op, f.name)}, **more)
