"""Equations of the optimisers, in the language of neuron equations, from which the code of every target is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, GroupSettings, Optimizer, RMSprop
from snnc.compiler.neurons.expression import Assignment, parse_assignments, symbols

NORM_EPSILON: Final = 1e-6
"""Added to the norm of the gradients before `clip_norm` is divided by it, as in torch.nn.utils.clip_grad_norm_."""


@dataclass(frozen=True)
class UpdateRule:
    """The update of one element of a parameter."""

    moments: tuple[str, ...]  # values stored for each element, ``moment1``, ``moment2``, …, initially 0
    bias_corrections: Mapping[str, float]  # beta by name; at update n, counted from 1, the correction is ``1 - beta^n``
    rates: tuple[Assignment, ...]
    """Values for all parameters of a group in an update, computed from ``lr`` (of the group), the `settings` and the bias corrections."""
    clipped: tuple[Assignment, ...]  # assignment of ``clipped`` from ``gradient`` (with `clip_value`); empty: gradients are not clipped
    step: tuple[Assignment, ...]
    """Assignments of ``value`` and the moments, after that of `clipped`; they read ``value``, ``gradient``, moments, rates, ``scale``."""
    clip_norm: float | None
    """Maximum norm of all gradients; the step multiplies them by ``scale``, which reduces a larger norm to it. None: no ``scale``."""
    loss_scale: LossScale | None = None
    """Loss scaling: gradients are first divided by its factor, and the update is skipped unless they are finite; None: no scaling."""
    settings: tuple[str, ...] = ("weight_decay",)  # settings of a group that the rates read, in addition to ``lr``

    @cached_property
    def rate_names(self) -> tuple[str, ...]:
        """Names of the rates that the step reads."""
        read = {name for a in self.step for name in symbols(a.value)}
        return tuple(a.target for a in self.rates if a.target in read)

    @property
    def changed_arrays(self) -> tuple[str, ...]:
        """Names of the arrays that the step changes."""
        return ("value", *self.moments)

    @property
    def norm_gradient(self) -> str:
        """Name of the gradient whose norm `clip_norm` limits."""
        return "clipped" if self.clipped else "gradient"


def moments(optimizer: Optimizer | None) -> list[str]:
    """Return the names of the values that an optimiser stores for each element of a parameter."""
    return [] if optimizer is None else list(rule_of(optimizer).moments)


def rule_of(optimizer: Optimizer) -> UpdateRule:
    """Return the equations of an optimiser."""
    gradient, lines = "gradient", []
    clipped: tuple[Assignment, ...] = ()
    if optimizer.clip_value is not None:
        bound = repr(float(optimizer.clip_value))
        # Comparisons preserve NaN; min and max of C++ may replace it by the bound.
        clipped = parse_assignments(f"clipped = where(gt(gradient, {bound}), {bound}, where(gt(-{bound}, gradient), -{bound}, gradient))")
        gradient = "clipped"
    if optimizer.clip_norm is not None:
        lines.append(f"scaled = {gradient} * scale")
        gradient = "scaled"
    groups = (optimizer, *optimizer.groups)
    decays, shrinks, bounds = (any(getattr(settings, name) for settings in groups) for name in ("weight_decay", "l1", "bound"))
    if shrinks:
        lines.append(f"shrunken = where(gt(value, 0), {gradient} + shrink, where(gt(0, value), {gradient} - shrink, {gradient}))")
        gradient = "shrunken"
    if decays and not isinstance(optimizer, AdamW):
        lines.append(f"decayed = {gradient} + decay * value")
        gradient = "decayed"
    corrections, rates, step_lines = _equations(optimizer, gradient, decays)
    if decays:
        rates = [*rates, "decay = lr * weight_decay" if isinstance(optimizer, AdamW) else "decay = weight_decay"]
    if shrinks:
        rates = [*rates, "shrink = l1"]
    if bounds:
        rates = [*rates, "most = bound"]
        step_lines = [*step_lines[:-1], step_lines[-1].replace("value =", "moved =", 1)]
        step_lines.append("value = where(gt(moved, most), most, where(gt(-most, moved), -most, moved))")
    step = (*clipped, *parse_assignments("\n".join([*lines, *step_lines])))
    changed = [a.target for a in step if a.target.startswith("moment")]
    settings = ("weight_decay", *(["l1"] if shrinks else []), *(["bound"] if bounds else []))
    equations = parse_assignments("\n".join(rates))
    return UpdateRule(tuple(sorted(changed)), corrections, equations, clipped, step, optimizer.clip_norm, optimizer.loss_scale, settings)


def _equations(optimizer: Optimizer, g: str, decays: bool) -> tuple[dict[str, float], list[str], list[str]]:
    """Return bias corrections, rates and the step, which reads the gradient as `g`."""
    match optimizer:
        case SGD(momentum=momentum, nesterov=nesterov):
            if not momentum:
                return {}, ["rate = lr"], [f"value = value - rate * {g}"]
            change = f"({g} + {momentum!r} * m)" if nesterov else "m"
            return {}, ["rate = lr"], [f"m = {momentum!r} * moment1 + {g}", "moment1 = m", f"value = value - rate * {change}"]
        case Adam(beta1=beta1, beta2=beta2, epsilon=epsilon):
            shrunk = "value - decay * value" if decays and isinstance(optimizer, AdamW) else "value"
            step = [
                f"m = moment1 + {1 - beta1!r} * ({g} - moment1)",
                f"v = {beta2!r} * moment2 + {1 - beta2!r} * {g} * {g}",
                "moment1 = m",
                "moment2 = v",
                f"value = {shrunk} - rate * m / (sqrt(v) * correction + {epsilon!r})",
            ]
            return {"share1": beta1, "share2": beta2}, ["rate = lr / share1", "correction = 1 / sqrt(share2)"], step
        case RMSprop():
            return {}, ["rate = lr"], _rms_step(optimizer, g)


def _rms_step(optimizer: RMSprop, g: str) -> list[str]:
    """Return the step of RMSprop: mean squares in ``moment1``, then momentum and mean gradient if used."""
    alpha, epsilon, momentum = optimizer.alpha, optimizer.epsilon, optimizer.momentum
    mean = "moment3" if momentum else "moment2"
    lines, variance = [f"v = {alpha!r} * moment1 + {1 - alpha!r} * {g} * {g}", "moment1 = v"], "v"
    if optimizer.centered:
        # Rounding may bring the variance of equal gradients below 0, where the root in torch is NaN.
        lines += [f"a = {mean} + {1 - alpha!r} * ({g} - {mean})", f"{mean} = a", "variance = v - a * a"]
        variance = "where(gt(variance, 0), variance, 0)"
    change = f"{g} / (sqrt({variance}) + {epsilon!r})"
    if not momentum:
        return [*lines, f"value = value - rate * {change}"]
    return [*lines, f"m = {momentum!r} * moment2 + {change}", "moment2 = m", "value = value - rate * m"]


def rate_constants(rule: UpdateRule, settings: GroupSettings, lr: float, updates: int) -> dict[str, float]:
    """Return the rates of a group at update number `updates`, counted from 1, for the optimiser's learning rate `lr`."""
    from snnc.compiler.neurons.interpret import evaluate

    corrections = {name: 1 - beta**updates for name, beta in rule.bias_corrections.items()}
    rates = evaluate(rule.rates, {"lr": lr * settings.lr, **{name: getattr(settings, name) for name in rule.settings}, **corrections})
    return {name: float(rates[name]) for name in rule.rate_names}
