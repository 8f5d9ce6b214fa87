"""Batch normalisation as a population: statistics are parameters, which a training step sets to those of the batch.

With x̂ = (x - mean) / sqrt(var + eps) and statistics over N values, the gradient through the statistics is (Ioffe & Szegedy 2015,
arXiv:1502.03167)::

    d_x = (d_x̂ - sum(d_x̂) / N - x̂ sum(d_x̂ x̂) / N) / sqrt(var + eps)

A connection with gain and bias follows, y = gain x̂ + bias, and its gradients determine the sums: ``sum(d_x̂) = gain d_bias``,
``sum(d_x̂ x̂) = gain d_gain``. The parameters ``shift`` and ``slope`` of the population are the factors of 1 and x̂ in the two subtracted
terms, with their sign; they are 0 except while a training step sets them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Final

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.expression import Assignment, Call, Symbol, substitute
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel, neuron

_NAME: Final = "BatchNorm"
_EQUATIONS: Final = "y = (i - mean) / sqrt(var + eps)"
_EQUATIONS_OF_STEPS: Final = "y = (i - mean - detach(mean_now)) / sqrt(var + detach(var_now) + eps)"
MEAN: Final = "mean"
VARIANCE: Final = "var"
SHIFT: Final = "shift"
SLOPE: Final = "slope"
EPSILON: Final = "eps"
MOMENTUM: Final = "momentum"
EACH_STEP: Final = "each_step"
PORTS: Final = ("mean_now", "var_now", "shift_now", "slope_now")
"""Input ports of :func:`with_ports`: values that are added to mean and variance, and values that replace shift and slope."""


def BatchStatistics(momentum: float = 0.1, eps: float = 1e-5, each_step: bool = False) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Normalise the current: ``y = (i - mean) / sqrt(var + eps)``; part of :class:`snnc.BatchNorm`, which explains the parameters.

    A `momentum` outside 0 … 1, or an `eps` that is not positive, raises a NeuronDefinitionError.
    """
    if not 0 <= momentum <= 1:
        raise NeuronDefinitionError(f"the momentum of a batch normalisation is {momentum!r}; it must be between 0 and 1.")
    if not eps > 0:
        raise NeuronDefinitionError(f"the eps of a batch normalisation is {eps!r}; it must be above 0.")
    parameters = {MEAN: 0, VARIANCE: 1, EPSILON: eps, MOMENTUM: momentum, SHIFT: 0, SLOPE: 0, EACH_STEP: each_step}
    return neuron(_NAME, params=parameters, equations=_EQUATIONS, output="y")


_MODEL: Final = BatchStatistics()


def with_ports(model: NeuronModel) -> NeuronModel:
    """Return the model of statistics per step, with input ports for the statistics of a step; if all are 0, y is as without the ports."""
    return neuron(_NAME, inputs=(*model.inputs, *PORTS), params=model.parameters, equations=_EQUATIONS_OF_STEPS, output="y")


_TEXTS: Final = (_MODEL.text, with_ports(_MODEL).text)


def is_batch_norm(model: NeuronModel) -> bool:
    """Return whether `model` is a :func:`BatchStatistics`."""
    return model.name == _NAME and tuple(model.parameters) == tuple(_MODEL.parameters) and model.text in _TEXTS


def normalises_each_step(model: NeuronModel) -> bool:
    """Return whether `model` is a :func:`BatchStatistics` per step."""
    return is_batch_norm(model) and bool(model.parameters[EACH_STEP])


def through_statistics(kernel: Kernel) -> Kernel:
    """Return the kernel of a :func:`BatchStatistics` with the gradient through its statistics."""
    canonical = {label: name for name, label in kernel.labels.items() if name in (*kernel.parameters, *kernel.inputs)}
    (output,) = kernel.outputs
    shift, slope = (canonical.get(f"{name}_now", canonical[name]) for name in (SHIFT, SLOPE))
    assigned = {a.target for a in kernel.backward}
    incoming, total = Symbol(f"d_{output}"), Symbol(next(name for n in count() if (name := f"r{n}") not in assigned))
    terms = Call("add", (Symbol(shift), Call("mul", (Symbol(slope), Symbol(output)))))
    backward = [Assignment(a.target, substitute(a.value, {incoming.name: total})) for a in kernel.backward]
    first = Assignment(total.name, Call("add", (incoming, terms)))
    saved = [name for name in (output, shift, slope) if name not in (*kernel.saved, *kernel.parameters)]
    return replace(kernel, backward=(first, *backward), saved=(*kernel.saved, *saved))
