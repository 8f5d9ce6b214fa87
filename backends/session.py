"""A compiled network in the user's hands: one class for all backends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import array_of, checked, describe, from_sequence, padded, to_sequence
from snnc.backends.runtime.data_sets import BatchedData
from snnc.backends.runtime.engine import Array, Engine, Initial, SteppingEngine, accepts_next, samples_at_once
from snnc.backends.runtime.errors import (
    BatchSizeError,
    ClosedError,
    DataShapeError,
    LabelsMissingError,
    NoStepwiseError,
    NotTrainableError,
    StepsError,
    UnknownNameError,
    UnsharedTargetError,
)
from snnc.backends.runtime.events import Events, InputValues, densely
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.initial import initial_values
from snnc.backends.runtime.prediction import check_labels, prediction_output, scores
from snnc.backends.runtime.replay import StepReplay
from snnc.backends.runtime.weights import by_label, by_name, check_finite, load_weights, save_weights
from snnc.backends.training import loop as training
from snnc.backends.training.checkpoint import Checkpoints, set_entries
from snnc.backends.training.fitting import FitArguments, beginning, fit
from snnc.backends.training.masks import check_alone
from snnc.backends.training.metrics import Metric
from snnc.backends.training.notices import warn_of_differences
from snnc.backends.training.optimizer_values import optimizer_by_label
from snnc.backends.training.ranks import ranks_for
from snnc.backends.training.run_values import GradientWindow, RunValues, WindowArgument
from snnc.backends.training.stopping import Monitor, Stopping
from snnc.backends.training.streams import DataSetEpochs, StreamOptions, check_data_set, check_stream, fit_batches, is_stream
from snnc.backends.training.updates import Updates
from snnc.backends.training.validating import validation_data
from snnc.backends.training.watching import Watching
from snnc.compiler.ir.graph import FileLayout
from snnc.compiler.ir.step_program import InputInfo, OutputInfo, StepProgram

Input: TypeAlias = npt.ArrayLike | Events
"""Types that the methods of a session accept for an input."""


class BackendSession:
    """Runs and trains a network; use it as a context manager, or :meth:`close` it.

    Parameters
    ----------
    engine
        The backend's loaded engine.
    program
        The step program of the engine.
    """

    def __init__(self, engine: Engine, program: StepProgram) -> None:
        self.engine = engine
        self.program = program
        self._window = GradientWindow(program, engine)
        self._closed = False
        self._replay: StepReplay | None = None
        self._stepping: int | None = None
        """Batch of the sequence that :meth:`step` is in."""

    # ---- running -----------------------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Mapping[str, Input] | Input,
        initial: Mapping[str, npt.ArrayLike] | None = None,
        steps: int | None = None,
    ) -> dict[str, Array]:
        """Run sequences from their initial states.

        Parameters
        ----------
        inputs
            Input name -> array in the layout of the model's file; a bare array if there is one input. Inputs without a
            time axis are the same at every step.
        initial
            State name -> [*shape], [B, *shape] or a number, if it differs from the model's. Names are those of the
            file's explicit states, or ``"population.state"``.
        steps
            Number of steps, needed only if no input and no compile option gives it.

        Returns
        -------
        dict
            Output name -> array in the layout of the file.

        Raises
        ------
        SessionError
            The arrays do not fit the network.
        """
        self._check_open()
        whole, start = self.prepared(inputs, initial, steps)
        length, batch = next(iter(whole.values())).shape[:2]
        size = samples_at_once(self.engine, length, batch)
        cut = (slice(at, min(at + size, batch)) for at in range(0, batch, size))
        parts = list(self._forward(self._filled(whole, start, part) for part in cut))
        records = {id_: np.concatenate([part[id_] for part in parts], axis=1) for id_ in parts[0]}
        return {o.label: from_sequence(records[o.id], o) for o in self.program.outputs}

    def prepared(
        self,
        inputs: Mapping[str, Input] | Input,
        initial: Mapping[str, npt.ArrayLike] | None = None,
        steps: int | None = None,
    ) -> tuple[dict[str, InputValues], dict[tuple[str, str], Array]]:
        """Turn arguments of :meth:`run` into those of an engine: input id -> [T, B, *shape], and initial values, all samples together."""
        if steps is not None and steps < 1:
            raise StepsError(f"steps is {steps}; it must be at least 1.")
        whole = self._aligned({i.id: _sequence(a, i) for i, a in self._paired_inputs(inputs)}, steps)
        return whole, initial_values(self.program, initial or {}, next(iter(whole.values())).shape[1])

    def step(self, inputs: Mapping[str, Input] | Input) -> dict[str, Array]:
        """Run one step and keep the state for the next; :meth:`reset` starts again.

        A machine's program runs whole sequences. On a machine, each step therefore runs the sequence again up to it (exact, but slow),
        for at most the compiled number of steps and samples.

        Parameters
        ----------
        inputs
            As for :meth:`run`, without the time axis: [B, *shape], or [*shape] for one sample if the file has no batch axis.

        Returns
        -------
        dict
            Output name -> [B, *shape] (or [*shape]) of this step.

        Raises
        ------
        NoStepwiseError
            The backend cannot run this step.
        """
        engine = self._stepping_engine()
        arrays = {}
        for info, array in self._paired_inputs(inputs, events=False):
            assert not isinstance(array, Events)
            layout = FileLayout(None, None if info.layout.batch_axis is None else 0)
            single = to_sequence(array, InputInfo(info.id, info.label, info.shape, info.kind, layout))
            if len(single) != 1:
                raise DataShapeError(
                    f"the input {info.label!r} has shape {list(array.shape)}; a step takes {describe(info.shape, layout)}."
                )
            arrays[info.id] = single[0]
        batch = max(len(array) for array in arrays.values()) if arrays else 1
        self._check_batch({id_: array[None] for id_, array in arrays.items()}, batch)
        if self._stepping is None:
            self.reset(batch)
        if batch != self._stepping:
            raise BatchSizeError(f"this step has a batch of {batch}, earlier steps had {self._stepping}; reset() between them.")
        found = engine.step({id_: self._cast(np.broadcast_to(a, (batch, *a.shape[1:]))) for id_, a in arrays.items()})
        return {o.label: found[o.id] if o.layout.batch_axis is not None or batch > 1 else found[o.id][0] for o in self.program.outputs}

    def reset(self, batch: int | None = None, initial: Mapping[str, npt.ArrayLike] | None = None) -> None:
        """Set all states to their initial values before the next :meth:`step`; `initial` as in :meth:`run`."""
        engine = self._stepping_engine()
        if batch is not None and batch < 1:
            raise BatchSizeError(f"the batch is {batch}; it must be at least 1.")
        if batch is None and initial:
            batch = 1
        self._stepping = batch
        if batch is not None:
            engine.reset(batch, initial_values(self.program, initial or {}, batch))

    # ---- training ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        x: Mapping[str, Input] | Input | BatchedData | Iterable[Any],
        y: npt.ArrayLike | None = None,
        *,
        epochs: int = 1,
        first_epoch: int = 0,
        batch: int | None = None,
        learning_rate: training.LearningRate = None,
        gradient_window: WindowArgument = None,
        shuffle: bool = True,
        seed: int = 0,
        accumulate: int = 1,
        validation: tuple[Mapping[str, Input] | Input, npt.ArrayLike] | None = None,
        metrics: Iterable[Metric] = (),
        monitor: Monitor = "loss",
        patience: int | None = None,
        min_delta: float = 0.0,
        best: str | os.PathLike[str] | None = None,
        restore_best: bool = False,
        log: str | os.PathLike[str] | None = None,
        tensorboard: str | os.PathLike[str] | None = None,
        callback: Callable[[TrainingProgress], None] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoints: Checkpoints | None = None,
        distributed: bool = True,
    ) -> History:
        """Train by backpropagation through time.

        Processes started by ``torchrun``, or those of torch's process group, train together. Each gets all samples and runs its
        share of every batch. Gradients are summed over the processes (by NCCL on GPUs, else by gloo), and updates and losses are those of
        the whole batch in each, up to rounding. All start from the parameters of rank 0, and end with the same bits.

        If the engine was compiled for one batch size, samples that do not fill the last batch of an epoch are skipped and
        counted in ``History.dropped``; with shuffling they differ in each epoch. Other engines accept a smaller last batch.

        Parameters
        ----------
        x
            [samples, T, *shape] ([samples, *shape] for inputs without a time axis), or a mapping of such arrays. Without `y`:
            batches, pairs ``(x, y)`` of the same, from a DataLoader, a list or a generator. Each is an update. They are iterated again in
            each epoch, so a generator, which yields them once, lasts for one. Or a data set (:mod:`snnc.data`), which gives its own
            labels: it is read batch by batch, in the order that arrays would have.
        y
            [samples], class indices.
        epochs
            Number of passes over all samples.
        first_epoch
            Epochs of an earlier :meth:`fit` with the same data and seed: order and learning rate continue after them, so
            training in two parts (with :meth:`save` and :meth:`load` in between, ``optimizer=True``) equals training in one.
        batch
            Samples per update; the engine's, or 64. An iterable of batches has its own sizes.
        learning_rate
            A number; a schedule of :mod:`snnc.schedules`, its text, or another function of the update (updates of `first_epoch` epochs
            included); the optimizer's by default.
        gradient_window
            The lower end of the gradient window, or both ends, each a number, a schedule or another function of the update, inside the
            compiled window; by default it stays as it is.
        shuffle, seed
            Order of the samples: a new permutation each epoch, or as given. An iterable of batches keeps its order.
        accumulate
            Number of parts in which the samples of an update run in sequence: gradients are summed, and a step needs the memory
            of one part. The update is that of the whole batch, up to rounding. An engine that was compiled for one batch size runs so many
            batches for an update; its optimizer has to have ``accumulate``.
        validation
            ``(x, y)``: samples and labels that the network is measured on after each epoch.
        metrics
            What is measured besides loss and accuracy: ``"top_3"``, ``"f1"``, ``"per_class"``, ``"confusion"``, or functions of scores
            [samples, classes] and labels.
        monitor
            What says which epoch is the best: the validation ``"loss"``, or the ``"accuracy"``.
        patience, min_delta
            Training stops after so many epochs in sequence that improve it by no more than `min_delta`.
        best
            File for the weights of the best epoch, like one of `checkpoints`.
        restore_best
            Whether the session has the weights of the best epoch in the end, instead of those of the last one.
        log
            CSV file with a row an epoch.
        tensorboard
            Folder for event files; needs tensorboardX, or torch and tensorboard.
        callback
            Called after each batch.
        on_epoch
            Called after each epoch, once it is saved.
        checkpoints
            A file for weights, optimiser state and position, with its interval. With it, Ctrl-C, SIGTERM and SIGHUP end
            training after the current batch: the progress is saved, then the signal has its usual effect (``KeyboardInterrupt``).
        distributed
            Whether such processes train together; otherwise each trains alone.

        Raises
        ------
        DivergedError
            A loss is not finite, or a parameter or moment is at the end of an epoch. The session holds parameters and moments of the last
            epoch (or checkpoint) at which all were finite, at worst the initial ones, and can be used and trained further.
        CheckpointError
            The progress cannot be written; the session still holds it.
        SessionError
            The data do not fit the network, or it cannot be trained; or processes cannot train together.
        """
        self._check_open()
        if self.program.loss is None or self.program.optimizer is None:
            raise NotTrainableError(f"{self.program.name!r} was compiled without a loss and an optimizer; give both to train it.")
        warn_of_differences(self.program)
        measured = validation_data(self, validation, metrics)
        watching = Watching(
            None if measured is None else measured.measure,
            "" if measured is None else f"{measured.text}",
            Stopping(monitor, patience, min_delta),
            None if best is None else Path(best),
            restore_best,
            log,
            tensorboard,
        )
        watching.check(metrics, checkpoints)
        values = RunValues(self._window, gradient_window)
        if isinstance(x, BatchedData):
            check_data_set(self, x, y, distributed, checkpoints, watching)
            size = training.batch_size(self.engine, len(x), batch, accumulate)
            order = training.BatchSchedule(epochs, size, self.engine.batch is not None, shuffle, seed, first_epoch)
            rate = training.learning_rate(self.program.optimizer, learning_rate)
            options = StreamOptions(epochs, first_epoch, rate, values, accumulate, callback, on_epoch)
            return fit_batches(self, DataSetEpochs(x, order), options)
        if y is None or is_stream(x, y):
            check_stream(self, x, y, batch, distributed, checkpoints, watching)
            rate = training.learning_rate(self.program.optimizer, learning_rate)
            options = StreamOptions(epochs, first_epoch, rate, values, accumulate, callback, on_epoch)
            return fit_batches(self, cast(Iterable[Any], x), options)
        data, labels = self.labelled(cast("Mapping[str, Input] | Input", x), y)
        count = len(labels)
        plan = training.BatchSchedule(
            epochs, training.batch_size(self.engine, count, batch, accumulate), self.engine.batch is not None, shuffle, seed, first_epoch
        )
        call = FitArguments(plan, count, labels, learning_rate, accumulate, checkpoints, callback, on_epoch, watching, values)
        ranks = ranks_for(self.engine, plan.batch) if distributed else None
        if ranks is not None:
            check_alone(self.program)
        updates = Updates(
            self.engine, lambda chosen: (self.batch_of(data, chosen), labels[chosen].astype(np.int64)), accumulate=accumulate, ranks=ranks
        )
        if ranks is not None and measured is not None:
            raise UnsharedTargetError("processes that train together measure nothing; leave validation out, or give distributed=False.")
        begin = beginning(call, self.program, self.engine)
        if ranks is not None:
            ranks.begin((plan, begin.epoch, begin.batch, accumulate, {id_: a.shape for id_, a in data.items()}), labels)
        history = fit(call, begin, self.program, self.engine, updates)
        if ranks is not None and not updates.stopping:
            ranks.end()
        return history

    @property
    def gradient_window(self) -> tuple[float, float] | None:
        """The ends between which a neuron takes gradient, membrane minus threshold; None: compiled without.

        They can be set, as a pair or as the lower end alone, inside the compiled window; :meth:`fit` takes schedules. No file of weights
        holds them.
        """
        return self._window.now

    @gradient_window.setter
    def gradient_window(self, window: float | tuple[float, float]) -> None:
        self._check_open()
        self._window.set(*(window if isinstance(window, tuple | list) else (window,)))

    def labelled(self, x: Mapping[str, Input] | Input, y: npt.ArrayLike) -> tuple[dict[str, InputValues], Array]:
        """Check samples and their labels; return the argument of :meth:`batch_of`, and the labels."""
        data, labels = self._samples(x), array_of(y, "y")
        check_labels(self.program, labels, len(next(iter(data.values()))))
        return data, labels

    def labelled_sequences(self, inputs: Mapping[str, Input] | Input, targets: npt.ArrayLike) -> tuple[dict[str, InputValues], Array]:
        """Check a batch of a data set; return its inputs by id, [T, B, *shape], and its labels."""
        found, labels = self._sequences(inputs), array_of(targets, "the targets")
        check_labels(self.program, labels, next(iter(found.values())).shape[1])
        return found, labels

    def part_of(self, sequences: Mapping[str, InputValues], chosen: Array) -> dict[str, Array]:
        """Take samples of [T, B, *shape], for the engine."""
        parts: dict[str, Array] = {}
        for id_, a in sequences.items():
            if len(chosen) == a.shape[1] and (chosen == np.arange(len(chosen))).all():
                parts[id_] = self._cast(a)
            elif isinstance(a, Events):
                parts[id_] = self._cast(a.rows(np.arange(a.shape[0])[:, None] * a.shape[1] + chosen[None, :]))
            else:
                parts[id_] = self._cast(a[:, chosen])
        return parts

    def _sequences(self, inputs: Mapping[str, Input] | Input) -> dict[str, InputValues]:
        found = {}
        for info, array in self._paired_inputs(inputs):
            if array.ndim != len(info.shape) + 2 or array.shape[2:] != info.shape or 0 in array.shape:
                wanted = describe(info.shape, FileLayout(0, 1))
                raise DataShapeError(f"a batch of the data set is {list(array.shape)} for the input {info.label!r}; it must be {wanted}.")
            found[info.id] = array
        return self._aligned(found, None)

    def _predicted(self, data: BatchedData, output: str | None) -> Iterator[tuple[Array, Array]]:
        """Yield the class indices of a data set's batches, and their targets."""
        chosen = prediction_output(self.program, output)
        for inputs, targets in data.batches(self.engine.batch or 64):
            whole = self._sequences(inputs)
            length, batch = next(iter(whole.values())).shape[:2]
            size = samples_at_once(self.engine, length, batch)
            cut = (slice(at, min(at + size, batch)) for at in range(0, batch, size))
            records = self._forward(self._filled(whole, {}, part) for part in cut)
            yield np.concatenate([scores(self.program, chosen, r[chosen.id]).argmax(axis=-1) for r in records]), np.asarray(targets)

    def predict(self, x: Mapping[str, Input] | Input | BatchedData, output: str | None = None) -> Array:
        """Return the class index of each sample; `x` as in :meth:`fit`, `output` if several are possible."""
        self._check_open()
        if isinstance(x, BatchedData):
            return np.concatenate([np.zeros(0, np.int64), *(found for found, _ in self._predicted(x, output))])
        chosen = prediction_output(self.program, output)
        return np.concatenate([found.argmax(axis=-1) for _, found in self.outputs_and_scores(self._samples(x), chosen)])

    def outputs_and_scores(self, data: Mapping[str, InputValues], output: OutputInfo | None = None) -> Iterator[tuple[Array, Array]]:
        """Run samples in batches; yield the outputs [T, B, n] and the scores [B, classes] of each, by default at the loss's output."""
        chosen = output or prediction_output(self.program)
        count = len(next(iter(data.values())))
        length = next(iter(self.batch_of(data, np.arange(1)).values())).shape[0]
        size = samples_at_once(self.engine, length, min(count, 256))
        batches = (self.batch_of(data, np.arange(at, min(at + size, count))) for at in range(0, count, size))
        for record in self._forward(self._filled(batch, {}, slice(None)) for batch in batches):
            found = record[chosen.id]
            yield found.reshape(*found.shape[:2], -1), scores(self.program, chosen, found)

    def evaluate(self, x: Mapping[str, Input] | Input | BatchedData, y: npt.ArrayLike | None = None, output: str | None = None) -> float:
        """Return the share of samples whose class :meth:`predict` finds; a data set gives its own labels."""
        self._check_open()
        if isinstance(x, BatchedData) != (y is None):
            raise LabelsMissingError("give evaluate(x, y) with arrays, and evaluate(data) with a data set, which has its own labels.")
        if isinstance(x, BatchedData):
            if len(x) == 0:
                raise BatchSizeError("the data set has no samples; an accuracy needs one or more.")
            right = 0
            for found, targets in self._predicted(x, output):
                check_labels(self.program, targets, len(found), output)
                right += int((found == targets).sum())
            return right / len(x)
        assert y is not None, "checked above"
        labels = array_of(y, "y")
        predicted = self.predict(x, output)
        check_labels(self.program, labels, len(predicted), output)
        return float((predicted == labels).mean())

    # ---- weights -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Array]:
        """Return all parameters by label: ``"<layer>.weight"``, ``"<layer>.bias"``, ``"<population>.<parameter>"``."""
        self._check_open()
        return by_label(self.program, self.engine.get_parameters())

    def load_state_dict(self, values: Mapping[str, npt.ArrayLike], strict: bool = True) -> None:
        """Set parameters by label; with `strict` exactly all of them. If anything is wrong, nothing changes."""
        self._check_open()
        self.engine.set_parameters(by_name(self.program, values, strict))

    def save(self, path: str | os.PathLike[str], optimizer: bool = False) -> None:
        """Write the parameters to a safetensors file; with `optimizer` also the state for further training: moments and number of updates.

        Raises
        ------
        WeightFileError
            The file cannot be written.
        WeightNotFiniteError
            A value is NaN or infinite; the file is unchanged.
        OptimizerValuesError
            With `optimizer`: the network was compiled without one.
        """
        self._check_open()
        kept = optimizer_by_label(self.program, self.engine) if optimizer else {}
        values = self.state_dict() | kept
        check_finite(values)
        save_weights(path, values)

    def load(self, path: str | os.PathLike[str], strict: bool = True, optimizer: bool | None = None) -> None:
        """Set the parameters from a safetensors file; if anything is wrong, nothing changes.

        Parameters
        ----------
        path
            A file of :meth:`save`, from any target.
        strict
            Require exactly this network's parameters.
        optimizer
            Set the optimiser as well, so that training continues where it stopped; by default if the file holds it and this network is
            trainable.

        Raises
        ------
        WeightFileError, WeightsError, WeightShapeError, WeightNotFiniteError
            The file, or its contents, do not fit.
        OptimizerValuesError
            Its optimiser state is missing, damaged or from another optimiser.
        """
        self._check_open()
        set_entries(self.program, self.engine, load_weights(path), strict, optimizer)

    # ---- the rest ----------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        """Return the backend's counters, for example ``dropped_spikes``."""
        self._check_open()
        return self.engine.counters()

    def close(self) -> None:
        """Release the engine's resources; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the session of {self.program.name!r} is closed; open a new one.")

    def _stepping_engine(self) -> SteppingEngine:
        self._check_open()
        if isinstance(self.engine, SteppingEngine):
            return self.engine
        if self.engine.steps is None:
            raise NoStepwiseError("this backend runs whole sequences only; use run(), or the reference backend for single steps.")
        if self._replay is None:
            self._replay = StepReplay(self.engine, self.engine.steps)
        return self._replay

    def _paired_inputs(self, inputs: Mapping[str, Input] | Input, events: bool = True) -> Iterator[tuple[InputInfo, InputValues]]:
        """Pair the program's inputs with checked arrays; with `events`, those stay as they are."""
        infos = self.program.inputs
        names = [info.label for info in infos]
        if not isinstance(inputs, Mapping):
            if len(infos) != 1:
                raise UnknownNameError(
                    f"{self.program.name!r} has {len(infos)} inputs, {', '.join(names)}; give a mapping of names to arrays."
                )
            inputs = {names[0]: inputs}
        missing, unknown = [n for n in names if n not in inputs], [n for n in inputs if n not in names]
        if missing or unknown:
            parts = [f"{', '.join(map(repr, n))} {what}" for n, what in ((missing, "missing"), (unknown, "unknown")) if n]
            raise UnknownNameError(f"inputs: {'; '.join(parts)}. {self.program.name!r} takes {', '.join(names)}.")
        for info in infos:
            given = inputs[info.label]
            if isinstance(given, Events) and events:
                yield info, given
            else:
                array = given.dense() if isinstance(given, Events) else given
                yield info, checked(array, info.kind, f"the input {info.label!r}")

    def _aligned(self, sequences: Mapping[str, InputValues], steps: int | None) -> dict[str, InputValues]:
        """Bring all sequences to the same T and B."""
        lengths = {len(sequences[i.id]) for i in self.program.inputs if not i.static or len(sequences[i.id]) > 1}
        fixed = self.engine.steps or self.program.steps
        total = steps or (next(iter(lengths)) if lengths else fixed)
        if total is None:
            raise StepsError("no input has a time axis; give the number of steps with steps=….")
        if len(lengths) > 1 or (lengths and total not in lengths) or (fixed is not None and total != fixed):
            compiled = "" if fixed is None else f"; the network was compiled for {fixed}"
            raise StepsError(f"the inputs have {', '.join(map(str, sorted(lengths))) or 'no'} steps, {total} are to run{compiled}.")
        batch = max(a.shape[1] for a in sequences.values())
        self._check_batch(sequences, batch)
        return {id_: a if isinstance(a, Events) else np.broadcast_to(a, (total, batch, *a.shape[2:])) for id_, a in sequences.items()}

    def _check_batch(self, sequences: Mapping[str, InputValues], batch: int) -> None:
        for info in self.program.inputs:
            own = sequences[info.id].shape[1]
            if own != batch and (info.layout.batch_axis is not None or isinstance(sequences[info.id], Events)):
                raise BatchSizeError(f"the input {info.label!r} has a batch of {own}, another input one of {batch}; they must be equal.")

    def _forward(self, batches: Iterator[_Filled]) -> Iterator[dict[str, Array]]:
        """Run batches in sequence, and remove the padding."""
        now = next(batches, None)
        while now is not None:
            following = next(batches, None)
            if following is not None and accepts_next(self.engine):
                self.engine.offer(following.inputs)
            records = self.engine.forward(now.inputs, now.initial)
            yield {id_: record[:, : now.count] for id_, record in records.items()}
            now = following

    def _filled(self, whole: Mapping[str, InputValues], initial: Mapping[tuple[str, str], Array], part: slice) -> _Filled:
        """Take some samples, padded with zeros to the engine's batch."""
        inputs = {id_: array.part(part) if isinstance(array, Events) else array[:, part] for id_, array in whole.items()}
        count = next(iter(inputs.values())).shape[1]
        start = {key: array[part] for key, array in initial.items()}
        missing = (self.engine.batch or count) - count
        if missing > 0:
            dense = densely(inputs)
            inputs = {id_: padded(array, 1, missing) for id_, array in dense.items()}
            start = {key: padded(array, 0, missing) for key, array in start.items()}
        return _Filled({id_: self._cast(a) for id_, a in inputs.items()}, {key: self._cast(a) for key, a in start.items()}, count)

    def _samples(self, x: Mapping[str, Input] | Input) -> dict[str, InputValues]:
        """Check arrays of samples against the inputs: id -> [samples, T, *shape] (static inputs without T)."""
        found = {}
        for info, array in self._paired_inputs(x):
            layout = FileLayout(None if info.static else 1, 0)
            lead = 1 if info.static and array.ndim == len(info.shape) + 1 else 2
            if array.ndim != len(info.shape) + lead or array.shape[lead:] != info.shape or 0 in array.shape:
                wanted = describe(info.shape, layout).replace("B", "samples", 1)
                none = "" if 0 not in array.shape else " (there are none)" if array.shape[0] == 0 else " (they hold nothing)"
                raise DataShapeError(f"the samples for {info.label!r} have shape {list(array.shape)}{none}; they must be {wanted}.")
            found[info.id] = array
        if len({len(a) for a in found.values()}) != 1:
            raise BatchSizeError(f"the inputs have {', '.join(str(len(a)) for a in found.values())} samples; they must be equal.")
        return found

    def batch_of(self, data: Mapping[str, InputValues], chosen: Array) -> dict[str, Array]:
        """Take samples: id -> [T, B, *shape]."""
        shapes = {info.id: len(info.shape) for info in self.program.inputs}
        batches: dict[str, InputValues] = {}
        for id_, a in data.items():
            if isinstance(a, Events):
                batches[id_] = a.of_samples(chosen)
            else:
                batches[id_] = a[chosen][None] if a.ndim == shapes[id_] + 1 else a[chosen].swapaxes(0, 1)
        return {id_: self._cast(a) for id_, a in self._aligned(batches, None).items()}

    def _cast(self, array: InputValues) -> Array:
        """Return the engine's input; only engines that support events get any, others the array of this batch."""
        if isinstance(array, Events):
            if getattr(self.engine, "accepts_events", False):
                return cast(Array, array)
            array = array.dense()
        dtype: npt.DTypeLike = getattr(self.engine, "dtype", np.float32)
        result: npt.NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
        return result


@dataclass(frozen=True, eq=False)
class _Filled:
    """Input of an engine's forward run, and the number of its samples that count."""

    inputs: Mapping[str, Array]
    initial: Initial
    count: int


def _sequence(given: InputValues, info: InputInfo) -> InputValues:
    """Convert the value of an input to [T, B, *shape]; events already have this form."""
    if not isinstance(given, Events):
        return to_sequence(given, info)
    if given.shape[2:] != info.shape or info.static:
        raise DataShapeError(
            f"the events of the input {info.label!r} represent {list(given.shape)}; it takes [T, B, {', '.join(map(str, info.shape))}]."
        )
    return given
