"""Weights by label (the name of a parameter that users see), and weight files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import safetensors
import safetensors.numpy

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import WeightFileError, WeightNotFiniteError, WeightsError, WeightShapeError
from snnc.compiler.files.durable import write_durably
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.window_values import is_run_value

_DIGEST: Final = "digest"
"""Name of the digest in the metadata of a file; other programs write none."""


def by_label(program: StepProgram, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values of parameters by label, without run-time values such as the ends of the gradient window."""
    return {parameter.label: values[name] for name, parameter in program.parameters.items() if not is_run_value(name)}


def by_name(program: StepProgram, values: Mapping[str, object], strict: bool) -> dict[str, Array]:
    """Check values given by label, and return those of the program's parameters by name.

    Raises a WeightShapeError or WeightNotFiniteError for a value that does not fit; with `strict`, also a WeightsError if labels are
    missing or unexpected.
    """
    labels = {parameter.label: parameter for name, parameter in program.parameters.items() if not is_run_value(name)}
    missing, unexpected = [n for n in labels if n not in values], [n for n in values if n not in labels]
    if strict and (missing or unexpected):
        parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unexpected:", unexpected)) if names]
        raise WeightsError(f"the weights do not belong to {program.name!r}; {'; '.join(parts)}. Its parameters are {', '.join(labels)}.")
    result = {}
    for label in (name for name in values if name in labels):
        array, parameter = np.asarray(values[label]), labels[label]
        if array.shape != parameter.value.shape:
            raise WeightShapeError(f"{label} has shape {array.shape}; the network's parameter has {parameter.value.shape}.")
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise WeightNotFiniteError(f"{label} contains values that are not finite numbers.")
        result[parameter.name] = array
    return result


def weight_file_bytes(values: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """Return the contents of a safetensors file, with a digest."""
    arrays = {k: np.asarray(v, order="C") for k, v in values.items()}
    content = {"format": "snnc", **metadata}
    return bytes(safetensors.numpy.save(arrays, {**content, _DIGEST: _digest(arrays, content)}))


def _digest(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    total = hashlib.blake2b(json.dumps(sorted(metadata.items())).encode(), digest_size=32)
    for name, array in sorted(arrays.items()):
        total.update(json.dumps([name, str(array.dtype), array.shape]).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def check_finite(values: Mapping[str, Array]) -> None:
    """Raise a WeightNotFiniteError if values that a caller wants to save are NaN or infinite."""
    for label, value in values.items():
        bad = int(value.size - np.isfinite(value).sum())
        if bad:
            raise WeightNotFiniteError(f"{label} contains {bad:,} values of {value.size:,} that are not finite; nothing was saved.")


def save_weights(path: str | os.PathLike[str], values: Mapping[str, Array]) -> None:
    """Write a safetensors file, completely or not at all; raise a WeightFileError if it cannot be written."""
    target = Path(path)
    try:
        write_durably(target, weight_file_bytes(values, {}), target.with_name(f".{target.name}.{os.getpid()}.part"))
    except OSError as error:
        raise WeightFileError(f"the weights cannot be written to {target}: {error.strerror}.") from None


def load_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return only the arrays that :func:`read_weight_file` reads."""
    return read_weight_file(path)[0]


def read_weight_file(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read the arrays and the metadata of a safetensors file; raise a WeightFileError if it is missing or damaged."""
    try:
        data = Path(path).read_bytes()
        arrays = dict(safetensors.numpy.load(data))
        # safetensors has checked the header, but returns no metadata.
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = dict(header.get("__metadata__") or {})
    except OSError as error:
        raise WeightFileError(f"the weights cannot be read from {path}: {error.strerror}.") from None
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise WeightFileError(f"{path} is not a safetensors file of weights: {error}.") from None
    digest = metadata.pop(_DIGEST, None)
    if digest is not None and digest != _digest(arrays, metadata):
        raise WeightFileError(f"{path} is damaged: its contents differ from what snnc wrote.")
    return arrays, metadata
