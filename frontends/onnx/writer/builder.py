"""Nodes, names and constants of an ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from snnc.compiler.ir.graph import Array, Shape

_SHARED = 64
"""Size in bytes up to which equal constants are stored once."""


@dataclass(frozen=True)
class StepTensor:
    """A tensor of the step: [B, *shape], or [*shape] if not `batched` (parameters and values computed from them).

    If the tensor is the result of a comparison, `truth` is the name of a boolean tensor with the same values, which Where can read.
    """

    name: str
    shape: Shape
    batched: bool = True
    truth: str | None = None


class Names:
    """Unique names for one file."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)

    def fresh(self, hint: str) -> str:
        """Return `hint`, with a number appended if it is taken."""
        name, number = hint, 1
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name


class Constants:
    """Constant arrays of the file; small equal arrays are stored once."""

    def __init__(self, names: Names) -> None:
        self.arrays: dict[str, Array] = {}
        self.fields: dict[tuple[str, str], str] = {}
        """Name of the array, by (node, field of the node) of the graph; the description in the file's metadata refers to it."""
        self._names = names
        self._known: dict[tuple[object, ...], str] = {}

    def floats(self, value: npt.ArrayLike, hint: str) -> str:
        """Add `value` as float32 and return its name."""
        return self._add(np.asarray(value, dtype=np.float32), hint)

    def integers(self, value: npt.ArrayLike, hint: str = "indices") -> str:
        """Add `value` as int64 and return its name."""
        return self._add(np.asarray(value, dtype=np.int64), hint)

    def field_array(self, value: npt.ArrayLike, node: str, field: str) -> str:
        """Add a field of a graph node as float32, without sharing it, and return its name."""
        name = self._names.fresh(f"{node}.{field.rpartition('.')[2]}")
        self.arrays[name] = np.asarray(value, dtype=np.float32)
        self.fields[node, field] = name
        return name

    def drop_unused(self, nodes: Iterable[NodeProto]) -> None:
        """Remove constants that no node in `nodes` reads."""
        used = {name for node in nodes for name in node.input}
        self.arrays = {name: array for name, array in self.arrays.items() if name in used}
        self.fields = {field: name for field, name in self.fields.items() if name in used}

    def _add(self, array: Array, hint: str) -> str:
        key = (array.dtype.str, array.shape, array.tobytes()) if array.nbytes <= _SHARED else (hint, len(self.arrays))
        if key not in self._known:
            self._known[key] = name = self._names.fresh(hint)
            self.arrays[name] = array
        return self._known[key]


class Builder:
    """Nodes of a graph under construction: the main graph, or the body of its loop."""

    def __init__(self, names: Names, constants: Constants) -> None:
        self.names = names
        self.constants = constants
        self.nodes: list[NodeProto] = []

    def node(self, operator: str, *inputs: str, out: str | None = None, hint: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return its name: exactly `out`, or a new one derived from `hint`."""
        name = out if out is not None else self.names.fresh(hint or operator.lower())
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attributes))
        return name

    def shaped(self, value: StepTensor, shape: Shape) -> StepTensor:
        """Return `value` in `shape`, with a Reshape if needed."""
        if value.shape == shape:
            return value
        target = self.constants.integers([-1, *shape] if value.batched else list(shape), "shape")
        return StepTensor(self.node("Reshape", value.name, target, hint=f"{value.name}_reshaped"), shape, value.batched)

    def total(self, values: list[StepTensor], shape: Shape) -> StepTensor:
        """Return the sum of `values`, each reshaped to `shape` and added in order."""
        result = self.shaped(values[0], shape)
        for other in values[1:]:
            result = StepTensor(self.node("Add", result.name, self.shaped(other, shape).name, hint="sum"), shape)
        return result
