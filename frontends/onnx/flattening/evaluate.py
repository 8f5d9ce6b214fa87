"""Evaluate nodes of a flattened graph in float64, on random or given inputs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.array_parts import part_of, read_part
from snnc.frontends.common.functions import ELEMENTWISE, apply, reduce_over
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, GatherMap, Node, Shape, check_size
from snnc.frontends.onnx.flattening.shaping import evaluate_layer


class Evaluator:
    """Evaluates nodes in float64 on reproducible random inputs, each node once.

    `axes` contains, by input, an axis such as time: each entry along it is drawn separately, and only if a node reads it.
    """

    def __init__(self, seed: int, axes: Mapping[str, int]) -> None:
        self._seed = seed
        self._axes = axes
        self._known: dict[int, Array] = {}

    def __call__(self, node: Node) -> Array:
        """Return the value of `node`."""
        return _evaluate(node, self._known, self._leaf, lambda n: None)

    def input(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return an input without time axis."""
        return self._draw(name, shape, -1)

    def steps(self, name: str, shape: tuple[int, ...], start: int) -> Array:
        """Return consecutive entries of an input along its axis in `axes`, as many as `shape` has there; zeros before entry 0.

        Without such an axis, return the whole input.
        """
        axis = self._axes.get(name)
        if axis is None:
            return self._draw(name, shape, -1)
        one = (*shape[:axis], 1, *shape[axis + 1 :])
        steps = [self._draw(name, one, t) if t >= 0 else np.zeros(one) for t in range(start, start + shape[axis])]
        return np.concatenate(steps, axis)

    def _draw(self, name: str, shape: tuple[int, ...], t: int) -> Array:
        check_size(shape, f"the input '{name}'", MAX_CONSTANT)
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode()), t + 1])
        return 2.0 * rng.standard_normal(shape)

    def _leaf(self, n: Node) -> Array | None:
        if n.op == "input":
            return self.steps(str(n.attrs[0]), n.shape, 0)
        if n.op == "slice" and n.inputs[0].op == "input":
            name, (axis, start) = str(n.inputs[0].attrs[0]), n.attrs
            return self.steps(name, n.shape, start) if self._axes.get(name) == axis else None
        return None


def _evaluate(root: Node, known: dict[int, Array], leaf: Callable[[Node], Array | None], computed: Callable[[Node], None]) -> Array:
    """Return the value of `root`; store all intermediate values in `known`, and call `computed` after each node computed from operands."""
    stack = [root]
    while stack:
        n = stack[-1]
        if n.id in known:
            stack.pop()
            continue
        value = np.asarray(n.value, np.float64) if n.value is not None else leaf(n)
        if value is not None:
            known[n.id] = value
            continue
        missing = [i for i in n.inputs if i.id not in known]
        if missing:
            stack.extend(missing)
            continue
        known[n.id] = compute(n.op, n.attrs, n.shape, [known[i.id] for i in n.inputs])
        computed(n)
    return known[root.id]


def compute(op: str, attrs: tuple[Any, ...], shape: tuple[int, ...], arrays: list[Array]) -> Array:
    """Evaluate one operation of :mod:`snnc.frontends.onnx.flattening.node`."""
    if op in ELEMENTWISE:
        return apply(op, *arrays)
    x = arrays[0]
    match op:
        case "linear" | "conv" | "pool":
            return evaluate_layer(op, attrs, arrays)
        case "reshape":
            return x.reshape(shape)
        case "slice":
            axis, start = attrs
            return np.asarray(x[(slice(None),) * axis + (slice(start, start + shape[axis]),)])
        case "concat":
            return np.concatenate(arrays, attrs[0])
        case "transpose":
            return x.transpose(attrs)
        case "expand":
            return np.broadcast_to(x, shape)
        case "write_slice":
            axis, start = attrs
            result = x.copy()
            result[(slice(None),) * axis + (slice(start, start + arrays[1].shape[axis]),)] = arrays[1]
            return result
        case "gather":
            gather: GatherMap = attrs[0]
            return gather.evaluate(shape, arrays)
        case "reduce":
            kind, axes = attrs
            return reduce_over(kind, x, axes)
    raise ValueError(op)


