"""``snnc convert``: convert a model from one file format to another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from snnc.cli import common
from snnc.cli.console import note, result, result_json, working
from snnc.errors import ConversionFormatError, OptionValueError
from snnc.options.table import help_of

if TYPE_CHECKING:
    from snnc.compiler.ir.graph import Graph


def convert(
    model: common.ModelArgument,
    output: Annotated[Path, typer.Argument(help="The file to write; its suffix, .onnx or .nir, selects the format.", metavar="FILE")],
    form: Annotated[
        str | None,
        typer.Option("--form", help="ONNX: 'plain', standard operators only (default), or 'functions', one node per population."),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help=help_of("steps"))] = None,
    ann2snn: common.ConvertOption = False,
    calibration: common.CalibrationOption = None,
    percentile: common.PercentileOption = None,
    dt: common.DtOption = None,
    dialect: common.DialectOption = None,
    detach: common.DetachOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Write a model, or a compiled project with its trained weights, as an ONNX or NIR file.

    An ONNX file contains one Scan over the time steps and runs in ONNX Runtime; the batch size is open, and so is the number of
    steps unless the network fixes it. Reading a file that snnc wrote restores the same network: the file's metadata contain what
    the format cannot express.

    Example: snnc convert build/ model.onnx
    """
    from snnc.data.whole_files import check_output
    from snnc.driver.converting import ConversionRequest, graph_for
    from snnc.frontends.load import is_nir

    check_output(output, model, calibration)
    write = writer_for(output, dt, form)
    if steps is not None and steps < 1:
        raise OptionValueError(f"--steps is {steps}; it must be 1 or more.")
    conversion = ConversionRequest(ann2snn, calibration, percentile, steps if ann2snn else None)
    with working("reading"):
        # For a NIR output, dt is the length of the written steps; the model is then read with dt only if it is a NIR file, too.
        read_dt = dt if output.suffix.lower() != ".nir" or (model.is_file() and is_nir(model)) else None
        graph = graph_for(model, conversion, dt=read_dt, dialect=dialect, detach=detach, steps=steps)
    if steps is not None:
        graph.steps = steps
    with working("writing"):
        files = write(graph, output)
    for text in graph.assumptions:
        note(f"note: {text}")
    summary = _summary(graph, files)
    if as_json:
        result_json(summary)
        return
    sizes = ", ".join(f"{f['file']} ({f['bytes']:,} bytes)" for f in summary["files"])
    result(f"wrote {sizes}")
    result(f"inputs: {', '.join(summary['inputs'])}; outputs: {', '.join(summary['outputs'])}")
    result(f"{summary['populations']} populations, {summary['weights']:,} weights")


def writer_for(output: Path, dt: float | None, form: str | None = None) -> Callable[[Graph, Path], list[Path]]:
    """Return the function that writes the format of `output`'s suffix.

    Raise ConversionFormatError if the suffix is neither .onnx nor .nir, OptionValueError if the options do not fit the format.
    """
    match output.suffix.lower():
        case ".onnx":
            from snnc.frontends.onnx.writer.write import Form, write_onnx

            if form is not None and form not in get_args(Form):
                raise OptionValueError(f"--form is {form!r}; it must be one of {', '.join(get_args(Form))}.")
            return partial(write_onnx, form=cast("Form", form or "plain"))
        case ".nir" if form is not None:
            raise OptionValueError(f"--form {form} is for ONNX files, but {str(output)!r} is NIR; leave it out.")
        case ".nir":
            return _nir_writer(dt)
        case suffix:
            raise ConversionFormatError(f"{str(output)!r} ends in {suffix or 'no suffix'}; snnc writes .onnx and .nir.")


def _nir_writer(dt: float | None) -> Callable[[Graph, Path], list[Path]]:
    if dt is None:
        raise OptionValueError("NIR is in continuous time; give the length of a time step in seconds, for example --dt 1e-4.")
    from snnc.frontends.nir import write_nir

    def to_nir(graph: Graph, path: Path) -> list[Path]:
        for text in write_nir(graph, path, dt=dt):
            note(f"note: {text}")
        return [path]

    return to_nir


def _summary(graph: Graph, files: list[Path]) -> dict[str, Any]:
    from snnc.compiler.ir.graph import WEIGHTED, Input, Output, Population

    arrays = [a for _, o in graph.of_type(*WEIGHTED) for a in (o.weight, getattr(o, "bias", None)) if a is not None]
    return {
        "files": [{"file": str(file), "bytes": file.stat().st_size} for file in files],
        "inputs": [name for name, _ in graph.of_type(Input)],
        "outputs": [name for name, _ in graph.of_type(Output)],
        "populations": sum(1 for _ in graph.of_type(Population)),
        "weights": int(sum(a.size for a in arrays)),
        "steps": graph.steps,
    }
