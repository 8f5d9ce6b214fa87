"""Synthetic training data: words in the file format of the Spiking Heidelberg Digits (SHD), for machines without the data set."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import h5py  # type: ignore[import-untyped]
import numpy as np

CHANNELS: Final = 700
WORDS: Final = 20
"""Number of different words."""
SECONDS: Final = 1.0
"""Largest duration of a sample."""


def write_words(path: Path, samples: int, seed: int, events: int = 800) -> None:
    """Write synthetic words in SHD's file format: rows of times (seconds, float16) and of units (channels, uint16), and labels.

    A word has three resonances, each of which passes through four channel positions; they do not depend on `seed`. Each sample has its
    own speaker (a shift and a stretch of the channels), speed and deviations from the positions, and about `events` events, of which a
    tenth are noise.
    """
    places = np.random.default_rng(0).uniform(60, CHANNELS - 60, (WORDS, 3, 4))
    random = np.random.default_rng(seed)
    labels = random.integers(0, WORDS, samples)
    with h5py.File(path, "w") as file:
        times = file.create_dataset("spikes/times", (samples,), h5py.vlen_dtype(np.float16))
        units = file.create_dataset("spikes/units", (samples,), h5py.vlen_dtype(np.uint16))
        for number, label in enumerate(labels):
            when = np.sort(random.uniform(0, SECONDS * random.uniform(0.7, 1.0), random.integers(events // 2, events * 3 // 2)))
            moved = places[label] * random.normal(1, 0.03) + random.normal(0, 12) + random.normal(0, 15, (3, 4))
            progress = when / when.max() * 3
            tracks = np.stack([np.interp(progress, range(4), track) for track in moved])
            heard = tracks[random.integers(0, 3, len(when)), np.arange(len(when))] + random.normal(0, 15, len(when))
            noise = random.random(len(when)) < 0.1
            heard[noise] = random.uniform(0, CHANNELS, noise.sum())
            times[number] = when.astype(np.float16)
            units[number] = np.clip(np.rint(heard), 0, CHANNELS - 1).astype(np.uint16)
        file["labels"] = labels.astype(np.uint16)
