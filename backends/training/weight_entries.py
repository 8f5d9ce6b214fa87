"""Entries of a file of weights, restored into parameters, optimiser state and training position."""

from __future__ import annotations

from collections.abc import Mapping

from snnc.backends.runtime.engine import Array, Engine
from snnc.backends.runtime.weights import by_name
from snnc.backends.training import checkpoint, optimizer_values
from snnc.compiler.ir.step_program import StepProgram


def set_entries(program: StepProgram, engine: Engine, entries: Mapping[str, Array], strict: bool, optimizer: bool | None) -> None:
    """Set parameters and the optimiser's values; if anything is wrong, nothing changes.

    `strict` and `optimizer` are those of :meth:`snnc.backends.session.BackendSession.load`.

    Raises
    ------
    WeightsError, WeightShapeError, WeightNotFiniteError, OptimizerValuesError
        They do not fit.
    """
    kept = {name: value for name, value in entries.items() if name.startswith(optimizer_values.PREFIX)}
    others = (*kept, *(name for name in entries if name.startswith(checkpoint.PREFIX)))
    parameters = by_name(program, {name: value for name, value in entries.items() if name not in others}, strict)
    wanted = bool(kept) and program.optimizer is not None if optimizer is None else optimizer
    if wanted:
        optimizer_values.set_optimizer_by_label(program, engine, kept)
    engine.set_parameters(parameters)
