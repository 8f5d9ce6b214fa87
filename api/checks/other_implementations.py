"""Run a network in implementations that share no code with snnc's backends, and return its outputs and internal values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Array, Graph, Input, Output, Population
from snnc.compiler.ir.shapes import port_map
from snnc.driver.compiling import array_sizes
from snnc.driver.loading import load_model
from snnc.driver.measuring import with_outputs
from snnc.frontends.onnx.errors import NotGenericError, OnnxError
from snnc.frontends.onnx.load import read_onnx
from snnc.frontends.onnx.proof.traces import is_spike_port
from snnc.frontends.onnx.reading.bind import fingerprint
from snnc.frontends.onnx.writer.comparison import random_arrays
from snnc.frontends.onnx.writer.errors import HiddenTooLargeError
from snnc.frontends.onnx.writer.hidden import RUNTIME, HiddenOfFile, Observed, of_arrays
from snnc.frontends.onnx.writer.runtime import RuntimeModel, check_names, check_shape
from snnc.session import with_input_name

MAX_VALUES: Final = 1 << 28
"""Maximum number of values (inputs, and states and outputs of neurons) that one verification stores."""
SIMULATOR: Final = "the NIR simulator"
_STATES_OF_NIR: Final = {"syn": "i_syn"}
"""Name in the graph of each simulator state that has a different name there."""


@dataclass(frozen=True)
class RunRequest:
    """Inputs of a verification: given arrays, or sizes and a seed for random ones."""

    arrays: Mapping[str, Array] | None
    samples: int | None
    steps: int | None
    seed: int


@dataclass(frozen=True, eq=False)
class OtherRun:
    """A run of a network in the implementation `name`; `stepwise` is whether it ran one time step at a time.

    `outputs` are the outputs of this run, `hidden` the states and outputs of its populations; `graph` and `arrays` are the graph and the
    inputs for snnc's run.
    """

    name: str
    graph: Graph
    arrays: Mapping[str, Array]
    outputs: Mapping[str, Array]
    hidden: Sequence[Observed]
    stepwise: bool = False


def run_file(path: Path, request: RunRequest) -> OtherRun:
    """Run an ONNX file in ONNX Runtime, with the tensors of its populations as additional outputs."""
    try:
        imported = read_onnx(path)
    except OnnxError:
        load_model(path)  # its error gives more details if the network has no time axis
        raise
    graph = imported.graph
    arrays, steps, batch = _inputs(graph, request, imported.size, imported.input_shape)
    shapes = {name: arrays[name].shape for name, _ in graph.of_type(Input)}
    if any(imported.inputs.shapes[name] != shape for name, shape in shapes.items()):
        imported = read_onnx(path, shapes)
        if fingerprint(imported.graph) != fingerprint(graph):
            text = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            raise NotGenericError(f"for arrays of the shapes {text} the file contains a different network; give other sizes.")
    inside = HiddenOfFile(imported, steps)
    runtime = inside.open(path, graph)
    values = runtime.run(arrays, batch)
    hidden = inside.observe(runtime, values, arrays)
    return OtherRun(RUNTIME, graph, arrays, {name: values[name] for name in runtime.outputs}, hidden, runtime.stepwise)


def run_graph(graph: Graph, request: RunRequest) -> OtherRun:
    """Write a graph as an ONNX file with the values of its populations as additional outputs, and run it in ONNX Runtime."""
    from snnc.frontends.onnx.writer.write import write_onnx

    times = {name: i.layout.time_axis for name, i in graph.of_type(Input)}
    arrays, steps, batch = _inputs(graph, request, lambda name, axis: graph.steps if axis is not None and axis == times[name] else None)
    ports = all_ports(graph)
    extended, names = with_outputs(graph, ports)
    if extended.steps is None:
        extended.steps = steps
    with temporary_folder() as folder:
        write_onnx(extended, Path(folder) / "model.onnx")
        values = RuntimeModel(Path(folder) / "model.onnx", extended).run(arrays, batch)
    hidden = [of_arrays(*port, spiking, values[names[port]], RUNTIME) for port, spiking in ports.items()]
    return OtherRun(RUNTIME, graph, arrays, {name: values[name] for name, _ in graph.of_type(Output)}, hidden)


def run_nir(path: Path, request: RunRequest, dt: float | None, dialect: str | None) -> OtherRun:
    """Run a NIR file in snnc's reference interpreter of the format, in forward-Euler steps."""
    from snnc.frontends.nir.interpreter.interpreter import simulate

    graph = load_model(path, dt=dt, dialect=dialect)
    arrays, _, _ = _inputs(graph, request, lambda name, axis: None)
    simulated = simulate(path, arrays, dt=dt, dialect=dialect or "nir")
    hidden = []
    for name, population in graph.of_type(Population):
        port = population.model.outputs[0]
        if name in simulated.spikes:
            hidden.append(of_arrays(name, port, True, _shaped(simulated.spikes[name], population), SIMULATOR))
        for state, values in simulated.states.get(name, {}).items():
            graph_name = state if state in population.model.states else _STATES_OF_NIR.get(state, state)
            if graph_name in population.model.states:
                hidden.append(of_arrays(name, graph_name, False, _shaped(values, population), SIMULATOR))
    outputs = {name: simulated.outputs[name] for name, _ in graph.of_type(Output)}
    return OtherRun(SIMULATOR, graph, arrays, outputs, hidden)


