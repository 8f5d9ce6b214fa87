"""Write a graph as an ONNX file, completely or not at all, with large weights in a second file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from onnx import ModelProto, StringStringEntryProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Array, FileLayout, Graph, Input, Output, Population, Shape, StateRef
from snnc.compiler.ir.verify import verify
from snnc.frontends.common.notes import KEY, describe
from snnc.frontends.onnx.reading.reader import structure
from snnc.frontends.onnx.writer.builder import Builder, Constants, Names, StepTensor
from snnc.frontends.onnx.writer.equations import DOMAIN, DOMAIN_VERSION, neuron_functions
from snnc.frontends.onnx.writer.errors import (
    CheckerError,
    NameClashError,
    OnnxFileError,
    OpenTimeError,
    UnknownFormError,
    WeightsTooLargeError,
)
from snnc.frontends.onnx.writer.operations import reduction
from snnc.frontends.onnx.writer.step import ScanBody, full_shape

OPSET: Final = 17
IR_VERSION: Final = 8
"""Versions of ONNX's operators and of its file format that snnc writes."""
Form: TypeAlias = Literal["plain", "functions"]
_INSIDE: Final = (1 << 31) - (1 << 24)
"""Maximum size in bytes of all weights together inside the model file; protobuf is limited to 2 GiB."""
_SMALL: Final = 1024
"""Size in bytes up to which arrays, such as shapes and indices, always stay in the model file."""


def write_onnx(graph: Graph, path: str | Path, *, form: Form = "plain", states: bool = False, inside: int = _INSIDE) -> list[Path]:
    """Write `graph` as an ONNX model: one ``Scan`` over the time steps.

    Inputs and outputs keep their names and layouts. The batch size is open if an input has a batch axis; the number of steps is open unless
    the graph fixes it. Properties that ONNX cannot express (surrogates, ``detach``, learnable parameters, names) are stored in a
    description in the metadata, from which :func:`snnc.frontends.onnx.load.load_onnx` restores the same graph.

    Parameters
    ----------
    graph
        The network, from any frontend.
    path
        The file; it is written completely or not at all.
    form
        "plain": only ONNX's own operators. "functions": each population is one node of the domain ``ai.snnc``, defined in the same file as
        a function of ONNX's own operators.
    states
        Whether to add an input ``"population.state"``, [batch, *shape], for the initial value of every state of every population.
        The states in ``graph.state_inputs`` are always inputs.
    inside
        Maximum size in bytes of all weights together inside the file; if they are larger, they are written to a second file, ``path``
        followed by ``.data``.

    Returns
    -------
    list
        The written files, the model last.

    Raises
    ------
    OnnxWriteError
        The network cannot be written, or not to this path.
    GraphError
        The network is invalid.
    """
    if form not in get_args(Form):
        raise UnknownFormError(f"the form {form!r} is unknown; choose one of {', '.join(get_args(Form))}.")
    if states:
        graph = graph.copy()
        known = set(graph.state_inputs.values())
        refs = [StateRef(name, state) for name, p in graph.of_type(Population) for state in p.model.states]
        graph.state_inputs |= {f"{ref.node}.{ref.name}": ref for ref in refs if ref not in known}
    writer = _ModelWriter(graph, form)
    return _save(writer.model(), writer.constants.arrays, Path(path), inside)


@dataclass(frozen=True)
class _Recorded:
    """One output of the loop: its name, its result in the body, its value, and the axis along which the steps are stacked."""

    name: str
    result: str
    value: StepTensor
    time: int


