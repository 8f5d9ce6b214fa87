"""Train population codes with short sequences: ``python benchmarks/scripts/training/population_codes.py``.

The script follows Sun et al. 2022 (arXiv 2211.10725, "population codes"). Images are constant values over T steps, and the score of a class
is the number of spikes of a group of output neurons. With more neurons per class, fewer steps suffice, down to one. The images are
synthetic pen strokes of ten kinds, 34 x 34 pixels of two polarities. The networks are trained on the CPU with the cross entropy of
the counts. The script prints the test accuracy, mean and range over seeds, and the median time of an update, as a Markdown table.
"""

from __future__ import annotations

import argparse

import numpy as np

from snnc.benchmarks.reproduce.training import train_population_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=960)
    chosen = parser.parse_args()
    print("| steps | neurons per class | test accuracy, % | ms per update |\n|---|---|---|---|")
    for steps in (25, 5, 2, 1):
        for group in (1, 10, 50):
            result = train_population_code(steps, group, chosen.seeds, chosen.samples, chosen.epochs)
            right = 100 * np.array(result["accuracy"])
            spread = f"{right.mean():.1f} ({right.min():.1f}-{right.max():.1f})"
            print(f"| {steps} | {group} | {spread} | {result['update_ms']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
