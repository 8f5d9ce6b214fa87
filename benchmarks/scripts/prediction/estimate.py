"""Measure the CPU time of planning: ``python benchmarks/scripts/prediction/estimate.py``.

For a convolutional network of 2,068 neurons: a first and a second estimate in one process (gc200), and an exploration of eight points.
"""

from __future__ import annotations

import time
from typing import Final

import snnc

STEPS: Final = 25


def network() -> snnc.Network:
    """Return two convolutions of stride 2 on 28 x 28 spikes, and a readout of 10."""
    net = snnc.Network("conv2068", seed=0)
    source = net.input((1, 28, 28), kind="spikes")
    first = net.population((8, 14, 14), snnc.LIF(beta=0.9), name="maps1")
    second = net.population((10, 7, 7), snnc.LIF(beta=0.9), name="maps2")
    readout = net.population(10, snnc.LI(beta=0.9), name="readout")
    net.connect(source, first, [snnc.Conv(8, 3, stride=2, padding=1)])
    net.connect(first, second, [snnc.Conv(10, 3, stride=2, padding=1)])
    net.connect(second, readout, snnc.Dense())
    return net


def main() -> None:
    for _ in range(2):
        start = time.process_time()
        estimate = snnc.estimate(network(), "gc200", steps=STEPS, batch=32, loss="ce_count", optimizer="adam")
        print(f"estimate  {time.process_time() - start:6.2f} s   {estimate.plan.cycles:12,.0f} cycles per step", flush=True)
    start = time.process_time()
    points = snnc.explore(
        network(), ["gc200", "bow"], batches=(16, 32), activities=(0.05, 0.1), steps=STEPS, loss="ce_count", optimizer="adam"
    )
    print(f"explore   {time.process_time() - start:6.2f} s   {len(points)} points")


if __name__ == "__main__":
    main()
