"""Load the trained weights of a project, or explain why they cannot be used."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from snnc.backends.folders.manifest import TRAINED
from snnc.backends.runtime.errors import SessionError
from snnc.backends.runtime.weights import load_weights
from snnc.backends.session import BackendSession
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.arrays.sparse import nonzeros_of
from snnc.compiler.ir.graph import WEIGHTED, Array, Graph, OneToOne, Population, Shape, Sparse, Weighted
from snnc.compiler.neurons.library.batch_norm import MEAN, VARIANCE, is_batch_norm
from snnc.compiler.passes.edit import replace_operation
from snnc.errors import ProjectFolderError, TrainedWeightsError

Trainable: TypeAlias = Weighted | Population
"""Operations with weights or parameters that training may change."""
UNUSABLE_NAME = "model/trained.unusable-{}.safetensors"
"""Name to which unusable weights are renamed before training writes new ones."""


def load_trained(session: BackendSession, folder: Path, lenient: bool) -> None:
    """Load a project's trained weights, if there are any, into its session.

    Weights that cannot be used raise TrainedWeightsError or, if `lenient`, only cause a warning.
    """
    file = folder / TRAINED
    if not file.exists():
        return
    try:
        session.load(file)
    except SessionError as error:
        _reject(file, error, lenient)


def read_trained(graph: Graph, folder: Path, lenient: bool = False) -> Graph:
    """Return `graph` with the trained weights of the project in `folder`, if any; `lenient` is as in :func:`load_trained`."""
    file = folder / TRAINED
    if not file.exists():
        return graph
    trained = graph.copy()
    try:
        values = load_weights(file)
        if not any(label.rpartition(".")[0] in graph.nx for label in values):
            raise ProjectFolderError(f"none of its layers is in the network: {', '.join(list(values)[:5]) or 'it has no layers'}.")
        for name, operation in list(graph.of_type(*WEIGHTED, Population)):
            replace_operation(trained, name, _with_values(name, operation, values))
    except (SessionError, ProjectFolderError) as error:
        _reject(file, error, lenient)
        return graph
    return trained


def rename_unusable_weights(folder: Path) -> Path:
    """Rename a project's unusable trained weights, so that new ones can be written; return the new path."""
    number = 1
    while (folder / UNUSABLE_NAME.format(number)).exists():
        number += 1
    return (folder / TRAINED).rename(folder / UNUSABLE_NAME.format(number))


def _reject(file: Path, error: SnncError, lenient: bool) -> None:
    reason = f"the trained weights in {file} cannot be used: {error.text}"
    earlier = sorted(str(p) for p in file.parents[1].glob(f"before-*/{TRAINED}"))
    back = "replace the file with earlier ones" + (f" ({', '.join(earlier)})" if earlier else "")
    if not lenient:
        raise TrainedWeightsError(f"{reason} To use the compiled weights, delete or rename the file; or {back}.") from None
    warnings.warn(f"{reason} The compiled weights are used instead. Train again, or {back}.", stacklevel=2)


def _with_values(name: str, operation: Trainable, values: Mapping[str, Array]) -> Trainable:
    """Return the operation `name` with its trained values; raise ProjectFolderError if they are not finite or do not fit it."""
    if isinstance(operation, Population):
        changing = operation.learnable | ({MEAN, VARIANCE} if is_batch_norm(operation.model) else set())
        learned = {p: values[f"{name}.{p}"] for p in changing if f"{name}.{p}" in values}
        _check_finite(name, learned)
        shaped = {p: _fitted(f"{name}.{p}", v, operation.shape) if v.ndim else v for p, v in learned.items()}
        return replace(operation, parameters={**operation.parameters, **shaped})
    if operation.weight is None:
        return operation
    trained = {part: values[f"{name}.{part}"] for part in ("weight", "bias") if f"{name}.{part}" in values}
    _check_finite(name, trained)
    weight = trained.get("weight", operation.weight)
    if isinstance(operation, Sparse) and weight.shape == operation.shape:
        weight = nonzeros_of(weight, operation)
    weight = _fitted(f"{name}.weight", weight, operation.weight.shape)
    if isinstance(operation, OneToOne):
        return replace(operation, weight=weight)
    bias = trained.get("bias", operation.bias)
    if bias is not None and operation.bias is not None:
        bias = _fitted(f"{name}.bias", bias, operation.bias.shape)
    return replace(operation, weight=weight, bias=bias)


def _fitted(label: str, value: Array, shape: Shape) -> Array:
    """Return a value with the shape that it has in the model; raise ProjectFolderError if the sizes differ."""
    if value.size != math.prod(shape):
        raise ProjectFolderError(f"{label} has shape {value.shape}, but in the model {shape}.")
    return value.reshape(shape)


def _check_finite(name: str, values: Mapping[str, Array]) -> None:
    for part, value in values.items():
        if value.dtype.kind not in "biuf" or not np.isfinite(value).all():
            raise ProjectFolderError(f"{name}.{part} contains values that are not finite numbers.")
