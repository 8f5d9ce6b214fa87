"""A graph as two files, so that a project folder needs no model file: structure as JSON, numbers as npz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.ir.graph_data import graph_from_data, graph_to_data
from snnc.data.arrays import read_arrays, write_arrays
from snnc.errors import ProjectFolderError


def save_graph(graph: Graph, folder: Path) -> None:
    """Write ``graph.json`` and ``arrays.npz`` into `folder`."""
    arrays: dict[str, Array] = {}

    def keep(node: str, field: str, array: Array) -> str:
        del node, field
        name = f"a{len(arrays)}"
        arrays[name] = array
        return name

    data = graph_to_data(graph, keep)
    (folder / "graph.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    write_arrays(folder / "arrays.npz", arrays)


def load_graph(folder: Path) -> Graph:
    """Read what :func:`save_graph` wrote.

    Raises
    ------
    ProjectFolderError
        The files are missing or damaged.
    """
    try:
        data = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        arrays = read_arrays(folder / "arrays.npz")

        def find(node: str, field: str, name: Any) -> Array:
            if not isinstance(name, str) or name not in arrays:
                raise GraphDataError(f"{field} of {node!r} is not among the arrays.")
            return arrays[name]

        return graph_from_data(data, find)
    except GraphDataError as error:
        raise ProjectFolderError(f"the model in {str(folder)!r} cannot be read: {error.text} Compile it again.") from None
    except (OSError, ValueError, RecursionError, SnncError) as error:
        raise ProjectFolderError(f"the model in {str(folder)!r} is damaged ({error}); compile it again.") from None
