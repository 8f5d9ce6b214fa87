"""Measure the scale of each ReLU layer on sample data, and compare the ReLU network with the spiking one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Output, Population
from snnc.compiler.ir.shapes import size
from snnc.frontends.ann2snn.errors import SilentLayerError
from snnc.frontends.ann2snn.report import AccuracyPoint
from snnc.frontends.ann2snn.running import recording, runs
from snnc.frontends.ann2snn.samples import Samples

_MOST: Final = 2**26
"""Maximum number of activations measured, over all layers and samples."""


def scales(graph: Graph, samples: Samples, percentile: float, origins: Mapping[str, str]) -> tuple[dict[str, float], int]:
    """Return the activation that becomes a firing rate of 1, by population, and the number of samples used.

    This activation is the `percentile` of a layer's positive activations (Rueckauer et al. 2017, "Conversion of continuous-valued deep
    networks to efficient event-driven networks for image classification"). The percentile 100 is their maximum, as in Diehl et al. 2015,
    "Fast-classifying, high-accuracy spiking deep networks through weight and threshold balancing". Larger activations saturate.

    Raises
    ------
    SilentLayerError
        A layer is zero on all samples.
    """
    neurons = sum(size(p.shape) for _, p in graph.of_type(Population))
    used = max(1, min(len(samples), _MOST // neurons))
    recorded, names = recording(graph)
    activations: dict[str, list[Array]] = {name: [] for name in names}
    for _, steps in runs(recorded, {n: a[:used] for n, a in samples.inputs.items()}, 1):
        for found in steps:
            for name, output in names.items():
                values = found[output]
                activations[name].append(values[values > 0].astype(np.float32))
    result = {}
    for name, parts in activations.items():
        positive = np.concatenate(parts)
        if not positive.size:
            raise SilentLayerError(
                f"the layer {name!r} ({origins[name]}) is 0 on all {used} samples, so its threshold cannot be balanced; give sample data "
                "that resemble the training data and are scaled in the same way, or remove the layer."
            )
        result[name] = float(np.percentile(positive, percentile))
    return result, used


@dataclass(frozen=True)
class ConversionResults:
    """Name of the compared output, accuracy of the ReLU network and, after several steps, of the spiking one, and firing rate by layer."""

    output: str
    accuracy: float | None
    points: tuple[AccuracyPoint, ...]
    rates: Mapping[str, float]


def measure(ann: Graph, snn: Graph, samples: Samples, steps: int, layers: list[str]) -> ConversionResults:
    """Run both networks on all samples, and compare their outputs after an eighth, a quarter, a half and all of `steps`."""
    output, _ = next(ann.of_type(Output))
    expected = np.concatenate([found[output] for _, now in runs(ann, samples.inputs, 1) for found in now])
    at = sorted({max(1, steps // k) for k in (8, 4, 2, 1)})
    parts: dict[int, list[Array]] = {t: [] for t in at}
    recorded, names = recording(snn)
    spikes = dict.fromkeys(layers, 0.0)
    for part, now in runs(recorded, samples.inputs, steps):
        total = np.zeros_like(expected[part])
        for t, found in enumerate(now, 1):
            total += found[output].reshape(total.shape)
            if t in parts:
                parts[t].append(total / t)
            for name in layers:
                spikes[name] += float(found[names[name]].mean(axis=tuple(range(1, found[names[name]].ndim))).sum())
    ann_rows = expected.reshape(len(expected), -1)
    points = tuple(_point(t, np.concatenate(parts[t]).reshape(ann_rows.shape), ann_rows, samples.labels) for t in at)
    rates = {name: count / (steps * len(samples)) for name, count in spikes.items()}
    return ConversionResults(output, _accuracy(ann_rows, samples.labels), points, rates)


def _point(steps: int, snn: Array, ann: Array, labels: Array | None) -> AccuracyPoint:
    length = np.linalg.norm(ann, axis=1)
    gap = np.linalg.norm(snn - ann, axis=1) / np.maximum(length, np.finfo(np.float32).tiny)
    agreement = None if ann.shape[1] < 2 else float((snn.argmax(axis=1) == ann.argmax(axis=1)).mean())
    return AccuracyPoint(steps, _accuracy(snn, labels), agreement, float(gap.mean()), float(np.percentile(gap, 95)))


def _accuracy(rows: Array, labels: Array | None) -> float | None:
    return None if labels is None else float((rows.argmax(axis=1) == labels).mean())
