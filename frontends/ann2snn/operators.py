"""The ONNX operators that a convertible network may apply to its data, and the reasons for refusing others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.frontends.ann2snn.errors import NoSpikingFormError
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.flattening.operation import Subgraph
from snnc.frontends.onnx.operators.table import HANDLERS

FINAL: Final = ("Softmax", "LogSoftmax")
"""Operators that are dropped at the end: they keep the order of the classes."""
_LAYERS: Final = frozenset(
    {
        *("Gemm", "MatMul", "Conv", "BatchNormalization", "Relu", "Clip", "Max", "Min", "Identity", "Dropout", "Cast", "CastLike"),
        *("AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool", "ReduceMean", "ReduceSum", "ReduceMax", "Mean"),
        *("Add", "Sum", "Sub", "Mul", "Div", "Neg", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split"),
        *("Slice", "Gather", "Shape", "Size"),
    }
)
_ACTIVATIONS: Final = frozenset(
    {
        *("LeakyRelu", "PRelu", "ThresholdedRelu", "Elu", "Celu", "Selu", "Gelu", "Sigmoid", "HardSigmoid", "Tanh", "HardSwish"),
        *("Swish", "Mish", "Softplus", "Softsign", "Erf", "Exp", "Log", "Abs", "Sqrt", "Pow", "Sign"),
    }
)
_RECURRENT: Final = frozenset({"LSTM", "GRU", "RNN", "Loop", "Scan"})
_NORMS: Final = frozenset(
    {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LpNormalization", "LRN"}
)
_COMPARISONS: Final = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Where", "Not", "And", "Or"})
_WHY: Final[Mapping[frozenset[str], str]] = {
    frozenset({"LeakyRelu", "PRelu"}): (
        "its negative half has no firing rate, because rates start at 0. Train the network with ReLU in its place"
    ),
    _ACTIVATIONS: (
        "the firing rate of an integrate-and-fire neuron follows ReLU or ReLU6 and no other function. Train the network with one of them"
    ),
    _RECURRENT: "only feed-forward networks are converted. Build a recurrent one of spiking neurons and train it",
    _NORMS: "it divides by a statistic of the sample at hand. Train with batch normalisation, which becomes part of the weights",
    frozenset(FINAL): "it can be left out at the end only. Remove it, or cut the model behind the layer in front of it",
    _COMPARISONS: "it compares or selects values of the network. Cut the model in front of it",
}
_OTHER: Final = (
    "there is no spiking form of it. Convertible are Gemm, MatMul, Conv, BatchNormalization, Relu, Clip from 0, poolings, Add, Concat, "
    "changes of shape and constant factors; rewrite the layer with these, or cut the model in front of it"
)


def refusal(op: str, where: str) -> NoSpikingFormError:
    """Return the error for an operator on data that cannot be converted."""
    why = next((why for operators, why in _WHY.items() if op in operators), _OTHER)
    return NoSpikingFormError(f"{where}: {op} cannot be converted: {why}.")


def handlers(graph: Subgraph, origins: dict[int, str]) -> Mapping[str, Handler]:
    """Return the kind of each operator of `graph`; `origins` is filled with the file's name for each node that holds data."""

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
    return any(n.value is None for n in value) if isinstance(value, tuple) else isinstance(value, Node) and value.value is None
