"""Measure the samples per second that snnc reads from a file in SHD's format and trains on: ``python benchmarks/scripts/reading.py``.

The script writes a file in the format of SHD and trains workload W1 (see ``w1.py``) on it, on the CPU. It measures the reader alone, the
program on the same events in memory, and both together. Samples have as many events as those of W1 by default (``--events``); the
official samples have about 8,000. Rates are computed from wall-clock time; for the reader also from the CPU time of its thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from w1 import BATCH, CLASSES, DENSITY, INPUTS, STEPS, network

import snnc


def write(path: Path, samples: int, events: int) -> None:
    """Write a file with about `events` events in each sample."""
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        times = file.create_dataset("spikes/times", (samples,), h5py.vlen_dtype(np.float16))
        units = file.create_dataset("spikes/units", (samples,), h5py.vlen_dtype(np.uint16))
        for number in range(samples):
            count = int(events * random.uniform(0.7, 1.3))
            times[number] = np.sort(random.uniform(0, 1, count)).astype(np.float16)
            units[number] = random.integers(0, INPUTS, count).astype(np.uint16)
        file["labels"] = random.integers(0, CLASSES, samples).astype(np.uint16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--events", type=int, default=round(STEPS * INPUTS * DENSITY))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shd.h5"
        write(path, given.samples, given.events)
        data = snnc.data.shd(path).map(snnc.data.Bin(steps=STEPS, duration=1.0))
        with snnc.compile(network(), "cpu", steps=STEPS, batch=BATCH, loss="ce_mean_membrane", optimizer="adam:0.001") as session:
            held = list(data.batches(BATCH))
            batches_again = Held(held, given.samples)
            for number in range(given.rounds):
                began, thread = time.perf_counter(), time.thread_time()
                for _ in data._made(np.random.default_rng(number).permutation(given.samples), BATCH, 0):
                    pass
                wall, own = time.perf_counter() - began, time.thread_time() - thread
                alone = sum(session.fit(batches_again, shuffle=False).seconds)
                both = sum(session.fit(data, seed=number).seconds)
                rates = {"reader": wall, "reader's thread": own, "program": alone, "both": both}
                print(", ".join(f"{name} {given.samples / seconds:,.0f}/s" for name, seconds in rates.items()), flush=True)


class Held:
    """Batches in memory."""

    def __init__(self, batches: list, samples: int) -> None:
        self.held, self.samples = batches, samples

    def __len__(self) -> int:
        return self.samples

    def batches(self, size: int, *, order: object = None, epoch: int = 0) -> object:
        """Return the batches unchanged."""
        return iter(self.held)


if __name__ == "__main__":
    main()