class _ModelWriter:
    def __init__(self, graph: Graph, form: Form) -> None:
        self.graph = graph
        self.neurons = neuron_functions(graph, OPSET) if form == "functions" else []
        self.ports = verify(graph)
        self.inputs: dict[str, Input] = dict(graph.of_type(Input))
        self.outputs: dict[str, Output] = dict(graph.of_type(Output))
        self.names = Names([])
        for name in (*self.inputs, *self.outputs, *graph.state_inputs):
            if self.names.fresh(name) != name:
                raise NameClashError(f"two inputs, outputs or states of {graph.name!r} are called {name!r}; ONNX needs different names.")
        self.constants = Constants(self.names)
        self.main = Builder(self.names, self.constants)
        self.body = Builder(self.names, self.constants)
        self.batched = any(i.layout.batch_axis is not None for i in self.inputs.values())
        self.batch_dim: int | str = "batch" if self.batched else 1
        self.time_dim: int | str = graph.steps or "steps"
        """Declared sizes of batch and time axes; a name for an open size."""

    def model(self) -> ModelProto:
        """Return the model without its initializers."""
        timed = [name for name, i in self.inputs.items() if i.layout.time_axis is not None]
        if not timed and self.graph.steps is None:
            raise OpenTimeError(
                f"no input of {self.graph.name!r} has a time axis and its number of steps is open, so the loop has no length; give steps."
            )
        batch = self._batch()
        slices = {name: self.names.fresh(f"{name}.now") for name in timed}
        inputs = {name: self._input(name, slices.get(name), batch) for name in self.inputs}
        step = ScanBody(self.graph, self.ports, self.main, self.body, batch, self._starts(), inputs, self.neurons)
        step.write()
        recorded = [self._recorded(name, step.results[name]) for name in self.outputs]
        self._scan(step, slices, recorded)
        graph = helper.make_graph(
            self.main.nodes,
            "".join(c if c.isalnum() else "_" for c in self.graph.name) or "network",
            [*(_tensor(name, self._dims(i.shape, i.layout)) for name, i in self.inputs.items()), *self._state_inputs()],
            [self._output_info(r) for r in recorded],
        )
        domains = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(DOMAIN, DOMAIN_VERSION)] if self.neurons else [])]
        functions = [neuron.proto for _, neuron in self.neurons]
        model = helper.make_model(graph, producer_name="snnc", opset_imports=domains, functions=functions, ir_version=IR_VERSION)
        self.constants.drop_unused([*self.main.nodes, *self.body.nodes])
        description = self._description(step, structure(model))
        if description is not None:
            helper.set_model_props(model, {KEY: description})
        return model

    def _description(self, step: ScanBody, digest: str) -> str | None:
        """Return the description of the graph, which refers to initializers for arrays, and to tensors of the loop for ports."""
        values: dict[str, dict[str, str]] = {}
        for (name, port), value in step.values.items():
            if isinstance(self.graph.operation(name), Population):
                values.setdefault(name, {})[port] = value.name
        return describe(self.graph, lambda *field: self.constants.fields.get(field), self.constants.arrays.get, values, digest)

    def _batch(self) -> str:
        for name, operation in self.inputs.items():
            axis = operation.layout.batch_axis
            if axis is not None:
                return self.main.node("Shape", name, hint="batch", start=axis, end=axis + 1)
        return self.constants.integers([1], "batch")

    def _input(self, name: str, step_slice: str | None, batch: str) -> StepTensor:
        """Return the values of an input at one step [B, *shape]: in the loop's body, or in the main graph if the input has no time axis.

        `step_slice` is the name in the body of one step of the input; None without time axis.
        """
        operation, layout = self.inputs[name], self.inputs[name].layout
        to, value = (self.main, name) if step_slice is None else (self.body, step_slice)
        if layout.batch_axis is None:
            value = to.node("Unsqueeze", value, self.constants.integers([0]), hint=f"{name}.batched")
            if self.batched:
                value = to.node("Expand", value, full_shape(self.main, batch, operation.shape), hint=f"{name}.batched")
        elif at := _batch_place(layout):
            order = [at, *(axis for axis in range(len(operation.shape) + 1) if axis != at)]
            value = to.node("Transpose", value, hint=f"{name}.batch_first", perm=order)
        return StepTensor(value, operation.shape)

    def _starts(self) -> dict[tuple[str, str], str]:
        """Return the name of each initial value that is an input, [B, *shape], by node and its state or port."""
        starts = {}
        for name, ref in self.graph.state_inputs.items():
            first = name if self.batched else self.main.node("Unsqueeze", name, self.constants.integers([0]), hint=f"{name}.batched")
            starts[ref.node, ref.name] = first
        return starts

    def _state_inputs(self) -> list[ValueInfoProto]:
        batch = ["batch"] if self.batched else []
        return [_tensor(name, [*batch, *self.ports[ref.node, ref.name].shape]) for name, ref in self.graph.state_inputs.items()]

    def _recorded(self, name: str, value: StepTensor) -> _Recorded:
        """Move the batch axis of a recorded value to its position in the output."""
        operation = self.outputs[name]
        layout, rank = operation.layout, len(value.shape) + 1
        time = layout.time_axis or 0 if operation.readout == "all" else 0
        result = value.name
        if not self.batched and layout.batch_axis is None:
            result = self.body.node("Squeeze", result, self.constants.integers([0]), hint=f"{name}.now")
        elif (at := self._batch_of(operation)) > 0:
            order = [*range(1, at + 1), 0, *range(at + 1, rank)]
            result = self.body.node("Transpose", result, hint=f"{name}.now", perm=order)
        if layout.batch_axis is None and self.batched:
            time = 0
        return _Recorded(name, self.body.node("Identity", result, hint=f"{name}.step"), value, time)

    def _batch_of(self, operation: Output) -> int:
        """Return the position of the batch axis in one step of an output."""
        layout = operation.layout
        if layout.batch_axis is None or (layout.time_axis is None and operation.readout == "all"):
            return 0
        return _batch_place(layout)

    def _step_dims(self, recorded: _Recorded) -> list[int | str]:
        operation, dims = self.outputs[recorded.name], list[int | str](recorded.value.shape)
        if self.batched or operation.layout.batch_axis is not None:
            dims.insert(self._batch_of(operation), self.batch_dim)
        return dims

    def _output_info(self, recorded: _Recorded) -> ValueInfoProto:
        dims, operation = self._step_dims(recorded), self.outputs[recorded.name]
        if operation.readout == "all":
            stop, steps = self.graph.steps if operation.stop is None else operation.stop, self.time_dim
            if operation.start or operation.stop is not None:
                steps = self.names.fresh("recorded") if stop is None else stop - operation.start
            dims.insert(recorded.time, steps)
        return _tensor(recorded.name, dims)

    def _scan(self, step: ScanBody, slices: dict[str, str], recorded: list[_Recorded]) -> None:
        """Add the loop, and the readouts of its outputs."""
        sequences, axes, infos = list(slices), [], []
        for name, step_slice in slices.items():
            operation = self.inputs[name]
            axes.append(operation.layout.time_axis or 0)
            infos.append(_tensor(step_slice, self._dims(operation.shape, operation.layout, step=True)))
        if not sequences:
            clock = self.constants.integers(range(self.graph.steps or 1), "clock")
            sequences, axes = [clock], [0]
            infos = [helper.make_tensor_value_info(self.names.fresh("time"), TensorProto.INT64, [])]
        carried = [_tensor(c.name, [self.batch_dim, *c.shape]) for c in step.carried]
        results = [_tensor(c.result, [self.batch_dim, *c.shape]) for c in step.carried]
        body = helper.make_graph(
            self.body.nodes, "step", [*carried, *infos], [*results, *(_tensor(r.result, self._step_dims(r)) for r in recorded)]
        )
        stacked = {n: n if o == Output("all", o.layout) else self.names.fresh(f"{n}.steps") for n, o in self.outputs.items()}
        node = helper.make_node(
            "Scan",
            [*(c.start for c in step.carried), *sequences],
            [*(self.names.fresh(f"{c.name}.last") for c in step.carried), *stacked.values()],
            name="time",
            body=body,
            num_scan_inputs=len(sequences),
            scan_input_axes=axes,
            scan_output_axes=[r.time for r in recorded],
        )
        self.main.nodes.append(node)
        for r in recorded:
            self._read_out(r, stacked[r.name])

    def _read_out(self, recorded: _Recorded, steps: str) -> None:
        name, operation = recorded.name, self.outputs[recorded.name]
        readout = operation.readout
        if operation.start or operation.stop is not None:
            stop = 2**31 - 1 if operation.stop is None else operation.stop  # a large number: to the end
            bounds = [self.constants.integers([n]) for n in (operation.start, stop, recorded.time)]
            steps = self.main.node("Slice", steps, *bounds, out=name if readout == "all" else None, hint=f"{name}.window")
        if readout == "last":
            self.main.node("Gather", steps, self.constants.integers(-1, "last"), out=name, axis=0)
        elif readout != "all":
            reduction(self.main, readout, steps, [0], False, f"{name}.{readout}")
            self.main.nodes[-1].output[0] = name

    def _dims(self, shape: Shape, layout: FileLayout, step: bool = False) -> list[int | str]:
        dims: list[int | str] = list(shape)
        if layout.batch_axis is not None:
            dims.insert(_batch_place(layout), self.batch_dim)
        if layout.time_axis is not None and not step:
            dims.insert(layout.time_axis, self.time_dim)
        return dims


