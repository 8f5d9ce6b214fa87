"""Simulate a net in NumPy to count n0, the spikes of a layer, and n1, its neurons that receive a gradient.

The published log does not record these counts. The simulation draws initial weights and inputs with the statistics of the published runs.
Equations (``custom_codelet.cpp`` of ``jrfinkbeiner/graphcore_snn``; arXiv 2311.04386)::

    I  = sum of the weight rows of the ids that the previous layer sent in the previous step (first layer: of this step's inputs)
    U' = 10 (1 - a) I            where U > 1 before the step (hard reset)
    U' = a U + 10 (1 - a) I      elsewhere
    n0 = min(K, #(U' > 1)),  n1 = min(K, #(U' > th2)),  the lowest ids are kept

I is the current and U the membrane potential of a neuron (U' in this step), K the capacity of its layer in ids per sample, a = 0.95, and
th2 = 0.9 (-100 for the readout). Weights are uniform in ±limit, with limit = multiplier sqrt(6 / inputs); the limits that the log prints
correspond to multiplier 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.benchmarks.published.net import PublishedNet

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
DECAY: Final = np.float32(0.95)
SECOND_THRESHOLD: Final = 0.9
READOUT_THRESHOLD: Final = -100.0


@dataclass(frozen=True, eq=False)
class SimulatedCounts:
    """Counts of one batch, from all steps and samples, in read-only arrays."""

    inputs: npt.NDArray[np.int64]
    """Number of input spikes that are used [T, B]."""
    fired: tuple[npt.NDArray[np.int64], ...]
    spikes: tuple[npt.NDArray[np.int64], ...]
    gradients: tuple[npt.NDArray[np.int64], ...]
    """For each layer [T, B]: number of neurons above the threshold (`fired`), n0 (`spikes`) and n1 (`gradients`)."""

    def of(self, net: PublishedNet) -> PublishedNet:
        """Return `net` with the mean counts."""
        layers = tuple(
            replace(layer, spikes=float(n0.mean()), gradients=float(n1.mean()))
            for layer, n0, n1 in zip(net.layers, self.spikes, self.gradients, strict=True)
        )
        return replace(net, input_spikes=float(self.inputs.mean()), layers=layers)


def simulate(net: PublishedNet, inputs: Flags, *, multiplier: float, seed: int) -> SimulatedCounts:
    """Run one sequence of `net` with inputs [T, B, inputs]; the counts in `net` are not read.

    Per sample and step, the host sends the lowest ``input_capacity`` ids only. `multiplier` and `seed` determine the initial weights, see
    the module's docstring.
    """
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    weights = [_weights(rng, a, b, multiplier) for a, b in zip(net.widths[:-1], net.widths[1:], strict=True)]
    second_thresholds = [*[SECOND_THRESHOLD] * (len(net.layers) - 1), READOUT_THRESHOLD]
    steps, batch = inputs.shape[:2]
    states = [np.zeros((batch, layer.neurons), np.float32) for layer in net.layers]
    sent: list[Flags] = [np.zeros((batch, layer.neurons), np.bool_) for layer in net.layers]
    counts = np.zeros((4, len(net.layers), steps, batch), np.int64)
    for t in range(steps):
        arriving = [_lowest(inputs[t], net.input_capacity), *sent[:-1]]
        for i, layer in enumerate(net.layers):
            current = np.float32(10.0) * (1 - DECAY) * (csr_array(arriving[i], dtype=np.float32) @ weights[i])
            states[i] = np.where(states[i] > 1.0, current, DECAY * states[i] + current)
            above = states[i] > 1.0
            sent[i] = _lowest(above, layer.capacity)
            counts[0, i, t] = arriving[i].sum(axis=1)
            counts[1, i, t] = above.sum(axis=1)
            counts[2, i, t] = sent[i].sum(axis=1)
            counts[3, i, t] = np.minimum((states[i] > second_thresholds[i]).sum(axis=1), layer.capacity)
    counts.flags.writeable = False
    return SimulatedCounts(counts[0, 0], *(tuple(part) for part in counts[1:]))


def _weights(rng: np.random.Generator, inputs: int, outputs: int, multiplier: float) -> Floats:
    limit = np.float32(multiplier * np.sqrt(6.0 / inputs))
    return (2 * rng.random((inputs, outputs), np.float32) - 1) * limit


def _lowest(flags: Flags, capacity: int) -> Flags:
    return flags & (np.cumsum(flags, axis=1) <= capacity)


# ---- inputs ----------------------------------------------------------------------------------------------------------

SIDE: Final = 34
"""Number of pixels of an N-MNIST recording along an axis."""
EVENTS_PER_STEP: Final = 13.9
"""Mean number of events per step (assumed): a recording of 300 ms has 4,172 events on average (Orchard et al. 2015), and the benchmark bins
them by 1 ms. Its noise filter removes an unknown number of events, which are not subtracted."""
STROKE: Final = 20
"""Side of the box that a digit fills, in pixels (MNIST's normalisation; N-MNIST keeps the scale)."""
PAD: Final = 4
"""Padding around an image, in pixels: more than the largest shift (half of :data:`TRAVEL`) plus one pixel for interpolation."""
TRAVEL: Final = 4.0
"""Distance that the image moves in the first 100 ms, one saccade, in pixels (assumed)."""


@lru_cache(maxsize=1)
def moving_strokes(steps: int, batch: int, seed: int) -> Flags:
    """Return inputs with the statistics of N-MNIST's first saccade, [T, B, 2312]: events at the edges of a moving pen stroke.

    Each sample is a random smooth stroke, because N-MNIST was not available. The number of events in a step is Poisson
    distributed, and their positions have probabilities proportional to the change of the image; brighter and darker pixels
    have separate addresses. The array is read-only: the logged networks share it.
    """
    rng = np.random.default_rng(seed)
    images = np.stack([_stroke(rng) for _ in range(batch)])
    angles = rng.uniform(0, 2 * np.pi, batch)
    slope_y, slope_x = np.gradient(images, axis=(1, 2))
    directions = np.stack([np.sin(angles), np.cos(angles)])
    changes = -(slope_y * directions[0, :, None, None] + slope_x * directions[1, :, None, None])
    events = np.zeros((steps, batch, 2 * SIDE * SIDE), np.bool_)
    for t in range(steps):
        here = _moved(changes, TRAVEL * (t / steps - 0.5) * directions).reshape(batch, -1)
        cumulative = np.cumsum(np.concatenate([np.maximum(here, 0), np.maximum(-here, 0)], axis=1), axis=1)
        for b, count in enumerate(rng.poisson(EVENTS_PER_STEP, batch)):
            events[t, b, np.searchsorted(cumulative[b], rng.random(count) * cumulative[b, -1], side="right")] = True
    events.flags.writeable = False
    return events


def _stroke(rng: np.random.Generator) -> Doubles:
    """Return an image of one pen stroke: a smooth curve through the box, about as wide as MNIST's pen."""
    s = np.linspace(0, 1, 60)
    order = np.arange(1, 4)
    waves = rng.normal(size=(2, 3)) / order
    phases = rng.uniform(0, 2 * np.pi, (2, 3))
    curve = np.einsum("ak,aks->as", waves, np.sin(np.pi * order[:, None] * s + phases[:, :, None]))
    curve -= curve.min(axis=1, keepdims=True)
    curve *= (STROKE - 2) / curve.max()
    curve += (SIDE - curve.max(axis=1, keepdims=True)) / 2
    grid = np.arange(SIDE)
    near = (grid[:, None, None] - curve[0]) ** 2 + (grid[None, :, None] - curve[1]) ** 2
    image: Doubles = np.exp(-near.min(axis=2) / 2)
    return image


def _moved(images: Doubles, offsets: Doubles) -> Doubles:
    """Shift images [B, y, x] by offsets [2, B], with linear interpolation and zeros outside of the image."""
    padded = np.pad(images, ((0, 0), (PAD, PAD), (PAD, PAD)))
    pixels = np.floor(offsets).astype(np.int64)
    part = (offsets - pixels)[:, :, None, None]
    sample = np.arange(len(images))[:, None, None]
    rows = PAD + np.arange(SIDE)[:, None] - pixels[0][:, None, None]
    columns = PAD + np.arange(SIDE) - pixels[1][:, None, None]
    moved: Doubles = (
        (1 - part[0]) * (1 - part[1]) * padded[sample, rows, columns]
        + (1 - part[0]) * part[1] * padded[sample, rows, columns - 1]
        + part[0] * (1 - part[1]) * padded[sample, rows - 1, columns]
        + part[0] * part[1] * padded[sample, rows - 1, columns - 1]
    )
    return moved
