"""``snnc check``: show how snnc understands a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli import common
from snnc.cli.console import columns, show, warn, working


def check(
    model: common.ModelArgument,
    data: Annotated[
        Path | None, typer.Option("--data", help="An npz archive with inputs, to count spikes and synaptic operations on them.")
    ] = None,
    input_kind: common.InputKindOption = None,
    ann2snn: common.ConvertOption = False,
    calibration: common.CalibrationOption = None,
    percentile: common.PercentileOption = None,
    steps: common.ConvertedStepsOption = None,
    as_json: common.JsonOption = False,
    dt: common.DtOption = None,
    dialect: common.DialectOption = None,
    detach: common.DetachOption = None,
) -> None:
    """Show how snnc understands a model: layers, neurons with their equations, synaptic operations, and assumptions.

    A synaptic operation (SynOp) is one weight applied because one source neuron sent a spike or another nonzero value. Without data,
    the table shows upper bounds of their number.

    Example: snnc check model.onnx --data x.npz
    """
    from snnc.compiler.ir.verify import verify
    from snnc.driver.converting import ConversionRequest, graph_for
    from snnc.driver.loading import is_project, load_options
    from snnc.understanding.describe import describe
    from snnc.understanding.table import assumption_lines, to_text

    conversion = ConversionRequest(ann2snn, calibration, percentile, steps)
    graph = graph_for(model, conversion, dt=dt, dialect=dialect, detach=detach, input_kind=input_kind, lenient=True)
    verify(graph)
    measured = None
    if data is not None:
        from snnc.checks.measure import firing_warnings, measure

        with working("measuring"):
            measured = measure(graph, data)
        for warning in firing_warnings(measured):
            warn(warning)
    chosen = load_options(model).surrogate if is_project(model) else None
    description = describe(graph, measured=measured, surrogate=chosen)
    show(as_json, lambda: description, lambda: [*to_text(description, columns()), *assumption_lines(description, columns())])
