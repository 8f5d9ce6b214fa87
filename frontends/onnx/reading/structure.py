"""A hash of an ONNX file without its weights, which shows whether somebody changed the nodes of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto


def structure(model: ModelProto) -> str:
    """Return a digest of nodes, functions, and names of inputs and outputs, without initializers, shapes and names of nodes."""
    found = hashlib.sha256()
    for part in _model(model):
        found.update(repr(part).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def _model(model: ModelProto) -> Iterator[object]:
    yield from sorted((o.domain, o.version) for o in model.opset_import)
    yield from _graph(model.graph)
    for function in model.functions:
        yield function.domain, function.name, list(function.input), list(function.output)
        yield from _nodes(function.node)


def _graph(graph: GraphProto) -> Iterator[object]:
    yield [i.name for i in graph.input], [o.name for o in graph.output]
    yield from _nodes(graph.node)


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield node.domain, node.op_type, list(node.input), list(node.output)
        for attribute in sorted(node.attribute, key=lambda a: a.name):
            yield attribute.name, attribute.type
            yield from _attribute(attribute)


def _attribute(a: AttributeProto) -> Iterator[object]:
    if a.type == AttributeProto.GRAPH:
        yield from _graph(a.g)
    elif a.type == AttributeProto.TENSOR:
        yield a.t.SerializeToString(deterministic=True)  # as it is: nothing of the file has been checked yet
    else:
        yield a.i, a.f, a.s, list(a.ints), list(a.floats), list(a.strings)
