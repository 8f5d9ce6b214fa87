"""Sets of weights by label, and files of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from snnc.backends.engine import Array
from snnc.backends.errors import WeightFileError, WeightNotFiniteError, WeightsError, WeightShapeError
from snnc.compiler.step_program import StepProgram


def by_label(program: StepProgram, values: Mapping[str, Array]) -> dict[str, Array]:
    """Turn parameter names into labels."""
    return {parameter.label: values[name] for name, parameter in program.parameters.items()}


def by_name(program: StepProgram, values: Mapping[str, object], strict: bool) -> dict[str, Array]:
    """Turn labels into parameter names, checking everything first.

    Raises
    ------
    WeightsError
        With `strict`: labels are missing or unexpected.
    WeightShapeError, WeightNotFiniteError
        A value does not fit.
    """
    labels = {parameter.label: parameter for parameter in program.parameters.values()}
    missing, unexpected = [n for n in labels if n not in values], [n for n in values if n not in labels]
    if strict and (missing or unexpected):
        parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unexpected:", unexpected)) if names]
        raise WeightsError(f"the weights do not belong to {program.name!r}; {'; '.join(parts)}. Its parameters are {', '.join(labels)}.")
    found = {}
    for label, value in values.items():
        if label not in labels:
            continue
        array, parameter = np.asarray(value), labels[label]
        if array.shape != parameter.value.shape:
            raise WeightShapeError(f"{label} has shape {array.shape}; the network's has {parameter.value.shape}.")
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise WeightNotFiniteError(f"{label} holds values that are not finite numbers.")
        found[parameter.name] = array
    return found


def save_weights(path: str | os.PathLike[str], values: Mapping[str, Array]) -> None:
    """Write a safetensors file; it appears whole or not at all.

    Raises
    ------
    WeightFileError
        The file cannot be written.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in values.items()}, {"format": "snnc"}))
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise WeightFileError(f"the weights cannot be written to {target}: {error.strerror}.") from None


def load_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read a safetensors file.

    Raises
    ------
    WeightFileError
        It is missing or damaged.
    """
    try:
        return dict(safetensors.numpy.load(Path(path).read_bytes()))
    except OSError as error:
        raise WeightFileError(f"the weights cannot be read from {path}: {error.strerror}.") from None
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise WeightFileError(f"{path} is no safetensors file of weights: {error}.") from None
