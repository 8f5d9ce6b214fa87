"""Load a model file in any supported format, ONNX or NIR."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snnc.compiler.ir.graph import Graph
from snnc.frontends.onnx.errors import DetachError, UnreadableFileError
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.reading.reader import size_of
from snnc.frontends.onnx.recovery.detaching import DEFAULT, apply_rule, check_rule, detach_notes

_HDF5: Final = b"\x89HDF\r\n\x1a\n"
"""The first bytes of an HDF5 file; NIR files are HDF5."""


def load(path: str | Path, *, dt: float | None = None, steps: int | None = None, dialect: str = "nir", detach: str | None = None) -> Graph:
    """Read a model file; its content determines the format.

    Parameters
    ----------
    path
        The file.
    dt
        Length of one time step in seconds, for formats in continuous time.
    steps
        Number of time steps, if the file does not define it.
    dialect
        Framework whose NIR conventions apply, as in :func:`snnc.frontends.nir.load.load_nir`.
    detach
        Where gradients stop inside neurons, which most files do not define: one of
        :data:`snnc.frontends.onnx.recovery.detaching.DETACHES`.

    Raises
    ------
    SnncError
        The file cannot be read; the message says why.
    """
    path = Path(path)
    rule = None if detach is None else check_rule(detach)
    if not is_nir(path):
        return load_onnx(path, steps=steps, detach=rule)
    from snnc.frontends.nir.load import load_described

    graph, is_described = load_described(path, dt=dt, dialect=dialect)
    graph.steps = graph.steps or steps
    if is_described:  # by snnc, in the metadata of the file
        if rule is not None:
            raise DetachError(f"{path} already defines where gradients stop; leave out detach={rule!r}.")
        return graph
    if rule is not None:
        apply_rule(graph, rule)
    graph.assumptions.extend(detach_notes(graph, rule or DEFAULT))
    return graph


def is_nir(path: Path) -> bool:
    """Return whether a model file is a NIR file, and not ONNX; a file that cannot be read raises an UnreadableFileError."""
    try:
        size_of(path)
        with path.open("rb") as file:
            head = file.read(len(_HDF5))
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    return head == _HDF5 or path.suffix.lower() == ".nir"
