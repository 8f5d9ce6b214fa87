"""Replace the weights of a compiled network by views of the project's weight file, so that memory has no second copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.codegen.safetensors_file import mapped
from snnc.backends.native.project_files import initial_values
from snnc.compiler.ir.graph import Array, Graph
from snnc.compiler.passes.edit import replace_operation
from snnc.errors import ProjectFolderError
from snnc.project.compiled import Compiled


def released(compiled: Compiled, folder: Path) -> Compiled:
    """Return the network with weights that are views of the weight file in `folder`; unchanged unless the target is ``cpu`` or ``cuda``.

    Raise ProjectFolderError if the file belongs to a different network, for which the emitted program would read wrong values.
    """
    if not compiled.options.backend.native:
        return compiled
    file = folder / "weights.safetensors"
    values = mapped(file, initial_values(compiled.program))
    if values is None:
        raise ProjectFolderError(f"{str(file)!r} does not contain the arrays of this project; compile the model again.")
    parameters = compiled.program.parameters
    views = {p.label: (p.value, values[p.name].reshape(p.value.shape)) for p in parameters.values()}
    program = replace(compiled.program, parameters={n: replace(p, value=views[p.label][1]) for n, p in parameters.items()})
    return replace(compiled, graph=_released_graph(compiled.graph, views), program=program)


def _released_graph(graph: Graph, views: Mapping[str, tuple[Array, Array]]) -> Graph:
    copy = graph.copy()
    for name in graph.names:
        operation = graph.operation(name)
        by_field = {f.name: views[label] for f in fields(operation) if (label := f"{name}.{f.name}") in views}
        changes: Any = {field: view for field, (value, view) in by_field.items() if _equal(getattr(operation, field), value)}
        if changes:
            replace_operation(copy, name, replace(operation, **changes))
    return copy


def _equal(field: Any, value: Array) -> bool:
    if not isinstance(field, np.ndarray) or field.dtype != value.dtype or field.shape != value.shape:
        return False
    return bool(np.array_equal(field.view(np.uint32), value.view(np.uint32)))
