"""The equations of an optimiser as C++, for templates of every target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import GroupSettings, Optimizer, settings_of
from snnc.compiler.losses.update_rules import NORM_EPSILON, UpdateRule, rule_of
from snnc.compiler.neurons.expression import Assignment


@dataclass(frozen=True)
class PrintedRule:
    """The update of an optimiser, printed as C++.

    Attributes
    ----------
    title
        Name of the optimiser, for comments.
    moments
        Arrays in which the optimiser stores one value for each parameter element.
    rates
        Names of the numbers shared by the parameters of a group, such as step sizes and bias corrections.
    shares
        Name -> beta of the bias correction ``1 - beta^n``, as a literal of ``double``.
    settings
        Numbers of a group, besides ``lr``, from which the rates are computed.
    prepared
        Statements in ``double`` that compute the rates from ``lr``, the settings and the shares.
    clipped
        Statements that clip ``gradient`` element by element and assign the result to the variable `measured`.
    measured
        Name of the variable whose square enters the norm.
    step
        Statements that update element ``i``.
    clip_norm
        The largest norm, as a literal of ``double``; None: no limit.
    norm_epsilon
        Number added to the norm.
    loss_scale
        Numbers of the loss scaling, as literals of ``float``, and its interval; None: the loss is not scaled.
    """

    title: str
    moments: tuple[str, ...]
    rates: tuple[str, ...]
    shares: Mapping[str, str]
    settings: tuple[str, ...]
    prepared: list[str]
    clipped: list[str]
    measured: str
    step: list[str]
    clip_norm: str | None
    norm_epsilon: str
    loss_scale: Mapping[str, str] | None = None

    @property
    def measured_first(self) -> bool:
        """Whether the squares of all gradients are summed before an update, to clip the norm or to detect overflow of the scaled loss."""
        return self.clip_norm is not None or self.loss_scale is not None


def printed_rule(optimizer: Optimizer, holder: str = "", gradient: str = "gradient", value: str = "") -> PrintedRule:
    """Print the update of element ``i`` of a parameter as C++.

    `holder` is the prefix of the arrays of values and moments, as in ``of.value[i]``. `gradient` is the C++ expression of the element's
    gradient. `value` is the C++ expression of the element, if it is not in an array.
    """
    rule = rule_of(optimizer)
    places = {"gradient": gradient} | {name: f"{holder}{name}[i]" for name in rule.changed_arrays}
    places |= {"value": value} if value else {}
    return PrintedRule(
        optimizer.name,
        rule.moments,
        rule.rate_names,
        {name: repr(float(beta)) for name, beta in rule.shares.items()},
        rule.settings,
        c_assignments(needed_rates(rule), "double"),
        c_assignments(rule.clipped),
        rule.measured,
        c_assignments(rule.step, names=places, stores=rule.changed_arrays),
        None if rule.clip_norm is None else repr(float(rule.clip_norm)),
        repr(NORM_EPSILON),
        None if rule.loss_scale is None else _scale_literals(rule.loss_scale),
    )


def _scale_literals(scale: LossScale) -> dict[str, str]:
    """Return the numbers of the loss scale as C++ literals; growth and backoff of a fixed scale are 1."""
    numbers = {"factor": scale.factor, "growth": scale.growth if scale.dynamic else 1.0, "backoff": scale.backoff if scale.dynamic else 1.0}
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
    """Return, for each of :func:`groups_of`, the factor of the learning rate and the settings that the update reads."""
    names = () if program.optimizer is None else ("lr", *rule_of(program.optimizer).settings)
    return [tuple(c_literal(getattr(group, name), "double") for name in names) for group in groups_of(program)]
