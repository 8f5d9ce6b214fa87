"""The scale of each ReLU layer: a high percentile of its activations on sample data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Population
from snnc.compiler.ir.shapes import size
from snnc.frontends.ann2snn.errors import SilentLayerError
from snnc.frontends.ann2snn.running import recording, runs
from snnc.frontends.ann2snn.samples import Samples

_MOST: Final = 2**26
"""Maximum activations of all layers that are kept at a time."""


def scales(graph: Graph, samples: Samples, percentile: float, origins: Mapping[str, str]) -> tuple[dict[str, float], int]:
    """Return population -> activation that becomes a firing rate of 1, and the number of samples used.

    It is the `percentile` of the positive activations of a layer (Rueckauer et al. 2017, "Conversion of continuous-valued deep networks
    to efficient event-driven networks for image classification"; with 100 the maximum of Diehl et al. 2015, "Fast-classifying,
    high-accuracy spiking deep networks through weight and threshold balancing"). Larger activations are clipped.

    Raises
    ------
    SilentLayerError
        A layer is zero on all samples.
    """
    neurons = sum(size(p.shape) for _, p in graph.of_type(Population))
    used = max(1, min(len(samples), _MOST // neurons))
    recorded, names = recording(graph)
    kept: dict[str, list[Array]] = {name: [] for name in names}
    for _, steps in runs(recorded, {n: a[:used] for n, a in samples.inputs.items()}, 1):
        for found in steps:
            for name, output in names.items():
                values = found[output]
                kept[name].append(values[values > 0].astype(np.float32))
    result = {}
    for name, parts in kept.items():
        positive = np.concatenate(parts)
        if not positive.size:
            raise SilentLayerError(
                f"the layer {name!r} ({origins[name]}) is 0 on all {used} samples, so its threshold cannot be balanced; give sample data "
                "that resemble what the network was trained on, scaled as there, or remove the layer."
            )
        result[name] = float(np.percentile(positive, percentile))
    return result, used
