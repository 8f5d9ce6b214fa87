"""Forward runs in batches, and their outputs, scores, classes and accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import array_of
from snnc.backends.runtime.engine import Array, accepts_next, samples_at_once
from snnc.backends.runtime.errors import BatchSizeError, LabelsMissingError
from snnc.backends.runtime.events import InputValues
from snnc.backends.runtime.inputs import BatchedData, Filled, Inputs, ProgramInputs
from snnc.backends.runtime.prediction import check_labels, class_targets, prediction_output, scores, scores_by_length
from snnc.compiler.ir.step_program import OutputInfo

_AT_ONCE = 256
"""Number of samples of an array that run together if the engine does not limit the batch."""
_OF_DATA_SET = 64
"""Number of samples of a data set that are read together if the engine does not limit the batch."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Runs samples forward."""

    inputs: ProgramInputs
    before_run: Callable[[], None] = lambda: None
    """Called before the engine runs, so that the random choice of sent spikes does not depend on the number of updates."""

    def records(self, sequences: Mapping[str, InputValues], initial: Mapping[tuple[str, str], Array]) -> Iterator[dict[str, Array]]:
        """Run sequences [T, B, *shape], as many samples at once as the engine accepts; yield the outputs by id, without padding."""
        length, batch = next(iter(sequences.values())).shape[:2]
        size = samples_at_once(self.inputs.engine, length, batch)
        parts = (slice(at, min(at + size, batch)) for at in range(0, batch, size))
        return self._forward(self.inputs.filled(sequences, initial, part) for part in parts)

    def of_samples(
        self, data: Mapping[str, InputValues], output: OutputInfo | None = None, order: Array | None = None
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Run samples in batches; yield for each batch its positions [B], the values [T, B, n] of an output, and scores [B, classes].

        The output is by default that of :func:`prediction_output`; `order` selects samples by their positions (default: all).
        """
        chosen = output or prediction_output(self.inputs.program)
        places = np.arange(len(next(iter(data.values())))) if order is None else order
        length = next(iter(self.inputs.batch_of(data, np.arange(1)).values())).shape[0]
        size = samples_at_once(self.inputs.engine, length, min(len(places), _AT_ONCE))
        parts = [places[at : at + size] for at in range(0, len(places), size)]
        records = self._forward(self.inputs.filled(self.inputs.batch_of(data, part), {}, slice(None)) for part in parts)
        for part, record in zip(parts, records, strict=True):
            yield part, *self._scored(chosen, record)

    def of_data_set(
        self, data: BatchedData, output: OutputInfo | None = None, order: Array | None = None
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Run a data set as :meth:`of_samples` does; yield for each batch the values of the output, the scores, and the targets."""
        chosen = output or prediction_output(self.inputs.program)
        for inputs, targets in data.batches(self.inputs.engine.batch or _OF_DATA_SET, order=order):
            parts = [self._scored(chosen, record) for record in self.records(self.inputs.batch(inputs), {})]
            yield np.concatenate([o for o, _ in parts], axis=1), np.concatenate([s for _, s in parts]), np.asarray(targets)

    def by_length(self, chosen: OutputInfo, output: Array, scored: Array, targets: Array) -> Array:
        """Return the scores of an output [T, B, n] up to the lengths of the sequences, if the targets contain these; else `scored`."""
        program = self.inputs.program
        return scores_by_length(program, output, targets, scored) if chosen.id == program.loss_output else scored

    def classes(self, x: Inputs | BatchedData, output: str | None = None) -> Array:
        """Return the class index of each sample."""
        chosen = prediction_output(self.inputs.program, output)
        if isinstance(x, BatchedData):
            return np.concatenate([np.zeros(0, np.int64), *(scored.argmax(axis=-1) for _, scored, _ in self.of_data_set(x, chosen))])
        return np.concatenate([scored.argmax(axis=-1) for _, _, scored in self.of_samples(self.inputs.samples(x), chosen)])

    def accuracy(self, x: Inputs | BatchedData, y: npt.ArrayLike | None, output: str | None) -> float:
        """Return the share of samples whose class is predicted correctly."""
        if isinstance(x, BatchedData) != (y is None):
            raise LabelsMissingError("call evaluate(x, y) with arrays, or evaluate(data) with a data set, which contains its labels.")
        program = self.inputs.program
        chosen = prediction_output(program, output)
        right = 0
        if isinstance(x, BatchedData):
            if len(x) == 0:
                raise BatchSizeError("the data set has no samples; an accuracy needs at least one.")
            for record, scored, targets in self.of_data_set(x, chosen):
                labels = class_targets(program, targets, output)
                check_labels(program, labels, len(scored), output)
                right += int((self.by_length(chosen, record, scored, targets).argmax(axis=-1) == labels).sum())
            return right / len(x)
        assert y is not None
        targets = array_of(y, "y")
        labels = class_targets(program, targets, output)
        # Targets that are not plain class indices, such as classes with lengths, are checked as in training.
        data = self.inputs.samples(x) if labels is targets else self.inputs.labelled(x, targets)[0]
        check_labels(program, labels, len(next(iter(data.values()))), output)
        for places, record, scored in self.of_samples(data, chosen):
            right += int((self.by_length(chosen, record, scored, targets[places]).argmax(axis=-1) == labels[places]).sum())
        return right / len(labels)

    def _scored(self, chosen: OutputInfo, record: Mapping[str, Array]) -> tuple[Array, Array]:
        values = record[chosen.id]
        return values.reshape(*values.shape[:2], -1), scores(self.inputs.program, chosen, values)

    def _forward(self, batches: Iterator[Filled]) -> Iterator[dict[str, Array]]:
        """Run batches one after another; yield their outputs without padding."""
        engine = self.inputs.engine
        self.before_run()
        current = next(batches, None)
        while current is not None:
            following = next(batches, None)
            if following is not None and accepts_next(engine):
                engine.offer(following.inputs)
            records = engine.forward(current.inputs, current.initial)
            yield {id_: record[:, : current.count] for id_, record in records.items()}
            current = following
