"""Compile small versions of the networks of two papers on spiking networks on IPUs, and write data to train them on.

    python examples/papers/make.py somewhere
    cd somewhere
    snnc train sparse/ --recipe sparse_bptt.toml
    snnc train codes/ --recipe population_codes.toml

    python examples/papers/make.py somewhere --words
    cd somewhere
    snnc train words/ --recipe sparse_words.toml

``sparse`` follows arXiv 2311.04386: each of three layers of 512 neurons sends at most 26 spikes (5 %) in a step, and only neurons above a
second threshold receive a gradient. The second threshold begins 99 below the threshold; each update halves its distance from the value 0.1
below the threshold. Neurons reset to 0, initial weights are fluctuation-driven for a rate of 1 %, and a regulariser penalises rates of
hidden neurons above the capacity.
``words`` has a capacity of 1 % in layers of 1472, 1024 and 512 neurons. Its data are synthetic words in the file format of the Spiking
Heidelberg Digits. Training takes some minutes, so it has its own command.
``codes`` follows arXiv 2211.10725: 50 output neurons for each class, and sequences of one step. The data are ten kinds of pen strokes, as
events of 34 x 34 pixels of two polarities over 20 steps, and as images.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np

import snnc
from snnc.benchmarks.strokes import KINDS, strokes
from snnc.benchmarks.words import SECONDS, WORDS, write_words


def compile_sparse(folder, x, widths=(512, 512, 512), classes=KINDS, share=0.05, factor=3):
    """Compile a network in which at most a `share` of each hidden layer's neurons send spikes in a step.

    The initial weights are drawn for the activity of the inputs `x` [samples, T, inputs]. The regulariser of each hidden layer has the
    factor `factor / share`.
    """
    steps = x.shape[1]
    layers = [part for width in widths for part in (snnc.Dense(width), snnc.LIF(0.95, reset="zero"))]
    net = snnc.Sequential(x.shape[2], *layers, snnc.Dense(classes), snnc.LI(0.95), name="sparse")
    graph = snnc.initialise(net, snnc.FluctuationDriven(rate=0.01, xi=2, steps=steps), data=x.swapaxes(0, 1))
    loss = snnc.losses.CrossEntropy("mean membrane")
    for population in ("lif", "lif2", "lif3"):
        loss = loss + factor / share * snnc.losses.Upper(share, population)
    limits = {"mode": "drop", "capacity": f"{100 * share:g} %", "gradient_window": -99.0}
    options = {"steps": steps, "loss": loss, "optimizer": "adam", "surrogate": "superspike", **limits}
    snnc.compile(graph, "cpu", output=folder, overwrite=True, **options).close()


def copy_recipes(folder):
    """Copy the recipes into the folder, whose files they name."""
    folder.mkdir(parents=True, exist_ok=True)
    for recipe in Path(__file__).parent.glob("*.toml"):
        if folder.resolve() != recipe.parent:
            shutil.copy(recipe, folder)


def make_words(folder, samples=960, widths=(1472, 1024, 512)):
    """Write words, and compile a network in which at most 1 % of each hidden layer's neurons send spikes in a step."""
    copy_recipes(folder)
    for name, count, seed in (("train", samples, 1), ("test", samples // 2, 2)):
        write_words(folder / f"{name}_words.h5", count, seed)
    data = snnc.data.shd(folder / "train_words.h5").map(snnc.data.Bin(steps=50, duration=SECONDS))
    events, _ = next(iter(data.batches(min(48, samples))))
    compile_sparse(folder / "words", events.dense().swapaxes(0, 1), widths, WORDS, share=0.01, factor=2)


def main(folder, samples=960):
    """Write strokes, and compile the networks that the script papers.py trains."""
    copy_recipes(folder)
    for name, count, seed in (("train", samples, 1), ("test", samples // 2, 2)):
        x, y = strokes(count, seed, noise=0)
        np.savez_compressed(folder / f"{name}_events.npz", x=x, y=y)
        np.savez_compressed(folder / f"{name}_images.npz", x=np.minimum(x.sum(axis=1, keepdims=True), 2).astype(np.float32) / 2, y=y)
    compile_sparse(folder / "sparse", np.load(folder / "train_events.npz")["x"][:48])
    codes = snnc.Sequential(x.shape[2], snnc.Dense(256), snnc.LIF(0.9), snnc.Dense(50 * KINDS), snnc.LIF(0.9), name="codes")
    options = {"steps": 1, "loss": f"ce_count:classes={KINDS}", "optimizer": "adam", "input_kind": "values"}
    snnc.compile(codes, "cpu", output=folder / "codes", overwrite=True, **options).close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", action="store_true", help="write the words and their network instead of the strokes and theirs")
    chosen = parser.parse_args()
    (make_words if chosen.words else main)(chosen.folder)
