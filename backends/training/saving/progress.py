"""Saving of the progress of training, so that non-finite values and interruptions do not destroy it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from snnc.backends.runtime.engine import Array, Engine, OptimizerValues, ResumableEngine
from snnc.backends.runtime.errors import DivergedError, ResumeError
from snnc.backends.runtime.weights import by_label, read_weight_file
from snnc.backends.training.saving.checkpoint import Checkpoints, Position, position_in, save_checkpoint, set_entries
from snnc.backends.training.saving.optimizer_values import optimizer_entries
from snnc.backends.training.updates.ranks import leads
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.window_values import is_run_value


@dataclass(frozen=True, eq=False)
class _State:
    """Parameters (without bounds of gradient windows and limits on spikes), and the state of the optimiser if the engine exposes it."""

    parameters: Mapping[str, Array]
    optimizer: OptimizerValues | None


class ProgressGuard:
    """Stores the last good state of a session during training: parameters and moments that are all finite.

    `file` is the file to which the state is written, with the interval between two writes within an epoch; None: the state is stored only
    in memory.
    """

    def __init__(self, engine: Engine, program: StepProgram, file: Checkpoints | None) -> None:
        self.engine = engine
        self.program = program
        self.file = None if file is None else Path(file.path)
        self._every = math.inf if file is None else file.seconds
        self._good: tuple[_State, Position] | None = None
        self._best: _State | None = None
        self._written = time.monotonic()

    def check_loss(self, position: Position, loss: float) -> None:
        """If the loss is not finite, restore the last good state in the engine and raise a DivergedError."""
        if not math.isfinite(loss):
            self._diverge(f"the loss of batch {position.of_batches} in epoch {position.epoch + 1} is {loss}")

    def save(self, position: Position) -> None:
        """Check the engine's current state, store it and write it to the file.

        Raises a DivergedError if a value is not finite; the engine and the file then contain the last good state. Raises a CheckpointError
        if the file cannot be written.
        """
        state, entries = self.checked(position)
        self._good = state, position
        if self.file is not None:
            save_checkpoint(self.file, entries, position)
        self._written = time.monotonic()

    def keep_best(self, path: Path | None, position: Position) -> None:
        """Store the engine's current state as the best one, in a file or in memory; raise a CheckpointError if writing fails."""
        state, entries = self.checked(position)
        self._best = None if path is not None else state
        if path is not None and leads():
            save_checkpoint(path, entries, position)

    def restore_best(self, path: Path | None, epochs: int) -> None:
        """Restore the best state, reached after `epochs` epochs; raise a ResumeError if the file contains a different state."""
        if path is None:
            assert self._best is not None, "keep_best is called after each best epoch"
            self._set(self._best)
            return
        entries, metadata = read_weight_file(path)
        position = position_in(path, entries, metadata)
        if position is None or position.epoch != epochs:
            raise ResumeError(
                f"{path} does not contain the best weights of this run (after {epochs} epochs); the weights of the last epoch are kept."
            )
        set_entries(self.program, self.engine, entries, strict=True, optimizer=isinstance(self.engine, ResumableEngine))

    @property
    def due(self) -> bool:
        """Whether the next write within an epoch is due."""
        return self.file is not None and time.monotonic() - self._written >= self._every

    def checked(self, position: Position) -> tuple[_State, dict[str, Array]]:
        """Return the state of the engine and its entries for a file.

        If a value is not finite, restore the last good state in the engine and raise a DivergedError.
        """
        state = self._state()
        entries = by_label(self.program, state.parameters)
        if state.optimizer is not None:
            entries |= optimizer_entries(self.program, state.optimizer)
        for label, value in entries.items():
            bad = int(value.size - np.isfinite(value).sum())
            if bad:
                self._diverge(f"{position.text}, {bad:,} of {value.size:,} values of {label} are not finite")
        return state, entries

    def _set(self, state: _State) -> None:
        self.engine.set_parameters(state.parameters)
        if state.optimizer is not None and isinstance(self.engine, ResumableEngine):
            self.engine.set_optimizer(state.optimizer)

    def _state(self) -> _State:
        optimizer = self.engine.get_optimizer() if isinstance(self.engine, ResumableEngine) else None
        parameters = {name: value for name, value in self.engine.get_parameters().items() if not is_run_value(name)}
        return _State(parameters, optimizer)

    def _diverge(self, reason: str) -> None:
        """Restore the last good state, if any, and raise a DivergedError."""
        if self._good is None:
            raise DivergedError(f"{reason}, before training began; load other weights.")
        state, position = self._good
        self._set(state)
        saved = "" if self.file is None else f", also saved in {self.file}"
        raise DivergedError(
            f"training diverged: {reason}. The session was reset to the weights {position.text}{saved}. Continue from there with a smaller "
            "learning rate, or check for inputs and initial weights that are too large."
        )
