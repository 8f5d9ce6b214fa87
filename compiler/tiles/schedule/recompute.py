"""Lengths of segments to try, in iterations, if the history of all steps does not fit.

A segment is a few consecutive iterations. Tiles store the history of one segment at a time; before its backward pass, its forward pass
runs again from the states stored at its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.ir.segments import Segments, Streamed
from snnc.compiler.tiles.blocks.grouping import Ints
from snnc.compiler.tiles.mapped.network import BusSource, MappedNetwork
from snnc.compiler.tiles.schedule.buses import COUNT_BYTES, id_bytes
from snnc.compiler.tiles.schedule.schedule import TileSchedule

MAX_DOUBLINGS: Final = 16
"""The numbers of segments are 2 and 3 times the powers of two ``2**k`` with ``k < MAX_DOUBLINGS``."""
MAX_LENGTHS: Final = 4096
"""Maximum number of lengths whose memory is compared: half of them evenly spaced, half in geometric progression."""


def segment_lengths(network: MappedNetwork, schedule: TileSchedule, steps: int, streamed: Streamed = "off") -> tuple[int, ...]:
    """Return lengths of segments to try, in iterations; the longest come first, because fewer segments mean less recomputation.

    The numbers of segments are 2, 3, 4, 6, 8, 12, …; the last length minimises the memory of the whole network. The result is empty if no
    length saves memory.
    """
    iterations = schedule.iterations(steps)
    if not network.training or iterations < 2:
        return ()
    lengths = np.unique(np.linspace(1, iterations - 1, MAX_LENGTHS // 2).astype(int))
    lengths = np.union1d(lengths, np.geomspace(1, iterations - 1, MAX_LENGTHS // 2).astype(int))
    needed = _bytes(network, schedule, [Segments(steps, schedule.interval, iterations, int(n), streamed) for n in lengths])
    least = int(lengths[needed.argmin()])
    if needed.min() >= _bytes(network, schedule, [Segments(steps, schedule.interval, iterations, 0)])[0]:
        return ()
    numbers = sorted(n * 2**k for n in (2, 3) for k in range(MAX_DOUBLINGS))
    candidates = dict.fromkeys(-(-iterations // n) for n in numbers if n <= iterations)
    return (*(length for length in candidates if length > least), least)


def _bytes(network: MappedNetwork, schedule: TileSchedule, cuts: Sequence[Segments]) -> Ints:
    """Return the bytes per sample that blocks and relays store over time, for each division into segments.

    A relay stores the steps that a segment reads. For each boundary but the first, it also stores the earlier steps that it still has to
    send when the segment runs again, because buses have lags.
    """
    history = np.array([cut.steps_in_history for cut in cuts])
    boundaries, sent = np.array([cut.boundaries for cut in cuts]), np.array([cut.boundaries_sent for cut in cuts])
    size: Ints = np.zeros(len(cuts), dtype=np.int64)
    lags: dict[BusSource, list[int]] = {}
    for link in network.links:
        lags.setdefault(link.source, []).append(schedule.lags[link.id])
    for layer in network.layers:
        half_states = len(layer.kernel.halves)
        floats = layer.past.floats(history) + (len(layer.kernel.states) - half_states) * boundaries
        size = size + layer.neurons * (FLOAT * floats + HALF * (layer.past.halves(history) + half_states * boundaries))
    for source, of_source in lags.items():
        if source.external:
            stored = np.array([1 if source.static else cut.steps_streamed(min(of_source), max(of_source)) for cut in cuts])
        else:
            size = size + (FLOAT * source.width * sent if source.kind != "spikes" else 0)
            longest = max(of_source)
            stored = np.array([cut.steps_relayed(longest) + cut.boundaries_with_steps * cut.steps_before(longest) for cut in cuts])
        each = FLOAT * source.width if source.kind != "spikes" else id_bytes(source) * source.width + COUNT_BYTES
        size = size + each * stored
    return size
