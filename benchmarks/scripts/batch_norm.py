"""Measure the cost of batch normalisation on the CPU: ``python benchmarks/scripts/batch_norm.py``.

The network has two convolutions of 16 channels over 16 x 16 and 7 x 7 values, 10 steps, 32 samples, with and without normalisation, on one
thread. The script prints the CPU time of an update (the smallest of several, to reduce the influence of other work) and of its parts:
forward passes for the statistics, a forward and backward pass, its repeated backward passes, and the rest, mostly statistics in Python.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any
from unittest import mock

import numpy as np

import snnc
from snnc.backends.cpu.engine import CpuEngine

STEPS, BATCH = 10, 32
PARTS = {"forward": "forward", "gather_parts": "forward and backward", "gather_again": "backward"}
"""Names of passes in the output, by timed method of the engine."""


def network(normalised: bool) -> snnc.Network:
    norm = [snnc.BatchNorm()] if normalised else []
    first = [snnc.Conv(16, 3, padding=1), *norm, snnc.LIF(beta=0.9), snnc.MaxPool(2)]
    second = [snnc.Conv(16, 2), *norm, snnc.LIF(beta=0.9)]
    return snnc.Sequential((2, 16, 16), *first, *second, snnc.Dense(10), snnc.LI(beta=0.9), seed=2)


@contextmanager
def timed(times: dict[str, float]) -> Iterator[None]:
    """Add the CPU time of each method in :data:`PARTS` to `times`, by method."""

    def of(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = process_time()
            try:
                return method(*arguments)
            finally:
                times[name] += process_time() - start

        return call

    methods = {name: of(name, getattr(CpuEngine, name)) for name in PARTS if hasattr(CpuEngine, name)}
    with mock.patch.multiple(CpuEngine, **methods):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=30)
    updates = parser.parse_args().updates
    random = np.random.default_rng(0)
    x, y = (random.random((BATCH, STEPS, 2, 16, 16)) < 0.1).astype(np.float32), random.integers(0, 10, BATCH)
    for normalised in (False, True):
        chosen: dict[str, Any] = {"loss": "ce_mean_membrane", "optimizer": "sgd:0.01", "steps": STEPS, "threads": 1}
        with snnc.compile(network(normalised), "cpu", **chosen) as session:
            session.fit(x, y, batch=BATCH)
            updates_and_parts: list[tuple[float, dict[str, float]]] = []
            for _ in range(updates):
                times: dict[str, float] = defaultdict(float)
                with timed(times):
                    start = process_time()
                    session.fit(x, y, batch=BATCH)
                    updates_and_parts.append((process_time() - start, times))
        total, parts = min(updates_and_parts, key=lambda one: one[0])
        shown = ", ".join(f"{PARTS[name]} {1000 * seconds:.1f}" for name, seconds in parts.items())
        rest = 1000 * (total - sum(parts.values()))
        which = "with" if normalised else "without"
        print(f"{which} normalisation: {1000 * total:.1f} ms per update; {shown}, Python {rest:.1f}", flush=True)


if __name__ == "__main__":
    main()
