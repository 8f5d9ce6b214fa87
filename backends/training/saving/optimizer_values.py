"""The optimiser's state of a session, converted to and from the entries of a weight file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.backends.runtime.engine import Array, Engine, OptimizerValues, ResumableEngine
from snnc.backends.runtime.errors import OptimizerValuesError
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.update_rules import moments

PREFIX: Final = "optimizer:"
"""Prefix of the optimiser's entries, ``optimizer:updates`` and ``optimizer:moment1:fc1.weight``, in a weight file."""
UPDATES: Final = f"{PREFIX}updates"
"""Name of the entry with the number of updates."""
LOSS_SCALE: Final = f"{PREFIX}loss_scale"
"""Name of the entry with the loss scale, and the number of updates since it last changed."""
MAX_UPDATES: Final = 2**31 - 1
"""Maximum number of updates; programs count them in a signed 32-bit integer."""


def optimizer_by_label(program: StepProgram, engine: Engine) -> dict[str, Array]:
    """Return the optimiser's state as entries of a file, or raise the error of :func:`resumable`."""
    return optimizer_entries(program, resumable(program, engine).get_optimizer())


def optimizer_entries(program: StepProgram, values: OptimizerValues) -> dict[str, Array]:
    """Return the state of an optimiser as entries of a file."""
    entries = {UPDATES: np.array([values.updates], dtype=np.int64)}
    if values.loss_scale is not None:
        entries[LOSS_SCALE] = np.array(values.loss_scale, dtype=np.float64)
    for moment, arrays in values.moments.items():
        entries |= {f"{PREFIX}{moment}:{program.parameters[name].label}": value for name, value in arrays.items()}
    return entries


def values_from_entries(program: StepProgram, entries: Mapping[str, object]) -> OptimizerValues:
    """Check entries of a file and convert them to the engine's format.

    Raises an OptimizerValuesError if entries are missing, unexpected or out of range, or have the wrong shape or type.
    """
    learned = [program.parameters[op.parameter] for op in program.update]
    expected = {f"{PREFIX}{moment}:{p.label}": (moment, p) for moment in moments(program.optimizer) for p in learned}
    scaled = program.optimizer is not None and program.optimizer.loss_scale is not None
    names = (UPDATES, *([LOSS_SCALE] if scaled else []), *expected)
    missing, unexpected = [n for n in names if n not in entries], [n for n in entries if n not in names]
    if missing or unexpected:
        parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unexpected:", unexpected)) if names]
        optimizer = program.optimizer.name if program.optimizer else "none"
        raise OptimizerValuesError(
            f"the optimiser's values do not belong to {program.name!r} trained by {optimizer}; {'; '.join(parts)}. "
            "Compile with the same optimiser, or give optimizer=False to load only the weights."
        )
    arrays: dict[str, dict[str, Array]] = {moment: {} for moment in moments(program.optimizer)}
    for entry, (moment, parameter) in expected.items():
        array = np.asarray(entries[entry])
        if array.shape != parameter.value.shape or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise OptimizerValuesError(
                f"{entry} has shape {array.shape} and type {array.dtype}; finite numbers of shape {parameter.value.shape} are needed."
            )
        arrays[moment][parameter.name] = array
    return OptimizerValues(_updates(np.asarray(entries[UPDATES])), arrays, _scale(np.asarray(entries[LOSS_SCALE])) if scaled else None)


def _scale(values: Array) -> tuple[float, int]:
    if values.shape != (2,) or values.dtype.kind != "f" or not np.isfinite(values).all() or values[0] <= 0 or values[1] < 0:
        raise OptimizerValuesError(f"{LOSS_SCALE} is {values}; it must be a factor above 0 and a number of updates.")
    return float(values[0]), int(values[1])


def _updates(count: Array) -> int:
    if count.size != 1 or count.dtype.kind not in "iu" or not 0 <= int(count.reshape(-1)[0]) <= MAX_UPDATES:
        raise OptimizerValuesError(f"{UPDATES} is {count}; it must be a whole number from 0 to {MAX_UPDATES:,}.")
    return int(count.reshape(-1)[0])


def resumable(program: StepProgram, engine: Engine) -> ResumableEngine:
    """Return the engine; raise an OptimizerValuesError if the program has no optimiser, or the engine does not expose its state."""
    if program.optimizer is None:
        raise OptimizerValuesError(f"{program.name!r} was compiled without an optimiser, so it has no optimiser state to save.")
    if not isinstance(engine, ResumableEngine):
        raise OptimizerValuesError("this target does not expose its optimiser state; give optimizer=False to save only the weights.")
    return engine
