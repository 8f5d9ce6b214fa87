"""Turn tensors inside a model, and inside the bodies of its loops, into outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from snnc.frontends.onnx.flattening.node import Tensor

Path: TypeAlias = tuple[tuple[str, str], ...]
"""Nodes, each by one of its outputs, and the attributes whose graphs lie in one another."""
Key: TypeAlias = tuple[str, Path]
"""A tensor without time: its name, and the graph that it lies in."""
_OTHER: Final = {"then_branch": "else_branch", "else_branch": "then_branch"}


def key_of(tensor: Tensor) -> Key:
    """Return what all trips of a loop and all steps share."""
    return tensor.name, tuple((level.node, level.attribute) for level in tensor.levels)


def expose(model: ModelProto, tensors: Iterable[Tensor]) -> dict[Key, str]:
    """Add tensors to the outputs of `model`, in place; return the name of each output.

    What a body of ``Loop`` or ``Scan`` computes is stacked over the trips along a first axis, for each loop around it.
    """
    exposer = _Exposer(model.graph)
    return {key: exposer.output(key) for key in dict.fromkeys(map(key_of, tensors))}


class _Exposer:
    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._outputs = {o.name for o in graph.output}
        self._makers: dict[Path, Mapping[str, NodeProto]] = {}
        self._count = 0
        self._prefix = "hidden"
        while any(name.startswith(self._prefix) for name in _names(graph)):
            self._prefix += "_"

    def output(self, key: Key) -> str:
        """Return the output that `key` is, a new one where it is none yet."""
        name = self._lift(self._graph, key[0], key[1], ())
        if name not in self._outputs:
            self._outputs.add(name)
            self._graph.output.append(ValueInfoProto(name=name))
        return name

    def _lift(self, graph: GraphProto, name: str, path: Path, above: Path) -> str:
        """Return the name that the tensor, or the stack of its trips, has in `graph`."""
        if not path:
            return name
        (maker, attribute), rest = path[0], path[1:]
        node = self._node(graph, maker, above)
        body = _graph_of(node, attribute)
        inner = self._lift(body, name, rest, (*above, path[0]))
        before = len(body.output) - (node.op_type == "Loop")
        self._add(body, helper.make_node("Cast", [inner], [self._fresh()], to=TensorProto.FLOAT))
        if node.op_type == "If":
            zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
            self._add(_graph_of(node, _OTHER[attribute]), helper.make_node("Constant", [], [self._fresh()], value=zero))
        for a in node.attribute:
            if a.name in ("scan_output_axes", "scan_output_directions"):
                a.ints.append(0)
        node.output.extend([""] * (before - len(node.output)))
        node.output.append(self._fresh())
        return str(node.output[-1])

    def _add(self, body: GraphProto, node: NodeProto) -> None:
        body.node.append(node)
        body.output.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None))

    def _node(self, graph: GraphProto, output: str, at: Path) -> NodeProto:
        if at not in self._makers:
            self._makers[at] = {name: node for node in graph.node for name in node.output if name}
        return self._makers[at][output]

    def _fresh(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


def _graph_of(node: NodeProto, attribute: str) -> GraphProto:
    found: GraphProto = next(a.g for a in node.attribute if a.name == attribute and a.type == AttributeProto.GRAPH)
    return found


def _names(graph: GraphProto) -> Iterable[str]:
    yield from (i.name for i in graph.input)
    yield from (t.name for t in graph.initializer)
    for node in graph.node:
        yield from node.output
        for a in node.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from _names(a.g)
