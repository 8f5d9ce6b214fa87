"""``snnc convert``: a model from one file format to another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnc.commands.common import DialectOption, DtOption, JsonOption, ModelArgument
from snnc.console import note, result, result_json, working
from snnc.errors import ConversionFormatError, NirWriterMissingError, OptionValueError, OutputFileError

if TYPE_CHECKING:
    from snnc.compiler.graph import Graph


def convert(
    model: ModelArgument,
    output: Annotated[Path, typer.Argument(help="The file to write; its suffix, .onnx or .nir, says the format.", metavar="FILE")],
    steps: Annotated[int | None, typer.Option("--steps", help="Time steps of a sequence, where the model leaves it open.")] = None,
    dt: DtOption = None,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model, or a compiled project with its trained weights, as an ONNX or NIR file.

    An ONNX file holds one Scan over the time steps and runs in ONNX Runtime; batch and, unless fixed, steps are open in it.

    Example: snnc convert build/ model.onnx
    """
    from snnc.compiling import as_graph

    write = writer_for(output, dt)
    if steps is not None and steps < 1:
        raise OptionValueError(f"--steps is {steps}; it has to be 1 or more.")
    with working("reading"):
        graph = as_graph(model, dt=dt, dialect=dialect)
    if graph.steps is None:
        graph.steps = steps
    with working("writing"):
        files = write(graph, output)
    for text in graph.assumptions:
        note(f"note: {text}")
    found = _summary(graph, files)
    if as_json:
        result_json(found)
        return
    sizes = ", ".join(f"{f['file']} ({f['bytes']:,} bytes)" for f in found["files"])
    result(f"wrote {sizes}")
    result(f"inputs: {', '.join(found['inputs'])}; outputs: {', '.join(found['outputs'])}")
    result(f"{found['populations']} populations, {found['weights']:,} weights")


def writer_for(output: Path, dt: float | None) -> Callable[[Graph, Path], list[Path]]:
    """Return what writes a file of the suffix of `output`.

    Raises
    ------
    ConversionFormatError
        The suffix is neither .onnx nor .nir.
    NirWriterMissingError
        NIR files are not written yet.
    """
    match output.suffix.lower():
        case ".onnx":
            from snnc.frontends.onnx_writer.write import write_onnx

            return write_onnx
        case ".nir":
            return _nir_writer(dt)
        case suffix:
            raise ConversionFormatError(f"{str(output)!r} ends in {suffix or 'no suffix'}; snnc writes .onnx and .nir.")


def _nir_writer(dt: float | None) -> Callable[[Graph, Path], list[Path]]:
    missing = "NIR files are not written yet; convert to .onnx."
    try:
        from snnc.frontends import nir
    except ImportError:
        raise NirWriterMissingError(missing) from None
    write: Callable[..., Any] | None = getattr(nir, "write_nir", None)
    if write is None:
        raise NirWriterMissingError(missing)
    if dt is None:
        raise OptionValueError("NIR is in continuous time; say with --dt how many seconds a step is, for example --dt 1e-4.")

    def to_nir(graph: Graph, path: Path) -> list[Path]:
        try:
            for text in write(graph, path, dt=dt) or ():
                note(f"note: {text}")
        except NotImplementedError:
            raise NirWriterMissingError(missing) from None
        except OSError as error:
            raise OutputFileError(f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}.") from None
        return [path]

    return to_nir


def _summary(graph: Graph, files: list[Path]) -> dict[str, Any]:
    from snnc.compiler.graph import Conv, Input, Linear, OneToOne, Output, Population, Scale

    arrays = [a for _, o in graph.of_type(Linear, Conv, Scale, OneToOne) for a in (o.weight, getattr(o, "bias", None)) if a is not None]
    return {
        "files": [{"file": str(file), "bytes": file.stat().st_size} for file in files],
        "inputs": [name for name, _ in graph.of_type(Input)],
        "outputs": [name for name, _ in graph.of_type(Output)],
        "populations": sum(1 for _ in graph.of_type(Population)),
        "weights": int(sum(a.size for a in arrays)),
        "steps": graph.steps,
    }
