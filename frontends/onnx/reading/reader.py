"""Read an ONNX file, check it before its graph is evaluated, and compute a digest of its nodes; any failure gets an error code."""

from __future__ import annotations

import hashlib
import math
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from snnc.compiler.errors import SnncError
from snnc.frontends.common.notes import KEY
from snnc.frontends.onnx.errors import (
    ExternalDataError,
    ForeignOperatorError,
    MalformedGraphError,
    NotFiniteTensorError,
    OnnxLimitError,
    OpsetError,
    TensorError,
    UnforeseenError,
    UnreadableFileError,
)
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, MAX_ELEMENTS, check_size

_MAX_FILE: Final = 2**31
"""Maximum size of a file in bytes."""
_OLDEST_OPSET: Final = 13
_DIGEST: Final = f"{KEY}.structure"
"""Metadata key under which :func:`read_model` stores the digest of the file's nodes before local functions are inlined."""
_ONNX_DOMAINS: Final = ("", "ai.onnx")
_SMALL: Final = 256
"""Maximum number of elements of the external tensors that :func:`read_outline` loads."""


@contextmanager
def refusing(path: Path, what: str, advice: str) -> Iterator[None]:
    """Turn every exception without a code into an error about the file.

    It is an OnnxLimitError if the stack or the memory is exhausted, else an UnforeseenError with `advice` for the user. `what` is what
    failed: "read" or "converted".
    """
    try:
        yield
    except (RecursionError, MemoryError) as error:
        raise OnnxLimitError(f"{path} is nested too deeply or needs more memory than is available ({type(error).__name__}).") from None
    except SnncError:
        raise
    except Exception as error:  # a file with a fault that no check anticipates is refused like any other
        raise UnforeseenError(
            f"{path} cannot be {what} because of an unexpected error ({type(error).__name__}: {str(error)[:120]}); {advice}."
        ) from error


