"""Expected amounts that windowed input gradients add to blocks and relays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snnc.compiler.tiles.network import Layer
from snnc.compiler.tiles.placement.grouping import Ints
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.buses import Bus


def returned_buses(problem: MappingProblem, layer: Layer) -> tuple[Bus, ...]:
    """Buses over which gradients return to `layer` in windows."""
    mine = dict.fromkeys(problem.bus_of[link.id] for link in layer.outgoing if problem.returns(link))
    return tuple(problem.bus[b] for b in mine)


def returned_amounts(problem: MappingProblem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    """Expected amounts of a block's own neurons in all windows that return."""
    found: dict[str, Any] = {"windows": 0, "searches": 0.0, "own": 0.0}
    for bus in returned_buses(problem, layer):
        support = problem.support_events(bus)
        spikes = min(problem.events(bus.source), bus.capacity, support)
        found["windows"] = found["windows"] + samples
        found["searches"] = found["searches"] + samples * (expected_halvings(spikes) + expected_halvings(support - spikes))
        found["own"] = found["own"] + samples * columns * support / bus.source.width
    return found


def halvings(ids: Ints) -> Ints:
    """Steps of a bisection over this many ids: the bits of that number."""
    found: Ints = np.frexp(ids.astype(np.float64))[1].astype(np.int64)
    return found


def expected_halvings(mean: float) -> float:
    """Expected halvings of a search in N ids, ``floor(log2 N) + 1``, for N of Poisson distribution (normal approximation).

    Examples
    --------
    >>> round(expected_halvings(100.0), 2)
    7.0
    >>> expected_halvings(0.0)
    0.0
    """
    if mean <= 0:
        return 0.0
    found, power = 1.0 - math.exp(-mean), 2
    while power < 2 * mean + 8:
        found += 0.5 * math.erfc((power - 0.5 - mean) / math.sqrt(2 * mean))
        power *= 2
    return found
