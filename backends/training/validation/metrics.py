"""Metrics of predictions, computed from the scores of all validation samples (except ``"spikes"``, which needs the spikes)."""

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
"""The metric with the mean number of spikes per sample, one value per layer: ``spikes_<label>``."""
Value: TypeAlias = float | npt.NDArray[np.floating]
"""Value of a metric: a number, one number per class, or a matrix [class, predicted class]."""


class MetricError(SessionError, code="SNNC-E591"):
    """A metric is unknown or given twice, needs validation data or classes, or is a user's function that does not return a number."""


def accuracy(scores: Array, labels: Array) -> float:
    """Return the share of samples whose true class has the largest score."""
    return float((scores.argmax(axis=-1) == labels).mean())


def top(scores: Array, labels: Array, count: int) -> float:
    """Return the share of samples whose true class has one of the `count` largest scores; ties favour the lower class."""
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    return float((order == labels[:, None]).any(axis=-1).mean())


def confusion(scores: Array, labels: Array) -> npt.NDArray[np.floating]:
    """Return the number of samples for each pair [class, predicted class]."""
    classes = scores.shape[-1]
    pairs = np.bincount(labels.astype(np.int64) * classes + scores.argmax(axis=-1), minlength=classes * classes)
    return pairs.reshape(classes, classes).astype(np.float64)


def per_class(scores: Array, labels: Array) -> npt.NDArray[np.floating]:
    """Return the accuracy for each class; NaN for a class without samples."""
    counts = confusion(scores, labels)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.diag(counts) / counts.sum(axis=1), dtype=np.float64)


def f1(scores: Array, labels: Array) -> float:
    """Return the macro F1 score: the harmonic mean of precision and recall, averaged over the classes that are true or predicted."""
    counts = confusion(scores, labels)
    true_plus_predicted = counts.sum(axis=0) + counts.sum(axis=1)
    occur = true_plus_predicted > 0
    return float(np.mean(2 * np.diag(counts)[occur] / true_plus_predicted[occur]))


_KNOWN: Final[Mapping[str, Callable[[Array, Array], Value]]] = {
    "accuracy": accuracy,
    "confusion": confusion,
    "f1": f1,
    "per_class": per_class,
}


def checked_metrics(metrics: Iterable[Metric] | str) -> dict[str, Metric]:
    """Return metrics by name.

    Raises a MetricError if a metric is unknown, two have the same name, or one has the name ``loss``, ``epoch`` or ``seconds``.
    """
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise MetricError(f"metrics is {metrics!r}; give a list, such as ['top_3', 'confusion'].")
    chosen: dict[str, Metric] = {}
    for metric in metrics:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
        if isinstance(metric, str):
            if metric not in _KNOWN and metric != SPIKES and _top_count(metric) is None:
                known = ", ".join([*_KNOWN, SPIKES, "top_2, top_3, …"])
                raise MetricError(f"there is no metric {metric!r}; known metrics are {known}, and functions of scores and labels.")
        elif not callable(metric):
            raise MetricError(f"a metric is {metric!r}; give a name, or a function of scores and labels.")
        if name in chosen or name in ("loss", "epoch", "seconds"):
            raise MetricError(f"two metrics have the name {name!r}; rename or omit one of them.")
        chosen[name] = metric
    return chosen


def value_of(name: str, metric: Metric, scores: Array, targets: Array) -> Value:
    """Return the value of a metric.

    Raises a MetricError if the metric needs classes but the targets are not classes, or a user's function does not return a number.
    """
    if isinstance(metric, str):
        count = _top_count(metric)
        if not are_classes(targets):
            raise MetricError(f"the metric {name!r} needs classes, but the targets are {targets.dtype} of shape {list(targets.shape)}.")
        return top(scores, targets, count) if count is not None else _KNOWN[metric](scores, targets)
    value = metric(scores, targets)
    if not np.isscalar(value) and np.ndim(value) != 0:
        raise MetricError(f"the metric {name!r} returned {type(value).__name__} of shape {list(np.shape(value))}, not one number.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MetricError(f"the metric {name!r} returned {value!r}; it must return one number.") from None
    return number


def are_classes(targets: Array) -> bool:
    """Return whether targets are class indices, one per sample."""
    return targets.ndim == 1 and targets.dtype.kind in "iu"


def scalars(metrics: Mapping[str, Value]) -> dict[str, float]:
    """Return the metrics as named numbers: an array over classes as one number per class; confusion matrices are omitted."""
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, np.ndarray):
            if value.ndim == 1:
                numbers |= {f"{name}_{index}": float(number) for index, number in enumerate(value)}
        else:
            numbers[name] = float(value)
    return numbers


def plain(value: Value) -> object:
    """Return a value as JSON types; infinite values and NaN become None."""
    if isinstance(value, np.ndarray):
        return [plain(part if part.ndim else float(part)) for part in map(np.asarray, value)]
    return float(value) if math.isfinite(value) else None


def _top_count(name: str) -> int | None:
    match = re.fullmatch(r"top_([1-9]\d{0,5})", name)
    return None if match is None else int(match[1])
