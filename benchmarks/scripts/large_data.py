"""Train on a data set larger than memory: ``python benchmarks/scripts/large_data.py``.

A reader generates 50 GiB (``--gibibytes``) of samples, byte arrays of the size of a gesture camera's frames, for training on the CPU with
validation and checkpoints. The script prints the bytes, the time, and the peak resident memory of the process, and fails if the peak
exceeds ``--limit`` GiB.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import snnc

STEPS, PIXELS, CLASSES, BATCH = 20, 2 * 128 * 128, 11, 16
DENSITY = 0.01


class Frames:
    """A source of samples [STEPS, PIXELS] of 0 and 1, generated when they are read; counts their bytes."""

    classes = CLASSES
    timed = True

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.bytes = 0
        self._frames = (np.random.default_rng(0).random((STEPS, 2 * PIXELS)) < DENSITY).astype(np.uint8)

    def __len__(self) -> int:
        return self.samples

    @contextmanager
    def opened(self) -> Iterator[Callable[[int], tuple[Any, int]]]:
        """Yield the function that reads a sample."""

        def read(number: int) -> tuple[Any, int]:
            at = number * 7919 % PIXELS
            sample = self._frames[:, at : at + PIXELS].copy()
            self.bytes += sample.nbytes
            return sample, number % CLASSES

        yield read


def resident() -> float:
    """Return the largest resident memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gibibytes", type=float, default=50)
    parser.add_argument("--limit", type=float, default=1, help="GiB of resident memory")
    given = parser.parse_args()
    source = Frames(int(given.gibibytes * 2**30) // (STEPS * PIXELS))
    train, test = snnc.data.DataSet(source).split(0.99)
    net = snnc.Sequential(PIXELS, snnc.Dense(16), snnc.LIF(beta=0.9), snnc.Dense(CLASSES), snnc.LI(), name="frames")
    options = {"steps": STEPS, "batch": BATCH, "loss": "ce_mean_membrane", "optimizer": "adam:0.001"}
    with tempfile.TemporaryDirectory() as folder, snnc.compile(net, "cpu", **options) as session:
        print(f"{source.samples:,} samples; {resident():.3f} GiB are resident before training", flush=True)
        began = time.perf_counter()

        def report(progress: snnc.TrainingProgress) -> None:
            if progress.batch % 500 == 0:
                print(f"{source.bytes / 2**30:.1f} GiB read, {resident():.3f} GiB resident, loss {progress.loss:.3f}", flush=True)

        session.fit(train, validation=test, checkpoints=snnc.Checkpoints(Path(folder) / "kept", every="30s"), callback=report)
        seconds = time.perf_counter() - began
    rate = f"{source.bytes / 2**30:.1f} GiB in {seconds:.0f} s, {len(source) / seconds:,.0f} samples/s"
    print(f"{rate}; at most {resident():.3f} GiB resident")
    if resident() > given.limit:
        raise SystemExit(f"more than {given.limit} GiB were resident")


if __name__ == "__main__":
    main()
