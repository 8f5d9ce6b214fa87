"""Forms of a sample: events as recorded, spikes in time steps, or an array."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.graph import Shape
from snnc.errors import SampleError

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Aer:
    """The events of one sample as a sensor recorded them (address-event representation).

    Attributes
    ----------
    times
        [events], microseconds from the start of the sample.
    units
        [events], flat indices into `shape`.
    shape
        Shape of the sensor, such as ``(channels,)`` or ``(polarities, height, width)``.
    polar
        Whether the first axis of `shape` is the polarity, 0 off and 1 on.
    """

    times: Array
    units: Array
    shape: Shape
    polar: bool = False

    def select(self, chosen: Array) -> Aer:
        """Return the events that the mask or the indices `chosen` select."""
        return Aer(self.times[chosen], self.units[chosen], self.shape, self.polar)

    @property
    def space(self) -> Shape:
        """The axes of `shape` without the polarity."""
        return self.shape[1:] if self.polar else self.shape


@dataclass(frozen=True, eq=False)
class Spikes:
    """The spikes of one sample in time steps; a unit may occur more than once in a step.

    Attributes
    ----------
    at
        [spikes], the step of each spike.
    units
        [spikes], flat indices into `shape`.
    steps
        Number of steps.
    shape
        Shape of one step.
    """

    at: Array
    units: Array
    steps: int
    shape: Shape

    def counts(self) -> Array:
        """Return [steps, *shape], float32: the number of spikes of each unit in each step."""
        size = prod(self.shape)
        counted = np.bincount(self.at * size + self.units, minlength=self.steps * size)
        return counted.astype(np.float32).reshape(self.steps, *self.shape)

    @classmethod
    def of(cls, fired: Array) -> Spikes:
        """Return the spikes at the nonzero values of [steps, *shape]."""
        at, units = np.nonzero(fired.reshape(len(fired), -1))
        return cls(at, units, len(fired), fired.shape[1:])


Sample: TypeAlias = Aer | Spikes | Array


@dataclass(frozen=True)
class Draw:
    """Identifies one use of a sample in training, and so seeds its random numbers.

    `sample` is the index of the sample in its source, before any shuffling, splitting or selection, and `place` the index of the transform
    among those of the data set. `timed` is whether the first axis of an array sample is time.
    """

    epoch: int
    sample: int
    place: int
    timed: bool

    def stream(self, seed: int) -> Stream:
        """Return the random stream of this use of the sample for a transform's `seed`."""
        return Stream([seed, self.epoch, self.sample, self.place])


def events_of(sample: Sample, who: str) -> Aer:
    """Return `sample`; raise SampleError unless it is recorded events. `who` is the transform that requires them."""
    if not isinstance(sample, Aer):
        form = "spikes in steps" if isinstance(sample, Spikes) else f"an array {list(np.shape(sample))}"
        raise SampleError(f"{who} requires events as recorded, but the sample is {form}; put {who} before binning and encoders.")
    return sample


def values_of(sample: Sample, who: str) -> Array:
    """Return `sample`; raise SampleError unless it is an array. `who` is the transform that requires it."""
    if isinstance(sample, Aer | Spikes):
        raise SampleError(f"{who} requires an array of values, but the sample is events; bin events with snnc.data.Bin instead.")
    return sample


def per_axis(name: str, value: int | tuple[int, ...], space: Shape) -> tuple[int, ...]:
    """Return the setting `name` for each axis of `space`; raise SampleError if it is a tuple of a different length."""
    numbers = value if isinstance(value, tuple) else (value,) * len(space)
    if len(numbers) != len(space):
        raise SampleError(f"{name} has {len(numbers)} numbers, but the sensor has {len(space)} axes, {list(space)}; give one each.")
    return numbers
