"""Fluctuation-driven initialisation: weights with which random fluctuations of the membrane potential reach the threshold now and then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Input, Pool, Population, Scale
from snnc.errors import InitialisationError
from snnc.initialising.incoming import IncomingWeights, incoming_weights, with_weights
from snnc.initialising.membrane import membrane_response, threshold_of


class Moments(NamedTuple):
    """Mean and variance over time of a value that weights multiply."""

    mean: float
    variance: float


@dataclass(frozen=True)
class FluctuationDriven:
    """Normally distributed weights that place the mean of each membrane potential U `xi` standard deviations below the threshold.

    Rossbroich, Gygax and Zenke, "Fluctuation-driven initialization for spiking neural network training", 2022 (arXiv 2206.10226): for n
    inputs that fire at rate nu, with membrane response eps to one input::

        mean of U     = n mean(w) nu sum(eps)
        variance of U = n (var(w) + mean(w)^2) nu sum(eps^2)  =  ((threshold - mean of U) / xi)^2

    In discrete time, an input that fires with probability nu has variance nu (1 - nu), which replaces nu in the second line. The response
    is measured by running the neuron's equations. Biases become 0.

    Parameters
    ----------
    rate
        Expected number of spikes per neuron and step, between 0 and 1, of all populations and of inputs without data.
    xi
        Distance from `mean` to the threshold, in standard deviations; the paper's networks train best with 1 to 3.
    mean
        Mean of the membrane potential, in the unit of the threshold.
    feedforward
        Share of mean and variance due to feedforward connections, for populations that also have recurrent ones (the paper's alpha).
    steps
        Number of steps over which the response is measured; use the sequence length if the response lasts longer than a sequence.
    """

    rate: float = 0.05
    xi: float = 2.0
    mean: float = 0.0
    feedforward: float = 0.9
    steps: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InitialisationError(f"rate is {self.rate}; it must be the share of steps with a spike, between 0 and 1.")
        if not (math.isfinite(self.xi) and self.xi > 0):
            raise InitialisationError(f"xi is {self.xi}; it must be a number of standard deviations above 0.")
        if not 0 < self.feedforward <= 1:
            raise InitialisationError(f"feedforward is {self.feedforward}; it must be a share above 0 and at most 1.")
        if self.steps < 1:
            raise InitialisationError(f"steps is {self.steps}; it must be 1 or more.")

    def apply(self, graph: Graph, inputs: Mapping[str, Array], rng: np.random.Generator) -> Graph:
        """Return a copy of `graph` with new weights; `inputs` are data [T, B, *shape] by name. Inputs without data fire with `rate`.

        Raise InitialisationError if `mean` is not below a threshold, the mean of the weights alone causes more than the wanted variance, or
        the input does not make a membrane fluctuate.
        """
        changed = graph.copy()
        for name, weights in incoming_weights(graph).items():
            population = graph.operation(name)
            assert isinstance(population, Population)
            for one, share in zip(weights, self._shares(weights), strict=True):
                mean, std = self._mean_and_std(name, population, one, share, self._moments(graph, one.path, inputs))
                with_weights(changed, one.name, rng.normal(mean, std, one.operation.weight.shape))
        return changed

    def _shares(self, weights: Sequence[IncomingWeights]) -> list[float]:
        """Return each connection's share of the mean and variance of the membrane potential of its target."""
        recurrent = sum(one.recurrent for one in weights)
        others = len(weights) - recurrent
        forward = self.feedforward if recurrent and others else float(others > 0)
        return [(1 - forward) / recurrent if one.recurrent else forward / others for one in weights]

    def _mean_and_std(self, name: str, population: Population, one: IncomingWeights, share: float, inputs: Moments) -> tuple[float, float]:
        """Return mean and standard deviation of the weights `one` into `population`.

        `share` is their share of the mean and variance of the membrane potential, `inputs` the moments of the values that they multiply.
        """
        count, threshold = one.fans.fan_in, threshold_of(population)
        total, squares = membrane_response(population, one.port, self.steps)
        if self.mean >= threshold:
            raise InitialisationError(f"mean is {self.mean}, but the threshold of {name!r} is {threshold:g}; the mean must be below it.")
        if squares == 0 or inputs.variance == 0:
            reason = "its input does not reach the membrane" if squares == 0 else f"{one.path[0]!r} is constant in the data"
            raise InitialisationError(f"the weights {one.name!r} into {name!r} cannot make its membrane fluctuate: {reason}.")
        mean = share * self.mean / (count * inputs.mean * total) if self.mean else 0.0
        variance = share * ((threshold - self.mean) / self.xi) ** 2 / (count * inputs.variance * squares) - mean**2
        if variance < 0:
            raise InitialisationError(
                f"mean is {self.mean}: {count:g} weights {one.name!r} of {mean:.3g} into each neuron of {name!r} alone make its membrane "
                f"potential fluctuate by more than (threshold - mean) / xi = {(threshold - self.mean) / self.xi:.3g}. Reduce mean or xi."
            )
        return mean, math.sqrt(variance)

    def _moments(self, graph: Graph, path: Sequence[str], inputs: Mapping[str, Array]) -> Moments:
        """Return the moments of the values read by the weights at the end of `path`.

        The variance of an input whose data do not change over time is that over samples and neurons.
        """
        if isinstance(graph.operation(path[0]), Input) and path[0] in inputs:
            values = inputs[path[0]].astype(np.float64)
            moments = Moments(float(values.mean()), float(values.var(axis=0).mean()) if len(values) > 1 else 0.0)
            moments = moments if moments.variance else Moments(moments.mean, float(values.var()))
        else:
            moments = Moments(self.rate, self.rate * (1 - self.rate))
        for name in path[1:]:
            moments = _through(graph, name, moments)
        return moments


def _through(graph: Graph, name: str, inputs: Moments) -> Moments:
    """Return the moments of the outputs of node `name`, whose inputs are independent and have the moments `inputs`."""
    mean, variance = inputs
    match graph.operation(name):
        case Pool(kind="max", kernel=kernel):
            silent = (1 - mean) ** math.prod(kernel) if 0 <= mean <= 1 else 0.0
            return Moments(1 - silent, silent * (1 - silent)) if 0 < silent < 1 else inputs
        case Pool(kind=kind, kernel=kernel):
            taps = math.prod(kernel)
            return Moments(mean, variance / taps) if kind == "average" else Moments(mean * taps, variance * taps)
        case Scale(weight=weight):
            return Moments(mean * float(np.mean(weight)), variance * float(np.mean(np.square(weight))))
    return inputs
