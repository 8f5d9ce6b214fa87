"""Batch normalisation as a population: its statistics are parameters, which a training step sets to those of its batch.

With x̂ = (x - mean) / sqrt(var + eps) and statistics over N values, the gradient through them is (Ioffe & Szegedy 2015, arXiv:1502.03167)::

    d_x = (d_x̂ - sum(d_x̂) / N - x̂ sum(d_x̂ x̂) / N) / sqrt(var + eps)

A gain and a bias follow, y = gain x̂ + bias, whose gradients are these sums: ``sum(d_x̂) = gain d_bias``, ``sum(d_x̂ x̂) = gain d_gain``. The
population has ``shift`` and ``slope`` for the two terms; they are 0 but while a training step sets them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.expression import Assignment, Call, Symbol, substitute
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel, neuron

_NAME: Final = "BatchNorm"
_EQUATIONS: Final = "y = (i - mean) / sqrt(var + eps)"
MEAN: Final = "mean"
VARIANCE: Final = "var"
SHIFT: Final = "shift"
SLOPE: Final = "slope"
EPSILON: Final = "eps"
MOMENTUM: Final = "momentum"


def BatchStatistics(momentum: float = 0.1, eps: float = 1e-5) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Normalise the current: ``y = (i - mean) / sqrt(var + eps)``; part of :class:`snnc.BatchNorm`.

    Parameters
    ----------
    momentum
        Share of a batch's statistics in the next running ones.
    eps
        Added to the variance.

    Raises
    ------
    NeuronDefinitionError
        `momentum` is not between 0 and 1, or `eps` is not positive.
    """
    if not 0 <= momentum <= 1:
        raise NeuronDefinitionError(f"the momentum of a batch normalisation is {momentum!r}; it must be 0 to 1.")
    if not eps > 0:
        raise NeuronDefinitionError(f"the eps of a batch normalisation is {eps!r}; it must be above 0.")
    parameters = {MEAN: 0, VARIANCE: 1, EPSILON: eps, MOMENTUM: momentum, SHIFT: 0, SLOPE: 0}
    return neuron(_NAME, params=parameters, equations=_EQUATIONS, output="y")


_MODEL: Final = BatchStatistics()


def is_batch_norm(model: NeuronModel) -> bool:
    """Return whether `model` is a :func:`BatchStatistics`."""
    return model.name == _NAME and tuple(model.parameters) == tuple(_MODEL.parameters) and model.text == _MODEL.text


def through_statistics(kernel: Kernel) -> Kernel:
    """Return the kernel of a :func:`BatchStatistics` with the gradient through its statistics."""
    canonical = {label: name for name, label in kernel.labels.items() if name in kernel.parameters}
    (output,) = kernel.outputs
    incoming, whole = Symbol(f"d_{output}"), Symbol("r0")
    terms = Call("add", (Symbol(canonical[SHIFT]), Call("mul", (Symbol(canonical[SLOPE]), Symbol(output)))))
    backward = [Assignment(a.target, substitute(a.value, {incoming.name: whole})) for a in kernel.backward]
    first = Assignment(whole.name, Call("add", (incoming, terms)))
    return replace(kernel, backward=(first, *backward), saved=(*kernel.saved, output))
