"""Load an ONNX file as the graph of one time step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Graph
from snnc.frontends.onnx.errors import DetachError, MalformedGraphError, NoTimeError
from snnc.frontends.onnx.flattening.node import Shape
from snnc.frontends.onnx.flattening.operation import parse
from snnc.frontends.onnx.proof.traces import Imported
from snnc.frontends.onnx.reading.bind import bind
from snnc.frontends.onnx.reading.described import described
from snnc.frontends.onnx.reading.reader import declared_shapes, notes_of, read_model, refusing
from snnc.frontends.onnx.recover import ParsedFile, recover
from snnc.frontends.onnx.recovery.detaching import DEFAULT, Detach


def load_onnx(path: str | Path, *, steps: int | None = None, detach: Detach | None = None, marked: bool = False) -> Graph:
    """Read an ONNX file and return one time step of it as a graph.

    Parameters
    ----------
    path
        The file. It contains an unrolled network, a Loop or Scan, or a single step with its states as inputs and outputs.
    steps
        Number of time steps, if the file leaves it open (a single step, or a dynamic time axis).
    detach
        Where gradients stop inside neurons, "reset" by default; see :data:`snnc.frontends.onnx.recovery.detaching.DETACHES`.
    marked
        Whether snnc exported the file with marks where gradients stop.

    Raises
    ------
    OnnxError
        The file is invalid, or snnc cannot read a part of it; the message says which.
    """
    graph = read_onnx(path, detach=detach, marked=marked).graph
    if graph.steps is None:
        graph.steps = steps
    return graph


def read_onnx(
    path: str | Path, shapes: Mapping[str, Shape] | None = None, *, detach: Detach | None = None, marked: bool = False
) -> Imported:
    """Read an ONNX file and return its graph, with the values in the file that the graph's populations must equal.

    `shapes` are the shapes of the input arrays, in the graph's layout. If they are given, the file is read for these shapes only, and a
    graph recovered from the file's nodes is not compared with the file. Otherwise, it is compared, and also recovered with other numbers
    for dynamic sizes. Errors, `detach` and `marked` are as for :func:`load_onnx`.
    """
    path = Path(path)
    with refusing(path, "read", "export a single step with its states as inputs and outputs, and report the file"):
        model = read_model(path)
        declared = _checked_shapes(declared_shapes(model))
        source = ParsedFile(path.stem, parse(model.graph), declared, shapes, None if marked else detach or DEFAULT)
        imported, assumptions = _described(source, *notes_of(model))
        if imported is not None and detach is not None:
            raise DetachError(f"{path} defines where gradients stop; leave out detach={detach!r}.")
        if imported is None:
            imported = recover(source, source.sizes(shapes), {}) if shapes is not None else bind(source)
            imported.graph.assumptions.extend(assumptions)
        return replace(imported, declared=source.inputs)


def _described(source: ParsedFile, notes: object, digest: object) -> tuple[Imported | None, list[str]]:
    """Return the network that snnc described when it wrote the file, if it did; None and the reason if the description does not fit."""
    if notes is None:
        return None, []
    try:
        return described(notes, source, digest), []
    except Exception as error:  # the description is untrusted, and the file's own nodes define the same network
        reason = error.text if isinstance(error, SnncError) else type(error).__name__
        return None, [f"snnc ignores the description of the network that the file contains, because it does not fit: {reason}"]


def _checked_shapes(shapes: Mapping[str, tuple[int | str, ...]]) -> Mapping[str, tuple[int | str, ...]]:
    for name, shape in shapes.items():
        if any(d == 0 for d in shape):
            raise NoTimeError(
                f"the input '{name}' has the shape {list(shape)}: no time steps, samples or values; export it with at least one."
            )
        if any(isinstance(d, int) and d < 0 for d in shape):
            raise MalformedGraphError(f"the input '{name}' has the shape {list(shape)}, with a negative size.")
    return shapes
