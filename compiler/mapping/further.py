"""Further windows: how many rounds a step takes when windows are limited, and how many events each window holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Final

MOST_WINDOWS: Final = 10_000
_UNIT: Final = NormalDist()


def expected_rounds(limited: Sequence[tuple[float, float, int, int]], batch: int) -> float:
    """Expected rounds of a step beside the first window: the busiest sample of any limited bus decides.

    With N events of a sample, about normal, and windows of c: the sum over j >= 1 of ``P(some N > j c)``.

    Parameters
    ----------
    limited
        Of every limited bus: mean and variance of a sample's events, capacity, width.
    batch
        Samples.
    """
    found = 0.0
    for window in range(1, MOST_WINDOWS):
        none = 1.0
        for mean, variance, capacity, width in limited:
            none *= probability_below(mean, variance, min(window * capacity, width), width) ** batch
        found += 1.0 - none
        if none > 1.0 - 1e-6:
            break
    return found


def probability_below(mean: float, variance: float, events: int, width: int) -> float:
    """Probability that a sample has at most `events` events."""
    if variance <= 0.0 or events >= width:
        return 1.0
    return NormalDist(mean, sqrt(variance)).cdf(events + 0.5)


def events_beyond(mean: float, variance: float, events: float) -> float:
    """Expected events of a sample beyond the first `events`: the partial expectation of a normal number."""
    if variance <= 0.0:
        return max(0.0, mean - events)
    deviation = sqrt(variance)
    distance = (mean - events) / deviation
    return (mean - events) * _UNIT.cdf(distance) + deviation * _UNIT.pdf(distance)


def events_of_window(mean: float, variance: float, capacity: int, window: int) -> float:
    """Expected events of a sample in its window number `window`, the first being 0."""
    return events_beyond(mean, variance, window * capacity) - events_beyond(mean, variance, (window + 1) * capacity)
