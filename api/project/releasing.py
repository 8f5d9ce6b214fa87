"""Weights of a compiled network become views of the project's file once its program holds them, so memory has no second copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.codegen.safetensors_file import mapped
from snnc.backends.native.project_files import initial_values
from snnc.compiler.ir.graph import Array, Graph
from snnc.errors import ProjectFolderError
from snnc.project.compiled import Compiled


def released(compiled: Compiled, folder: Path) -> Compiled:
    """Return the same network, whose weights are in the project in `folder` where a native program owns them.

    Arrays of the graph become views too where the program took them as they are.

    Raises
    ------
    ProjectFolderError
        The file of weights is not of this network: the program reads numbers by their places, and would take others for weights.
    """
    if not compiled.options.backend.native:
        return compiled
    file = folder / "weights.safetensors"
    values = mapped(file, initial_values(compiled.program))
    if values is None:
        raise ProjectFolderError(f"{str(file)!r} does not hold the arrays that were compiled; compile the model again.")
    parameters = compiled.program.parameters
    views = {p.label: (p.value, values[p.name].reshape(p.value.shape)) for p in parameters.values()}
    program = replace(compiled.program, parameters={n: replace(p, value=views[p.label][1]) for n, p in parameters.items()})
    return replace(compiled, graph=_released_graph(compiled.graph, views), program=program)


def _released_graph(graph: Graph, views: Mapping[str, tuple[Array, Array]]) -> Graph:
    found = graph.copy()
    for name in graph.names:
        operation = graph.operation(name)
        own = {f.name: views[label] for f in fields(operation) if (label := f"{name}.{f.name}") in views}
        same: Any = {field: view for field, (value, view) in own.items() if _equal(getattr(operation, field), value)}
        if same:
            found.nx.nodes[name]["operation"] = replace(operation, **same)
    return found


def _equal(given: Any, value: Array) -> bool:
    """Whether the graph's array holds what the program does, bit for bit."""
    if not isinstance(given, np.ndarray) or given.dtype != value.dtype or given.shape != value.shape:
        return False
    return bool(np.array_equal(given.view(np.uint32), value.view(np.uint32)))