def size_of(path: Path) -> int:
    """Return the size of a file in bytes.

    Refuse, by an UnreadableFileError, what is not a regular file, such as a pipe, from which reading might never end.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFileError(f"{path} is not a regular file; save the model as a regular file.")
    return status.st_size


def read_model(path: Path) -> ModelProto:
    """Return the checked model of a file, with external data loaded and local functions inlined."""
    try:
        size = size_of(path)
        if size > _MAX_FILE:
            raise UnreadableFileError(
                f"{path} has {size:,} bytes, but ONNX files have at most {_MAX_FILE:,}. Use external data for the weights."
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data:
        raise UnreadableFileError(f"{path} is empty; export the model again.")
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError, ValueError):
        raise UnreadableFileError(f"{path} is not an ONNX model, or is truncated ({size:,} bytes); export it again.") from None
    if not model.HasField("graph") or model.ir_version < 1:
        raise UnreadableFileError(f"{path} is not an ONNX model: it has no graph; export it again.")
    _check_opset(model)
    described = any(p.key == KEY for p in model.metadata_props)
    digest = structure(model) if described else ""
    model = _inline(model)
    if described:
        model.metadata_props.add(key=_DIGEST, value=digest)
    _check_graph(model.graph, set(), 0)
    _drop_unused(model.graph)
    for graph in graphs(model.graph):
        for tensor, name in _tensors(graph):
            _load_external(tensor, name, path)
            _check_tensor(tensor, name)
    return model


def read_outline(path: Path) -> ModelProto:
    """Return the model of a file that :func:`read_model` accepts, with local functions inlined, but without large external data.

    ONNX Runtime needs small tensors (shapes and indices) in the model, and itself reads large ones from the model's folder.
    """
    model = _inline(onnx.load(str(path), load_external_data=False))
    for graph in graphs(model.graph):
        for tensor, name in _tensors(graph):
            if math.prod(tensor.dims) <= _SMALL:
                _load_external(tensor, name, path)
    return model


def declared_shapes(model: ModelProto) -> dict[str, tuple[int | str, ...]]:
    """Return the shapes of the inputs that are not constants, with names for dynamic sizes."""
    constant = {t.name for t in model.graph.initializer}
    shapes: dict[str, tuple[int | str, ...]] = {}
    for info in (i for i in model.graph.input if i.name not in constant):
        tensor = info.type.tensor_type
        if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
            raise MalformedGraphError(f"the input '{info.name}' is not a tensor with a declared rank; export it with its shape.")
        shapes[info.name] = tuple(
            int(d.dim_value) if d.HasField("dim_value") else str(d.dim_param) or f"{info.name}.{k}" for k, d in enumerate(tensor.shape.dim)
        )
    if not shapes:
        raise MalformedGraphError("the graph has no input besides its weights.")
    return shapes


def notes_of(model: ModelProto) -> tuple[object, object]:
    """Return the unparsed description of the network in a file written by snnc, and a digest of the file's current nodes.

    Both are None if the file has no description.
    """
    texts = {p.key: p.value for p in model.metadata_props}  # read_model adds its digest last, after any that the file contains
    return texts.get(KEY), texts.get(_DIGEST)


def _check_opset(model: ModelProto) -> None:
    opset = max((int(o.version) for o in model.opset_import if o.domain in _ONNX_DOMAINS), default=0)
    newest = onnx.defs.onnx_opset_version()
    if not opset:
        raise OpsetError("the model declares no opset for ONNX's own operators; export it again.")
    if opset > newest:
        raise OpsetError(
            f"the model uses opset {opset}; the installed onnx {onnx.__version__} supports up to {newest}. Update "
            f"onnx or export with an older opset."
        )
    if opset < _OLDEST_OPSET:
        raise OpsetError(f"the model uses opset {opset}; snnc reads {_OLDEST_OPSET} to {newest}. Export it with a later opset_version.")


def _inline(model: ModelProto) -> ModelProto:
    if not model.functions:
        return model
    from onnx import inliner

    try:
        inlined: ModelProto = inliner.inline_local_functions(model)
    except Exception as error:  # the C++ binding may raise any exception
        raise MalformedGraphError(f"the model's local functions cannot be inlined: {str(error)[:200]}") from None
    return inlined


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and all graphs nested in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def _tensors(graph: GraphProto) -> Iterator[tuple[TensorProto, str]]:
    for tensor in graph.initializer:
        yield tensor, tensor.name
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t, node.name or (node.output[0] if node.output else attribute.name)


def _check_graph(graph: GraphProto, outer: set[str], level: int) -> None:
    """Check names, outputs and nodes of a graph and its nested graphs, which can also read the names in `outer`."""
    if level > 8:
        raise MalformedGraphError(f"the graph '{graph.name}' nests deeper than 8 levels of loops.")
    if level == 0 and not graph.node:
        raise MalformedGraphError("the graph has no nodes, so it computes nothing.")
    if not graph.output:
        raise MalformedGraphError(f"the graph '{graph.name}' has no outputs, so it computes nothing.")
    if graph.sparse_initializer:
        raise TensorError("sparse initializers are not supported; store the weights dense.")
    inputs = [i.name for i in graph.input]
    initializers = [t.name for t in graph.initializer]
    defined = {*inputs, *initializers}
    if len(set(inputs)) < len(inputs):
        raise MalformedGraphError(f"two inputs of the graph '{graph.name}' have the same name.")
    if len(set(initializers)) < len(initializers):
        raise MalformedGraphError(f"two initializers of the graph '{graph.name}' have the same name.")
    computed_by: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in computed_by or name in defined):
                raise MalformedGraphError(f"two values have the name '{name}'; the second comes from a {node.op_type} node.")
            computed_by[name] = k
    visible = outer | defined
    for k, node in enumerate(graph.node):
        _check_node(graph, k, visible, computed_by, level)
        visible.update(o for o in node.output if o)
    missing = [o.name for o in graph.output if o.name not in visible]
    if missing:
        raise MalformedGraphError(f"the output '{missing[0]}' of graph '{graph.name}' is not computed by any node.")


def _check_node(graph: GraphProto, index: int, visible: set[str], computed_by: dict[str, int], level: int) -> None:
    node = graph.node[index]
    where = f"{node.op_type} node '{node.name or (node.output[0] if node.output else index)}'"
    if node.domain not in _ONNX_DOMAINS:
        raise ForeignOperatorError(f"{where} is from the domain '{node.domain}', but snnc only reads ONNX's own operators.")
    if not all(isinstance(text, str) for text in (node.op_type, node.name, *node.input, *node.output)):
        raise UnreadableFileError(f"{where}: its names are not valid text; the file is damaged, export it again.")
    if not onnx.defs.has(node.op_type):
        raise ForeignOperatorError(f"{where}: ONNX does not define an operator '{node.op_type}'.")
    schema = onnx.defs.get_schema(node.op_type)
    if not schema.min_input <= len(node.input) <= schema.max_input:
        raise MalformedGraphError(f"{where} has {len(node.input)} input(s); {node.op_type} has {schema.min_input} to {schema.max_input}.")
    for name in node.input:
        if name and name not in visible:
            if computed_by.get(name, -1) >= index:
                raise MalformedGraphError(
                    f"{where} reads '{name}', which a later node computes: the graph has a cycle, or its nodes are out of order."
                )
            raise MalformedGraphError(f"{where} reads '{name}', which no node, input or initializer defines.")
    for attribute in node.attribute:
        if attribute.HasField("g"):
            _check_graph(attribute.g, visible, level + 1)


def _drop_unused(graph: GraphProto) -> None:
    """Remove initializers that no node reads, so that their data are not loaded."""
    for outer in graphs(graph):
        read = {name for inner in graphs(outer) for node in inner.node for name in node.input}
        read |= {o.name for inner in graphs(outer) for o in inner.output} | {i.name for i in outer.input}
        remaining = [tensor for tensor in outer.initializer if tensor.name in read]
        if len(remaining) < len(outer.initializer):
            del outer.initializer[:]
            outer.initializer.extend(remaining)


def _load_external(tensor: TensorProto, name: str, path: Path) -> None:
    if tensor.data_location != TensorProto.EXTERNAL:
        return
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    if not isinstance(location, str):
        raise ExternalDataError(
            f"the name of the external file of tensor '{name}' is not valid text; the model is damaged, export it again."
        )
    target = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not target.is_relative_to(folder):
        raise ExternalDataError(
            f"the data of tensor '{name}' are in '{location}', outside the model's folder {folder}; snnc does not read it."
        )
    dtype = _dtype(tensor, name)
    needed_bytes = math.prod(tensor.dims) * dtype.itemsize
    check_size(tuple(tensor.dims), f"the tensor '{name}'")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", needed_bytes))
        size = target.stat().st_size
        if offset < 0 or length != needed_bytes or offset + length > size:
            raise ExternalDataError(
                f"the tensor '{name}' of shape {list(tensor.dims)} needs {needed_bytes:,} bytes from byte {offset:,} of '{location}', "
                f"which has {size:,} bytes; the model declares {length:,} bytes for it."
            )
        with target.open("rb") as file:
            file.seek(offset)
            tensor.raw_data = file.read(length)
    except (OSError, ValueError) as error:
        raise ExternalDataError(
            f"the data of tensor '{name}' cannot be read from '{target}': {error}. Keep that file in the model's folder."
        ) from None
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _dtype(tensor: TensorProto, name: str) -> np.dtype[np.generic]:
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, ValueError, TypeError):
        raise TensorError(f"the tensor '{name}' has the unknown data type {tensor.data_type}.") from None


def _check_tensor(tensor: TensorProto, name: str) -> None:
    dtype = _dtype(tensor, name)
    if min(tensor.dims, default=0) < 0:
        raise TensorError(f"the tensor '{name}' has the shape {list(tensor.dims)}, with a negative size.")
    check_size(tuple(tensor.dims), f"the tensor '{name}'", MAX_ELEMENTS if tensor.HasField("raw_data") else MAX_CONSTANT)
    count = math.prod(tensor.dims)
    if tensor.HasField("raw_data") and dtype.itemsize and len(tensor.raw_data) != count * dtype.itemsize and dtype.kind in "fiub":
        raise TensorError(
            f"the tensor '{name}' of shape {list(tensor.dims)} needs {count * dtype.itemsize:,} bytes but has {len(tensor.raw_data):,}."
        )
    if dtype.kind == "f":
        try:
            values = onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise TensorError(f"the tensor '{name}' of shape {list(tensor.dims)} cannot be read: {str(error)[:200]}") from None
        if not np.isfinite(values).all():
            bad = int(values.size - np.isfinite(values).sum())
            raise NotFiniteTensorError(f"the tensor '{name}' has {bad} NaN or infinite value(s) among {values.size}; repair the model.")


# ---- a digest of the nodes, to detect changes of the file ------------------------------------------------------------


def structure(model: ModelProto) -> str:
    """Return a digest of opsets, nodes, functions, and names of inputs and outputs; it ignores initializers, shapes and names of nodes."""
    digest = hashlib.sha256()
    for part in _model_parts(model):
        digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _model_parts(model: ModelProto) -> Iterator[object]:
    yield from sorted((o.domain, o.version) for o in model.opset_import)
    yield from _graph_parts(model.graph)
    for function in model.functions:
        yield function.domain, function.name, list(function.input), list(function.output)
        yield from _node_parts(function.node)


def _graph_parts(graph: GraphProto) -> Iterator[object]:
    yield [i.name for i in graph.input], [o.name for o in graph.output]
    yield from _node_parts(graph.node)


def _node_parts(nodes: Iterable[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield node.domain, node.op_type, list(node.input), list(node.output)
        for a in sorted(node.attribute, key=lambda a: a.name):
            yield a.name, a.type
            if a.type == AttributeProto.GRAPH:
                yield from _graph_parts(a.g)
            elif a.type == AttributeProto.TENSOR:
                yield a.t.SerializeToString(deterministic=True)  # undecoded, because nothing in the file has been checked yet
            else:
                yield a.i, a.f, a.s, list(a.ints), list(a.floats), list(a.strings)
