"""Events of every sample in every step: measured, or drawn if only a rate is known.

A superstep waits for the block with the most events, so the distribution over steps and samples matters, not only the mean.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.tiles.blocks.grouping import Ints
from snnc.compiler.tiles.mapped.network import BusSource

STEPS: Final = 512
"""Maximum number of steps, summed over all batches, that are used if measured samples fill several batches."""
DRAWN: Final = 100
"""Minimum number of drawn steps, so that the mean over steps of the largest count is reliable."""


def batches(sources: Iterable[BusSource], measured: Mapping[str, Array], steps: int, batch: int) -> int:
    """Return the number of batches whose events are used: all measured batches, within :data:`STEPS`, or enough drawn ones."""
    samples = [measured[s.buffer].shape[1] // batch for s in sources if s.buffer in measured]
    most = max(1, STEPS // steps)
    return max(1, min([most, *samples])) if samples else max(1, min(most, -(-DRAWN // steps)))


def spikes_of(source: BusSource, rate: float, measured: Array | None, shape: tuple[int, int, int]) -> Ints:
    """Return [batches, steps, samples]: number of events of a source; unmeasured, its values fire independently with probability `rate`."""
    if measured is not None:
        return fitted(measured, shape).astype(np.int64)
    found = _random(source, "spikes").binomial(source.width, rate, (shape[0], 1 if source.static else shape[1], shape[2]))
    return np.broadcast_to(found, shape)


def support_of(source: BusSource, rates: tuple[float, float], measured: Array | None, spikes: Ints) -> Ints:
    """Return [batches, steps, samples]: numbers of neurons that receive a gradient, including those that spike.

    `rates` are the fractions of neurons that spike and that receive a gradient.
    """
    if measured is not None:
        return np.maximum(fitted(measured, spikes.shape), spikes)
    rate, support = rates
    share = (support - rate) / (1.0 - rate) if rate < 1.0 else 0.0
    return spikes + _random(source, "near").binomial(source.width - spikes, min(max(share, 0.0), 1.0))


def fitted(measured: Array, shape: tuple[int, ...]) -> Array:
    """Return [batches, steps, samples, …] from [steps, samples, …], which repeat from the first if they do not suffice."""
    steps, samples = measured.shape[:2]
    chosen = np.arange(shape[0] * shape[2]) % samples
    found: Array = measured[np.arange(shape[1]) % steps][:, chosen]
    return found.reshape(shape[1], shape[0], shape[2], *measured.shape[2:]).swapaxes(0, 1)


def _random(source: BusSource, what: str) -> np.random.Generator:
    """Return a random generator whose seed depends only on `source` and `what`."""
    return np.random.default_rng(zlib.crc32(f"{source.buffer} {what}".encode()))
