"""Conditions under which two columns of a benchmark table may be compared: equal weights, equal data and similar activity."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array

TOLERANCE: Final = 0.05
"""Maximum relative difference of two activities that count as similar."""
DIGITS: Final = 16
"""Number of hexadecimal digits of a hash."""


@dataclass(frozen=True)
class Conditions:
    """Weights, data and activity with which a number was measured or predicted."""

    weights: str
    """Hash of the initial weights and biases, see :func:`digest`."""
    data: str
    """Hash of the inputs and labels."""
    activity: Mapping[str, float]
    """Mean fraction of values that are spikes in a step, over the batch, by name of the input or population."""


def digest(arrays: Mapping[str, Array]) -> str:
    """Return a hash of the arrays' names, shapes and values; all values, including spikes and labels, are converted to float32."""
    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        values = np.ascontiguousarray(array, dtype="<f4")
        sha.update(f"{name} {values.shape};".encode())
        sha.update(values.tobytes())
    return sha.hexdigest()[:DIGITS]


def conditions_differ(one: Conditions, other: Conditions) -> str:
    """Return the first difference between the conditions of two columns as text; "" if the columns may be compared.

    Activities may differ by :data:`TOLERANCE` of the larger one, and must be known for the same names.
    """
    for what in ("weights", "data"):
        if getattr(one, what) != getattr(other, what):
            return f"different {what}: {getattr(one, what)} and {getattr(other, what)}"
    if one.activity.keys() != other.activity.keys():
        return f"activities of {', '.join(sorted(one.activity.keys() ^ other.activity.keys()))} are known for one column only"
    for name, rate in one.activity.items():
        most = max(rate, other.activity[name])
        if abs(rate - other.activity[name]) > TOLERANCE * most:
            return f"{name} has {100 * rate:.3g} % spikes in one column and {100 * other.activity[name]:.3g} % in the other"
    return ""
