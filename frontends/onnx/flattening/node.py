"""Values of a flattened ONNX graph: nodes with an operation, operands and a shape. A node pool contains equal nodes once.

::

    op = input(name) | const | elementwise (common/functions.py) | linear | conv | pool | reshape | slice | concat | transpose | expand
         | reduce | write_slice | gather | floor | ceil | round | parameter | softmax

Exporters fold constants, mostly in the first time step. So that this step still matches the others, some constants keep their operation
and operands in addition to their value: comparisons, and floating-point constants computed by an elementwise operation, `linear`, `conv`
or `pool`, or reshaped from such a constant.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.frontends.onnx.errors import OnnxLimitError

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

MAX_TRIPS: Final = 20_000
"""Maximum number of unrolled steps."""
MAX_NODES: Final = 2_000_000
MAX_CONSTANT: Final = 2**26
"""Maximum number of elements of a computed constant."""
MAX_ELEMENTS: Final = 2**31
"""Maximum number of elements of any value."""


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """One value. Nodes of a pool with the same operation, settings, operands and shape are the same object.

    `attrs` are the settings of the operation, such as the axis and start of a slice, and `inputs` its operands.
    """

    id: int  # index in the pool; operands have lower ones
    op: str
    attrs: tuple[Any, ...]
    inputs: tuple[Node, ...]
    shape: Shape
    value: Array | None
    """The value itself, if it is constant; else None."""
    depth: int  # 0 for a constant without operands; 1 for an input; else one more than the largest depth of an operand

    def __repr__(self) -> str:
        return f"<{self.id} {self.op}{self.attrs or ''} {self.shape}>"

    @property
    def signature(self) -> tuple[Any, ...]:
        """What the nodes of one operation at different time steps have in common."""
        return (self.op, self.attrs, self.shape, len(self.inputs))


class SubgraphRun(NamedTuple):
    """One run of a nested graph: an output of the node that contains the graph, the node's attribute with the graph, and the iteration."""

    node: str
    attribute: str
    trip: int


class Tensor(NamedTuple):
    """A tensor of the file: its name, the runs of nested graphs that contain it, and its step if the file is a single step."""

    name: str
    levels: tuple[SubgraphRun, ...]
    step: int | None


class NodePool:
    """All nodes of one flattened graph, without duplicates.

    `time_axes` contains the time axis of each input that is known to have one.
    """

    def __init__(self, time_axes: Mapping[str, int] | None = None) -> None:
        self.time_axes = time_axes or {}
        self.nodes: list[Node] = []
        self.folded = False
        """Whether constants were combined in advance, as for a batch normalisation, so that rounding differs from the file's."""
        self.slices: dict[tuple[int, int, int, int], Node] = {}
        """Slices by (id of the node, axis, start, size)."""
        self.tensors: dict[int, Tensor] = {}
        """First tensor of the file with this value, by node id; constants have no entry, and other nodes may have none."""
        self._table: dict[Hashable, Node] = {}

    def make(self, op: str, inputs: tuple[Node, ...], shape: Shape, attrs: tuple[Any, ...] = (), value: Array | None = None) -> Node:
        """Return the node for `op` on `inputs`, which is created if it does not exist."""
        key = (op, attrs, tuple(n.id for n in inputs), shape)
        node = self._table.get(key)
        if node is None:
            depth = 1 + max((n.depth for n in inputs), default=0)
            node = self._table[key] = self._append(op, attrs, inputs, shape, value, depth)
        return node

    def const(self, value: Array) -> Node:
        """Return the node of a constant; equal constants are one node."""
        data = np.ascontiguousarray(value).tobytes()
        digest = data if len(data) <= 64 else hashlib.sha256(data).digest()
        key = ("const", value.dtype.str, value.shape, digest)
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self._append("const", (), (), value.shape, value, 0)
        return node

    def number(self, value: float) -> Node:
        """Return the node of a scalar constant in float32."""
        return self.const(np.array(value, np.float32))

    def derived(self, name: str, source: Node, make: Callable[[Array], Array]) -> Node:
        """Return the constant ``make(source.value)``, computed once per `name` and `source`."""
        assert source.value is not None, "the caller checks that it is a constant"
        key = ("derived", name, source.id)
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self.const(make(source.value))
        return node

    def find(self, op: str, inputs: tuple[Node, ...], shape: Shape, attrs: tuple[Any, ...] = ()) -> Node | None:
        """Return the node that :meth:`make` would return if it exists; else None."""
        return self._table.get((op, attrs, tuple(n.id for n in inputs), shape))

    def input(self, name: str, shape: Shape) -> Node:
        """Return the node of an input of the graph."""
        check_size(shape, f"the input '{name}'")
        return self.make("input", (), shape, (name,))

    def _append(self, op: str, attrs: tuple[Any, ...], inputs: tuple[Node, ...], shape: Shape, value: Array | None, depth: int) -> Node:
        if len(self.nodes) >= MAX_NODES:
            raise OnnxLimitError(
                f"the unrolled graph has more than {MAX_NODES} nodes; export a single step, or the same model with fewer steps."
            )
        node = Node(len(self.nodes), op, attrs, inputs, shape, value, depth)
        self.nodes.append(node)
        return node


def check_size(shape: Shape, what: str, limit: int = MAX_ELEMENTS) -> None:
    """Refuse a shape of more than `limit` elements by an OnnxLimitError, before memory is allocated."""
    if math.prod(shape) > limit:
        raise OnnxLimitError(f"{what} has the shape {list(shape)}, {math.prod(shape):,} elements, more than the maximum of {limit:,}.")


@dataclass(frozen=True, eq=False)
class GatherMap:
    """The source of each value of a gather, for one sample.

    `batches` are the batch axes of the sources, and `batch` is that of the result.
    """

    index: Array  # index of each value in the concatenated values of all sources; -1 for a constant
    fill: Array | None  # array read where `index` is -1; None without constants
    batches: tuple[int | None, ...]
    batch: int | None

    @property
    def plain(self) -> bool:
        """Whether the result is the concatenated values of all sources, in order."""
        return self.fill is None and np.array_equal(self.index, np.arange(self.index.size))

    def evaluate(self, shape: Shape, arrays: list[Array]) -> Array:
        """Return the values, in `shape`, gathered from the sources."""
        rows = [
            a.reshape(1, -1) if axis is None else np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1)
            for a, axis in zip(arrays, self.batches, strict=True)
        ]
        count = max(r.shape[0] for r in rows)
        joined = np.concatenate([np.broadcast_to(r, (count, r.shape[1])) for r in rows], 1)
        taken = joined[:, self.index]
        if self.fill is not None:
            taken = np.where(self.index < 0, self.fill, taken)
        if self.batch is None:
            return np.asarray(taken.reshape(shape) if taken.size == math.prod(shape) else np.broadcast_to(taken, shape))
        rest = tuple(d for k, d in enumerate(shape) if k != self.batch)
        return np.moveaxis(taken.reshape(count, *rest), 0, self.batch)
