"""Initialisers of weights and biases; the same seed draws the same values on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from snnc.compiler.ir.graph import Array, Shape


class Fans(NamedTuple):
    """Numbers of incoming and outgoing weights of a neuron.

    As in PyTorch, `fan_in` of a convolution is the number of input channels of one group, `fan_out` the number of output channels, each
    times the number of values of the kernel. For a sparse connection, they are the mean numbers of entries per target and source neuron.
    """

    fan_in: float
    fan_out: float


class Initialiser(Protocol):
    """An object that draws the initial values of a weight or bias."""

    def draw(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""


class _Initialiser:
    def draw(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        """Return a float32 array of `shape`."""
        return np.asarray(self._values(shape, fans, rng), np.float32)

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class FanIn(_Initialiser):
    """Uniform in ±1/sqrt(fan_in), the default of :class:`torch.nn.Linear` and convolutions, for weights and biases."""

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        bound = 1.0 / math.sqrt(fans.fan_in)
        return rng.uniform(-bound, bound, shape)


@dataclass(frozen=True)
class Uniform(_Initialiser):
    """Uniform from `low` to `high`."""

    low: float = -1.0
    high: float = 1.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return rng.uniform(self.low, self.high, shape)


@dataclass(frozen=True)
class Normal(_Initialiser):
    """Normal with standard deviation `std` and mean `mean`."""

    std: float = 1.0
    mean: float = 0.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return rng.normal(self.mean, self.std, shape)


@dataclass(frozen=True)
class TruncatedNormal(_Initialiser):
    """Normal with standard deviation `std` and mean `mean`, truncated to `low` … `high`; defaults as in torch's ``trunc_normal_``."""

    std: float = 1.0
    mean: float = 0.0
    low: float = -2.0
    high: float = 2.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        from scipy.special import ndtr, ndtri

        # The normal distribution function is inverted at uniform random probabilities.
        least, greatest = (ndtr((bound - self.mean) / self.std) for bound in (self.low, self.high))
        values = self.mean + self.std * ndtri(rng.uniform(least, greatest, shape))
        return np.asarray(np.clip(values, self.low, self.high))


@dataclass(frozen=True)
class LogNormal(_Initialiser):
    """``exp`` of a normal variable with standard deviation `std` and mean `mean`: positive weights with a long tail.

    Synaptic weights in cortex have this form (Song, Sjöström, Reigl, Nelson and Chklovskii, "Highly nonrandom features of synaptic
    connectivity in local cortical circuits", 2005, which fits mean -0.702 and std 0.9355 to them, in mV).
    """

    mean: float = 0.0
    std: float = 1.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return rng.lognormal(self.mean, self.std, shape)


@dataclass(frozen=True)
class ConstantWeights(_Initialiser):
    """The same value for all weights; its public name is ``snnc.Constant``."""

    value: float = 0.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return np.full(shape, self.value, np.float32)


Constant = ConstantWeights


@dataclass(frozen=True)
class XavierUniform(_Initialiser):
    """Uniform in ±gain·sqrt(6 / (fan_in + fan_out)).

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010, equation 16.
    """

    gain: float = 1.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        bound = self.gain * math.sqrt(6.0 / (fans.fan_in + fans.fan_out))
        return rng.uniform(-bound, bound, shape)


@dataclass(frozen=True)
class XavierNormal(_Initialiser):
    """Normal with standard deviation gain·sqrt(2 / (fan_in + fan_out)), which results in the variance of :class:`XavierUniform`."""

    gain: float = 1.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.gain * math.sqrt(2.0 / (fans.fan_in + fans.fan_out)), shape)


@dataclass(frozen=True)
class KaimingUniform(_Initialiser):
    """Uniform in ±gain·sqrt(3 / fan), with the variance of :class:`KaimingNormal`; `mode` selects the fan."""

    gain: float = math.sqrt(2.0)
    mode: Literal["fan_in", "fan_out"] = "fan_in"

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        bound = self.gain * math.sqrt(3.0 / _fan(fans, self.mode))
        return rng.uniform(-bound, bound, shape)


@dataclass(frozen=True)
class KaimingNormal(_Initialiser):
    """Normal with standard deviation gain / sqrt(fan); `mode` selects the fan.

    He, Zhang, Ren and Sun, "Delving deep into rectifiers: surpassing human-level performance on ImageNet classification", 2015,
    equations 10 (fan_in) and 14 (fan_out); the default gain sqrt(2) is for ReLU.
    """

    gain: float = math.sqrt(2.0)
    mode: Literal["fan_in", "fan_out"] = "fan_in"

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.gain / math.sqrt(_fan(fans, self.mode)), shape)


@dataclass(frozen=True)
class Orthogonal(_Initialiser):
    """Matrix whose rows are orthogonal and have length `gain`; if it has more rows than columns, this holds for its columns.

    All axes after the first are flattened to columns. Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of
    learning in deep linear neural networks", 2014. The matrix is `gain` times Q of the QR decomposition of a matrix of
    normal random numbers, with signs that make the diagonal of R positive. Q is uniformly distributed (Mezzadri,
    "How to generate random matrices from the classical compact groups", 2007).

    Raises
    ------
    ValueError
        By ``draw``: the shape has fewer than two axes.
    """

    gain: float = 1.0

    def _values(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal() draws matrices, but the shape {shape} has fewer than two axes")
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
        q *= np.sign(np.diagonal(r))
        return (self.gain * (q if rows >= columns else q.T)).reshape(shape)


def _fan(fans: Fans, mode: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"the mode is {mode!r}; it must be 'fan_in' or 'fan_out'")
    return fans.fan_in if mode == "fan_in" else fans.fan_out
