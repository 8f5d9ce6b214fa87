"""Encode values as spikes, by rate, latency, change, level or receptive fields, or repeat them at every step.

:class:`Rate`, :class:`Latency` and :class:`Delta` follow ``snntorch.spikegen``, except that a sample's result does not depend on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from snnc.data.checks import check_number, check_whole
from snnc.data.sample import Array, Draw, Sample, Spikes, values_of
from snnc.errors import DataOptionError, SampleError


@dataclass(frozen=True)
class Rate:
    """Draw random spikes, independent for each unit and step, at the rate given by the value.

    Parameters
    ----------
    steps
        Number of steps; None for samples with a time axis, whose steps each have their own rates.
    gain, offset
        The rate is ``gain x + offset``.
    kind
        ``"bernoulli"``: the rate, clipped to 0 … 1, is the probability of a spike. ``"poisson"``: the rate is the expected number of
        events in a step, and a step with events has one spike: probability ``1 - exp(-rate)``.
    seed
        Seed of the random numbers, which also depend on the epoch and the sample.
    """

    steps: int | None = None
    gain: float = 1.0
    offset: float = 0.0
    kind: Literal["bernoulli", "poisson"] = "bernoulli"
    seed: int = 0
    gives_time = True

    def __post_init__(self) -> None:
        _check_steps(self.steps)
        check_number("gain", self.gain, -1e30, 1e30)
        check_number("offset", self.offset, -1e30, 1e30)
        check_whole("seed", self.seed, 0)
        if self.kind not in ("bernoulli", "poisson"):
            raise DataOptionError(f"kind is {self.kind!r}; it must be 'bernoulli' or 'poisson'.")

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        rates = _in_time(sample, self.steps, draw, "Rate") * self.gain + self.offset
        chance = rates if self.kind == "bernoulli" else -np.expm1(-np.maximum(rates, 0))
        return Spikes.of(draw.stream(self.seed).random(chance.shape) < chance)


@dataclass(frozen=True)
class Latency:
    """Let each unit fire at most once, earlier for larger values.

    A value x fires ``tau log(x / (x - threshold))`` steps after step `first`, the time in which a leaky membrane charges to the
    threshold; if `linear`, it fires ``tau (1 - x)`` steps after step `first`. Times are rounded to whole steps.

    Parameters
    ----------
    steps
        Number of steps. Later spikes are dropped.
    tau
        Time constant in steps.
    threshold
        Smaller values fire as late as this value.
    first
        Step of the earliest possible spike.
    normalize
        Whether to scale the times so that they reach from step `first` to the last step.
    linear
        Whether times are linear in the value.
    clip
        Whether values below the threshold do not fire.
    """

    steps: int
    tau: float = 1.0
    threshold: float = 0.01
    first: int = 0
    normalize: bool = False
    linear: bool = False
    clip: bool = False
    gives_time = True

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, 1)
        check_whole("first", self.first, 0)
        check_number("tau", self.tau, 1e-30, 1e30)
        check_number("threshold", self.threshold, 0, 1)
        if self.threshold in (0, 1) or self.first > self.steps - 1:
            raise DataOptionError(
                f"threshold is {self.threshold} and first is {self.first}; threshold must be between 0 and 1, and first below steps "
                f"({self.steps})."
            )

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        values = _without_time(sample, draw, "Latency").astype(np.float32)
        if values.size and (values.min() < 0 or values.max() > 1):
            raise SampleError(
                f"Latency requires values from 0 to 1, but the sample has {values.min():g} to {values.max():g}; scale it with map()."
            )
        at = np.rint(self._linear(values) if self.linear else self._logarithmic(values)).astype(np.int64).reshape(-1)
        fires = at < self.steps
        if self.clip:
            fires &= values.reshape(-1) >= np.float32(self.threshold)
        return Spikes(at[fires], np.flatnonzero(fires), self.steps, values.shape)

    def _linear(self, values: Array) -> Array:
        tau = self.steps - 1 - self.first if self.normalize else self.tau
        times: Array = np.minimum(-tau * (values - 1), np.float32(-tau * (self.threshold - 1))) + self.first
        return times

    def _logarithmic(self, values: Array) -> Array:
        level = np.float32(self.threshold)
        clipped = np.maximum(values, np.float32(self.threshold + 1e-7))
        times: Array = self.tau * np.log(clipped / (clipped - level)) + self.first
        if self.normalize:
            times = (times - self.first) * (self.steps - self.first - 1) / np.max(times - self.first) + self.first
        return times


@dataclass(frozen=True)
class Delta:
    """Fire when a value has grown by at least a threshold since the previous step.

    Parameters
    ----------
    threshold
        Smallest change that causes a spike.
    padding
        Whether the value before the first step equals the first value; otherwise it is 0.
    off
        Whether a decrease by the threshold fires too; spikes are then [T, 2, *shape], decreases first, then increases.
    """

    threshold: float = 0.1
    padding: bool = False
    off: bool = False
    gives_time = True

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, 0, 1e30)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        values = _in_time(sample, None, draw, "Delta")
        before = np.concatenate([values[:1] if self.padding else np.zeros_like(values[:1]), values[:-1]])
        change = values - before
        level = change.dtype.type(self.threshold)
        rises = change >= level
        return Spikes.of(np.stack([change <= -level, rises], axis=1) if self.off else rises)


@dataclass(frozen=True)
class Threshold:
    """Fire in every step in which a value is at or above a level.

    Parameters
    ----------
    level
        The level.
    steps
        Number of steps; None for samples with a time axis.
    """

    level: float = 0.5
    steps: int | None = None
    gives_time = True

    def __post_init__(self) -> None:
        check_number("level", self.level, -1e30, 1e30)
        _check_steps(self.steps)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        return Spikes.of(_in_time(sample, self.steps, draw, "Threshold") >= self.level)


@dataclass(frozen=True)
class Population:
    """Encode each value by units with Gaussian receptive fields; each unit fires at most once, earlier for a stronger response.

    Unit i of n (from 0) has the centre ``low + (2 i - 1) / 2 (high - low) / (n - 2)`` and the width ``(high - low) / (beta (n - 2))``;
    a response of 1 fires in the first step, a response of 0 in the last. After Bohte, Kok and La Poutre (2002), section 4.

    Parameters
    ----------
    units
        Number of units per value, 3 or more; spikes are [T, *shape, units].
    steps
        Number of steps.
    low, high
        Range of the values.
    beta
        Sharpness of the receptive fields.
    least
        Smallest response that fires.
    """

    units: int
    steps: int
    low: float = 0.0
    high: float = 1.0
    beta: float = 1.5
    least: float = 0.1
    gives_time = True

    def __post_init__(self) -> None:
        check_whole("units", self.units, 3)
        check_whole("steps", self.steps, 1)
        check_number("low", self.low, -1e30, 1e30)
        check_number("beta", self.beta, 1e-30, 1e30)
        check_number("least", self.least, 0, 1)
        if not self.low < self.high < float("inf"):
            raise DataOptionError(f"the range of the values is {self.low!r} … {self.high!r}; the second number must be larger.")

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        values = _without_time(sample, draw, "Population").astype(np.float64)
        gap = (self.high - self.low) / (self.units - 2)
        centres = self.low + (2 * np.arange(self.units) - 1) / 2 * gap
        response = np.exp(-0.5 * ((values[..., None] - centres) / (gap / self.beta)) ** 2)
        at = np.rint((1 - response) * (self.steps - 1)).astype(np.int64).reshape(-1)
        fires = response.reshape(-1) >= self.least
        return Spikes(at[fires], np.flatnonzero(fires), self.steps, response.shape)


@dataclass(frozen=True)
class Repeat:
    """Repeat the values of a sample without time axis at every step.

    Parameters
    ----------
    steps
        Number of steps.
    """

    steps: int
    gives_time = True

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, 1)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        return _in_time(sample, self.steps, draw, "Repeat").copy()


def _check_steps(steps: int | None) -> None:
    if steps is not None:
        check_whole("steps", steps, 1)


def _in_time(sample: Sample, steps: int | None, draw: Draw, who: str) -> Array:
    """Return [steps, *shape]: the sample itself if it has a time axis, otherwise the sample repeated in every step."""
    values = values_of(sample, who)
    if draw.timed and steps is not None:
        raise SampleError(f"{who} has steps={steps}, but the samples {list(values.shape)} have a time axis; leave steps out.")
    if not draw.timed and steps is None:
        raise SampleError(f"{who} without steps requires samples with a time axis, but these, {list(values.shape)}, have none.")
    return values if steps is None else np.broadcast_to(values, (steps, *values.shape))


def _without_time(sample: Sample, draw: Draw, who: str) -> Array:
    values = values_of(sample, who)
    if draw.timed:
        raise SampleError(f"{who} requires values without a time axis, but the samples {list(values.shape)} have one.")
    return values
