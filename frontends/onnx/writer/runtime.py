"""Run ONNX files in ONNX Runtime, which shares no code with snnc, and return their outputs and hidden tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from snnc.compiler.errors import ToolMissingError
from snnc.compiler.ir.graph import Array, Graph, Input
from snnc.frontends.onnx.flattening.node import Tensor
from snnc.frontends.onnx.reading.reader import graphs, read_outline
from snnc.frontends.onnx.writer.errors import RuntimeInputError, RuntimeRefusesError

_EXTERNAL: Final = "session.model_external_initializers_file_folder_path"
"""ONNX Runtime's setting for the folder of external weights."""


class RuntimeModel:
    """A file loaded in ONNX Runtime, which returns the hidden `tensors` in addition to the outputs.

    `graph`, which snnc read from the file, defines which inputs are data, and which axes are time. `carried` contains, for a single step,
    the output with the new value of each state, by state input. A missing ONNX Runtime raises a ToolMissingError; a file that it cannot
    load, a RuntimeRefusesError.
    """

    def __init__(self, path: Path, graph: Graph, tensors: Sequence[Tensor] = (), carried: Mapping[str, str] | None = None) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ToolMissingError("snnc needs ONNX Runtime to run the file, but it is not installed; pip install onnxruntime.") from None
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4  # log fatal errors only; every error also raises an exception
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Fused operators round differently from the file's separate ones.
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.exposed: Mapping[Key, str] = {}
        """Name of the output that contains a hidden tensor, by the tensor's key."""
        try:
            source: str | bytes = str(path)
            original: set[str] | None = None
            if tensors:
                settings.add_session_config_entry(_EXTERNAL, str(path.resolve().parent))
                model = read_outline(path)
                original = {o.name for o in model.graph.output}
                self.exposed = expose(model, tensors)
                source = model.SerializeToString()
            self._session = onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # the bindings raise their own exception classes
            raise RuntimeRefusesError(f"ONNX Runtime does not load {str(path)!r}: {_first_line(error)}") from None
        self.shapes: dict[str, list[int | str | None]] = {i.name: list(i.shape) for i in self._session.get_inputs()}
        self._fetched: list[str] = [o.name for o in self._session.get_outputs()]
        self.outputs: list[str] = [name for name in self._fetched if original is None or name in original]
        self.data: dict[str, Input] = dict(graph.of_type(Input))
        self.states = [name for name in self.shapes if name not in self.data]
        self._carried = carried or {}

    @property
    def stepwise(self) -> bool:
        """Whether the file is one time step, with inputs that lack the graph's time axis."""
        return any(
            i.layout.time_axis is not None and len(self.shapes.get(name, ())) < len(i.shape) + 1 + (i.layout.batch_axis is not None)
            for name, i in self.data.items()
        )

    def run(self, arrays: Mapping[str, Array], batch: int) -> dict[str, Array]:
        """Run sequences in the layout of the graph; states that are not in `arrays` start at zero.

        A single step runs once per step, with its new states fed back; its results are stacked along the first axis. Return outputs
        and hidden tensors by name. A missing array or a wrong shape raises a RuntimeInputError; a failed run, a RuntimeRefusesError.
        """
        check_names(self.data, arrays)
        feeds = {name: np.asarray(arrays[name], np.float32) for name in self.data}
        zeros = {name: np.zeros([size if isinstance(size, int) else batch for size in self.shapes[name]]) for name in self.states}
        states = {name: np.asarray(arrays.get(name, zeros[name]), np.float32) for name in self.states}
        if not self.stepwise:
            return self._call({**feeds, **states})
        times = {name: self.data[name].layout.time_axis for name in feeds}
        lengths = {a.shape[axis] for name, a in feeds.items() if (axis := times[name]) is not None}
        if len(lengths) != 1:
            raise RuntimeInputError(f"the inputs have {', '.join(map(str, sorted(lengths)))} steps; give all of them the same number.")
        rows: list[dict[str, Array]] = []
        lost = [name for name in self.states if name not in self._carried]
        if lost:
            raise RuntimeInputError(f"no output of the file continues the state {', '.join(lost)}, so its steps cannot run one by one.")
        for t in range(lengths.pop()):
            current = {name: a if (axis := times[name]) is None else np.take(a, t, axis) for name, a in feeds.items()}
            row = self._call({**current, **states})
            states = {name: row[self._carried[name]] for name in self.states}
            rows.append(row)
        return {name: np.stack([row[name] for row in rows]) for name in self._fetched}

    def _call(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        for name, array in feeds.items():
            declared = self.shapes.get(name)
            if declared is None:
                raise RuntimeInputError(f"the file has no input {name!r}; it has {', '.join(self.shapes)}.")
            check_shape(name, array.shape, declared)
        try:
            values = self._session.run(self._fetched, dict(feeds))
        except Exception as error:  # the bindings raise their own exception classes
            raise RuntimeRefusesError(
                f"ONNX Runtime fails on the file: {_first_line(error)} (Perhaps the file runs only with numbers of samples or "
                f"steps that differ from the declared ones.)"
            ) from None
        return dict(zip(self._fetched, map(np.asarray, values), strict=True))


def check_names(inputs: Iterable[str], arrays: Iterable[str]) -> None:
    """Raise a RuntimeInputError if one of `inputs` has no array."""
    missing = [name for name in inputs if name not in arrays]
    if missing:
        raise RuntimeInputError(f"the data lack {', '.join(missing)}; the inputs of the model are {', '.join(inputs)}.")


def check_shape(name: str, shape: Sequence[int], declared: Sequence[int | str | None]) -> None:
    """Raise a RuntimeInputError if an array does not have the declared shape of a file's input; sizes that are not numbers are open."""
    if len(shape) != len(declared) or any(isinstance(w, int) and w != n for n, w in zip(shape, declared, strict=True)):
        raise RuntimeInputError(f"the input {name!r} of the file has the shape {list(declared)}, but the array has {list(shape)}.")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


_GraphPath: TypeAlias = tuple[tuple[str, str], ...]
"""Path to a nested graph: for each level, an output of the node that contains the graph, and the node's attribute."""
Key: TypeAlias = tuple[str, _GraphPath]
"""A tensor at all steps: its name, and the path to the graph that computes it."""
_OTHER_BRANCH: Final = {"then_branch": "else_branch", "else_branch": "then_branch"}


def key_of(tensor: Tensor) -> Key:
    """Return the key of a tensor, which is the same in all iterations and steps."""
    return tensor.name, tuple((level.node, level.attribute) for level in tensor.levels)


def expose(model: ModelProto, tensors: Iterable[Tensor]) -> dict[Key, str]:
    """Add tensors to the outputs of `model`, in place, and return the name of each output.

    Tensors in the body of a ``Loop`` or ``Scan`` are stacked along a new first axis over its iterations, once per enclosing loop.
    """
    exposer = _Exposer(model.graph)
    return {key: exposer.output(key) for key in dict.fromkeys(map(key_of, tensors))}


class _Exposer:
    """Adds tensors of nested graphs to the outputs of the main graph."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._outputs = {o.name for o in graph.output}
        self._makers: dict[_GraphPath, Mapping[str, NodeProto]] = {}
        self._count = 0
        self._prefix = "hidden"
        while any(name.startswith(self._prefix) for name in _names(graph)):
            self._prefix += "_"

    def output(self, key: Key) -> str:
        name = self._lift(self._graph, key[0], key[1], ())
        if name not in self._outputs:
            self._outputs.add(name)
            self._graph.output.append(ValueInfoProto(name=name))
        return name

    def _lift(self, graph: GraphProto, name: str, path: _GraphPath, above: _GraphPath) -> str:
        """Add outputs that pass a tensor up along `path`; return its name in `graph`, or that of its values stacked over iterations."""
        if not path:
            return name
        (maker, attribute), rest = path[0], path[1:]
        node = self._node(graph, maker, above)
        body = _graph_of(node, attribute)
        inner = self._lift(body, name, rest, (*above, path[0]))
        before = len(body.output) - (node.op_type == "Loop")  # the first output of a Loop's body is its condition
        self._add(body, helper.make_node("Cast", [inner], [self._fresh()], to=TensorProto.FLOAT))
        if node.op_type == "If":  # both branches must have the same number of outputs
            zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
            self._add(_graph_of(node, _OTHER_BRANCH[attribute]), helper.make_node("Constant", [], [self._fresh()], value=zero))
        for a in node.attribute:
            if a.name in ("scan_output_axes", "scan_output_directions"):
                a.ints.append(0)
        node.output.extend([""] * (before - len(node.output)))
        node.output.append(self._fresh())
        return str(node.output[-1])

    def _add(self, body: GraphProto, node: NodeProto) -> None:
        body.node.append(node)
        body.output.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None))

    def _node(self, graph: GraphProto, output: str, at: _GraphPath) -> NodeProto:
        if at not in self._makers:
            self._makers[at] = {name: node for node in graph.node for name in node.output if name}
        return self._makers[at][output]

    def _fresh(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


def _graph_of(node: NodeProto, attribute: str) -> GraphProto:
    nested: GraphProto = next(a.g for a in node.attribute if a.name == attribute and a.type == AttributeProto.GRAPH)
    return nested


def _names(graph: GraphProto) -> Iterable[str]:
    for inner in graphs(graph):
        yield from (i.name for i in (*inner.input, *inner.initializer))
        yield from (name for node in inner.node for name in node.output)
