"""Updates of parameters by the equations of the optimisers (:mod:`snnc.compiler.losses.update_rules`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.compiler.losses.loss_scale import ScaleState
from snnc.compiler.losses.optimizers import GroupSettings, Optimizer
from snnc.compiler.losses.update_rules import NORM_EPSILON, UpdateRule, rate_constants, rule_of
from snnc.compiler.losses.weight_rounding import REMAINDER, WeightRounding, at_random, draws, nearest, parameter_key
from snnc.compiler.neurons.interpret import evaluate


@dataclass
class OptimizerState:
    """The state of an optimiser; `count` is the number of updates so far."""

    optimizer: Optimizer
    count: int = 0
    moments: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Name of a moment -> parameter -> values; missing values are 0."""

    @cached_property
    def rule(self) -> UpdateRule:
        """The equations of the optimiser."""
        return rule_of(self.optimizer)

    @cached_property
    def scale(self) -> ScaleState:
        """The state of the loss scale."""
        return ScaleState(1.0 if self.optimizer.loss_scale is None else self.optimizer.loss_scale.factor)

    def skips(self, gradients: Iterable[Array]) -> bool:
        """Return whether to skip an update because some gradients of a scaled loss are not finite; adapt the loss scale."""
        rule = self.optimizer.loss_scale
        if rule is None:
            return False
        finite = all(bool(np.isfinite(g).all()) for g in gradients)
        self.scale.count(rule, finite=finite)
        return not finite

    def moments_of(self, moment: str) -> dict[str, Array]:
        """Return the values of a moment by parameter."""
        return self.moments.setdefault(moment, {})

    def begin(self, gradients: Mapping[str, Array]) -> float:
        """Start an update of all parameters; return the factor that clips the joint norm of their gradients."""
        self.count += 1
        limit = self.rule.clip_norm
        if limit is None:
            return 1.0
        terms = [evaluate(self.rule.clipped, {"gradient": g}).get(self.rule.norm_gradient, g) for g in gradients.values()]
        norm = math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in terms))
        factor = limit / (norm + NORM_EPSILON)
        return 1.0 if factor >= 1 else factor

    def change(self, name: str, parameter: Array, gradient: Array, learning_rate: float, settings: GroupSettings, clip: float) -> None:
        """Update the `parameter` with this name in place; `clip` is the result of :meth:`begin`."""
        rates: dict[str, float] = rate_constants(self.rule, settings, learning_rate, self.count) | {"scale": clip}
        stored = {m: self.moments_of(m).get(name, np.zeros_like(parameter)) for m in self.rule.moments}
        typed_rates = {rate: parameter.dtype.type(value) for rate, value in rates.items()}
        results = evaluate(self.rule.step, {"value": parameter, "gradient": gradient, **stored, **typed_rates})
        parameter[...] = results["value"]
        for moment in stored:
            self.moments_of(moment)[name] = results[moment]

    def change_half(
        self, name: str, parameter: Array, gradient: Array, learning_rate: float, settings: GroupSettings, clip: float, key: HalfKey
    ) -> None:
        """Update a float16 parameter as :meth:`change` does, then round it."""
        remainders = self.moments_of(REMAINDER)
        exact = parameter + remainders.get(name, np.zeros_like(parameter))
        self.change(name, exact, gradient, learning_rate, settings, clip)
        if key.rounding.kind == "stochastic":
            random = draws(parameter_key(key.rounding.seed, key.number), self.count, exact.size).reshape(exact.shape)
            parameter[...] = at_random(exact, random)
            return
        parameter[...] = nearest(exact)
        if key.rounding.kind == "master":
            remainders[name] = exact - parameter


@dataclass(frozen=True)
class HalfKey:
    """Rounding of a float16 parameter after its updates, and the parameter's index among the updated ones (for its random draws)."""

    rounding: WeightRounding
    number: int
