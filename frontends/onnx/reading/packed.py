"""Separate states that a single-step file packs into one tensor.

A tensor may contain the states of several populations, or a buffer of past values that shifts by one entry per step. The operations
that join the new tensor at the end of a step show its parts. Before the first step, the tensor is joined in the same way from one input
per part, so that each slice of the tensor is a part at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.array_parts import Index, part_name
from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool, Shape

_MAX_VALUES: Final = 1 << 24
"""Maximum number of values of all states together."""
_MAX_DEPTH: Final = 1024
"""Maximum number of steps that a value may remain in a buffer."""


@dataclass(frozen=True, eq=False)
class _Leaf:
    numbers: Array  # index of each value among the values of all states
    source: Array | None  # indices of the values of the previous step that the part copies; None if it is computed


@dataclass(frozen=True, eq=False)
class _Inner:
    """A concatenation of parts along the axis `setting`, or a part that is reshaped to the shape `setting` or transposed in this order."""

    op: str
    setting: Any
    parts: tuple[_Tree, ...]


_Tree: TypeAlias = _Leaf | _Inner


@dataclass(frozen=True, eq=False)
class UnpackedStates:
    """The separated states of a single step."""

    trees: Mapping[str, _Tree]  # structure of each state, by name
    names: Mapping[_Leaf, str | None]  # name of each part's input; None for parts of shifting buffers, which start with zeros
    shapes: Mapping[str, Shape]  # shape of each input in `names`
    buffers: tuple[str, ...]  # states that contain shifting buffers
    depth: int  # number of steps that a value takes to move through the longest buffer

    @property
    def packed(self) -> bool:
        """Whether a tensor contains several parts."""
        return not all(isinstance(tree, _Leaf) for tree in self.trees.values())

    def start(self, pool: NodePool) -> dict[str, Node]:
        """Return the value of each state before the first step."""
        return {name: self._start(pool, tree) for name, tree in self.trees.items()}

    def _start(self, pool: NodePool, tree: _Tree) -> Node:
        match tree:
            case _Leaf(numbers):
                name = self.names[tree]
                return pool.const(np.zeros(numbers.shape, np.float32)) if name is None else pool.input(name, numbers.shape)
            case _Inner(op, setting, parts):
                inner = tuple(self._start(pool, part) for part in parts)
                if op == "concat":
                    return shaping.concat(pool, inner, setting)
                return shaping.reshape(pool, inner[0], setting) if op == "reshape" else shaping.transpose(pool, inner[0], setting)


def unpack_states(pool: NodePool, inputs: Mapping[str, Node], carried: Mapping[str, Node]) -> UnpackedStates | None:
    """Separate packed states; return None if there are none, or if they cannot be separated.

    `inputs` are all inputs of the step, and `carried` contains the new value of each state.
    """
    states = {name: inputs[name] for name in carried}
    if sum(math.prod(n.shape) for n in states.values()) > _MAX_VALUES:
        return None
    numbers: dict[str, Array] = {}
    first = 0
    for name, node in states.items():
        numbers[name] = np.arange(first, first + math.prod(node.shape)).reshape(node.shape)
        first += math.prod(node.shape)
    trees = {name: _tree(joined(pool, carried[name]), state_indices, numbers) for name, state_indices in numbers.items()}
    moves = np.full(first, -1)  # index of the value that each value copies from the previous step
    for tree in trees.values():
        for leaf in _leaves(tree):
            if leaf.source is not None:
                moves[leaf.numbers.reshape(-1)] = leaf.source.reshape(-1)
    moved = np.flatnonzero(moves >= 0)
    buffered = np.zeros(first, bool)
    buffered[moved], buffered[moves[moved]] = True, True
    names: dict[_Leaf, str | None] = {}
    for name, tree in trees.items():
        trees[name] = _named(name, tree, numbers[name], buffered, names)
    shapes = {text: leaf.numbers.shape for leaf, text in names.items() if text is not None}
    buffers = tuple(name for name, tree in trees.items() if any(names[leaf] is None for leaf in _leaves(tree)))
    depth = _depth(moves)
    clash = set(shapes) & (set(inputs) - set(states))  # names of parts that are also names of other inputs
    unpacked = UnpackedStates(trees, names, shapes, buffers, depth)
    return None if clash or depth > _MAX_DEPTH or not (buffers or unpacked.packed) else unpacked


def with_advice(error: OnnxError, pool: NodePool, states: Iterable[str]) -> OnnxError:
    """Return `error`, with the advice to separate states if the step reads parts of states."""
    names = set(states)
    sliced = (str(n.inputs[0].attrs[0]) for n in pool.nodes if n.op == "slice" and n.inputs[0].op == "input")
    listed = ", ".join(f"'{name}'" for name in dict.fromkeys(sliced) if name in names)
    if not listed:
        return error
    return type(error)(
        f"{error.text} The step reads parts of the states {listed}; give each population's state, and each past value, "
        "its own input and output."
    )


def joined(pool: NodePool, node: Node) -> Node:
    """Return `node` with the Concat nodes and written slices along one axis replaced by one Concat, cut alike at every step."""
    if node.op == "write_slice":
        axis, at = node.attrs
        stop = at + node.inputs[1].shape[axis]
        ends = ((0, at), (stop, node.shape[axis] - stop))
        before, after = ([joined(pool, shaping.slice_axis(pool, node, axis, k, size))] if size else [] for k, size in ends)
        return _flat(pool, (*before, node.inputs[1], *after), axis)
    if node.op == "concat":
        return _flat(pool, tuple(joined(pool, n) for n in node.inputs), node.attrs[0])
    if node.op == "reshape":
        return shaping.reshape(pool, joined(pool, node.inputs[0]), node.shape)
    if node.op == "transpose":
        return shaping.transpose(pool, joined(pool, node.inputs[0]), node.attrs)
    return node


def _flat(pool: NodePool, parts: tuple[Node, ...], axis: int) -> Node:
    """Return one Concat of `parts` and of the parts of nested Concats along the same axis.

    Constants (a buffer starts as one constant) are cut into pieces as long as the shortest other part, if this divides their length.
    """
    flat = [n for p in parts for n in (p.inputs if p.op == "concat" and p.attrs[0] == axis else (p,))]
    width = min((n.shape[axis] for n in flat if n.value is None), default=0)
    rows: list[Node] = []
    for n in flat:
        size = width if n.value is not None and width and n.shape[axis] % width == 0 else n.shape[axis]
        rows.extend(shaping.slice_axis(pool, n, axis, k, size) for k in range(0, n.shape[axis], max(1, size)))
    return shaping.concat(pool, tuple(rows) or parts, axis)


def _named(name: str, tree: _Tree, state_indices: Array, buffered: Array, names: dict[_Leaf, str | None]) -> _Tree:
    """Add the parts of a state to `names`; do not divide it if it has only one part, or a part that no index expression selects."""
    undivided = _Leaf(state_indices, None)
    part_names: dict[_Leaf, str | None] = {}
    for leaf in _leaves(tree):
        index = _block(leaf.numbers - state_indices.flat[0], state_indices.shape)
        if buffered[leaf.numbers].any():
            part_names[leaf] = None
        elif index is None or leaf.numbers.size == state_indices.size:
            names[undivided] = name
            return undivided
        else:
            part_names[leaf] = part_name(name, index)
    names.update(part_names)
    return tree


def _tree(node: Node, state_indices: Array, numbers: Mapping[str, Array]) -> _Tree:
    """Return the structure of a state's new value, whose entries have the indices `state_indices` among the values of all states."""
    source = _copied_values(node, numbers)
    if source is not None:
        return _Leaf(state_indices, None if np.array_equal(source, state_indices) else source)
    match node.op:
        case "concat":
            axis = node.attrs[0]
            ends = np.cumsum([p.shape[axis] for p in node.inputs])[:-1]
            rows = zip(node.inputs, np.split(state_indices, ends, axis), strict=True)
            return _Inner("concat", axis, tuple(_tree(p, n, numbers) for p, n in rows))
        case "reshape":
            return _Inner("reshape", node.shape, (_tree(node.inputs[0], state_indices.reshape(node.inputs[0].shape), numbers),))
        case "transpose":
            inverse = np.argsort(node.attrs)
            return _Inner("transpose", node.attrs, (_tree(node.inputs[0], state_indices.transpose(inverse), numbers),))
    return _Leaf(state_indices, None)


