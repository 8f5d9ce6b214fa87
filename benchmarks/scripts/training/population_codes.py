"""Train population codes with short sequences: ``python benchmarks/scripts/training/population_codes.py``.

The script follows Sun et al. 2022 (arXiv 2211.10725, "population codes"): images are constant values over T steps, the score of a class is
the number of spikes of a group of output neurons, and with more neurons per class fewer steps suffice, down to one. The images are
synthetic pen strokes of ten kinds, 34 x 34 pixels of two polarities. The networks are trained on the CPU with the cross entropy of
the counts. The script prints the test accuracy, mean and range over seeds, and the median time of an update, as a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

import snnc
from snnc.benchmarks.strokes import SIDE, stroke_images

CLASSES, HIDDEN, BATCH, BETA = 10, 256, 64, 0.9


def train(steps: int, group: int, seed: int, data: tuple[np.ndarray, ...], epochs: int) -> tuple[float, float]:
    """Return the test accuracy, and the median milliseconds of an update; `group`: neurons per class."""
    x, y, test_x, test_y = data
    net = snnc.Sequential(2 * SIDE * SIDE, snnc.Dense(HIDDEN), snnc.LIF(BETA), snnc.Dense(CLASSES * group), snnc.LIF(BETA), seed=seed)
    loss = "ce_count" if group == 1 else f"ce_count:classes={CLASSES}"
    with snnc.compile(net, "cpu", loss=loss, optimizer=snnc.Adam(1e-3), steps=steps, input_kind="values") as session:
        history = session.fit(np.repeat(x[:, None], steps, axis=1), y, epochs=epochs, batch=BATCH, seed=seed)
        updates = -(-len(y) // BATCH)
        return session.evaluate(np.repeat(test_x[:, None], steps, axis=1), test_y), 1e3 * statistics.median(history.seconds) / updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=960)
    chosen = parser.parse_args()
    data = (*stroke_images(chosen.samples, 1), *stroke_images(480, 2))
    print("| steps | neurons per class | test accuracy, % | ms per update |\n|---|---|---|---|")
    for steps in (25, 5, 2, 1):
        for group in (1, 10, 50):
            found = [train(steps, group, seed, data, chosen.epochs) for seed in range(chosen.seeds)]
            right = 100 * np.array([accuracy for accuracy, _ in found])
            spread = f"{right.mean():.1f} ({right.min():.1f}-{right.max():.1f})"
            print(f"| {steps} | {group} | {spread} | {statistics.median(ms for _, ms in found):.2f} |", flush=True)


if __name__ == "__main__":
    main()
