"""Compile a small recurrent network for spoken digits, and write small files to train it on.

    python examples/spoken_digits/make.py somewhere
    snnc train somewhere/build --recipe somewhere/shd.toml

The files have the format of the Spiking Heidelberg Digits (SHD). They contain sweeps over the channels, with a speed and a direction for
each class, and no speech; replace them by the official files of SHD (https://zenkelab.org/datasets/).
"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

import snnc

CHANNELS, SECONDS, CLASSES = 700, 1.2, 4


def sweep(label, random):
    """Return the times, in seconds, and the channels of the events of a sample."""
    times = np.sort(random.uniform(0, SECONDS, random.integers(200, 300)))
    speed = (1 + label // 2) * (1 if label % 2 else -1)
    channels = (speed * times / SECONDS * CHANNELS + random.normal(0, 20, len(times))) % CHANNELS
    return times.astype(np.float16), channels.astype(np.uint16)


def write(path, samples, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, samples)
    with h5py.File(path, "w") as file:
        times = file.create_dataset("spikes/times", (samples,), h5py.vlen_dtype(np.float16))
        units = file.create_dataset("spikes/units", (samples,), h5py.vlen_dtype(np.uint16))
        for number, label in enumerate(labels):
            times[number], units[number] = sweep(label, random)
        file["labels"] = labels.astype(np.uint16)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "shd_train.h5", 128, 1)
    write(folder / "shd_test.h5", 32, 2)
    # the recipe merges ten neighbouring channels into one; the 20 outputs are for the classes of the official files
    net = snnc.Sequential(70, snnc.Dense(64), snnc.Recurrent(snnc.LIF(beta=0.9)), snnc.Dense(20), snnc.LI(beta=0.95), name="spoken_digits")
    options = {"steps": 40, "batch": 16, "loss": "ce_mean_membrane", "optimizer": "adam", "surrogate": "fast_sigmoid:10"}
    snnc.compile(net, "cpu", output=folder / "build", overwrite=True, **options).close()
    recipe = Path(__file__).with_name("shd.toml")
    if folder.resolve() != recipe.parent:
        shutil.copy(recipe, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
