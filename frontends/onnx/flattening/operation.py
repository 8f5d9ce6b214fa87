"""Parse ONNX graphs once into plain data, so that loop bodies can run many times."""

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
    opset: int = 0


def tensor(proto: TensorProto, where: str) -> Array:
    """Return the array of a tensor whose values are in the model (external data must have been loaded).

    float64 and float16 are converted to float32.

    Raises
    ------
    TensorError
        The data do not match the shape, or the type is unsupported.
    """
    try:
        array: Array = onnx.numpy_helper.to_array(proto)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise TensorError(f"the tensor '{where}' of shape {list(proto.dims)[:8]} cannot be read: {str(error)[:200]}") from None
    if array.dtype.kind not in "fiub":
        raise TensorError(f"the tensor '{where}' has {array.dtype} values; snnc reads floating-point, integer and boolean values.")
    return array.astype(np.float32) if array.dtype in (np.float64, np.float16) else array


def parse(graph: GraphProto, opset: int) -> Subgraph:
    """Parse a graph and its subgraphs."""
    return Subgraph(
        graph.name,
        tuple(i.name for i in graph.input),
        tuple(o.name for o in graph.output),
        {t.name: tensor(t, t.name) for t in graph.initializer},
        tuple(_operation(node, opset) for node in graph.node),
        opset,
    )


def _operation(node: NodeProto, opset: int) -> OnnxOperation:
    attributes = {a.name: _attribute(a, node, opset) for a in node.attribute}
    return OnnxOperation(node.op_type, node.name, tuple(node.input), tuple(node.output), attributes)


def _attribute(a: AttributeProto, node: NodeProto, opset: int) -> Any:
    """Return the value of an attribute as a Python value, an array or a graph."""
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
            return tensor(a.t, node.name or a.name)
        case AttributeProto.GRAPH:
            return parse(a.g, opset)
    return None
