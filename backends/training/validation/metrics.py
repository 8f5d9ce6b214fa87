"""Metrics of a network's predictions, from its scores of all validation samples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import SessionError

Metric: TypeAlias = str | Callable[[Array, Array], float]
"""``"accuracy"``, ``"top_3"``, ``"confusion"``, ``"per_class"``, ``"f1"``, ``"spikes"``; or a function of scores [samples, classes] and
targets."""
SPIKES: Final = "spikes"
"""The metric that counts the spikes of each layer, a number per layer: ``spikes_<label>``."""
Value: TypeAlias = float | npt.NDArray[np.floating]


class MetricError(SessionError):
    """A metric is unknown, has no validation data or no classes to be computed from, or a function of the user gave no number."""

    code = "SNNC-E591"


def accuracy(scores: Array, labels: Array) -> float:
    """Return the share of samples whose largest score is that of their class."""
    return float((scores.argmax(axis=-1) == labels).mean())


def top(scores: Array, labels: Array, count: int) -> float:
    """Return the share of samples whose class is among those of the `count` largest scores; of equal scores the lower class is first."""
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    return float((order == labels[:, None]).any(axis=-1).mean())


def confusion(scores: Array, labels: Array) -> npt.NDArray[np.floating]:
    """Return [class, predicted class]: how many samples there are of each pair."""
    classes = scores.shape[-1]
    pairs = np.bincount(labels.astype(np.int64) * classes + scores.argmax(axis=-1), minlength=classes * classes)
    return pairs.reshape(classes, classes).astype(np.float64)


def per_class(scores: Array, labels: Array) -> npt.NDArray[np.floating]:
    """Return the accuracy on the samples of each class; NaN for a class without samples."""
    counts = confusion(scores, labels)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.diag(counts) / counts.sum(axis=1), dtype=np.float64)


def f1(scores: Array, labels: Array) -> float:
    """Return the mean over the classes that occur of the harmonic mean of precision and recall (macro F1)."""
    counts = confusion(scores, labels)
    either = counts.sum(axis=0) + counts.sum(axis=1)
    there = either > 0
    return float(np.mean(2 * np.diag(counts)[there] / either[there]))


_KNOWN: Final[Mapping[str, Callable[[Array, Array], Value]]] = {
    "accuracy": accuracy,
    "confusion": confusion,
    "f1": f1,
    "per_class": per_class,
}


def checked_metrics(given: Iterable[Metric] | str) -> dict[str, Metric]:
    """Return metrics by name.

    Raises
    ------
    MetricError
        One is unknown, or two have one name.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise MetricError(f"metrics is {given!r}; give a list, such as ['top_3', 'confusion'].")
    found: dict[str, Metric] = {}
    for metric in given:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
        if isinstance(metric, str):
            if metric not in _KNOWN and metric != SPIKES and _top_count(metric) is None:
                known = ", ".join([*_KNOWN, SPIKES, "top_2, top_3, …"])
                raise MetricError(f"there is no metric {metric!r}; there are {known}, and functions of scores and labels.")
        elif not callable(metric):
            raise MetricError(f"a metric is {metric!r}; give a name, or a function of scores and labels.")
        if name in found or name in ("loss", "epoch", "seconds"):
            raise MetricError(f"two metrics have the name {name!r}; leave one of them out.")
        found[name] = metric
    return found


def value_of(name: str, metric: Metric, scores: Array, targets: Array) -> Value:
    """Return the value of a metric.

    Raises
    ------
    MetricError
        It needs classes, and there are none; or a function of the user gave no number.
    """
    if isinstance(metric, str):
        count = _top_count(metric)
        if not are_classes(targets):
            raise MetricError(f"the metric {name!r} needs classes, but the targets are {targets.dtype} of shape {list(targets.shape)}.")
        return top(scores, targets, count) if count is not None else _KNOWN[metric](scores, targets)
    value = metric(scores, targets)
    if not np.isscalar(value) and np.ndim(value) != 0:
        raise MetricError(f"the metric {name!r} gave {type(value).__name__} of shape {list(np.shape(value))}; it must give one number.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MetricError(f"the metric {name!r} gave {value!r}; it must give one number.") from None
    return number


def are_classes(targets: Array) -> bool:
    """Return whether targets are class indices, one per sample."""
    return targets.ndim == 1 and targets.dtype.kind in "iu"


def scalars(metrics: Mapping[str, Value]) -> dict[str, float]:
    """Return the metrics as numbers with names: an array of classes as one number per class; a confusion matrix is left out."""
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, np.ndarray):
            if value.ndim == 1:
                found |= {f"{name}_{index}": float(number) for index, number in enumerate(value)}
        else:
            found[name] = float(value)
    return found


def plain(value: Value) -> object:
    """Return a value for JSON; infinite values and NaN become None."""
    if isinstance(value, np.ndarray):
        return [plain(part if part.ndim else float(part)) for part in map(np.asarray, value)]
    return float(value) if math.isfinite(value) else None


def _top_count(name: str) -> int | None:
    found = re.fullmatch(r"top_([1-9]\d{0,5})", name)
    return None if found is None else int(found[1])
