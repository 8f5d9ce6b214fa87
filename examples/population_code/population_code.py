"""Train population codes: several output neurons per class, and one time step instead of 25 (the recipe of arXiv 2211.10725).

    python examples/population_code/population_code.py [folder]
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import snnc

DIGITS = Path(__file__).parents[1] / "digits" / "digits.npz"
CASES = ((25, 1), (5, 1), (1, 1), (1, 10), (1, 50))
"""Cases that are compared, as (number of time steps, number of output neurons per class)."""


def images(name):
    """Return the images [samples, 64] in [0, 1], recovered from the spike times that encode brightness, and the labels."""
    with np.load(DIGITS) as data:
        spikes, labels = data["x" if name == "train" else "test_x"], data["y" if name == "train" else "test_y"]
    return np.where(spikes.any(axis=1), 1 - 0.9 * spikes.argmax(axis=1) / 24, 0).astype(np.float32), labels


def trained(steps, neurons, train, test):
    """Train 64-128-(10 x neurons) with spike counts as class scores; return the accuracy and the milliseconds per epoch."""
    layers = (snnc.Dense(128), snnc.LIF(beta=0.9), snnc.Dense(10 * neurons), snnc.LIF(beta=0.9))
    net = snnc.Sequential(64, *layers, name=f"code{steps}x{neurons}")
    options = {"steps": steps, "loss": "ce_count:classes=10", "optimizer": "adam:0.002", "surrogate": "fast_sigmoid:10"}
    (x, y), (test_x, test_y) = train, test
    with snnc.compile(net, target="cpu", batch=32, input_kind="values", **options) as session:
        repeated = np.repeat(x[:, None], steps, axis=1)
        start = time.perf_counter()
        session.fit(repeated, y, epochs=8, batch=32)
        seconds = (time.perf_counter() - start) / 8
        return session.evaluate(np.repeat(test_x[:, None], steps, axis=1), test_y), 1e3 * seconds


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    train, test = images("train"), images("test")
    rows = []
    for steps, neurons in CASES:
        accuracy, ms = trained(steps, neurons, train, test)
        rows.append((steps, neurons, accuracy, ms))
        print(f"{steps:2d} steps, {neurons:2d} neurons per class: test accuracy {accuracy:.3f}, {ms:6.1f} ms per epoch (measured)")
    draw(folder / "picture.png", rows)


def draw(path, rows):
    """Draw accuracy over the time of an epoch."""
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for steps, neurons, accuracy, ms in rows:
        axes.scatter(ms, 100 * accuracy, s=40)
        axes.annotate(f"T = {steps}, {neurons} per class", (ms, 100 * accuracy), xytext=(6, 4), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", xlabel="ms per epoch on this processor (measured)", ylabel="test accuracy, %", ylim=(None, 100))
    axes.set_xlim(None, 4 * max(ms for *_, ms in rows))
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/population_code"))
