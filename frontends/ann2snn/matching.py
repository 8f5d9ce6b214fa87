"""Translate the nodes of a ReLU network's ONNX file to operations of a graph.

The first axis of a node is that of the samples, which operations do not have. :mod:`snnc.frontends.ann2snn.read` builds the graph.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Array, Operation
from snnc.compiler.neurons.neuron import neuron
from snnc.frontends.ann2snn.errors import BatchAxisError, NoSpikingFormError
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.flattening.operation import Subgraph
from snnc.frontends.onnx.operators.table import HANDLERS

FINAL: Final = ("Softmax", "LogSoftmax")
"""Operators that are dropped at the end of the network, because they preserve the order of the classes."""
_LAYERS: Final = frozenset(
    {
        *("Gemm", "MatMul", "Conv", "BatchNormalization", "Relu", "Clip", "Max", "Min", "Identity", "Dropout", "Cast", "CastLike"),
        *("AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool", "ReduceMean", "ReduceSum", "ReduceMax", "Mean"),
        *("Add", "Sum", "Sub", "Mul", "Div", "Neg", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split"),
        *("Slice", "Gather", "Shape", "Size"),
    }
)
"""Operators that may read values of the network; :func:`match` refuses some of their uses."""
_ACTIVATIONS: Final = frozenset(
    {
        *("LeakyRelu", "PRelu", "ThresholdedRelu", "Elu", "Celu", "Selu", "Gelu", "Sigmoid", "HardSigmoid", "Tanh", "HardSwish"),
        *("Swish", "Mish", "Softplus", "Softsign", "Erf", "Exp", "Log", "Abs", "Sqrt", "Pow", "Sign"),
    }
)
_WHY: Final[tuple[tuple[Collection[str], str], ...]] = (
    (("LeakyRelu", "PRelu"), "its negative half has no firing rate, because rates start at 0. Train the network with ReLU instead"),
    (
        _ACTIVATIONS,
        "the firing rate of an integrate-and-fire neuron follows ReLU or ReLU6 and no other function. Train the network with one of them",
    ),
    (
        ("LSTM", "GRU", "RNN", "Loop", "Scan"),
        "only feed-forward networks can be converted. Build a recurrent network from spiking neurons and train it",
    ),
    (
        ("LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LpNormalization", "LRN"),
        "it divides by a statistic of the current sample. Train with batch normalisation, which becomes part of the weights",
    ),
    (FINAL, "it can only be left out at the end. Remove it, or cut the model before it"),
    (
        ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Where", "Not", "And", "Or"),
        "it compares or selects values of the network. Cut the model before it",
    ),
)
"""Why operators cannot be converted, and what to do instead; the first entry that contains an operator applies."""
_OTHER: Final = (
    "it has no spiking form. snnc converts Gemm, MatMul, Conv, BatchNormalization, Relu, Clip from 0, poolings, Add, Concat, "
    "changes of shape and constant factors; rewrite the layer with these, or cut the model before it"
)


def refusal(op: str, where: str) -> NoSpikingFormError:
    """Return the error for an operator that reads values of the network and cannot be converted."""
    why = next((why for operators, why in _WHY if op in operators), _OTHER)
    return NoSpikingFormError(f"{where}: {op} cannot be converted: {why}.")


def handlers(graph: Subgraph, origins: dict[int, str]) -> Mapping[str, Handler]:
    """Return a handler for each operator of `graph`.

    The handlers store in `origins`, by the id of a node, the place in the file of the first operator that returned it.
    """

    def apply(call: OperatorCall) -> list[Value]:
        op = call.operation.op
        if not any(_is_data(a) for a in call.arguments):
            if op not in HANDLERS:
                raise refusal(op, call.where)
            return HANDLERS[op](call)
        results = _on_data(op, call)
        for value in results:
            if isinstance(value, Node):
                origins.setdefault(value.id, call.where)
        return results

    return {operation.op: apply for operation in graph.operations}


def _on_data(op: str, call: OperatorCall) -> list[Value]:
    if op in FINAL:
        x = call.node(0)
        axis = call.axis(call.integer("axis", -1), len(x.shape))
        return [call.pool.make("softmax", (x,), x.shape, (axis,))]
    if op not in _LAYERS:
        raise refusal(op, call.where)
    if op == "Dropout" and call.has(2) and call.array(2, "training mode").any():
        raise NoSpikingFormError(f"{call.where}: Dropout is in training mode and drops at random; export the model after eval().")
    return HANDLERS[op](call)


def _is_data(value: Value) -> bool:
    """Return whether a value depends on the inputs of the network, and so is not constant."""
    return any(n.value is None for n in value) if isinstance(value, tuple) else isinstance(value, Node) and value.value is None


@dataclass(frozen=True)
class MatchedOperation:
    """An operation, the nodes that it reads, in order, a prefix for its name, and whether the second of these nodes is subtracted."""

    operation: Operation
    operands: tuple[Node, ...]
    prefix: str
    minus: bool = False


def match(n: Node, where: str, batch: int) -> MatchedOperation:
    """Return the operation for node `n`; `where` names it in messages, and `batch` is the number of samples.

    An operation without counterpart in a spiking network raises a NoSpikingFormError; one that mixes samples raises a BatchAxisError.
    """
    if len(n.shape) < 2 or n.shape[0] != batch:
        raise _mixes(n, where, batch)
    data = tuple(i for i in n.inputs if i.value is None)
    match n.op:
        case "input":
            return MatchedOperation(ir.Input(n.shape[1:], "values", ir.FileLayout(None, 0)), (), "")
        case "linear":
            return _linear(n, where)
        case "conv":
            x, weight, *bias = n.inputs
            return MatchedOperation(ir.Conv(_array(weight), _array(bias[0]) if bias else None, *n.attrs), (x,), "conv")
        case "pool":
            return MatchedOperation(ir.Pool(*n.attrs), data, "pool")
        case "reduce":
            return _reduce(n, where, batch)
        case "reshape":
            return MatchedOperation(ir.Reshape(n.shape[1:]), data, "shape")
        case "transpose":
            return _transpose(n, where, batch)
        case "slice":
            axis, start = n.attrs
            if axis == 0:
                raise _mixes(n, where, batch)
            return MatchedOperation(ir.Slice(axis - 1, start, start + n.shape[axis]), data, "slice")
        case "concat":
            return _concat(n, where, batch)
        case "max" | "min":
            return _rectifier(n, where)
        case "softmax":
            raise refusal("Softmax", where)
        case "add" | "sub" | "mul" | "div" | "neg":
            return _arithmetic(n, data, where)
    raise NoSpikingFormError(f"{where}: '{n.op}' on values of the network cannot be converted; cut the model before it.")


def _mixes(n: Node, where: str, batch: int) -> BatchAxisError:
    return BatchAxisError(
        f"{where}: its value of shape {list(n.shape)} does not keep the {batch} samples of the input separate on the first axis; "
        "export the model with the samples on the first axis of every input and output."
    )


def _linear(n: Node, where: str) -> MatchedOperation:
    x, weight, *bias = n.inputs
    if math.prod(x.shape[1:-1]) != 1:
        raise NoSpikingFormError(
            f"{where}: it multiplies each of the {math.prod(x.shape[1:-1])} rows of a sample of shape {list(x.shape[1:])} by one matrix; "
            "write it as a convolution with a kernel of 1."
        )
    return MatchedOperation(ir.Linear(_array(weight), _array(bias[0]) if bias else None), (x,), "linear")


def _reduce(n: Node, where: str, batch: int) -> MatchedOperation:
    kind, axes = n.attrs
    if 0 in axes:
        raise _mixes(n, where, batch)
    return MatchedOperation(ir.Reduce(kind, tuple(a - 1 for a in axes), True), n.inputs, "pool")


def _transpose(n: Node, where: str, batch: int) -> MatchedOperation:
    if n.attrs[0] != 0:
        raise _mixes(n, where, batch)
    moved = [k for k in n.attrs if n.inputs[0].shape[k] != 1]
    if moved != sorted(moved):
        raise NoSpikingFormError(
            f"{where}: it reorders the axes of a sample to {[k - 1 for k in n.attrs[1:]]}; export the model with the channels first (NCHW)."
        )
    return MatchedOperation(ir.Reshape(n.shape[1:]), n.inputs, "shape")


def _concat(n: Node, where: str, batch: int) -> MatchedOperation:
    axis = n.attrs[0]
    if axis == 0:
        raise _mixes(n, where, batch)
    if any(i.value is not None for i in n.inputs):
        raise NoSpikingFormError(f"{where}: it concatenates constants with values of the network; cut the model before it.")
    return MatchedOperation(ir.Concat(axis - 1), n.inputs, "concat")


def _rectifier(n: Node, where: str) -> MatchedOperation:
    """Match ``max(x, 0)`` to stateless ReLU units, and ``min(max(x, 0), c)``, in either order, to clipped ones."""
    bounds: dict[str, float] = {}
    x = n
    while x.op in ("max", "min") and x.op not in bounds and x.value is None:
        constants = [i for i in x.inputs if i.value is not None]
        if len(constants) != 1 or (_array(constants[0]) != _array(constants[0]).flat[0]).any():
            break
        bounds[x.op] = float(_array(constants[0]).flat[0])
        (inner,) = (i for i in x.inputs if i.value is None)
        if inner.shape != n.shape:
            break
        x = inner
    low, high = bounds.get("max"), bounds.get("min")
    if low != 0 or (high is not None and high <= 0) or x.shape != n.shape:
        shown = f"it limits values to {low if low is not None else '-inf'} … {high if high is not None else 'inf'}"
        raise NoSpikingFormError(
            f"{where}: {shown}; an integrate-and-fire neuron computes max(x, 0) and min(max(x, 0), c). Train with ReLU or ReLU6."
        )
    if high is None:
        model = neuron("ReLU", equations="y = max(i, 0)", output="y")
    else:
        model = neuron("ClippedReLU", params={"ceiling": high}, equations="y = min(max(i, 0), ceiling)", output="y")
    return MatchedOperation(ir.Population(model, n.shape[1:]), (x,), "relu")


def _arithmetic(n: Node, data: tuple[Node, ...], where: str) -> MatchedOperation:
    """Match an operator of arithmetic; `data` are the inputs of `n` that are not constant."""
    if len(data) == 2:
        return _of_two(n, where)
    (x,) = data
    if x.shape != n.shape:
        raise NoSpikingFormError(
            f"{where}: it broadcasts a value of shape {list(x.shape[1:])} to {list(n.shape[1:])}; make the shapes equal."
        )
    if n.op == "neg":
        return MatchedOperation(ir.Scale(np.array(-1.0, np.float32)), data, "scale")
    (constant,) = (i for i in n.inputs if i.value is not None)
    c, first = _per_sample(constant, len(n.shape), where), n.inputs[0] is constant
    one = np.array(1.0, np.float32)
    match n.op:
        case "add":
            return MatchedOperation(ir.Scale(one, c), data, "scale")
        case "sub":
            return MatchedOperation(ir.Scale(-one, c) if first else ir.Scale(one, -c), data, "scale")
        case "mul":
            return MatchedOperation(ir.Scale(c), data, "scale")
    if first or (c == 0).any():
        raise NoSpikingFormError(f"{where}: it divides by values of the network, or by 0; cut the model before it.")
    return MatchedOperation(ir.Scale(np.asarray(1.0 / c, np.float32)), data, "scale")


def _of_two(n: Node, where: str) -> MatchedOperation:
    a, b = n.inputs
    if n.op not in ("add", "sub"):
        raise NoSpikingFormError(f"{where}: it multiplies or divides values of the network by each other; only sums can be converted.")
    if a.shape != b.shape:
        raise NoSpikingFormError(f"{where}: it adds values of the shapes {list(a.shape[1:])} and {list(b.shape[1:])}; make them equal.")
    if a is b:
        return MatchedOperation(ir.Scale(np.array(2.0 if n.op == "add" else 0.0, np.float32)), (a,), "scale")
    return MatchedOperation(ir.Add(), (a, b), "add", n.op == "sub")


def _per_sample(constant: Node, rank: int, where: str) -> Array:
    """Return a constant without its sample axis."""
    c = _array(constant)
    if c.ndim < rank:
        return c
    if (c != c[:1]).any():
        raise BatchAxisError(f"{where}: its constant of shape {list(c.shape)} differs from sample to sample; export one for all samples.")
    return np.asarray(c[0])


def _array(n: Node) -> Array:
    return np.asarray(n.value, np.float32)
