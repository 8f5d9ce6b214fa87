"""The session of a compiled network: one class for all backends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import from_sequence
from snnc.backends.runtime.engine import SKIPPED, Array, Engine, SteppingEngine
from snnc.backends.runtime.errors import BatchSizeError, ClosedError, NoStepwiseError, NotTrainableError, StepsError
from snnc.backends.runtime.events import InputValues
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.initial import initial_states
from snnc.backends.runtime.inputs import BatchedData, Input, Inputs, ProgramInputs
from snnc.backends.runtime.predicting import Predictor
from snnc.backends.runtime.replay import StepReplay
from snnc.backends.runtime.targets import has_classes
from snnc.backends.runtime.weights import by_label, by_name, check_finite, load_weights, save_weights
from snnc.backends.training.data.training_data import Validated, training_data
from snnc.backends.training.fitting import FitArguments, fit
from snnc.backends.training.notices import warn_of_differences
from snnc.backends.training.plan import BatchSchedule, LearningRate
from snnc.backends.training.saving.checkpoint import Checkpoints, set_entries
from snnc.backends.training.saving.optimizer_values import optimizer_by_label
from snnc.backends.training.updates.capacities import ScheduledCapacity, SpikeLimits
from snnc.backends.training.updates.ranks import ranks_for
from snnc.backends.training.updates.run_values import GradientWindow, RunValues, WindowArgument
from snnc.backends.training.validation.metrics import Metric
from snnc.backends.training.validation.stopping import Monitor, Stopping
from snnc.backends.training.validation.validating import SpikeCounter, validation_data
from snnc.backends.training.validation.watching import Watching
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.capacities import CapacityArgument
from snnc.compiler.lowering.spike_limits import DropPolicy
from snnc.compiler.lowering.statistics import visible

__all__ = ["BackendSession", "Input"]


class BackendSession:
    """Runs and trains a network, whose step program `engine` runs; use it as a context manager, or :meth:`close` it."""

    def __init__(self, engine: Engine, program: StepProgram) -> None:
        self.engine = engine
        self.program = visible(program)
        self._window = GradientWindow(program, engine)
        self._limits = SpikeLimits(program, engine)
        self._closed = False
        self._replay: StepReplay | None = None
        self._stepping: int | None = None
        """Batch size of the current sequence of :meth:`step`."""

    @property
    def inputs(self) -> ProgramInputs:
        """The inputs of the program, for this engine."""
        return ProgramInputs(self.program, self.engine)

    # ---- running -----------------------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Inputs,
        initial: Mapping[str, npt.ArrayLike] | None = None,
        steps: int | None = None,
    ) -> dict[str, Array]:
        """Run sequences from their initial states.

        Parameters
        ----------
        inputs
            Input name -> array with the axes of the model's file; the array alone if there is one input. Inputs without a time axis are
            the same at every step.
        initial
            State name -> [*shape], [B, *shape] or a number, if it differs from the model's. Names are ``"population.state"``, or those of
            states in the file.
        steps
            Number of steps, needed only if no input and no compile option gives it.

        Returns
        -------
        dict
            Output name -> array with the axes of the file.

        Raises
        ------
        SessionError
            The arrays do not fit the network.
        """
        self._check_open()
        sequences, states = self.prepared(inputs, initial, steps)
        parts = list(self._predictor().records(sequences, states))
        records = {id_: np.concatenate([part[id_] for part in parts], axis=1) for id_ in parts[0]}
        return {o.label: from_sequence(records[o.id], o) for o in self.program.outputs}

    def prepared(
        self,
        inputs: Inputs,
        initial: Mapping[str, npt.ArrayLike] | None = None,
        steps: int | None = None,
    ) -> tuple[dict[str, InputValues], dict[tuple[str, str], Array]]:
        """Convert arguments of :meth:`run` for the engine: input id -> [T, B, *shape], and initial values of all samples."""
        if steps is not None and steps < 1:
            raise StepsError(f"steps is {steps}; it must be at least 1.")
        sequences = self.inputs.sequences(inputs, steps)
        return sequences, initial_states(self.program, initial or {}, next(iter(sequences.values())).shape[1])

    def step(self, inputs: Inputs) -> dict[str, Array]:
        """Run one step and keep the state for the next; :meth:`reset` starts again.

        A program for tile machines or PopTorch runs whole sequences, of at most the compiled numbers of steps and samples. There, each
        step runs the sequence again from its start, which is exact but slow.

        Inputs and outputs are as for :meth:`run`, without the time axis: [B, *shape], or [*shape] for one sample if the file has no batch
        axis.

        Raises
        ------
        NoStepwiseError
            The backend cannot run this step.
        """
        engine = self._stepping_engine()
        arrays = self.inputs.of_step(inputs)
        batch = len(next(iter(arrays.values()))) if arrays else 1
        if self._stepping is None:
            self.reset(batch)
        if batch != self._stepping:
            raise BatchSizeError(f"this step has a batch of {batch}, earlier steps had {self._stepping}; call reset() between them.")
        records = engine.step(arrays)
        return {o.label: records[o.id] if o.layout.batch_axis is not None or batch > 1 else records[o.id][0] for o in self.program.outputs}

    def reset(self, batch: int | None = None, initial: Mapping[str, npt.ArrayLike] | None = None) -> None:
        """Set all states to their initial values before the next :meth:`step`; `initial` as for :meth:`run`.

        `batch` is the number of samples: by default 1 if `initial` is given, else that of the next inputs.
        """
        engine = self._stepping_engine()
        if batch is not None and batch < 1:
            raise BatchSizeError(f"the batch is {batch}; it must be at least 1.")
        self._stepping = batch or (1 if initial else None)
        if self._stepping is not None:
            engine.reset(self._stepping, initial_states(self.program, initial or {}, self._stepping))

    # ---- training ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        x: Inputs | BatchedData | Iterable[Any],
        y: npt.ArrayLike | None = None,
        *,
        epochs: int = 1,
        first_epoch: int = 0,
        batch: int | None = None,
        learning_rate: LearningRate = None,
        gradient_window: WindowArgument = None,
        capacity: ScheduledCapacity | None = None,
        shuffle: bool = True,
        seed: int | None = None,
        accumulate: int = 1,
        validation: Validated | None = None,
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

        Processes started by ``torchrun``, or those of torch's process group, train together. Each gets all samples and runs its share of
        every batch; their gradients are summed (by NCCL on GPUs, otherwise by gloo). Up to rounding, every process makes the update and
        reports the loss of the whole batch. All start from the parameters of rank 0 and end with identical bits.

        If the network was compiled for one batch size, samples that do not fill the last batch of an epoch are skipped and counted in
        ``History.dropped``; with shuffling, they differ from epoch to epoch. Otherwise the last batch may be smaller.

        Parameters
        ----------
        x
            [samples, T, *shape] ([samples, *shape] for inputs without a time axis), or a mapping of such arrays by input name. Without
            `y`: a data set (:mod:`snnc.data`), which contains its labels and is read batch by batch, in the same order as arrays; or an
            iterable of batches, which are pairs ``(x, y)`` of such arrays, for example a DataLoader. Each batch is one update. Each epoch
            iterates over the iterable again, so a generator lasts for one epoch.
        y
            [samples], class indices; targets of a different kind if the loss needs them (:mod:`snnc.losses`).
        epochs
            Number of passes over all samples.
        first_epoch
            Number of epochs already trained by an earlier :meth:`fit` with the same data and seed. Order and learning rate continue after
            them, so training in two parts (with :meth:`save` and :meth:`load` in between, ``optimizer=True``) equals training in one.
        batch
            Number of samples per update, unless `x` is an iterable of batches; by default that of the compiled network, or 64.
        learning_rate
            A number, a schedule of :mod:`snnc.schedules` or its text, or another function of the number of updates (including those of the
            `first_epoch` earlier epochs); by default the rate of the optimiser.
        gradient_window
            The lower end of the gradient window, or both ends, inside the compiled window: numbers, schedules or other functions of the
            number of updates. By default, the window does not change.
        capacity
            Maximum number of spikes that a source sends in a step, up to the compiled capacity, for networks compiled with mode "drop". It
            is a number, a schedule (rounded) or another function of the number of updates; or a share of the neurons, such as ``"5 %"`` or
            ``"linear:10,5,epochs=8 %"``; or one of these for each input or population, as a dictionary by name (``"*"``: all others) or as
            text, such as ``"5 %; hidden=20"``.
        shuffle, seed
            Whether the samples are in a new random order in each epoch, and the seed of these orders, by default the seed given to
            ``compile``. An iterable of batches keeps its order.
        accumulate
            Number of parts of the batch of an update, which run one after another; their gradients are summed. A training step
            needs the memory of one part only, and the update equals that of the whole batch, up to rounding. A network compiled for one
            batch size runs this number of batches per update; if this is more than 1, its optimiser needs ``accumulate=True``.
        validation
            ``(x, y)``, samples and labels, or a data set, on which the network is evaluated after each epoch. Processes that train
            together evaluate a share each.
        metrics
            Metrics besides loss and accuracy: ``"top_3"``, ``"f1"``, ``"per_class"``, ``"confusion"``; functions of scores
            [samples, classes] and labels; or ``"spikes"``, the mean number of spikes per sample in each layer (``spikes_<label>``), counted
            in the first 16 samples by the NumPy reference.
        monitor
            Quantity that determines the best epoch: the validation ``"loss"``, or the ``"accuracy"``.
        patience, min_delta
            Training stops after `patience` consecutive epochs that improve the monitored quantity by no more than `min_delta`.
        best
            File for the weights of the best epoch, in the format of `checkpoints`.
        restore_best
            Whether the session ends with the weights of the best epoch instead of the last one.
        log
            CSV file with one row per epoch.
        tensorboard
            Folder for event files; needs tensorboardX, or torch and tensorboard.
        callback
            Called after each batch.
        on_epoch
            Called after each epoch, when its checkpoint has been written.
        checkpoints
            A file for weights, optimiser state and position, and the interval at which it is written. With it, Ctrl-C, SIGTERM and SIGHUP
            end training after the current batch: the progress is saved, then the signal has its usual effect (``KeyboardInterrupt``).
        distributed
            Whether processes of ``torchrun`` train together; otherwise each trains alone.

        Raises
        ------
        DivergedError
            A loss is not finite, or a parameter or moment at the end of an epoch. The session then has the parameters and moments of the
            last epoch (or checkpoint) at which all were finite, or the initial ones, and can be trained further.
        CheckpointError
            The progress cannot be written; the session keeps its weights.
        SessionError
            The data do not fit the network, or it cannot be trained; or processes cannot train together.
        """
        self._check_open()
        if self.program.loss is None or self.program.optimizer is None:
            raise NotTrainableError(f"{self.program.name!r} was compiled without a loss and an optimiser; give both to train it.")
        warn_of_differences(self.program)
        schedule = BatchSchedule(epochs, first_epoch, shuffle, self._seed_of_fit(seed, shuffle), accumulate)
        data = training_data(self.inputs, x, y, schedule, self._batch_of_fit(x, y, batch))
        ranks = ranks_for(self.engine, data) if distributed else None
        held_out = validation_data(self._predictor(), validation, metrics, ranks, self.spike_counter())
        skipped = self.engine.counters().get(SKIPPED, 0)
        stopping, file = Stopping(monitor, patience, min_delta), None if best is None else Path(best)
        watching = Watching(held_out, stopping, file, restore_best, log, tensorboard, has_classes(self.program.loss))
        watching.check(metrics, checkpoints)
        values = RunValues(self._window, gradient_window, self._limits, capacity)
        call = FitArguments(data, learning_rate, checkpoints, callback, on_epoch, watching, values)
        history = fit(call, self.program, self.engine, ranks)
        history.skipped_updates = self.engine.counters().get(SKIPPED, 0) - skipped
        self._after_fit(history, data.samples)
        return history

    def _batch_of_fit(self, x: object, y: object, batch: int | None) -> int | None:
        """Return the number of samples per update, for arguments of :meth:`fit`; None: the default."""
        return batch

    def _seed_of_fit(self, seed: int | None, shuffle: bool) -> int:
        return seed or 0

    def _after_fit(self, history: History, samples: int) -> None:
        """Called after training with `samples` samples per epoch (0: unknown)."""

    def spike_counter(self) -> SpikeCounter | None:
        """Return a counter of the spikes in each layer, for the metric ``"spikes"``; None if the session has no counter."""
        return None

    @property
    def gradient_window(self) -> tuple[float, float] | None:
        """The ends of the gradient window, as membrane potential minus threshold; None: compiled without one.

        It can be set, as a pair or as the lower end alone, to values inside the compiled window; :meth:`fit` also accepts schedules.
        Weight files do not store it.
        """
        return self._window.now

    @gradient_window.setter
    def gradient_window(self, window: float | tuple[float, float]) -> None:
        self._check_open()
        self._window.set(*(window if isinstance(window, tuple | list) else (window,)))

    @property
    def capacity(self) -> int | dict[str, int] | None:
        """Maximum number of spikes that a source sends in a step; others are dropped. None: no limit, or the plan on tiles sets it.

        One number, or numbers by the names of inputs and populations if they differ. It can be set in every form that ``compile`` accepts,
        up to the compiled capacity; :meth:`fit` also accepts schedules. Weight files do not store it.
        """
        return self._limits.capacity

    @capacity.setter
    def capacity(self, capacity: CapacityArgument) -> None:
        self._check_open()
        self._limits.set(capacity)

    @property
    def drop(self) -> DropPolicy | None:
        """Which spikes a source sends if more than :attr:`capacity` neurons fire: the ``"lowest"`` ids, or a ``"random"`` choice, which
        differs in each step and update. None in the same cases as :attr:`capacity`. It can be set."""
        return self._limits.policy

    @drop.setter
    def drop(self, policy: DropPolicy) -> None:
        self._check_open()
        self._limits.set(policy=policy)

    # ---- predicting --------------------------------------------------------------------------------------------------

    def predict(self, x: Inputs | BatchedData, output: str | None = None) -> Array:
        """Return the class index of each sample; `x` as for :meth:`fit`; `output` is needed if there are several outputs."""
        self._check_open()
        return self._predictor().classes(x, output)

    def evaluate(self, x: Inputs | BatchedData, y: npt.ArrayLike | None = None, output: str | None = None) -> float:
        """Return the share of samples for which :meth:`predict` finds the right class; a data set provides its own labels."""
        self._check_open()
        return self._predictor().accuracy(x, y, output)

    # ---- weights -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Array]:
        """Return all parameters by label: ``"<layer>.weight"``, ``"<layer>.bias"``, ``"<population>.<parameter>"``."""
        self._check_open()
        return by_label(self.program, self.engine.get_parameters())

    def load_state_dict(self, values: Mapping[str, npt.ArrayLike], strict: bool = True) -> None:
        """Set parameters by label; with `strict`, `values` must contain all of them and nothing else. On an error, nothing changes."""
        self._check_open()
        self.engine.set_parameters(by_name(self.program, values, strict))

    def save(self, path: str | os.PathLike[str], optimizer: bool = False) -> None:
        """Write the parameters to a safetensors file; with `optimizer`, also the state of the optimiser, to continue training.

        Raises
        ------
        WeightFileError
            The file cannot be written.
        WeightNotFiniteError
            A value is NaN or infinite; the file is unchanged.
        OptimizerValuesError
            `optimizer` is True, but the network was compiled without an optimiser, or the target does not expose its state.
        """
        self._check_open()
        moments = optimizer_by_label(self.program, self.engine) if optimizer else {}
        values = self.state_dict() | moments
        check_finite(values)
        save_weights(path, values)

    def load(self, path: str | os.PathLike[str], strict: bool = True, optimizer: bool | None = None) -> None:
        """Set the parameters from a safetensors file; on an error, nothing changes.

        Parameters
        ----------
        path
            A file that :meth:`save` wrote, on any target.
        strict
            Whether the file must contain all parameters of this network and no others.
        optimizer
            Whether to set the state of the optimiser too, to continue training. By default, if the file contains it and this network is
            trainable.

        Raises
        ------
        WeightFileError, WeightsError, WeightShapeError, WeightNotFiniteError
            The file is missing or damaged, or its contents do not fit the network.
        OptimizerValuesError
            Its optimiser state is missing, damaged or from a different optimiser.
        """
        self._check_open()
        set_entries(self.program, self.engine, load_weights(path), strict, optimizer)

    # ---- other ----------------------------------------------------------------------------------------------------

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

    def _predictor(self) -> Predictor:
        return Predictor(self.inputs, self._limits.use_first_choice)

    def _stepping_engine(self) -> SteppingEngine:
        """Return an engine for single steps: the backend's own, or one that runs the whole sequence again."""
        self._check_open()
        if self.drop == "random":
            raise NoStepwiseError("the random choice of dropped spikes depends on the step of a sequence; use run(), or drop='lowest'.")
        if isinstance(self.engine, SteppingEngine):
            return self.engine
        if self.engine.steps is None:
            raise NoStepwiseError("this backend runs whole sequences only; use run(), or the reference backend for single steps.")
        if self._replay is None:
            self._replay = StepReplay(self.engine, self.engine.steps)
        return self._replay
