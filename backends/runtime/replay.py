"""Single steps with an engine that runs only whole sequences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from snnc.backends.runtime.arrays import padded
from snnc.backends.runtime.engine import Array, Engine, Initial
from snnc.backends.runtime.errors import NoStepwiseError


class StepReplay:
    """A :class:`~snnc.backends.runtime.engine.SteppingEngine` that runs the whole sequence of `steps` steps again at every step.

    Later inputs are zero. The result is exact, because no output depends on later inputs, but each step costs a whole sequence.
    """

    def __init__(self, engine: Engine, steps: int) -> None:
        self._engine = engine
        self._steps = steps
        self._batch = 1
        self._initial: Initial = {}
        self._past: list[Mapping[str, Array]] = []
        """Inputs of the steps so far."""

    def reset(self, batch: int, initial: Initial) -> None:
        """Start a sequence; raise a NoStepwiseError if the batch is larger than the compiled one."""
        limit = self._engine.batch
        if limit is not None and batch > limit:
            raise NoStepwiseError(f"a step has {batch} samples, but the program was compiled for {limit}; compile with batch={batch}.")
        self._batch = batch
        missing = (limit or batch) - batch
        self._initial = {key: padded(values, 0, missing) for key, values in initial.items()}
        self._past = []

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step; raise a NoStepwiseError if all steps of the program have been run."""
        t = len(self._past)
        if t == self._steps:
            raise NoStepwiseError(f"all {t} steps that the program was compiled for have run; call reset(), or compile with more steps.")
        self._past.append(inputs)
        missing = (self._engine.batch or self._batch) - self._batch
        stacked = {id_: np.stack([of_step[id_] for of_step in self._past]) for id_ in inputs}
        filled = {id_: padded(padded(array, 0, self._steps - t - 1), 1, missing) for id_, array in stacked.items()}
        records = self._engine.forward(filled, self._initial)
        return {id_: record[t, : self._batch] for id_, record in records.items()}
