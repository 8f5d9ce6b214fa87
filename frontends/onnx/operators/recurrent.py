"""Handler of RNN: the plain recurrent layer (snnTorch's LeakyParallel), unrolled; gated layers are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import OnnxLimitError, ShapeError, TimeMixingError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.elementwise import elementwise
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import MAX_TRIPS, Array, Node

_ACTIVATIONS: Final = ("Tanh", "Relu", "Sigmoid")


def _rnn(call: OperatorCall) -> list[Value]:
    if call.attribute("direction", "forward") != "forward":
        raise TimeMixingError(
            f"{call.where}: it reads the sequence backward ({call.attribute('direction')}); snnc reads causal models. Use a forward layer."
        )
    activation = _activation(call)
    x, w, r = call.node(0), call.array(1, "weight"), call.array(2, "recurrent weight")
    batch_first = call.flag("layout")
    if len(x.shape) != 3 or w.ndim != 3 or r.ndim != 3 or w.shape[0] != 1 or r.shape != (1, w.shape[1], w.shape[1]):
        raise ShapeError(f"{call.where}: its input {list(x.shape)} and weights {list(w.shape)}, {list(r.shape)} do not fit.")
    if call.has(4):
        lengths = call.array(4, "lengths").reshape(-1)
        if (lengths != x.shape[1 if batch_first else 0]).any():
            raise UnsupportedOperatorError(f"{call.where}: its samples end at different steps; snnc runs all of them to the end.")
    steps, hidden = x.shape[1 if batch_first else 0], w.shape[1]
    if steps > MAX_TRIPS:
        raise OnnxLimitError(f"{call.where}: {steps:,} steps; at most {MAX_TRIPS:,} are unrolled.")
    bias = call.array(3, "bias").reshape(2, hidden) if call.has(3) else np.zeros((2, hidden), np.float32)
    state = _initial(call, x.shape[0 if batch_first else 1], hidden, batch_first)
    rows = []
    for t in range(steps):
        now = shaping.linear(call.pool, shaping.take(call.pool, x, int(batch_first), t), call.pool.const(w[0]), call.pool.const(bias[0]))
        state = _activated(call, activation, elementwise(call.pool, "add", now, _recurrent(call, state, r[0], bias[1])))
        rows.append(shaping.reshape(call.pool, state, (state.shape[0], 1, 1, hidden) if batch_first else (1, 1, *state.shape)))
    whole = shaping.concat(call.pool, tuple(rows), int(batch_first))
    last = shaping.reshape(call.pool, state, (state.shape[0], 1, hidden) if batch_first else (1, *state.shape))
    return [whole, last]


def _activation(call: OperatorCall) -> str:
    given = call.attribute("activations")
    name = str(given[0]) if isinstance(given, tuple) and given else "Tanh"
    if name not in _ACTIVATIONS or call.attribute("clip") is not None:
        raise UnsupportedOperatorError(
            f"{call.where}: snnc reads RNN with {', '.join(_ACTIVATIONS)}, not with '{name}', and without 'clip'."
        )
    return name


def _initial(call: OperatorCall, batch: int, hidden: int, batch_first: bool) -> Node:
    if not call.has(5):
        return call.pool.const(np.zeros((batch, hidden), np.float32))
    given = call.node(5)
    wanted = (batch, 1, hidden) if batch_first else (1, batch, hidden)
    if given.shape != wanted:
        raise ShapeError(f"{call.where}: its initial state has the shape {list(given.shape)}; {list(wanted)} is needed.")
    return shaping.reshape(call.pool, given, (batch, hidden))


def _recurrent(call: OperatorCall, state: Node, weight: Array, bias: Array) -> Node:
    """Return the recurrent input from the previous step; a diagonal weight decays each neuron separately."""
    diagonal = np.diagonal(weight)
    offset = call.pool.const(np.ascontiguousarray(bias)) if bias.any() else None
    if (weight == np.diag(diagonal)).all():
        decay = elementwise(call.pool, "mul", state, call.pool.const(np.ascontiguousarray(diagonal)))
        return decay if offset is None else elementwise(call.pool, "add", decay, offset)
    return shaping.linear(call.pool, state, call.pool.const(np.ascontiguousarray(weight)), offset)


def _activated(call: OperatorCall, name: str, x: Node) -> Node:
    if name == "Relu":
        return elementwise(call.pool, "max", call.pool.const(np.array(0.0, np.float32)), x)
    return elementwise(call.pool, name.lower(), x)


def _gated(call: OperatorCall) -> list[Value]:
    raise UnsupportedOperatorError(
        f"{call.where}: {call.operation.op} runs over the whole sequence as one operator with gates; snnc reads spiking neurons and plain "
        "RNN. Write the layer with its cell, one step at a time (nn.LSTMCell, snntorch.SLSTM), and export that loop."
    )


HANDLERS: Final[Mapping[str, Handler]] = {"RNN": _rnn, "LSTM": _gated, "GRU": _gated}
