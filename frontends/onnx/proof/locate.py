"""Find the tensor of a file, or the slice of one, that equals a node of the flattened file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final

from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool, Tensor

_TRIES: Final = 20_000
"""Pieces of tensors over the whole sequence that are tried for all values."""
_MOVES: Final = (0, 1, -1)
"""Maximum number of steps by which the recovered step may have moved a value in time."""


@dataclass(frozen=True)
class TensorPlace:
    """A tensor of the file, or piece `part` of its `parts` equal pieces along `axis`."""

    tensor: Tensor
    axis: int = 0
    part: int = 0
    parts: int = 1

    def pick(self, value: Array, stepwise: bool) -> Array:
        """Return this place in a run's result for the tensor: steps first, then the iterations of the loops around it."""
        tensor = self.tensor
        if stepwise:
            value = value[tensor.step or 0]
        for level in tensor.levels:
            if level.attribute == "body":
                value = value[level.trip]
        if self.parts == 1:
            return value
        size = value.shape[self.axis] // self.parts
        return value[(slice(None),) * self.axis + (slice(self.part * size, (self.part + 1) * size),)]


class Locator:
    """Places of nodes; those of one step are searched in tensors of that step, then in those over the whole sequence."""

    def __init__(self, pool: NodePool, steps: int) -> None:
        self._pool = pool
        self._steps = steps
        self._tensors: dict[int, Tensor] = {}
        self._by_size: dict[int, list[tuple[Node, Tensor]]] = {}
        for id_, tensor in pool.tensors.items():
            if any(not level.node for level in tensor.levels):
                continue
            node = pool.nodes[id_]
            self._tensors.setdefault(_plain(node).id, tensor)
            self._by_size.setdefault(_size(node), []).append((node, tensor))
        self._last: tuple[Node, Tensor, int, int] | None = None
        self._tries = _TRIES

    def find(self, node: Node, t: int) -> TensorPlace | None:
        """Return the place of `node`, the value of step `t`, in the file; None if there is none."""
        tensor = self._tensors.get(_plain(node).id)
        if tensor is not None:
            return TensorPlace(tensor)
        last = [] if self._last is None else [self._last]
        whole = (
            (n, at, axis, d) for n, at in self._by_size.get(_size(node) * self._steps, ()) for axis in range(len(n.shape)) for d in _MOVES
        )
        for source, at, axis, moved in chain(last, whole):
            if self._tries == 0:
                break
            self._tries -= 1
            fits = source.shape[axis] % self._steps == 0 and 0 <= t + moved < self._steps
            if fits and self._is_piece(source, axis, t + moved, node):
                self._last = (source, at, axis, moved)
                return TensorPlace(at, axis, t + moved, self._steps)
        return None

    def _is_piece(self, source: Node, axis: int, t: int, node: Node) -> bool:
        size = source.shape[axis] // self._steps
        try:
            return _plain(shaping.cut(self._pool, source, axis, t * size, size)) is _plain(node)
        except OnnxError:
            return False


def _plain(node: Node) -> Node:
    return node.inputs[0] if node.op == "reshape" else node


def _size(node: Node) -> int:
    size = 1
    for d in node.shape:
        size *= d
    return size
