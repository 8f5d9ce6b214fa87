"""``snnc check``: show how snnc understands a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli.common import (
    CalibrationOption,
    ConvertedStepsOption,
    ConvertOption,
    DetachOption,
    DialectOption,
    DtOption,
    InputKindOption,
    JsonOption,
    ModelArgument,
    PercentileOption,
)
from snnc.cli.console import columns, show, warn, working


def check(
    model: ModelArgument,
    data: Annotated[
        Path | None, typer.Option("--data", help="An npz archive with inputs, to count spikes and synaptic operations on them.")
    ] = None,
    input_kind: InputKindOption = None,
    ann2snn: ConvertOption = False,
    calibration: CalibrationOption = None,
    percentile: PercentileOption = None,
    steps: ConvertedStepsOption = None,
    as_json: JsonOption = False,
    dt: DtOption = None,
    dialect: DialectOption = None,
    detach: DetachOption = None,
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
    from snnc.understanding.firing import firing_warnings
    from snnc.understanding.table import assumption_lines, to_text

    conversion = ConversionRequest(ann2snn, calibration, percentile, steps)
    graph = graph_for(model, conversion, dt=dt, dialect=dialect, detach=detach, input_kind=input_kind, lenient=True)
    verify(graph)
    measured = None
    if data is not None:
        from snnc.checks.measure import measure

        with working("measuring"):
            measured = measure(graph, data)
    chosen = load_options(model).surrogate if is_project(model) else None
    found = describe(graph, measured=measured, surrogate=chosen)
    for warning in firing_warnings(measured) if measured is not None else ():
        warn(warning)
    show(as_json, lambda: found, lambda: [*to_text(found, columns()), *assumption_lines(found, columns())])