def _inputs(
    graph: Graph,
    request: RunRequest,
    size: Callable[[str, int | None], int | None],
    shape_of: Callable[[str], tuple[int | str, ...]] | None = None,
) -> tuple[Mapping[str, Array], int, int]:
    """Return the checked arrays of a run by input of `graph`, and their numbers of steps and samples.

    `size` returns the length that the model fixes for an axis of an input (None if the input has no such axis), or None if it fixes none;
    `shape_of`, the shape of an input.
    """
    names = [name for name, _ in graph.of_type(Input)]
    arrays: Mapping[str, Array]
    if request.arrays is None:
        arrays = random_arrays(graph, request.samples, request.steps, request.seed, size, partial(check_room, graph))
    else:
        arrays = with_input_name(request.arrays, names)
    check_names(names, arrays)
    if shape_of is not None:
        for name in names:
            check_shape(name, arrays[name].shape, shape_of(name))
    steps, batch = sizes(graph, arrays)
    check_room(graph, steps, batch)
    return arrays, steps, batch


def _shaped(values: Array, population: Population) -> Array:
    return values.reshape(*values.shape[:2], *population.shape)


def all_ports(graph: Graph) -> dict[tuple[str, str], bool]:
    """Return all states and outputs of all populations, as (population, port), in the order of the network, and whether each has spikes."""
    spiking: dict[tuple[str, str], bool] = {}
    for name, p in graph.of_type(Population):
        spiking |= {(name, port): is_spike_port(p.model, port) for port in (*p.model.states, *p.model.outputs)}
    return spiking


def sizes(graph: Graph, arrays: Mapping[str, Array]) -> tuple[int, int]:
    """Return the number of steps and of samples of `arrays`, which have the layouts of the graph's inputs."""
    steps, batch = array_sizes(graph, arrays)
    return steps or graph.steps or 1, batch


def check_room(graph: Graph, steps: int, batch: int) -> None:
    """Raise HiddenTooLargeError if a verification would compute and store more than ``MAX_VALUES`` values."""
    shapes = port_map(graph)
    inputs = sum(math.prod(i.shape) for _, i in graph.of_type(Input))
    neurons = sum(math.prod(shapes[port].shape) for port in all_ports(graph))
    values = (inputs + neurons) * steps * batch
    if values > MAX_VALUES:
        raise HiddenTooLargeError(
            f"{inputs:,} inputs and {neurons:,} states and outputs of neurons in {steps:,} steps of {batch:,} samples are {values:,} "
            f"values to compare; at most {MAX_VALUES:,} are kept. Use fewer samples (--samples) or steps (--steps)."
        )
