"""The equations of an optimiser as C++, for templates of every target."""

from __future__ import annotations

from typing import Any

from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import GroupSettings, Optimizer, settings_of
from snnc.compiler.losses.update_rules import NORM_EPSILON, UpdateRule, rule_of
from snnc.compiler.neurons.expression import Assignment


def printed_rule(optimizer: Optimizer, holder: str = "", gradient: str = "gradient", value: str = "") -> dict[str, Any]:
    """Return the update of element ``i`` of a parameter as C++, for templates; numbers are literals.

    `holder` is the prefix of the arrays, such as ``of.`` in ``of.value[i]``. `gradient` and `value` are C++ expressions of the element's
    gradient and value; without `value`, the value is in an array. Members with the names of fields of
    :class:`~snnc.compiler.losses.update_rules.UpdateRule` have their meaning.
    """
    rule = rule_of(optimizer)
    places = {"gradient": gradient} | {name: f"{holder}{name}[i]" for name in rule.changed_arrays}
    places |= {"value": value} if value else {}
    return {
        "title": optimizer.name,  # for comments
        "moments": rule.moments,
        "rates": rule.rate_names,
        "bias_corrections": {name: repr(float(beta)) for name, beta in rule.bias_corrections.items()},
        "settings": rule.settings,
        "prepared": c_assignments(needed_rates(rule), "double"),  # computes the rates from ``lr``, the settings and the bias corrections
        "clipped": c_assignments(rule.clipped),
        "norm_gradient": rule.norm_gradient,
        # Whether the squares of all gradients are summed before an update, to clip the norm or to find gradients that are not finite.
        "measured_first": rule.clip_norm is not None or rule.loss_scale is not None,
        "step": c_assignments(rule.step, names=places, stores=rule.changed_arrays),
        "clip_norm": None if rule.clip_norm is None else repr(float(rule.clip_norm)),
        "norm_epsilon": repr(NORM_EPSILON),
        "loss_scale": None if rule.loss_scale is None else _scale_literals(rule.loss_scale),
    }


def _scale_literals(scale: LossScale) -> dict[str, str]:
    growth, backoff = (scale.growth, scale.backoff) if scale.dynamic else (1.0, 1.0)
    numbers = {"factor": scale.factor, "growth": growth, "backoff": backoff}
    return {name: c_literal(number) for name, number in numbers.items()} | {"interval": str(scale.interval)}


def needed_rates(rule: UpdateRule) -> tuple[Assignment, ...]:
    """Return the assignments of the rates that the step reads."""
    return tuple(a for a in rule.rates if a.target in rule.rate_names)


def groups_of(program: StepProgram) -> list[GroupSettings]:
    """Return the distinct settings of the trained parameters, in order of appearance."""
    optimizer = program.optimizer
    if optimizer is None:
        return []
    return list(dict.fromkeys(settings_of(optimizer, program.parameters[op.parameter].label) for op in program.update))


def group_numbers(program: StepProgram) -> dict[str, int]:
    """Return the index in :func:`groups_of` of each trained parameter."""
    if program.optimizer is None:
        return {}
    groups = groups_of(program)
    return {op.parameter: groups.index(settings_of(program.optimizer, program.parameters[op.parameter].label)) for op in program.update}


def group_literals(program: StepProgram) -> list[tuple[str, ...]]:
    """Return, for each of :func:`groups_of`, the factor of the learning rate and the settings that the update reads, as C++ literals."""
    names = () if program.optimizer is None else ("lr", *rule_of(program.optimizer).settings)
    return [tuple(c_literal(getattr(group, name), "double") for name in names) for group in groups_of(program)]
