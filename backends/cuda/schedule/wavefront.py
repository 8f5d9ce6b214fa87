"""The wavefront schedule: populations run a few barriers apart, so that all of them run concurrently if the connections allow it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[str, str, int]
"""A source population, a target population, and the delay of their connection."""


@dataclass(frozen=True)
class SkewedPopulation:
    """A population in a stretch (the work between two barriers) of the schedule; it runs `skew` steps after the earliest populations."""

    name: str
    skew: int


@dataclass(frozen=True)
class Wavefront:
    """The schedule of a time step: its stretches, each followed by a barrier, and the largest skew.

    A sequence of T steps takes T + `skew` rounds of all stretches; the results are the same as without skews.
    """

    stretches: tuple[tuple[SkewedPopulation, ...], ...]
    skew: int


def wavefront(names: Sequence[str], edges: Iterable[Edge]) -> Wavefront:
    """Return the schedule with the fewest barriers per time step, with each population in its earliest possible stretch.

    With M barriers per step, population p runs time step t in stretch M t + f(p). A value read from q with delay d must be at
    least a barrier old: f(p) >= f(q) - M d + 1. Such an f exists if no cycle has more connections than M times the sum of its delays
    (Leiserson and Saxe, "Retiming synchronous circuitry", Algorithmica 6, 1991).

    Raises a ValueError if a cycle of connections has no delay.

    Examples
    --------
    >>> wavefront(["a", "b"], [("a", "a", 1), ("a", "b", 0)])
    Wavefront(stretches=((SkewedPopulation(name='a', skew=0), SkewedPopulation(name='b', skew=1)),), skew=1)
    """
    known = [edge for edge in edges if edge[0] in names and edge[1] in names]
    for barriers in range(1, max(2, len(names) + 1)):
        times = _times(names, known, barriers)
        if times is not None:
            stretches = tuple(
                tuple(SkewedPopulation(name, time // barriers) for name, time in times.items() if time % barriers == number)
                for number in range(barriers)
            )
            return Wavefront(stretches, max((time // barriers for time in times.values()), default=0))
    raise ValueError("a cycle of connections has no delay")


def _times(names: Sequence[str], edges: Sequence[Edge], barriers: int) -> dict[str, int] | None:
    """Return f for every population, computed as longest paths; None if a cycle makes them infinite."""
    times = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        changed = False
        for before, after, delay in edges:
            least = times[before] - barriers * delay + 1
            if least > times[after]:
                times[after], changed = least, True
        if not changed:
            return times
    return None
