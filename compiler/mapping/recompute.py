"""Which lengths of segments are worth trying when the history of all steps finds no room."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.mapping.buses import COUNT_BYTES, id_bytes
from snnc.compiler.mapping.grouping import Ints, ceil_div
from snnc.compiler.mapping.network import Network, Source
from snnc.compiler.mapping.schedule import Schedule

MOST_DOUBLINGS: Final = 16
FLOAT: Final = 4


def segment_lengths(network: Network, schedule: Schedule, steps: int) -> tuple[int, ...]:
    """Return lengths of segments, in iterations, the longest first: fewer segments run less a second time.

    The numbers of segments are 2, 3, 4, 6, 8, 12, …; the last length is the one for which the whole network holds least. Empty where no
    length saves anything.
    """
    iterations = schedule.iterations(steps)
    if not network.training or iterations < 2:
        return ()
    lengths = np.arange(1, iterations)
    held = _bytes(network, schedule, steps, lengths, ceil_div(iterations, lengths))
    least = int(lengths[held.argmin()])
    if held.min() >= _bytes(network, schedule, steps, np.array([iterations]), np.zeros(1, dtype=np.int64))[0]:
        return ()
    numbers = sorted(n * 2**k for n in (2, 3) for k in range(MOST_DOUBLINGS))
    found = dict.fromkeys(-(-iterations // n) for n in numbers if n <= iterations)
    return (*(length for length in found if length > least), least)


def _bytes(network: Network, schedule: Schedule, steps: int, lengths: Ints, boundaries: Ints) -> Ints:
    """Bytes of a sample that blocks and relays of populations keep over time; `boundaries` are 0 where nothing is cut."""
    kept = np.minimum(steps, ceil_div(lengths, schedule.interval))
    found: Ints = np.zeros(len(lengths), dtype=np.int64)
    for layer in network.layers:
        history, saved = (len(layer.kernel.history), len(layer.kernel.saved)) if layer.gradient else (0, 0)
        found = found + FLOAT * layer.neurons * (history * (kept + 1) + saved * kept + len(layer.kernel.states) * boundaries)
        for source in layer.sent:
            lag = max(schedule.lags[link.id] for link in layer.outgoing if link.source == source)
            relayed = np.minimum(steps, ceil_div(lengths - 1 + lag, schedule.interval))
            found = found + (FLOAT * source.width * boundaries if source.kind != "spikes" else 0)
            behind = np.maximum(boundaries - 1, 0) * min(steps, -(-(lag - 1) // schedule.interval))
            found = found + _step_bytes(source) * (relayed + behind)
    return found


def _step_bytes(source: Source) -> int:
    """Bytes of a sample and step on a relay, with room for all ids."""
    return FLOAT * source.width if source.kind != "spikes" else id_bytes(source) * source.width + COUNT_BYTES
