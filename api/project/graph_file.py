"""Store a project's model: graph and step program as JSON, their arrays as npz, so that the original model file is not needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.ir.graph_data import graph_from_data, graph_to_data
from snnc.compiler.ir.program_data import program_from_data, program_to_data
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer
from snnc.data.arrays import read_arrays, write_arrays
from snnc.errors import ProjectFolderError

PROGRAM: Final = ("program.json", "program.npz")
"""Files of a step program, and of its arrays that are not in the graph."""


def save_graph(graph: Graph, folder: Path) -> dict[str, Array]:
    """Write ``graph.json`` and ``arrays.npz`` into `folder`; return the arrays by name."""
    arrays: dict[str, Array] = {}

    def keep(node: str, field: str, array: Array) -> str:
        del node, field
        name = f"a{len(arrays)}"
        arrays[name] = array
        return name

    _write(folder / "graph.json", graph_to_data(graph, keep), indent=1)
    write_arrays(folder / "arrays.npz", arrays)
    return arrays


def save_program(program: StepProgram, folder: Path, known: dict[str, Array]) -> None:
    """Write a step program into `folder`; arrays in `known`, the result of :func:`save_graph`, are not written again."""
    more: dict[str, Array] = {}

    def keep(array: Array) -> Any:
        if array.ndim == 0 and array.dtype == np.float32 and np.isfinite(array):
            return array.item()
        for arrays in (known, more):
            for name, other in arrays.items():
                if other is array or _same(other, array):
                    return name
        name = f"p{len(more)}"
        more[name] = array
        return name

    _write(folder / PROGRAM[0], program_to_data(program, keep))
    if more:
        write_arrays(folder / PROGRAM[1], more)


class SavedModel:
    """The stored graph and step program of a project, which share their arrays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, Array] = {}
        try:
            data = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
            arrays = read_arrays(folder / "arrays.npz")

            def find(node: str, field: str, name: Any) -> Array:
                if not isinstance(name, str) or name not in arrays:
                    raise GraphDataError(f"{field} of {node!r} is not among the arrays.")
                self._arrays[name] = arrays[name]
                return self._arrays[name]

            self.graph: Graph = graph_from_data(data, find)
        except GraphDataError as error:
            raise ProjectFolderError(f"the model in {str(folder)!r} cannot be read: {error.text} Compile it again.") from None
        except (OSError, ValueError, RecursionError, SnncError) as error:
            raise ProjectFolderError(f"the model in {str(folder)!r} is damaged ({error}); compile it again.") from None

    def program(self, loss: Loss | None, optimizer: Optimizer | None) -> StepProgram:
        """Return the step program, with the given loss and optimiser."""
        more = self._folder / PROGRAM[1]
        try:
            data = json.loads((self._folder / PROGRAM[0]).read_text(encoding="utf-8"))
            arrays = self._arrays | (dict(read_arrays(more)) if more.exists() else {})

            def find(place: Any) -> Array:
                if isinstance(place, float):
                    return np.array(place, np.float32)
                if not isinstance(place, str) or place not in arrays:
                    raise GraphDataError("an array of the step program is missing.")
                return arrays[place]

            return program_from_data(data, find, loss, optimizer)
        except (OSError, ValueError, RecursionError, SnncError) as error:
            raise GraphDataError(f"the step program in {str(self._folder)!r} cannot be read ({error}).") from None


def _write(file: Path, data: dict[str, Any], indent: int | None = None) -> None:
    file.write_text(json.dumps(data, indent=indent) + "\n", encoding="utf-8")


def _same(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape or one.ravel()[:64].tobytes() != other.ravel()[:64].tobytes():
        return False
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
