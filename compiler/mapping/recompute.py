"""Which lengths of segments are worth trying when the history of all steps finds no room."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.mapping.grouping import Ints, ceil_div
from snnc.compiler.mapping.network import Network
from snnc.compiler.mapping.schedule import Schedule

MOST_DOUBLINGS: Final = 16


def segment_lengths(network: Network, schedule: Schedule, steps: int) -> tuple[int, ...]:
    """Return lengths of segments, in iterations, the longest first: fewer segments run less a second time.

    The numbers of segments are 2, 3, 4, 6, 8, 12, …; the last length is the one for which the blocks of the whole network hold least. Empty
    where no length saves anything.
    """
    iterations = schedule.iterations(steps)
    if not network.training or iterations < 2:
        return ()
    lengths = np.arange(1, iterations)
    floats = _floats(network, schedule.interval, steps, lengths, ceil_div(iterations, lengths))
    least = int(lengths[floats.argmin()])
    history, saved, _ = _kept(network)
    if floats.min() >= history * (steps + 1) + saved * steps:
        return ()
    numbers = sorted(n * 2**k for n in (2, 3) for k in range(MOST_DOUBLINGS))
    found = dict.fromkeys(-(-iterations // n) for n in numbers if n <= iterations)
    return (*(length for length in found if length > least), least)


def _kept(network: Network) -> tuple[int, int, int]:
    """Floats of a sample: states with a history, and saved values, of one step; all states."""
    learning = [layer for layer in network.layers if layer.gradient]
    history = sum(layer.neurons * len(layer.kernel.history) for layer in learning)
    saved = sum(layer.neurons * len(layer.kernel.saved) for layer in learning)
    return history, saved, sum(layer.neurons * len(layer.kernel.states) for layer in network.layers)


def _floats(network: Network, interval: int, steps: int, lengths: Ints, boundaries: Ints) -> Ints:
    """Floats of a sample that the blocks of all populations keep over time."""
    history, saved, states = _kept(network)
    kept = np.minimum(steps, ceil_div(lengths, interval))
    found: Ints = history * (kept + 1) + saved * kept + states * boundaries
    return found
