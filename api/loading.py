"""Models in any form that snnc takes -> Graph."""

from __future__ import annotations

import json
from pathlib import Path

from snnc.compiler.graph import Graph
from snnc.errors import ModelFileError, ModelFormatError, ProjectFolderError
from snnc.files import MARK
from snnc.graph_file import load_graph
from snnc.options import Options, from_data


def load_model(path: str | Path, *, dt: float | None = None, dialect: str | None = None) -> Graph:
    """Read a model file.

    Raises
    ------
    ModelFileError
        It is missing or cannot be opened.
    ModelFormatError
        snnc does not read files of this kind.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise ModelFileError(f"{str(file)!r} is a folder without a compiled model; give an .onnx file or what snnc compile wrote.")
        with file.open("rb") as stream:
            stream.read(1)
    except FileNotFoundError:
        raise ModelFileError(f"the model {str(file)!r} does not exist.") from None
    except OSError as error:
        raise ModelFileError(f"the model {str(file)!r} cannot be opened: {(error.strerror or str(error)).lower()}.") from None
    if file.suffix.lower() == ".nir":
        raise ModelFormatError(f"{str(file)!r} is a NIR file, and this version of snnc does not read NIR; export the model to ONNX.")
    if file.suffix.lower() != ".onnx":
        raise ModelFormatError(f"{str(file)!r} is no model that snnc reads; models are .onnx files, folders of snnc compile, or Python.")
    if dialect is not None:
        raise ModelFormatError(f"--dialect {dialect} is for NIR files, and {str(file)!r} is ONNX; leave it out.")
    from snnc.frontends.load import load

    return load(file, dt=dt)


def is_project(path: str | Path) -> bool:
    """Tell whether `path` is a folder that ``snnc compile`` wrote."""
    return (Path(path) / MARK).is_file()


def load_project(folder: str | Path) -> tuple[Graph, Options]:
    """Read the model and the options of a compiled project.

    Raises
    ------
    ProjectFolderError
        The folder is no project, or damaged.
    """
    where = Path(folder)
    if not is_project(where):
        raise ProjectFolderError(f"{str(where)!r} is no project of snnc; make one with: snnc compile MODEL -o {where}")
    try:
        chosen = from_data(json.loads((where / MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProjectFolderError(f"the options of the project {str(where)!r} are damaged ({error}); compile the model again.") from None
    return load_graph(where / "model"), chosen
