"""``snnc run``: run a model on arrays from a file and write its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli import common
from snnc.cli.console import note, result, result_json, working


def run(
    model: common.ModelArgument,
    inputs: Annotated[Path, typer.Option("--inputs", help="An npz archive with an array for each input of the model.")],
    outputs: Annotated[Path, typer.Option("--outputs", help="The npz archive to write, with an array for each output.")],
    target: Annotated[
        str | None,
        typer.Option("--target", help="cpu, cuda, reference, or a machine listed by snnc targets.", autocompletion=common.names_of_targets),
    ] = None,
    ann2snn: common.ConvertOption = False,
    calibration: common.CalibrationOption = None,
    percentile: common.PercentileOption = None,
    steps: common.ConvertedStepsOption = None,
    dt: common.DtOption = None,
    dialect: common.DialectOption = None,
    record: common.RecordOption = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed for the placement on a machine (default 0).", min=0)] = None,
    trust: common.TrustOption = False,
    as_json: common.JsonOption = False,
) -> None:
    """Run a model, or a compiled project, on the arrays of a file.

    Arrays are named after the model's inputs and outputs. For a model of whole sequences they have the model's own layout. A model of a
    single step accepts inputs of [steps, batch, …] and initial states by name, and returns every output as [steps, batch, …].

    Example: snnc run model.onnx --inputs x.npz --outputs y.npz
    """
    from snnc.data.arrays import read_arrays, write_arrays
    from snnc.data.whole_files import check_output
    from snnc.driver.compiling import session_for
    from snnc.driver.converting import ConversionRequest, graph_for
    from snnc.driver.loading import check_discrete, is_project
    from snnc.session import arrays_for

    common.check_recordable(record, model, target)
    check_output(outputs, inputs, model, calibration)
    common.check_seed(seed, model, target)
    trust = common.permitted(model, trust, target)
    if is_project(model) and not ann2snn:
        check_discrete(f"the project {str(model)!r}", dt, dialect)
    conversion = ConversionRequest(ann2snn, calibration, percentile, steps)
    arrays = read_arrays(inputs)
    with working("compiling"):
        source = model if is_project(model) and not ann2snn else graph_for(model, conversion, dt=dt, dialect=dialect)
        session = session_for(source, arrays, target=target, seed=seed or 0, trust=trust)
    with session:
        for text in () if is_project(model) else session.graph.assumptions:
            note(f"note: {text}")
        with working("running"):
            results = session.run(*arrays_for(session, arrays))
            if record is not None:
                session.record(*arrays_for(session, arrays), samples=record)
        counted = session.counters()
        if session.plan is not None and not session.plan.training:
            session.keep()
    write_arrays(outputs, results)
    if counted.get("dropped_spikes"):
        note(f"warning: {counted['dropped_spikes']:,} spikes did not fit their windows and were dropped; --mode exact keeps them.")
    if as_json:
        result_json({"outputs": {name: list(array.shape) for name, array in results.items()}, "counters": counted})
        return
    shapes = ", ".join(f"{name} {' x '.join(map(str, array.shape))}" for name, array in results.items())
    result(f"wrote {outputs}: {shapes}")