def _copied_values(node: Node, numbers: Mapping[str, Array]) -> Array | None:
    """Return the indices of the state values that a node copies unchanged; None for other nodes."""
    if node.op == "input":
        return numbers.get(str(node.attrs[0]))
    if node.op not in ("slice", "reshape", "transpose"):
        return None
    inner = _copied_values(node.inputs[0], numbers)
    if inner is None:
        return None
    if node.op == "slice":
        axis, start = node.attrs
        return inner.take(range(start, start + node.shape[axis]), axis)
    return inner.reshape(node.shape) if node.op == "reshape" else inner.transpose(node.attrs)


def _leaves(tree: _Tree) -> Iterator[_Leaf]:
    if isinstance(tree, _Leaf):
        yield tree
        return
    for part in tree.parts:
        yield from _leaves(part)


def _block(numbers: Array, shape: Shape) -> Index | None:
    """Return the index expression that selects the values `numbers`, in order, from an array of `shape`; None if there is none."""
    places = np.unravel_index(numbers.reshape(-1), shape)
    index: list[int | slice] = []
    for place, size in zip(places, shape, strict=True):
        low, high = int(place.min()), int(place.max()) + 1
        index.append(slice(None) if high - low == size else low if high - low == 1 else slice(low, high))
    while len(index) > 1 and index[-1] == slice(None):
        index.pop()
    block = np.arange(math.prod(shape)).reshape(shape)[tuple(index)]
    return tuple(index) if np.array_equal(block.reshape(-1), numbers.reshape(-1)) else None


def _depth(moves: Array) -> int:
    """Return for how many steps the longest buffer copies a value; more than `_MAX_DEPTH` if values are copied in a circle."""
    depth, places = 0, np.flatnonzero(moves >= 0)
    while places.size and depth <= _MAX_DEPTH:
        places = moves[places]
        places, depth = places[moves[places] >= 0], depth + 1
    return depth
