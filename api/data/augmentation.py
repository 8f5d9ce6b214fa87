"""Augmentations: random changes of recorded events, drawn anew in each epoch.

The random numbers depend only on the seed, the epoch, the sample and the position of the augmentation in the list of transforms. A
resumed run therefore sees the same changes, whatever the order of the samples and the batch size.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from snnc.data.checks import check_number, check_whole
from snnc.data.sample import Aer, Array, Draw, Sample, events_of, per_axis


@dataclass(frozen=True)
class Shift:
    """Shift a sample by a random number of places along each spatial axis; events that leave the sensor are dropped.

    Parameters
    ----------
    most
        Largest shift, one number for all spatial axes or one per axis; each shift is drawn uniformly from -most … most.
    seed
        Seed of the random numbers.
    """

    most: int | tuple[int, ...]
    seed: int = 0
    gives_time = False

    def __post_init__(self) -> None:
        for value in self.most if isinstance(self.most, tuple) else (self.most,):
            check_whole("most", value, 0)
        check_whole("seed", self.seed, 0)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        events = events_of(sample, "Shift")
        space = events.space
        stream = draw.stream(self.seed)
        moves = [int(stream.integers(-most, most, endpoint=True)) for most in per_axis("most", self.most, space)]
        places = [p + move for p, move in zip(np.unravel_index(events.units % prod(space), space), moves, strict=True)]
        inside = np.ones(len(events.units), bool)
        moved: Array = events.units // prod(space)
        for place, n in zip(places, space, strict=True):
            inside &= (place >= 0) & (place < n)
            moved = moved * n + place
        return Aer(events.times[inside], moved[inside], events.shape, events.polar)


@dataclass(frozen=True)
class Jitter:
    """Shift each event in time by its own normally distributed amount; events moved before the start are dropped.

    Parameters
    ----------
    seconds
        Standard deviation.
    seed
        Seed of the random numbers.
    """

    seconds: float
    seed: int = 0
    gives_time = False

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, 0, 1e6)
        check_whole("seed", self.seed, 0)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        events = events_of(sample, "Jitter")
        moves = draw.stream(self.seed).standard_normal(len(events.times)) * (self.seconds * 1e6)
        times = events.times + np.rint(moves).astype(np.int64)
        return Aer(times, events.units, events.shape, events.polar).select(times >= 0)


@dataclass(frozen=True)
class DropEvents:
    """Drop each event independently with a fixed probability.

    Parameters
    ----------
    probability
        Probability of dropping an event.
    seed
        Seed of the random numbers.
    """

    probability: float
    seed: int = 0
    gives_time = False

    def __post_init__(self) -> None:
        check_number("probability", self.probability, 0, 1)
        check_whole("seed", self.seed, 0)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        events = events_of(sample, "DropEvents")
        return events.select(draw.stream(self.seed).random(len(events.times)) >= self.probability)


@dataclass(frozen=True)
class DropTime:
    """Drop all events in an interval at a random position of the sample.

    Parameters
    ----------
    share
        Length of the interval, as a share of the time between the first and the last event.
    seed
        Seed of the random numbers.
    """

    share: float
    seed: int = 0
    gives_time = False

    def __post_init__(self) -> None:
        check_number("share", self.share, 0, 1)
        check_whole("seed", self.seed, 0)

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        """See :class:`snnc.data.Transform`."""
        events = events_of(sample, "DropTime")
        if not len(events.times):
            return events
        first, span = int(events.times.min()), int(events.times.max() - events.times.min()) + 1
        start = first + float(draw.stream(self.seed).random()) * (1 - self.share) * span
        return events.select((events.times < start) | (events.times >= start + self.share * span))
