"""Evaluation of a network on validation data after each epoch of a training run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.backends.runtime.arrays import array_of
from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import BatchesError, TrainingOptionError
from snnc.backends.runtime.events import InputValues, densely
from snnc.backends.runtime.history import Validation
from snnc.backends.runtime.inputs import BatchedData, ProgramInputs
from snnc.backends.runtime.predicting import Predictor
from snnc.backends.runtime.prediction import check_training_targets, classes_of, scores_by_length
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.data.batches import digest_of_labels, fingerprint_of
from snnc.backends.training.updates.ranks import Ranks
from snnc.backends.training.validation.metrics import SPIKES, Metric, MetricError, accuracy, are_classes, checked_metrics, value_of

Chunk: TypeAlias = tuple[Array, Array, Array]
"""Outputs [T, B, n], scores [B, classes] and targets [B, ...] of some samples."""
SpikeCounter: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, float]]
"""Function from inputs by id, [T, B, *shape], to the mean number of spikes per sample in each layer, by label."""
COUNTED: Final = 16
"""Number of samples, from the first, that the NumPy reference runs again to count spikes."""


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Samples in memory, by input id."""

    data: Mapping[str, InputValues]
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def text(self) -> str:
        """Text that identifies the samples in checkpoints."""
        return f"{len(self)} samples with labels {digest_of_labels(self.labels)[:16]}"

    def outputs(self, predictor: Predictor, order: Array) -> Iterator[Chunk]:
        for places, output, scores in predictor.of_samples(self.data, order=order):
            yield output, scores, self.labels[places]

    def first(self, inputs: ProgramInputs, count: int) -> dict[str, Array]:
        """Return the first samples, dense: id -> [T, B, *shape]."""
        return densely(inputs.batch_of(self.data, np.arange(min(count, len(self)))))


@dataclass(frozen=True, eq=False)
class _DataSet:
    """Samples of a data set, read in each validation; methods as in :class:`_Arrays`."""

    data: BatchedData

    def __len__(self) -> int:
        return len(self.data)

    @property
    def text(self) -> str:
        return f"{len(self)} samples of a data set {fingerprint_of(self.data)[:16]}"

    def outputs(self, predictor: Predictor, order: Array) -> Iterator[Chunk]:
        for output, scores, labels in predictor.of_data_set(self.data, order=order):
            targets = array_of(labels, "the targets")
            check_training_targets(predictor.inputs.program, targets, len(scores), len(output))
            yield output, scores, targets

    def first(self, inputs: ProgramInputs, count: int) -> dict[str, Array]:
        count = min(count, len(self))
        values, _ = next(iter(self.data.batches(count, order=np.arange(count))))
        return densely(inputs.batch(values))


@dataclass(frozen=True, eq=False)
class ValidationData:
    """Checked validation samples, and their metrics."""

    predictor: Predictor
    samples: _Arrays | _DataSet
    metrics: Mapping[str, Metric]  # metrics besides loss and accuracy, by name
    ranks: Ranks | None  # processes that train together; each evaluates a share, and all get the same result
    spikes: SpikeCounter | None  # for the metric ``"spikes"``

    def measure(self) -> Validation:
        """Run all samples forward; return their loss, accuracy and metrics."""
        program, order = self.predictor.inputs.program, np.arange(len(self.samples))
        assert program.loss is not None, "training needs a loss"
        share = order if self.ranks is None else self.ranks.share(order)
        chunks = []
        for output, scores, targets in self.samples.outputs(self.predictor, share) if len(share) else ():
            loss = float(program.loss.value_and_gradient(output, as_targets(targets))[0])
            chunks.append((loss, scores_by_length(program, output, targets, scores), targets))
        if self.ranks is not None:
            chunks = self.ranks.gather(chunks)
        scores, targets = (np.concatenate([chunk[i] for chunk in chunks]) for i in (1, 2))
        labels = classes_of(program, targets)
        right = accuracy(scores, labels) if are_classes(labels) else math.nan
        values = {name: value_of(name, metric, scores, labels) for name, metric in self.metrics.items() if name != SPIKES}
        if SPIKES in self.metrics and self.spikes is not None:
            counted = self.spikes(self.samples.first(self.predictor.inputs, COUNTED))
            values |= {f"{SPIKES}_{label}": number for label, number in counted.items()}
        mean = float(np.average([chunk[0] for chunk in chunks], weights=[len(chunk[1]) for chunk in chunks]))
        return Validation(mean, right, values)


def validation_data(
    predictor: Predictor, validation: Any, metrics: Iterable[Metric] | str | None, ranks: Ranks | None, spikes: SpikeCounter | None
) -> ValidationData | None:
    """Check the validation data and metrics of a training run.

    Raises a TrainingOptionError if the data are neither a pair of samples and labels nor a data set, a BatchesError if the data set is
    empty, a MetricError if a metric is unknown, its name is taken, or the session cannot count the spikes of layers, and other
    SessionErrors if the data do not fit the network.
    """
    chosen = checked_metrics(() if metrics is None else metrics)
    if SPIKES in chosen and spikes is None:
        raise MetricError(f"the metric {SPIKES!r} needs a session of snnc.compile or snnc.open, which counts the spikes of layers.")
    if validation is None:
        return None
    if isinstance(validation, BatchedData):
        if len(validation) == 0:
            raise BatchesError("the validation data set has no samples.")
        return ValidationData(predictor, _DataSet(validation), chosen, ranks, spikes)
    if not isinstance(validation, Sequence) or isinstance(validation, str) or len(validation) != 2:
        raise TrainingOptionError(f"validation is a {type(validation).__name__}; give a pair (x, y) of samples and labels, or a data set.")
    return ValidationData(predictor, _Arrays(*predictor.inputs.labelled(*validation)), chosen, ranks, spikes)
