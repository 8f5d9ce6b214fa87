"""Handlers of Loop, Scan and If: loops unroll, conditions must be constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import DataDependentError, MalformedGraphError, NoTimeError, OnnxLimitError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Scope, Value
from snnc.frontends.onnx.flattening.node import MAX_TRIPS, Node, SubgraphRun
from snnc.frontends.onnx.flattening.operation import Subgraph


def _body(call: OperatorCall, name: str) -> Subgraph:
    body = call.attribute(name)
    if not isinstance(body, Subgraph):
        raise MalformedGraphError(f"{call.where}: its graph '{name}' is missing.")
    return body


def _level(call: OperatorCall, attribute: str, trip: int) -> SubgraphRun:
    return SubgraphRun(next((name for name in call.operation.outputs if name), ""), attribute, trip)


def _truth(call: OperatorCall, value: Value, what: str) -> bool:
    if not isinstance(value, Node) or value.value is None:
        raise DataDependentError(f"{call.where}: {what} depends on the network's data; snnc needs the number of steps beforehand.")
    return bool(value.value.reshape(-1)[0])


def _loop(call: OperatorCall) -> list[Value]:
    body = _body(call, "body")
    trips = call.ints(0, "trip count")[0] if call.has(0) else None
    go = _truth(call, call.arguments[1], "its condition") if call.has(1) else True
    if trips is not None and trips > MAX_TRIPS and not call.has(1):
        raise OnnxLimitError(f"{call.where}: a trip count of {trips:,}; at most {MAX_TRIPS:,} are unrolled.")
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
            raise OnnxLimitError(f"{call.where}: more than {MAX_TRIPS:,} trips; at most that many are unrolled.")
        given: list[Value] = [call.pool.const(np.array(step, np.int64)), call.pool.const(np.array(True)), *states]
        results = call.run.inside(_level(call, "body", step), body, dict(zip(body.inputs, given, strict=True)), call.scope)
        go = _truth(call, results[0], "its condition")
        if step == 0 and trips is not None and trips > MAX_TRIPS and results[0] in (given[1], call.arguments[1]):
            raise OnnxLimitError(f"{call.where}: a trip count of {trips:,}; at most {MAX_TRIPS:,} are unrolled.")
        states = results[1 : count + 1]
        _collect(call, scans, results[count + 1 :])
        step += 1
    if step == 0:
        raise NoTimeError(f"{call.where}: it runs no step at all.")
    return [*states, *(_stack(call, parts, 0) for parts in scans)]


def _collect(call: OperatorCall, scans: list[list[Node]], values: list[Value]) -> None:
    for parts, value in zip(scans, values, strict=True):
        if not isinstance(value, Node):
            raise MalformedGraphError(f"{call.where}: a result that is stacked over the steps is no tensor.")
        parts.append(value)


def _stack(call: OperatorCall, parts: list[Node], axis: int) -> Node:
    rows = tuple(shaping.reshape(call.pool, p, (*p.shape[:axis], 1, *p.shape[axis:])) for p in parts)
    return shaping.concat(call.pool, rows, axis)


def _scan(call: OperatorCall) -> list[Value]:
    body = _body(call, "body")
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
    given_axes = call.attribute("scan_input_axes") or (0,) * sequences
    axes = [call.axis(a, len(n.shape)) for a, n in zip(given_axes, inputs, strict=True)]  # type: ignore[call-overload]
    lengths = {n.shape[a] for n, a in zip(inputs, axes, strict=True)}
    if len(lengths) != 1:
        raise MalformedGraphError(f"{call.where}: its sequences have the lengths {sorted(lengths)}.")
    length = lengths.pop()
    if not 0 < length <= MAX_TRIPS:
        raise (OnnxLimitError if length else NoTimeError)(f"{call.where}: {length:,} steps; 1 to {MAX_TRIPS:,} are unrolled.")
    scans: list[list[Node]] = [[] for _ in range(outputs)]
    for t in range(length):
        slices = [shaping.take(call.pool, n, a, t) for n, a in zip(inputs, axes, strict=True)]
        arguments: Scope = dict(zip(body.inputs, [*states, *slices], strict=True))
        results = call.run.inside(_level(call, "body", t), body, arguments, call.scope)
        states = results[: len(states)]
        _collect(call, scans, results[len(states) :])
    out_axes = call.attribute("scan_output_axes") or (0,) * outputs
    return [*states, *(_stack(call, p, call.axis(a, len(p[0].shape) + 1)) for p, a in zip(scans, out_axes, strict=True))]  # type: ignore[call-overload]


def _if(call: OperatorCall) -> list[Value]:
    branch = "then_branch" if _truth(call, call.arguments[0], "its condition") else "else_branch"
    return call.run.inside(_level(call, branch, 0), _body(call, branch), {}, call.scope)


HANDLERS: Final[Mapping[str, Handler]] = {"Loop": _loop, "Scan": _scan, "If": _if}
