"""Made data for sparse training: strokes of a pen in the format of N-MNIST's pixels, and words in the files of SHD.

Both are made by seed. A kind is what all its samples share: the corners of a stroke, or the tracks that the resonances of a word follow.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from snnc.benchmarks.strokes import KINDS, SIDE, strokes

__all__ = ["CHANNELS", "KINDS", "SECONDS", "SIDE", "WORDS", "strokes", "write_words"]

CHANNELS, WORDS, SECONDS = 700, 20, 1.0


def write_words(path: Path, samples: int, seed: int, events: int = 800) -> None:
    """Write made words as a file of SHD: rows of times (seconds, float16) and of units (channels, uint16), and labels.

    A word has three resonances, each of which goes through four places among the channels; a speaker shifts and stretches the channels, and
    a sample has its own speed, its own places near those of the word, and a tenth of its events anywhere.
    """
    places = np.random.default_rng(0).uniform(60, CHANNELS - 60, (WORDS, 3, 4))
    random = np.random.default_rng(seed)
    labels = random.integers(0, WORDS, samples)
    with h5py.File(path, "w") as file:
        times = file.create_dataset("spikes/times", (samples,), h5py.vlen_dtype(np.float16))
        units = file.create_dataset("spikes/units", (samples,), h5py.vlen_dtype(np.uint16))
        for number, label in enumerate(labels):
            when = np.sort(random.uniform(0, SECONDS * random.uniform(0.7, 1.0), random.integers(events // 2, events * 3 // 2)))
            own = places[label] * random.normal(1, 0.03) + random.normal(0, 12) + random.normal(0, 15, (3, 4))
            progress = when / when.max() * 3
            tracks = np.stack([np.interp(progress, range(4), track) for track in own])
            heard = tracks[random.integers(0, 3, len(when)), np.arange(len(when))] + random.normal(0, 15, len(when))
            noise = random.random(len(when)) < 0.1
            heard[noise] = random.uniform(0, CHANNELS, noise.sum())
            times[number] = when.astype(np.float16)
            units[number] = np.clip(np.rint(heard), 0, CHANNELS - 1).astype(np.uint16)
        file["labels"] = labels.astype(np.uint16)
