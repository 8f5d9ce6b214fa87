"""Handlers of Loop, Scan, If and RNN: loops are unrolled, conditions must be constant, and layers with gates are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import (
    DataDependentError,
    MalformedGraphError,
    NoTimeError,
    OnnxLimitError,
    ShapeError,
    TimeMixingError,
    UnsupportedOperatorError,
)
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import MAX_TRIPS, Array, Node, SubgraphRun
from snnc.frontends.onnx.flattening.operation import Subgraph


def _subgraph(call: OperatorCall, name: str) -> Subgraph:
    subgraph = call.attribute(name)
    if not isinstance(subgraph, Subgraph):
        raise MalformedGraphError(f"{call.where}: its graph '{name}' is missing.")
    return subgraph


def _run(call: OperatorCall, attribute: str, trip: int, arguments: Sequence[Value]) -> list[Value]:
    subgraph = _subgraph(call, attribute)
    level = SubgraphRun(next((name for name in call.operation.outputs if name), ""), attribute, trip)
    return call.run.inside(level, subgraph, dict(zip(subgraph.inputs, arguments, strict=False)), call.scope)


def _condition(call: OperatorCall, value: Value) -> bool:
    if not isinstance(value, Node) or value.value is None:
        raise DataDependentError(
            f"{call.where}: its condition depends on the network's data, but snnc must know the number of steps in advance."
        )
    return bool(value.value.reshape(-1)[0])


def _loop(call: OperatorCall) -> list[Value]:
    body = _subgraph(call, "body")
    trips = call.ints(0, "trip count")[0] if call.has(0) else None
    go = _condition(call, call.arguments[1]) if call.has(1) else True
    if trips is not None and trips > MAX_TRIPS and not call.has(1):
        raise OnnxLimitError(f"{call.where}: a trip count of {trips:,}; snnc unrolls at most {MAX_TRIPS:,}.")
    states = list(call.arguments[2:])
    count = len(states)
    if len(body.inputs) != count + 2 or len(body.outputs) < count + 1:
        raise MalformedGraphError(
            f"{call.where}: its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs for {count} states."
        )
    scans: list[list[Node]] = [[] for _ in body.outputs[count + 1 :]]
    step = 0
    while go and (trips is None or step < trips):
        if step >= MAX_TRIPS:
            raise OnnxLimitError(f"{call.where}: more than {MAX_TRIPS:,} trips; snnc unrolls at most that many.")
        arguments: list[Value] = [call.pool.const(np.array(step, np.int64)), call.pool.const(np.array(True)), *states]
        results = _run(call, "body", step, arguments)
        go = _condition(call, results[0])
        # A body that returns its condition unchanged runs all trips.
        if step == 0 and trips is not None and trips > MAX_TRIPS and results[0] in (arguments[1], call.arguments[1]):
            raise OnnxLimitError(f"{call.where}: a trip count of {trips:,}; snnc unrolls at most {MAX_TRIPS:,}.")
        states = results[1 : count + 1]
        _collect(call, scans, results[count + 1 :])
        step += 1
    if step == 0:
        raise NoTimeError(f"{call.where}: it runs no steps.")
    return [*states, *(_stack(call, parts, 0) for parts in scans)]


def _collect(call: OperatorCall, scans: list[list[Node]], values: list[Value]) -> None:
    for parts, value in zip(scans, values, strict=True):
        if not isinstance(value, Node):
            raise MalformedGraphError(f"{call.where}: a result stacked over the steps is not a tensor.")
        parts.append(value)


def _stack(call: OperatorCall, parts: list[Node], axis: int) -> Node:
    rows = tuple(shaping.reshape(call.pool, p, (*p.shape[:axis], 1, *p.shape[axis:])) for p in parts)
    return shaping.concat(call.pool, rows, axis)


def _scan(call: OperatorCall) -> list[Value]:
    body = _subgraph(call, "body")
    sequences = call.integer("num_scan_inputs")
    states = list(call.arguments[: len(call.arguments) - sequences])
    inputs = [call.node(len(states) + k) for k in range(sequences)]
    outputs = len(body.outputs) - len(states)
    if sequences < 1 or outputs < 0 or len(body.inputs) != len(states) + sequences:
        raise MalformedGraphError(f"{call.where}: its body does not fit its {len(call.arguments)} inputs.")
    for name in ("scan_input_directions", "scan_output_directions"):
        directions = call.attribute(name, ())
        if isinstance(directions, tuple) and any(directions):
            raise UnsupportedOperatorError(f"{call.where}: it runs backward in time ({name}); snnc reads forward scans.")
    in_axes = call.attribute("scan_input_axes") or (0,) * sequences
    axes = [call.axis(a, len(n.shape)) for a, n in zip(in_axes, inputs, strict=True)]
    lengths = {n.shape[a] for n, a in zip(inputs, axes, strict=True)}
    if len(lengths) != 1:
        raise MalformedGraphError(f"{call.where}: its sequences have the lengths {sorted(lengths)}.")
    length = lengths.pop()
    if not 0 < length <= MAX_TRIPS:
        raise (OnnxLimitError if length else NoTimeError)(f"{call.where}: {length:,} steps; snnc unrolls 1 to {MAX_TRIPS:,}.")
    scans: list[list[Node]] = [[] for _ in range(outputs)]
    for t in range(length):
        slices = [shaping.at_index(call.pool, n, a, t) for n, a in zip(inputs, axes, strict=True)]
        results = _run(call, "body", t, [*states, *slices])
        states = results[: len(states)]
        _collect(call, scans, results[len(states) :])
    out_axes = call.attribute("scan_output_axes") or (0,) * outputs
    return [*states, *(_stack(call, p, call.axis(a, len(p[0].shape) + 1)) for p, a in zip(scans, out_axes, strict=True))]


def _if(call: OperatorCall) -> list[Value]:
    branch = "then_branch" if _condition(call, call.arguments[0]) else "else_branch"
    return _run(call, branch, 0, [])


# ---- plain recurrent layers (snnTorch's LeakyParallel) ---------------------------------------------------------------

_ACTIVATIONS: Final = ("Tanh", "Relu", "Sigmoid")


def _rnn(call: OperatorCall) -> list[Value]:
    if call.attribute("direction", "forward") != "forward":
        raise TimeMixingError(
            f"{call.where}: it reads the sequence backward ({call.attribute('direction')}), but snnc reads causal models. Use a forward "
            "layer."
        )
    activation = _activation(call)
    x, w, r = call.node(0), call.array(1, "weight"), call.array(2, "recurrent weight")
    batch_first = call.flag("layout")
    if len(x.shape) != 3 or w.ndim != 3 or r.ndim != 3 or w.shape[0] != 1 or r.shape != (1, w.shape[1], w.shape[1]):
        raise ShapeError(f"{call.where}: its input {list(x.shape)} and weights {list(w.shape)}, {list(r.shape)} do not fit.")
    if call.has(4):
        lengths = call.array(4, "lengths").reshape(-1)
        if (lengths != x.shape[1 if batch_first else 0]).any():
            raise UnsupportedOperatorError(f"{call.where}: its samples have different lengths; snnc runs all of them to the end.")
    steps, hidden = x.shape[1 if batch_first else 0], w.shape[1]
    if steps > MAX_TRIPS:
        raise OnnxLimitError(f"{call.where}: {steps:,} steps; snnc unrolls at most {MAX_TRIPS:,}.")
    bias = call.array(3, "bias").reshape(2, hidden) if call.has(3) else np.zeros((2, hidden), np.float32)
    state = _initial(call, x.shape[0 if batch_first else 1], hidden, batch_first)
    weights = call.pool.const(w[0]), call.pool.const(bias[0])
    rows = []
    for t in range(steps):
        current = shaping.linear(call.pool, shaping.at_index(call.pool, x, int(batch_first), t), *weights)
        total = call.elementwise("add", current, _recurrent(call, state, r[0], bias[1]))
        state = call.elementwise("max", 0.0, total) if activation == "Relu" else call.elementwise(activation.lower(), total)
        rows.append(shaping.reshape(call.pool, state, (state.shape[0], 1, 1, hidden) if batch_first else (1, 1, *state.shape)))
    sequence = shaping.concat(call.pool, tuple(rows), int(batch_first))
    last = shaping.reshape(call.pool, state, (state.shape[0], 1, hidden) if batch_first else (1, *state.shape))
    return [sequence, last]


def _activation(call: OperatorCall) -> str:
    names = call.attribute("activations")
    name = str(names[0]) if isinstance(names, tuple) and names else "Tanh"
    if name not in _ACTIVATIONS or call.attribute("clip") is not None:
        raise UnsupportedOperatorError(
            f"{call.where}: snnc reads RNN with {', '.join(_ACTIVATIONS)}, not with '{name}', and without 'clip'."
        )
    return name


def _initial(call: OperatorCall, batch: int, hidden: int, batch_first: bool) -> Node:
    if not call.has(5):
        return call.pool.const(np.zeros((batch, hidden), np.float32))
    state = call.node(5)
    needed_shape = (batch, 1, hidden) if batch_first else (1, batch, hidden)
    if state.shape != needed_shape:
        raise ShapeError(f"{call.where}: its initial state has the shape {list(state.shape)}; it must be {list(needed_shape)}.")
    return shaping.reshape(call.pool, state, (batch, hidden))


def _recurrent(call: OperatorCall, state: Node, weight: Array, bias: Array) -> Node:
    """Return the recurrent input from the previous step; a diagonal weight becomes one factor per neuron."""
    diagonal = np.diagonal(weight)
    offset = call.pool.const(np.ascontiguousarray(bias)) if bias.any() else None
    if (weight == np.diag(diagonal)).all():
        decay = call.elementwise("mul", state, call.pool.const(np.ascontiguousarray(diagonal)))
        return decay if offset is None else call.elementwise("add", decay, offset)
    return shaping.linear(call.pool, state, call.pool.const(np.ascontiguousarray(weight)), offset)


def _gated(call: OperatorCall) -> list[Value]:
    raise UnsupportedOperatorError(
        f"{call.where}: {call.operation.op} runs over the whole sequence as one operator with gates; snnc reads spiking neurons and plain "
        "RNN. Write the layer with its cell, one step at a time (nn.LSTMCell, snntorch.SLSTM), and export that loop."
    )


HANDLERS: Final[Mapping[str, Handler]] = {"Loop": _loop, "Scan": _scan, "If": _if, "RNN": _rnn, "LSTM": _gated, "GRU": _gated}
