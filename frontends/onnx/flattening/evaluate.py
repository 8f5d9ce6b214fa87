"""Numbers for nodes: evaluate parts of a flattened graph on sample inputs."""

from __future__ import annotations

import zlib
from typing import cast

import numpy as np

from snnc.frontends.common.functions import ELEMENTWISE, apply, summary
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, check_size
from snnc.frontends.onnx.flattening.picking import Pick
from snnc.frontends.onnx.flattening.shaping import evaluate_linear
from snnc.frontends.onnx.flattening.windowed import evaluate_window


class Evaluator:
    """Values of nodes in float64 on reproducible random inputs, each computed once.

    Only the requested steps of an input are drawn.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known: dict[int, Array] = {}

    def __call__(self, node: Node) -> Array:
        """Return the value of `node`."""
        stack = [node]
        while stack:
            n = stack[-1]
            if n.id in self._known:
                stack.pop()
                continue
            missing = [] if n.value is not None or _is_input(n) else [i for i in n.inputs if i.id not in self._known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._known[n.id] = self._one(n)
        return self._known[node.id]

    def input(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a whole input that has no time axis, in `shape`."""
        return self._draw(name, shape, -1)

    def step(self, name: str, shape: tuple[int, ...], t: int, axis: int | None) -> Array:
        """Return one step of an input, its time axis of size 1; zeros before step 0."""
        if axis is not None and t < 0:
            return np.zeros(shape)
        return self._draw(name, shape, t if axis is not None else -1)

    def _draw(self, name: str, shape: tuple[int, ...], t: int) -> Array:
        check_size(shape, f"the input '{name}'", MAX_CONSTANT)
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode()), t + 1])
        return 2.0 * rng.standard_normal(shape)

    def _one(self, n: Node) -> Array:
        if n.value is not None:
            return np.asarray(n.value, np.float64)
        if n.op == "input":
            return self._draw(str(n.attrs[0]), n.shape, -1)
        if _is_input(n):
            return self._draw(str(n.inputs[0].attrs[0]), n.shape, cast("int", n.attrs[1]))
        return compute(n.op, n.attrs, n.shape, [self._known[i.id] for i in n.inputs])


def _is_input(n: Node) -> bool:
    return n.op == "slice" and n.inputs[0].op == "input"


def compute(op: str, attrs: tuple[object, ...], shape: tuple[int, ...], arrays: list[Array]) -> Array:
    """Evaluate one operation of :mod:`snnc.frontends.onnx.flattening.node`."""
    if op in ELEMENTWISE:
        return apply(op, *arrays)
    x = arrays[0]
    match op:
        case "linear":
            return evaluate_linear(*arrays)
        case "conv" | "pool":
            return evaluate_window(op, attrs, arrays)
        case "reshape":
            return x.reshape(shape)
        case "slice":
            axis, start = cast("tuple[int, int]", attrs)
            return x[(slice(None),) * axis + (slice(start, start + shape[axis]),)]
        case "concat":
            return np.concatenate(arrays, cast("int", attrs[0]))
        case "transpose":
            return x.transpose(cast("tuple[int, ...]", attrs))
        case "expand":
            return np.broadcast_to(x, shape)
        case "put":
            axis, start = cast("tuple[int, int]", attrs)
            result = x.copy()
            result[(slice(None),) * axis + (slice(start, start + arrays[1].shape[axis]),)] = arrays[1]
            return result
        case "pick":
            return cast("Pick", attrs[0]).evaluate(shape, arrays)
        case "reduce":
            kind, axes = cast("tuple[str, tuple[int, ...]]", attrs)
            return summary(kind, x, axes)
    raise ValueError(op)