class FileReplay:
    """One run of a file's own operations in float64 on the inputs from `feed`.

    `roots` are the nodes whose values :meth:`value` will return, with one entry for each call.
    """

    def __init__(self, roots: Sequence[Node], feed: Feed) -> None:
        self._feed = feed
        self._known: dict[int, Array] = {}
        self._left = {k: uses for k, (_, uses) in use_counts(roots).items()}

    def value(self, root: Node) -> Array:
        """Return the value of one of the roots."""
        value = _evaluate(root, self._known, self._leaf, lambda n: self._drop_used(n.inputs))
        self._drop_used((root,))
        return value

    def _leaf(self, n: Node) -> Array | None:
        if n.op == "input":
            return self._feed.full(str(n.attrs[0]))
        if n.op == "slice" and n.inputs[0].op == "input" and n.inputs[0].id not in self._known:
            name, (axis, start) = str(n.inputs[0].attrs[0]), n.attrs
            if self._feed.inputs.axes.get(name) == axis and n.shape[axis] == 1:
                return self._feed.draw(name, start)
        return None

    def _drop_used(self, nodes: Sequence[Node]) -> None:
        """Count one use of each node, and drop values after their last use, except constants."""
        for n in nodes:
            self._left[n.id] -= 1
            if not self._left[n.id] and n.value is None:
                self._known.pop(n.id, None)


def use_counts(roots: Sequence[Node]) -> dict[int, tuple[Node, int]]:
    """Return `roots` and all nodes that they depend on, by id, each with its number of uses; operands of constants are left out."""
    counts: dict[int, tuple[Node, int]] = {}
    stack = list(roots)
    while stack:
        n = stack.pop()
        known = counts.get(n.id)
        counts[n.id] = (n, 1 if known is None else known[1] + 1)
        if known is None and n.value is None:
            stack.extend(n.inputs)
    return counts


@dataclass(frozen=True)
class Inputs:
    """Time axis of each input that has one, shapes of all inputs, and the number of steps."""

    axes: Mapping[str, int]
    shapes: Mapping[str, Shape]
    steps: int


@dataclass(frozen=True)
class Sample:
    """Random inputs, drawn step by step and reproducibly; their standard deviation is 1.5 for even seeds and 6 for odd ones."""

    seed: int
    inputs: Inputs

    def draw(self, name: str, t: int) -> Array:
        """Return one step of an input, with a time axis of size 1, or an input without time axis."""
        shape, axis = self.inputs.shapes[name], self.inputs.axes.get(name)
        if axis is not None:
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode()), t if axis is not None else 0])
        return (1.5 if self.seed % 2 == 0 else 6.0) * rng.standard_normal(shape)

    def full(self, name: str) -> Array:
        """Return all steps of an input."""
        axis = self.inputs.axes.get(name)
        if axis is None:
            return self.draw(name, 0)
        return np.concatenate([self.draw(name, t) for t in range(self.inputs.shapes[name][axis])], axis)


@dataclass(frozen=True, eq=False)
class CallerInputs:
    """Inputs that the caller provides."""

    arrays: Mapping[str, Array]
    inputs: Inputs

    def draw(self, name: str, t: int) -> Array:
        """See :meth:`Sample.draw`."""
        axis = self.inputs.axes.get(name)
        full = self.full(name)
        return full if axis is None else full[(slice(None),) * axis + (slice(t, t + 1),)]

    def full(self, name: str) -> Array:
        """Return all steps of an input: the array of this name, the part of an array that a name such as ``state[1]`` selects, or zeros."""
        shape, array = self.inputs.shapes[name], self.arrays.get(name)
        part = None if array is not None else part_of(name)
        if part is not None and part[0] in self.arrays:
            array = read_part(self.arrays[part[0]], name)
            array = None if array is None else np.broadcast_to(array, shape) if not array.ndim else array.reshape(shape)
        return np.zeros(shape) if array is None else np.asarray(array, np.float64)


Feed: TypeAlias = Sample | CallerInputs
"""A source of input values."""
