"""Made data for sparse training: strokes of a pen in the format of N-MNIST's pixels, and words in the files of SHD.

Both are made by seed. A kind is what all its samples share: the corners of a stroke, or the tracks that the resonances of a word follow.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

SIDE, KINDS = 34, 10
CHANNELS, WORDS, SECONDS = 700, 20, 1.0


def strokes(samples: int, seed: int, steps: int = 20, points: int = 6, noise: float = 0.001) -> tuple[np.ndarray, np.ndarray]:
    """Spikes [samples, T, 2312] and kinds: a pen moves with jitter along the four corners of its kind; the trail it leaves turns off.

    The pen makes `points` in a step; each pixel of a step is noise with probability `noise`.
    """
    corners = np.random.default_rng(0).uniform(5, SIDE - 6, (KINDS, 4, 2))
    random = np.random.default_rng(seed)
    kinds = random.integers(0, KINDS, samples)
    events = np.zeros((samples, steps, 2, SIDE, SIDE), np.uint8)
    at = np.linspace(0, 3, steps * points)
    behind = round(0.075 * steps * points)
    for sample, kind in enumerate(kinds):
        own = (corners[kind] + random.normal(0, 1.5, (4, 2))) + random.normal(0, 2.0, 2)
        path = np.stack([np.interp(at, range(4), own[:, axis]) for axis in (0, 1)], axis=1)
        for polarity, late in ((0, 0), (1, behind)):
            drawn = path[: len(path) - late] + random.normal(0, 0.7, (len(path) - late, 2))
            rows, columns = np.clip(np.rint(drawn), 0, SIDE - 1).astype(int).T
            events[sample, (np.arange(len(drawn)) + late) // points, polarity, rows, columns] = 1
        events[sample][random.random((steps, 2, SIDE, SIDE)) < noise] = 1
    return events.reshape(samples, steps, -1), kinds


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
