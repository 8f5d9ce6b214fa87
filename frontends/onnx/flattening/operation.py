"""ONNX graphs as plain data, parsed once so that loop bodies can run many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from snnc.frontends.onnx.errors import TensorError
from snnc.frontends.onnx.flattening.node import Array


@dataclass(frozen=True, eq=False)
class OnnxOperation:
    """One ONNX node; its attributes are Python values, arrays or :class:`Subgraph`."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    @property
    def where(self) -> str:
        """Name of the node in messages."""
        return f"{self.op} node '{self.name or (self.outputs[0] if self.outputs else '?')}'"


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A parsed graph: constants by name, and operations in order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Array]
    operations: tuple[OnnxOperation, ...]


def _tensor(proto: TensorProto, where: str) -> Array:
    """Return the array of a tensor whose external data have been loaded, with float64 and float16 converted to float32."""
    try:
        array: Array = onnx.numpy_helper.to_array(proto)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise TensorError(f"the tensor '{where}' of shape {list(proto.dims)[:8]} cannot be read: {str(error)[:200]}") from None
    if array.dtype.kind not in "fiub":
        raise TensorError(f"the tensor '{where}' has {array.dtype} values; snnc reads floating-point, integer and boolean values.")
    return array.astype(np.float32) if array.dtype in (np.float64, np.float16) else array


def parse(graph: GraphProto) -> Subgraph:
    """Parse a graph and its nested graphs."""
    return Subgraph(
        graph.name,
        tuple(i.name for i in graph.input),
        tuple(o.name for o in graph.output),
        {t.name: _tensor(t, t.name) for t in graph.initializer},
        tuple(_operation(node) for node in graph.node),
    )


def _operation(node: NodeProto) -> OnnxOperation:
    attributes = {a.name: _attribute(a, node) for a in node.attribute}
    return OnnxOperation(node.op_type, node.name, tuple(node.input), tuple(node.output), attributes)


def _attribute(a: AttributeProto, node: NodeProto) -> Any:
    match a.type:
        case AttributeProto.INT:
            return a.i
        case AttributeProto.FLOAT:
            return a.f
        case AttributeProto.STRING:
            return a.s.decode("utf-8", "replace")
        case AttributeProto.INTS:
            return tuple(a.ints)
        case AttributeProto.FLOATS:
            return tuple(a.floats)
        case AttributeProto.STRINGS:
            return tuple(s.decode("utf-8", "replace") for s in a.strings)
        case AttributeProto.TENSOR:
            return _tensor(a.t, node.name or a.name)
        case AttributeProto.GRAPH:
            return parse(a.g)
    return None
