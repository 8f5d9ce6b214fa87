"""``snnc verify``: a model file in ONNX Runtime and in snnc, compared value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from snnc.commands.common import JsonOption, ModelArgument, SeedOption
from snnc.console import result, result_json, working
from snnc.errors import NotVerifiableError, OptionValueError

if TYPE_CHECKING:
    from snnc.compiler.graph import Array, Graph
    from snnc.frontends.onnx_writer.comparison import Comparison
    from snnc.frontends.onnx_writer.runtime import RuntimeModel

DISAGREE: Final = 1
"""Exit code where the two differ."""
HIDDEN: Final = "Hidden layers are not compared: a file does not say which value is which layer's. Make them outputs to compare them."


def verify(
    model: ModelArgument,
    inputs: Annotated[Path | None, typer.Option("--inputs", help="An npz archive with an array for each input; random otherwise.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Samples of random input (default 4).", min=1)] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Time steps of random input (default 20).", min=1)] = None,
    target: Annotated[str, typer.Option("--target", help="reference, or a machine of: snnc targets.")] = "reference",
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Difference of values that still agrees, relative to the largest.")
    ] = 1e-4,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Run an ONNX file in ONNX Runtime and in snnc and compare all outputs: spikes exactly, values within the tolerance.

    Random input is binary in every second sample and normally distributed in the others. A file that is one time step is run step by
    step with its states fed back, from zero unless the archive gives them. Exit code 0 where both agree, 1 where they differ.

    Example: snnc verify model.onnx --samples 8 --steps 50
    """
    from snnc.compiler.graph import Output
    from snnc.data import read_arrays
    from snnc.frontends.onnx_writer.comparison import compare, random_arrays
    from snnc.frontends.onnx_writer.runtime import RuntimeModel
    from snnc.loading import load_model

    if not 0 <= tolerance < math.inf:
        raise OptionValueError(f"--tolerance is {tolerance}; it has to be 0 or more.")
    _check_kind(model)
    with working("reading"):
        graph = load_model(model)
        runtime = RuntimeModel(model, graph)
    given = read_arrays(inputs) if inputs else random_arrays(runtime, graph, samples, steps, seed)
    with working("running"):
        theirs = runtime.run(given, _batch_of(graph, given))
        ours = _ours(graph, given, target, seed)
    found = [compare(name, operation, ours[name], theirs[name], tolerance) for name, operation in graph.of_type(Output)]
    agree = all(c.agrees for c in found)
    if as_json:
        shapes = {name: list(a.shape) for name, a in given.items()}
        outputs = [{**asdict(c), "agrees": c.agrees} for c in found]
        result_json(
            {"agree": agree, "target": target, "stepwise": runtime.stepwise, "inputs": shapes, "outputs": outputs, "hidden": HIDDEN}
        )
    else:
        _print(found, given, runtime, target)
    if not agree:
        raise typer.Exit(DISAGREE)


def _check_kind(model: Path) -> None:
    if model.is_dir():
        raise NotVerifiableError(
            f"{str(model)!r} is a folder, and ONNX Runtime runs files; first: snnc convert {model} model.onnx, then verify that."
        )
    if model.suffix.lower() == ".nir":
        raise NotVerifiableError(
            f"{str(model)!r} is a NIR file; snnc has no second simulator of NIR yet. Verify an ONNX export of the model."
        )


def _batch_of(graph: Graph, arrays: Mapping[str, Array]) -> int:
    from snnc.compiler.graph import Input

    axes = [(name, i.layout.batch_axis) for name, i in graph.of_type(Input) if i.layout.batch_axis is not None and name in arrays]
    return next((arrays[name].shape[axis] for name, axis in axes if axis < arrays[name].ndim), 1)


def _ours(graph: Graph, arrays: Mapping[str, Array], target: str, seed: int) -> dict[str, Array]:
    """Run snnc on the same arrays."""
    from snnc.compiler.graph import Input
    from snnc.compiling import MOST_SAMPLES, open_graph
    from snnc.options import REFERENCE, Options
    from snnc.session import arrays_for

    length: int | None = None
    if target != REFERENCE:
        axes = [(name, i.layout.time_axis) for name, i in graph.of_type(Input) if i.layout.time_axis is not None]
        length = graph.steps or next((arrays[name].shape[axis] for name, axis in axes), None)
    batch = min(_batch_of(graph, arrays), MOST_SAMPLES)
    known = {name for name, _ in graph.of_type(Input)} | set(graph.state_inputs)
    with open_graph(graph, Options(target=target, steps=length, batch=batch, seed=seed)) as session:
        return session.run(*arrays_for(session, {name: a for name, a in arrays.items() if name in known}))


def _print(found: list[Comparison], given: Mapping[str, Array], runtime: RuntimeModel, target: str) -> None:
    shapes = ", ".join(f"{name} {' x '.join(map(str, a.shape))}" for name, a in given.items())
    result(f"inputs: {shapes}{'; one step at a time, states fed back' if runtime.stepwise else ''}")
    for c in found:
        result(f"{c.output}: {_text(c)}")
    agree = all(c.agrees for c in found)
    result(f"ONNX Runtime and snnc ({target}) {'agree' if agree else 'DISAGREE'}.")
    if not agree:
        result("Where a membrane meets its threshold within rounding, one spike may differ; other input, another --seed, tells.")
    result(HIDDEN)


def _text(c: Comparison) -> str:
    if c.shapes[0] != c.shapes[1]:
        return f"snnc gives {list(c.shapes[0])}, ONNX Runtime {list(c.shapes[1])}"
    what = "spikes" if c.spikes else "values"
    if c.agrees:
        return f"all {c.values:,} {what} {'equal' if c.spikes else f'agree, largest difference {c.largest or 0.0:.3g}'}"
    places = [f"{label} {n}" for label, n in (("step", c.step), ("sample", c.sample)) if n is not None]
    where = f", first at {', '.join(places)}" if places else ""
    largest = "not finite" if c.largest is None else f"{c.largest:.3g}"
    return f"{c.mismatches:,} of {c.values:,} {what} differ{where}; largest difference {largest}"
