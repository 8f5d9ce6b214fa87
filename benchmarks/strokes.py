"""Synthetic training data: pen strokes in the pixel format of N-MNIST, for machines without the data set."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array

SIDE: Final = 34
"""Number of pixels along an axis; there are two polarities."""
KINDS: Final = 10
"""Number of kinds of strokes; all samples of a kind have the same corners, up to random shifts."""


def strokes(samples: int, seed: int, steps: int = 20, points: int = 6, noise: float = 0.001) -> tuple[Array, Array]:
    """Return spikes [samples, T, 2312] and kinds [samples]: a pen moves with jitter from corner to corner of its kind (four corners).

    The pen draws `points` points per step. A pixel fires in the first polarity when the pen passes, and in the second one 7.5 % of the
    sequence later.
    At every step, each pixel also fires with probability `noise`.
    """
    corners = np.random.default_rng(0).uniform(5, SIDE - 6, (KINDS, 4, 2))
    random = np.random.default_rng(seed)
    kinds = random.integers(0, KINDS, samples)
    events = np.zeros((samples, steps, 2, SIDE, SIDE), np.uint8)
    at = np.linspace(0, 3, steps * points)
    delay = round(0.075 * steps * points)
    for sample, kind in enumerate(kinds):
        shifted = (corners[kind] + random.normal(0, 1.5, (4, 2))) + random.normal(0, 2.0, 2)
        path = np.stack([np.interp(at, range(4), shifted[:, axis]) for axis in (0, 1)], axis=1)
        for polarity, late in ((0, 0), (1, delay)):
            drawn = path[: len(path) - late] + random.normal(0, 0.7, (len(path) - late, 2))
            rows, columns = np.clip(np.rint(drawn), 0, SIDE - 1).astype(int).T
            events[sample, (np.arange(len(drawn)) + late) // points, polarity, rows, columns] = 1
        if noise:
            events[sample][random.random((steps, 2, SIDE, SIDE)) < noise] = 1
    return events.reshape(samples, steps, -1), kinds


def stroke_images(samples: int, seed: int) -> tuple[Array, Array]:
    """Return values [samples, 2312] and kinds; a value is half the number of a pixel's spikes in :func:`strokes`, at most 1."""
    events, kinds = strokes(samples, seed)
    return np.minimum(events.sum(axis=1, dtype=np.float32), 2.0) / 2, kinds
