"""Read a model file of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snnc.compiler.graph import Graph
from snnc.frontends.onnx.errors import UnreadableFileError
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.reader import size_of

_HDF5: Final = b"\x89HDF\r\n\x1a\n"


def load(path: str | Path, *, dt: float | None = None, steps: int | None = None, dialect: str = "nir") -> Graph:
    """Read a model file, told apart by its content.

    Parameters
    ----------
    path
        The file.
    dt
        Length of one time step in seconds, for formats in continuous time.
    steps
        Number of time steps where the file leaves it open.
    dialect
        Whose reading of a NIR file to follow; see :func:`snnc.frontends.nir.load.load_nir`.

    Raises
    ------
    SnncError
        The file cannot be read; the message says why.
    """
    path = Path(path)
    if not is_nir(path):
        return load_onnx(path, dt=dt, steps=steps)
    from snnc.frontends.nir.load import load_nir

    graph = load_nir(path, dt=dt, dialect=dialect)
    graph.steps = graph.steps or steps
    return graph


def is_nir(path: Path) -> bool:
    """Tell whether a model file is a NIR file, and no ONNX file.

    Raises
    ------
    UnreadableFileError
        It cannot be read.
    """
    try:
        size_of(path)
        with path.open("rb") as file:
            head = file.read(len(_HDF5))
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    return head == _HDF5 or path.suffix.lower() == ".nir"
