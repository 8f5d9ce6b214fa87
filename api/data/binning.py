"""Bin recorded events into time steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from snnc.compiler.ir.graph import Shape
from snnc.data.checks import check_number, check_whole
from snnc.data.sample import Aer, Array, Draw, Sample, Spikes, events_of, per_axis
from snnc.errors import DataOptionError


@dataclass(frozen=True)
class Bin:
    """Convert events to spikes in time steps, and merge neighbouring sensor cells.

    Give `steps` or `dt` alone, or `steps` with `dt` or `duration`:

    - ``steps, dt``: step k contains events from k dt until (k + 1) dt; later ones are dropped.
    - ``steps, duration``: as with ``steps, dt``, where ``dt = duration / steps``.
    - ``dt``: as many steps as the sample needs; a batch has as many as its longest sample.
    - ``steps``: the time from the sample's first to its last event is divided into this many steps.

    Parameters
    ----------
    steps
        Number of steps.
    dt
        Length of a step in seconds.
    duration
        Length of all steps together in seconds.
    downsample
        Number of neighbouring channels, or of rows and columns, merged into one: a number per axis, or one for all. The last
        cell may have fewer.
    polarity
        ``"channels"``: off and on events are separate channels on the first axis; ``"merged"``: they are merged, without that axis.
    counts
        Whether to return the number of events per cell and step as values; otherwise one or more events are one spike.

    Raises
    ------
    DataOptionError
        The settings are out of range or contradict each other.
    """

    steps: int | None = None
    dt: float | None = None
    duration: float | None = None
    downsample: int | tuple[int, ...] = 1
    polarity: Literal["channels", "merged"] = "channels"
    counts: bool = False
    gives_time = True

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_whole("steps", self.steps, 1)
        for name, value in (("dt", self.dt), ("duration", self.duration)):
            if value is not None:
                check_number(name, value, 1e-6, 1e6)
        if (self.steps is None and self.dt is None) or (self.duration is not None and (self.steps is None or self.dt is not None)):
            raise DataOptionError("give steps and dt, steps and duration, dt alone, or steps alone, but no other combination of them.")
        for factor in self.downsample if isinstance(self.downsample, tuple) else (self.downsample,):
            check_whole("downsample", factor, 1)
        if self.polarity not in ("channels", "merged"):
            raise DataOptionError(f"polarity is {self.polarity!r}; it must be 'channels' or 'merged'.")

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        events = events_of(sample, "Bin")
        at, steps = self._steps(events.times)
        units, shape = self._cells(events)
        inside = (at >= 0) & (at < steps)
        if not inside.all():
            at, units = at[inside], units[inside]
        spikes = Spikes(at, units, steps, shape)
        return spikes.counts() if self.counts else spikes

    def _steps(self, times: Array) -> tuple[Array, int]:
        if self.dt is None and self.duration is None:
            assert self.steps is not None, "checked when it was made"
            first, span = (int(times.min()), int(times.max() - times.min()) + 1) if len(times) else (0, 1)
            return (times - first) * self.steps // span, self.steps
        length = self._length
        at = (times if length.denominator == 1 else times * length.denominator) // length.numerator
        return at, self.steps or (int(at.max()) + 1 if len(at) else 1)

    @cached_property
    def _length(self) -> Fraction:
        return _exact(self.dt) if self.duration is None else _exact(self.duration) / (self.steps or 1)

    def _cells(self, events: Aer) -> tuple[Array, Shape]:
        merged = events.polar and self.polarity == "merged"
        space = events.space
        factors = per_axis("downsample", self.downsample, space)
        smaller = tuple(-(-n // factor) for n, factor in zip(space, factors, strict=True))
        lead = events.shape[: len(events.shape) - len(space)]
        units = events.units
        if smaller == space:
            return (units % prod(space), space) if merged else (units, events.shape)
        places = np.unravel_index(units % prod(space), space)
        small: Array = np.zeros(len(units), np.int64)
        for place, factor, n in zip(places, factors, smaller, strict=True):
            small = small * n + place // factor
        if not lead or merged:
            return small, smaller
        return small + units // prod(space) * prod(smaller), (*lead, *smaller)


def _exact(seconds: float | None) -> Fraction:
    """Return the decimal number `seconds` in microseconds, with a denominator small enough for 64-bit products."""
    return (Fraction(repr(float(seconds or 0))) * 1_000_000).limit_denominator(10_000)
