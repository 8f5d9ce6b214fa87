"""Read data on which a network is measured, convert them to a program's layout, and measure the activity on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import checked, to_sequence
from snnc.backends.runtime.errors import UnknownNameError
from snnc.compiler.ir.graph import Array, FileLayout, Graph, Input, Output
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.lower import lower
from snnc.compiler.lowering.spike_limits import limit_of
from snnc.data.arrays import read_arrays
from snnc.options.compile_options import CompileOptions

if TYPE_CHECKING:
    from snnc.compiler.tiles.activity import Activity

Data: TypeAlias = Mapping[str, npt.ArrayLike] | npt.ArrayLike
"""Inputs in the layout of a model: by name, or a single array for a single input."""
MAX_MEASURED: Final = 256
"""Maximum number of training samples of an archive that are used, so that a large archive does not take long."""


def activity_on_data(graph: Graph, chosen: CompileOptions, data: Path | Data) -> Activity:
    """Measure the activity of the neurons of `graph` on `data`, see :func:`sequences`, with the reference backend."""
    from snnc.driver.activity import measure_activity

    source = data.name if isinstance(data, Path) else "the given data"
    limit = limit_of(chosen.mode, chosen.capacity, chosen.drop, chosen.seed)  # dropped spikes reach no neuron
    program = lower(graph, surrogate=chosen.surrogate, gradient_window=chosen.gradient_window, steps=chosen.steps, limit=limit)
    return measure_activity(program, sequences(graph, program, data), f"measured on {source}")


def sequences(graph: Graph, program: StepProgram, data: Path | Data) -> dict[str, npt.NDArray[Any]]:
    """Return `data` as arrays [T, B, *shape] by input id of `program`; inputs without a time axis are repeated over all steps.

    `data` are inputs in the layout of the model `graph`, or an npz archive of them. For a model with one input, the archive may instead
    contain training samples ``x`` [samples, steps, …] (without the axis of steps if the model's input has none), of which the first
    ``MAX_MEASURED`` are used, or one if the input has no batch axis. Raise UnknownNameError if an input is missing.
    """
    inputs = _read_inputs(data, graph) if isinstance(data, Path) else data
    by_name = inputs if isinstance(inputs, Mapping) else {program.inputs[0].label: inputs}
    missing = [i.label for i in program.inputs if i.label not in by_name]
    if missing:
        raise UnknownNameError(f"the data for measuring the activity lack the inputs {', '.join(missing)} of the model.")
    arrays = {i.id: to_sequence(np.asarray(by_name[i.label]), i) for i in program.inputs}
    steps, batch = (max(a.shape[axis] for a in arrays.values()) for axis in (0, 1))
    if steps == 1 and all(i.static for i in program.inputs):
        steps = program.steps or 1
    return {id_: np.broadcast_to(a, (steps, batch, *a.shape[2:])) for id_, a in arrays.items()}


def with_outputs(graph: Graph, ports: Iterable[tuple[str, str]]) -> tuple[Graph, dict[tuple[str, str], str]]:
    """Return a copy of `graph` with one more output [T, B, *shape] for each (population, port), and the names of these outputs."""
    extended = graph.copy()
    names: dict[tuple[str, str], str] = {}
    used = {*extended.names, *extended.state_inputs}
    for population, port in ports:
        name = f"{population}.{port}"
        while name in used:
            name += "_"
        used.add(name)
        extended.add(name, Output("all", FileLayout(0, 1)))
        extended.connect(population, name, source_port=port)
        names[population, port] = name
    return extended, names


def checked_sequences(graph: Graph, program: StepProgram, data: Path | Data) -> dict[str, Array]:
    """Return the result of :func:`sequences` as float32; raise an error unless the values are finite, and 0 or 1 for inputs of spikes."""
    arrays = sequences(graph, program, data)
    return {i.id: checked(arrays[i.id], i.kind, f"the input {i.label!r}").astype(np.float32) for i in program.inputs}


def _read_inputs(path: Path, graph: Graph) -> Data:
    arrays = read_arrays(path)
    model_inputs = list(graph.of_type(Input))
    if "x" in arrays and len(model_inputs) == 1 and model_inputs[0][0] not in arrays:
        name, operation = model_inputs[0]
        layout = operation.layout
        samples = arrays["x"][:MAX_MEASURED]
        if layout.batch_axis is None:
            return {name: samples[0]}
        if layout.time_axis is None:
            return {name: np.moveaxis(samples, 0, layout.batch_axis)}
        return {name: np.moveaxis(samples, [0, 1], [layout.batch_axis, layout.time_axis])}
    return arrays