def _batch_place(layout: FileLayout) -> int:
    """Return the position of the batch axis in one step."""
    assert layout.batch_axis is not None
    return layout.batch_axis - (layout.time_axis is not None and layout.time_axis < layout.batch_axis)


def _tensor(name: str, dims: list[int | str]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


# ---- files -----------------------------------------------------------------------------------------------------------


def _save(model: ModelProto, arrays: Mapping[str, Array], path: Path, inside: int) -> list[Path]:
    outside = sum(a.nbytes for a in arrays.values()) > inside
    data = path.name + ".data"
    try:
        with temporary_folder(f".{path.name}.", path.parent) as folder:
            if outside:
                _write_arrays(model, arrays, folder / data)
            else:
                model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
            (folder / path.name).write_bytes(_serialised(model, path))
            _check(folder / path.name)
            written = [path.parent / data, path] if outside else [path]
            for file in written:
                os.replace(folder / file.name, file)
    except OSError as error:
        raise OnnxFileError(f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    return written


def _write_arrays(model: ModelProto, arrays: Mapping[str, Array], file: Path) -> None:
    with file.open("wb") as stream:
        for name, array in arrays.items():
            if array.nbytes <= _SMALL:
                model.graph.initializer.append(numpy_helper.from_array(array, name))
                continue
            tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
            tensor.data_location = TensorProto.EXTERNAL
            places = {"location": file.name, "offset": stream.tell(), "length": array.nbytes}
            tensor.external_data.extend(StringStringEntryProto(key=key, value=str(value)) for key, value in places.items())
            model.graph.initializer.append(tensor)
            array.tofile(stream)


def _serialised(model: ModelProto, path: Path) -> bytes:
    try:
        content: bytes = model.SerializeToString()
    except ValueError as error:
        raise WeightsTooLargeError(
            f"{str(path)!r} would exceed the 2 GiB of an ONNX file even with its weights in a second file ({error}); split the network."
        ) from None
    return content


def _check(file: Path) -> None:
    try:
        checker.check_model(str(file), full_check=False)
    except (checker.ValidationError, ValueError) as error:
        raise CheckerError(
            f"ONNX's checker refuses the written model; this is a bug in snnc, please report it: {str(error)[:300]}"
        ) from None
