"""Workloads of ``snnc bench --suite cuda``: networks of the suite cpu at larger batches, and single layers of LIF neurons."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from snnc.benchmarks.cpu.workloads import WORKLOADS, DenseLayer, Workload

BATCHES: Final = (64, 256, 1024)
OPEN_SIZES: Final = (512, 1024, 2048, 4096, 8192, 16384)
OPEN_DENSITIES: Final = (0.01, 0.05, 0.2)
STAND_IN: Final = (5, 4)
"""Time steps and samples if the CPU replaces the GPU."""


def _larger(name: str) -> tuple[Workload, ...]:
    base = replace(next(w for w in WORKLOADS if w.name == name), density=0.05)
    return tuple(base if b == base.batch else replace(base, name=f"{name}-B{b}", batch=b) for b in BATCHES)


def _open(neurons: int, density: float) -> Workload:
    """Return the layer of the benchmark of open SNN libraries (open-neuromorphic.org, "SNN library benchmarks"): a linear layer and LIF.

    It has B = 16, T = 500, N inputs and N neurons. The inputs of that benchmark are dense random numbers; here they are spikes.
    """
    return Workload(f"open-{neurons}", density, 500, 16, (neurons,), (DenseLayer(neurons),), 0)


CUDA_WORKLOADS: Final = (
    *_larger("W1"),
    *_larger("W2"),
    *(w for w in WORKLOADS if w.name in ("W1-ff", "W3", "conv") or (w.name == "W1" and w.density != 0.05)),
    *(_open(neurons, density) for neurons in OPEN_SIZES for density in OPEN_DENSITIES),
)


def stand_in(workload: Workload) -> Workload:
    """Return a small version of a workload for a run without a device: its numbers are checked, its times are meaningless."""
    return workload.checked(*STAND_IN)
