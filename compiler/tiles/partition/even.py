"""Order of the neurons within a part that gives every run of neurons about the same work.

Tiles and workers process runs of neurons, and each superstep waits for the run with the most work. Neurons are reordered only within
stretches, because neighbours often have the same sources. Within a stretch, the next neuron is the one after which the total work so far is
closest to that of as many average neurons. Every fourth neuron is instead the one that differs most from the mean: if it came last, too few
neurons would be left to compensate for it. Outliers (:data:`OUTLIER`) are not chosen in this way.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.tiles.partition.hypergraph import Floats, Ints

STRETCH: Final = 1024
"""Maximum number of neurons in a stretch, within which neurons are reordered."""
EVERY: Final = 4
"""One in EVERY neurons is chosen because it differs most from the mean."""
OUTLIER: Final = 1.0
"""Neurons that differ from the mean by more than this multiple of the mean are excluded from the choice of :data:`EVERY`."""


def even_order(work: Floats) -> Ints:
    """Order neurons so that runs of them have even work; return the neuron at each position.

    `work`, [kinds, neurons], is the work of each neuron by kind (its incoming and its outgoing connections). Each kind is divided by its
    mean, so that all kinds count equally.

    Examples
    --------
    >>> even_order(np.array([[9.0, 9.0, 1.0, 1.0, 5.0, 5.0]])).tolist()
    [0, 2, 4, 5, 1, 3]
    """
    neurons = work.shape[1]
    mean = work.mean(axis=1, keepdims=True)
    scaled = work / np.where(mean > 0, mean, 1.0)
    stretches = np.array_split(np.arange(neurons), max(1, -(-neurons // STRETCH)))
    return np.concatenate([stretch[_by_turns(scaled[:, stretch])] for stretch in stretches])


def _by_turns(work: Floats) -> Ints:
    deviation = work - work.mean(axis=1, keepdims=True)
    size = (deviation**2).sum(axis=0)
    most_different = iter([n for n in np.argsort(-size, kind="stable").tolist() if size[n] <= OUTLIER**2])
    error, placed = np.zeros((len(deviation), 1)), np.zeros(deviation.shape[1])
    order = np.zeros(deviation.shape[1], dtype=np.int64)
    for place in range(len(order)):
        different = next((n for n in most_different if placed[n] == 0), None) if place % EVERY == 0 else None
        best = int((((error + deviation) ** 2).sum(axis=0) + placed).argmin()) if different is None else different
        order[place], placed[best] = best, np.inf
        error = error + deviation[:, best, None]
    return order
