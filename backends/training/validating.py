"""Measures a network on validation data, between the epochs of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.runtime.history import Validation
from snnc.backends.runtime.prediction import classes_of, scores_by_length
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.checkpoint import digest_of_labels
from snnc.backends.training.metrics import Metric, accuracy, are_classes, checked_metrics, value_of

if TYPE_CHECKING:
    from snnc.backends.runtime.events import InputValues
    from snnc.backends.session import BackendSession


@dataclass(frozen=True)
class ValidationData:
    """Checked validation samples and what is measured on them.

    Attributes
    ----------
    session
        The network.
    data, labels
        Samples by input id, and their labels.
    metrics
        Metrics besides loss and accuracy, by name.
    """

    session: BackendSession
    data: Mapping[str, InputValues]
    labels: Array
    metrics: Mapping[str, Metric]

    @property
    def text(self) -> str:
        """The data in words, for checkpoints."""
        return f"{len(self.labels)} samples with labels {digest_of_labels(self.labels)[:16]}"

    def measure(self) -> Validation:
        """Run all samples forward; return their loss, accuracy and metrics."""
        losses, sizes, scores = [], [], []
        program, at = self.session.program, 0
        assert program.loss is not None, "a network that is trained has a loss"
        for output, found in self.session.outputs_and_scores(self.data):
            labels = self.labels[at : at + len(found)]
            losses.append(float(program.loss.value_and_gradient(output, as_targets(labels))[0]))
            sizes.append(len(found))
            scores.append(scores_by_length(program, output, labels, found))
            at += len(found)
        whole, targets = np.concatenate(scores), classes_of(program, self.labels)
        right = accuracy(whole, targets) if are_classes(targets) else math.nan
        values = {name: value_of(name, metric, whole, targets) for name, metric in self.metrics.items()}
        return Validation(float(np.average(losses, weights=sizes)), right, values)


def validation_data(session: BackendSession, validation: Any, metrics: Iterable[Metric] | str | None) -> ValidationData | None:
    """Check the validation data and metrics of a training.

    Raises
    ------
    TrainingOptionError
        The data are not a pair of samples and labels.
    MetricError
        A metric is unknown.
    SessionError
        The data do not fit the network.
    """
    chosen = checked_metrics(() if metrics is None else metrics)
    if validation is None:
        return None
    if not isinstance(validation, Sequence) or isinstance(validation, str) or len(validation) != 2:
        raise TrainingOptionError(f"validation is a {type(validation).__name__}; give a pair (x, y) of samples and labels.")
    return ValidationData(session, *session.labelled(*validation), chosen)
