"""Workloads of ``snnc bench --suite cuda``: networks of the suite cpu at larger batches, single layers, and a curve over activity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from snnc.benchmarks.cpu.problem import ASSUMED
from snnc.benchmarks.cpu.workloads import WORKLOADS, DenseLayer, Workload

BATCHES: Final = (64, 256, 1024)
"""Batch sizes of W1 and W2."""
OPEN_SIZES: Final = (512, 1024, 2048, 4096, 8192, 16384)
OPEN_DENSITIES: Final = (0.01, 0.05, 0.2)
"""Numbers of neurons, and shares of inputs that spike, for the benchmark of open SNN libraries."""
CURVE_CURRENTS: Final[Mapping[float, float]] = {0.5: 0.19, 1: 0.233, 2: 0.305, 5: 0.503, 10: 0.877, 20: 2.382}
"""Standard deviation of the first layer's currents, in units of the threshold, for each percentage of hidden neurons that spike in a step.
It was found by bisection, so the percentages are approximate; rows report the counted activity."""
STAND_IN: Final = (5, 4)
"""Numbers of time steps and samples if the CPU replaces the GPU."""


def _larger(name: str) -> tuple[Workload, ...]:
    base = replace(next(w for w in WORKLOADS if w.name == name), density=0.05)
    return tuple(base if b == base.batch else replace(base, name=f"{name}-B{b}", batch=b) for b in BATCHES)


def _open(neurons: int, density: float) -> Workload:
    """Return the layer of the benchmark of open SNN libraries (open-neuromorphic.org, "SNN library benchmarks"): a linear layer and LIF.

    It has B = 16, T = 500, N inputs and N neurons. The inputs of that benchmark are dense random numbers; here they are spikes.
    """
    return Workload(f"open-{neurons}", density, 500, 16, (neurons,), (DenseLayer(neurons),), 0)


def _curve(percent: float, current: float) -> Workload:
    """Return a network with the sizes of the published one that fills an IPU: N-MNIST's inputs, three hidden layers, T = 100, B = 48."""
    layers = (DenseLayer(978),) * 3
    later = current * math.sqrt(ASSUMED / (percent / 100))  # at this percentage, currents of later layers vary as much as the first's
    return Workload(f"h3-a{percent:g}", 0.02, 100, 48, (2312,), layers, 10, first_current=current, later_current=later)


CURVE: Final = tuple(_curve(percent, current) for percent, current in CURVE_CURRENTS.items())
CUDA_WORKLOADS: Final = (
    *_larger("W1"),
    *_larger("W2"),
    *(w for w in WORKLOADS if w.name in ("W1-ff", "W3", "conv") or (w.name == "W1" and w.density != 0.05)),
    *(_open(neurons, density) for neurons in OPEN_SIZES for density in OPEN_DENSITIES),
    *CURVE,
)


def stand_in(workload: Workload) -> Workload:
    """Return a small version of a workload for a run without a device: its numbers are checked, its times are meaningless."""
    return workload.checked(*STAND_IN)
