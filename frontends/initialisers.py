"""Initial weights, drawn from a seed so that a network is the same on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from snnc.compiler.graph import Array, Shape


class Initialiser(Protocol):
    """Anything that draws an array of `shape`; `fan_in` is the number of inputs of one neuron."""

    def draw(self, shape: Shape, fan_in: int, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        ...


@dataclass(frozen=True)
class FanIn:
    """Uniform in ±1/sqrt(fan_in), the default of :class:`torch.nn.Linear`, for weights and biases alike."""

    def draw(self, shape: Shape, fan_in: int, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        bound = 1.0 / math.sqrt(fan_in)
        return rng.uniform(-bound, bound, shape).astype(np.float32)


@dataclass(frozen=True)
class Uniform:
    """Uniform in ``[low, high]``."""

    low: float = -1.0
    high: float = 1.0

    def draw(self, shape: Shape, fan_in: int, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        return rng.uniform(self.low, self.high, shape).astype(np.float32)


@dataclass(frozen=True)
class Normal:
    """Normal with `std` around `mean`."""

    std: float = 1.0
    mean: float = 0.0

    def draw(self, shape: Shape, fan_in: int, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        return rng.normal(self.mean, self.std, shape).astype(np.float32)


@dataclass(frozen=True)
class Constant:
    """One number everywhere."""

    value: float = 0.0

    def draw(self, shape: Shape, fan_in: int, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        return np.full(shape, self.value, np.float32)
