"""The schedule of populations: each a few barriers after the others, so that all work at once if the connections allow it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[str, str, int]
"""A population, one that reads it, and the delay in between."""


@dataclass(frozen=True)
class SkewedPopulation:
    """A population that runs in a stretch between two barriers, `skew` time steps late."""

    name: str
    skew: int


@dataclass(frozen=True)
class Wavefront:
    """The stretches of a time step, each followed by a barrier, and the largest skew.

    A network of T steps takes T + `skew` rounds of all stretches; results are those without a skew.
    """

    stretches: tuple[tuple[SkewedPopulation, ...], ...]
    skew: int


def wavefront(names: Sequence[str], edges: Iterable[Edge]) -> Wavefront:
    """Find the fewest barriers a time step, and with them the earliest turn of every population.

    With M barriers a step, population p runs time step t in stretch M t + f(p). Values that it reads from q with delay d must be a barrier
    older: f(p) >= f(q) - M d + 1. Such numbers exist if no cycle is longer than M times its delays (Leiserson & Saxe, "Retiming
    synchronous circuitry", Algorithmica 6, 1991).

    Parameters
    ----------
    names
        All populations.
    edges
        Who reads whom; every cycle has a delay.

    Examples
    --------
    >>> wavefront(["a", "b"], [("a", "a", 1), ("a", "b", 0)])
    Wavefront(stretches=((Turn(name='a', skew=0), Turn(name='b', skew=1)),), skew=1)
    """
    known = [edge for edge in edges if edge[0] in names and edge[1] in names]
    for barriers in range(1, max(2, len(names) + 1)):
        found = _times(names, known, barriers)
        if found is not None:
            stretches = tuple(
                tuple(SkewedPopulation(name, time // barriers) for name, time in found.items() if time % barriers == number)
                for number in range(barriers)
            )
            return Wavefront(stretches, max((time // barriers for time in found.values()), default=0))
    raise ValueError("a cycle of connections has no delay")


def _times(names: Sequence[str], edges: Sequence[Edge], barriers: int) -> dict[str, int] | None:
    """Longest paths; None if a cycle makes them infinite."""
    found = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        changed = False
        for before, after, delay in edges:
            least = found[before] - barriers * delay + 1
            if least > found[after]:
                found[after], changed = least, True
        if not changed:
            return found
    return None
