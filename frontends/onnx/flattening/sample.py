"""Sample arrays to run a flattened file on: random or given ones."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from snnc.compiler.ir.arrays.array_parts import part_of, taken
from snnc.frontends.onnx.flattening.node import Array, Shape


@dataclass(frozen=True)
class Inputs:
    """The inputs of the file: time axes, shapes, and the number of steps."""

    axes: Mapping[str, int]
    shapes: Mapping[str, Shape]
    steps: int


class Feed(Protocol):
    """A source of inputs."""

    @property
    def inputs(self) -> Inputs:
        """Their layout."""

    def draw(self, name: str, t: int) -> Array:
        """Return one step of an input, its time axis of size 1; the whole of an input without time."""

    def whole(self, name: str) -> Array:
        """Return a whole input."""


@dataclass(frozen=True)
class Sample:
    """Random inputs, drawn step by step and reproducibly; those of odd seeds are four times as large."""

    seed: int
    inputs: Inputs

    def draw(self, name: str, t: int) -> Array:
        """Return one step of an input, its time axis of size 1; the whole of an input without time."""
        shape, axis = self.inputs.shapes[name], self.inputs.axes.get(name)
        if axis is not None:
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode()), t if axis is not None else 0])
        return (1.5 if self.seed % 2 == 0 else 6.0) * rng.standard_normal(shape)

    def whole(self, name: str) -> Array:
        """Return a whole input."""
        axis = self.inputs.axes.get(name)
        if axis is None:
            return self.draw(name, 0)
        return np.concatenate([self.draw(name, t) for t in range(self.inputs.shapes[name][axis])], axis)


@dataclass(frozen=True, eq=False)
class GivenInputs:
    """Inputs given by the caller."""

    arrays: Mapping[str, Array]
    inputs: Inputs

    def draw(self, name: str, t: int) -> Array:
        """Return one step of an input, its time axis of size 1; the whole of an input without time."""
        axis = self.inputs.axes.get(name)
        whole = self.whole(name)
        return whole if axis is None else whole[(slice(None),) * axis + (slice(t, t + 1),)]

    def whole(self, name: str) -> Array:
        """Return a whole input; zeros if it is not given."""
        shape, given = self.inputs.shapes[name], self.arrays.get(name)
        part = None if given is not None else part_of(name)
        if part is not None and part[0] in self.arrays:
            given = taken(self.arrays[part[0]], name)
            given = None if given is None else np.broadcast_to(given, shape) if not given.ndim else given.reshape(shape)
        return np.zeros(shape) if given is None else np.asarray(given, np.float64)
