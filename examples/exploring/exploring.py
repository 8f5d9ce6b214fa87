"""Predict the training throughput of a network over machines, batch sizes and activities, before anything is built.

    python examples/exploring/exploring.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import snnc

TARGETS, BATCHES, ACTIVITIES = ("gc2", "gc200", "pod4"), (16, 64, 256), (0.02, 0.1)


def network():
    """Return a recurrent network for spoken digits."""
    layers = [snnc.Dense(256), snnc.Recurrent(snnc.LIF(beta=0.9))]
    return snnc.Sequential(700, *layers, snnc.Dense(20), snnc.LI(beta=0.9), name="700-256-20")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    points = snnc.explore(network(), TARGETS, batches=BATCHES, activities=ACTIVITIES, steps=100, loss="ce_mean_membrane", optimizer="adam")
    print("predicted; nothing was emitted or run")
    for point in points:
        data = point.estimate.to_data() if point.estimate else None
        text = f"{data['step_ms']:6.3f} ms {data['samples_per_s']:9,.0f} samples/s" if data else point.reason
        print(f"{point.target:6s} batch {point.batch:3d} activity {point.activity:.2f}  {text}")
    draw(folder / "picture.png", points)


def draw(path, points):
    """Draw throughput over the batch size: a line for each machine, a panel for each activity."""
    figure, panels = plt.subplots(1, len(ACTIVITIES), figsize=(8, 3.2), sharey=True, layout="constrained")
    for panel, activity in zip(panels, ACTIVITIES, strict=True):
        for target in TARGETS:
            shown = [p for p in points if p.target == target and p.activity == activity and p.estimate]
            panel.loglog([p.batch for p in shown], [p.estimate.to_data()["samples_per_s"] for p in shown], marker="o", label=target)
        panel.set(xlabel="samples of a batch", title=f"{100 * activity:.0f} % of the neurons fire in a step")
        panel.set_xticks(BATCHES, [str(b) for b in BATCHES], minor=False)
        panel.minorticks_off()
    panels[0].set(ylabel="samples/s in training (predicted)")
    panels[0].legend()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/exploring"))
