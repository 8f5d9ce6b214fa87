"""Run a model in another implementation and in snnc, and compare all layers and outputs: the code of ``snnc verify``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from snnc.backends.registry import DEFAULT
from snnc.checks.other_implementations import OtherRun, RunRequest, all_ports, run_file, run_graph, run_nir, sizes
from snnc.checks.verification import LayerComparison, Verification
from snnc.compiler.ir.arrays.array_parts import arrays_with_parts
from snnc.compiler.ir.dataflow_order import in_dataflow_order
from snnc.compiler.ir.graph import Array, Graph, Input, Output, Population
from snnc.compiler.tiles.errors import TooBigError
from snnc.data.arrays import read_arrays
from snnc.driver.compiling import MAX_SAMPLES, open_graph, session_for
from snnc.driver.loading import Model, as_graph, check_discrete, load_options
from snnc.driver.measuring import with_outputs
from snnc.driver.trusting import check_trusted
from snnc.errors import OptionConflictError, OptionValueError
from snnc.frontends.load import is_nir
from snnc.frontends.onnx.writer.comparison import compare, compare_port
from snnc.frontends.onnx.writer.hidden import source_of
from snnc.options.compile_options import CompileOptions
from snnc.session import arrays_for


def verify(
    model: Model,
    *,
    inputs: str | Path | Mapping[str, Array] | None = None,
    samples: int | None = None,
    steps: int | None = None,
    target: str | None = None,
    tolerance: float = 1e-4,
    seed: int | None = None,
    dt: float | None = None,
    dialect: str | None = None,
    trust: bool = False,
) -> Verification:
    """Run a model in another implementation and in snnc on the same arrays, and compare every layer at every step.

    An ONNX file runs in ONNX Runtime, with its internal values as outputs; a NIR file, in a plain forward-Euler interpreter of the
    format. Compiled projects and networks written in Python have no model file: they are exported to ONNX and run in ONNX Runtime.

    Parameters
    ----------
    model
        An ONNX or NIR file, a compiled project's folder, a :class:`~snnc.frontends.dsl.network.Network` or a graph.
    inputs
        Arrays in the layout of the model, or an npz archive of them; random if None.
    samples, steps
        Number of samples and of steps of random inputs, where the model leaves them open (default 4 and 20). Not allowed with `inputs`.
    target
        Target on which snnc runs the network, as in :func:`snnc.compile`; by default the project's own target, else ``"reference"``.
    tolerance
        Allowed difference of values, relative to the larger of 1 and the largest value of the layer. Spikes must be equal.
    seed
        Seed for random inputs (default 0). Not allowed with `inputs`.
    dt, dialect
        As in :func:`snnc.load`, for NIR files.
    trust
        As in :func:`snnc.open`, for a project that runs on its own target.

    Returns
    -------
    Verification
        Its ``agree``, ``layers`` and ``outputs``; ``print`` shows it as a table.

    Raises
    ------
    SnncError
        The model or the arrays are invalid, or ONNX Runtime is missing.

    Examples
    --------
    >>> import snnc
    >>> snnc.verify(snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI()), steps=5).agree
    True
    """
    if not 0 <= tolerance < math.inf:
        raise OptionValueError(f"--tolerance is {tolerance}; it must be 0 or more.")
    for name, value in (("samples", samples), ("steps", steps), ("seed", seed)):
        if inputs is not None and value is not None:
            raise OptionConflictError(f"{name} is {value} (--{name}) and sets random input, but inputs are given; leave one of them out.")
    seed = seed or 0
    request = RunRequest(read_arrays(Path(inputs)) if isinstance(inputs, str | Path) else inputs, samples, steps, seed)
    if not isinstance(model, str | Path):
        return _compared(run_graph(as_graph(model, dt=dt, dialect=dialect), request), target or DEFAULT, tolerance, seed)
    path = Path(model)
    if path.is_dir():
        check_discrete(f"the project {str(path)!r}", dt, dialect)
        return _of_project(path, request, target, tolerance, seed, trust)
    if is_nir(path):
        return _compared(run_nir(path, request, dt, dialect), target or DEFAULT, tolerance, seed)
    check_discrete(repr(str(path)), dt, dialect)
    return _compared(run_file(path, request), target or DEFAULT, tolerance, seed)


def _of_project(folder: Path, request: RunRequest, target: str | None, tolerance: float, seed: int, trust: bool) -> Verification:
    """Verify a compiled project; on its own target, the outputs come from its emitted program."""
    chosen = load_options(folder)
    graph = as_graph(folder)
    if chosen.mode == "drop":
        warnings.warn(
            "the project drops spikes beyond its windows (mode 'drop'), but the other implementation sends all of them, so they differ "
            "where a window overflows; --mode exact sends all spikes.",
            stacklevel=3,
        )
    if chosen.backend.emits and graph.steps is None:
        graph.steps = chosen.steps
    executed = folder if target in (None, chosen.target) and chosen.backend.emits else None
    if executed is not None:
        check_trusted(executed, trust)
    return _compared(run_graph(graph, request), target or chosen.target, tolerance, seed, executed)


def _compared(other: OtherRun, target: str, tolerance: float, seed: int, project: Path | None = None) -> Verification:
    """Run snnc on the arrays of `other`, with the values of the populations as additional outputs, and compare.

    With `project`, a trusted project, its emitted program computes the outputs of the network.
    """
    extended, names = with_outputs(other.graph, [(o.population, o.port) for o in other.hidden])
    note = ""
    try:
        ours = _run(extended, other.arrays, target, seed)
    except TooBigError as error:
        note = f"No layer is compared: with every layer's values as outputs, the network does not fit {target}. {error.text}"
        other = replace(other, hidden=())
        ours = {} if project is not None else _run(other.graph, other.arrays, target, seed)
    if project is not None:
        with session_for(project, other.arrays, trust=True) as session:
            ours |= session.run(*arrays_for(session, other.arrays))
    outputs = tuple(compare(name, op, ours[name], other.outputs[name], tolerance) for name, op in other.graph.of_type(Output))
    compared = {(o.population, o.port): compare_port(o, ours[names[o.population, o.port]], tolerance) for o in other.hidden}
    layers = []
    for name, population in in_dataflow_order(other.graph).of_type(Population):
        observed = [o for o in other.hidden if o.population == name]
        ports = [compared[name, o.port] for o in observed]
        missing = tuple(port for where, port in all_ports(other.graph) if where == name and (name, port) not in compared)
        spikes, states = (tuple(p for p in ports if p.fires is fires) for fires in (True, False))
        layers.append(LayerComparison(name, population.model.name, source_of(observed), spikes, states, missing))
    shapes = {name: tuple(np.shape(other.arrays[name])) for name in other.arrays if name in _accepted_names(other.graph)}
    return Verification(target, other.name, shapes, other.stepwise, tuple(layers), outputs, note)


def _run(graph: Graph, arrays: Mapping[str, Array], target: str, seed: int) -> dict[str, Array]:
    steps, batch = sizes(graph, arrays)
    options = CompileOptions(target=target, batch=min(batch, MAX_SAMPLES), seed=seed)
    if options.backend.emits or graph.steps is None:
        options = replace(options, steps=graph.steps or steps)
    with open_graph(graph, options) as session:
        return session.run(*arrays_for(session, {name: np.asarray(arrays[name]) for name in arrays if name in _accepted_names(graph)}))


def _accepted_names(graph: Graph) -> set[str]:
    return {name for name, _ in graph.of_type(Input)} | {*graph.state_inputs, *arrays_with_parts(graph.state_inputs), *graph.idle_inputs}
