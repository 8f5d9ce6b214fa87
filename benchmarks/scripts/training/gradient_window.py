"""Measure the effect of a gradient window on the accuracy, as a Markdown table: ``python benchmarks/scripts/training/gradient_window.py``.

The network has two hidden layers and is trained on the digits of ``examples/digits``. For every lower end of the window, the table shows
the share of hidden neurons that receive a gradient, and the test accuracy of a network that was trained with the window from the start. It
also compares the gradient of all weights with the gradient without a window, by cosine and relative error, with random and with trained
weights.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.driver.activity import measure_activity

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.npz"
LOWS = (None, -2.0, -1.0, -0.5, -0.2, -0.1, -0.05)
SAMPLES, BATCH, SEED = 256, 32, 1


def network(seed: int) -> snnc.Network:
    return snnc.Sequential(64, snnc.Dense(100), snnc.LIF(0.95), snnc.Dense(100), snnc.LIF(0.95), snnc.Dense(10), snnc.LIF(0.95), seed=seed)


def program(net: snnc.Network, surrogate: str, low: float | None, steps: int):
    window = None if low is None else (low, math.inf)
    graph = net.graph()
    return lower(
        graph, loss=parse_loss("ce_count"), optimizer=Adam(2e-3), surrogate=parse_surrogate(surrogate), gradient_window=window, steps=steps
    )


def flat_gradient(lowered, weights, x, y) -> np.ndarray:
    """Return all gradients as one vector, in double precision."""
    engine = ReferenceEngine(lowered, np.float64)
    if weights is not None:
        engine.set_parameters(weights)
    _, gradients = engine.loss_and_gradients({"x0": x.astype(np.float64)}, y)
    return np.concatenate([gradients[name].ravel() for name in sorted(gradients)])


def trained(lowered, data, epochs: int):
    """Train on the reference backend; return weights and test accuracy."""
    engine = ReferenceEngine(lowered)
    random = np.random.default_rng(SEED)
    for _ in range(epochs):
        order = random.permutation(len(data["x"]))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            engine.train_batch({"x0": data["x"][chosen].swapaxes(0, 1).astype(np.float32)}, data["y"][chosen], 2e-3)
    (record,) = engine.forward({"x0": data["test_x"].swapaxes(0, 1).astype(np.float32)}, {}).values()
    return engine.get_parameters(), float((record.sum(axis=0).argmax(axis=1) == data["test_y"]).mean())


def compared(gradient: np.ndarray, expected: np.ndarray) -> str:
    length = float(np.linalg.norm(gradient))
    cosine = float(gradient @ expected) / (length * float(np.linalg.norm(expected))) if length else 0.0
    return f"{cosine:.3f} / {np.linalg.norm(gradient - expected) / np.linalg.norm(expected):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--surrogate", default="fast_sigmoid:25")
    parser.add_argument("--epochs", type=int, default=5)
    chosen = parser.parse_args()
    data = np.load(DIGITS)
    x, y, steps = data["x"][:SAMPLES].swapaxes(0, 1), data["y"][:SAMPLES], data["x"].shape[1]
    net = network(SEED)
    weights, _ = trained(program(net, chosen.surrogate, None, steps), data, chosen.epochs)
    print(f"{chosen.surrogate}, {chosen.epochs} epochs, cosine / relative error of the gradient of {SAMPLES} samples\n")
    print("| window | receive a gradient | random weights | trained weights | test accuracy |")
    print("|---|---|---|---|---|")
    dense = [flat_gradient(program(net, chosen.surrogate, None, steps), w, x, y) for w in (None, weights)]
    for low in LOWS:
        lowered = program(net, chosen.surrogate, low, steps)
        activity = measure_activity(lowered, {"x0": x.astype(np.float32)}, "digits")
        share = f"{100 * np.mean(list(activity.support.values())):.0f} %" if activity.support else "all"
        errors = [compared(flat_gradient(lowered, w, x, y), d) for w, d in zip((None, weights), dense, strict=True)]
        _, accuracy = trained(lowered, data, chosen.epochs)
        print(f"| {'none' if low is None else f'> {low:g}'} | {share} | {' | '.join(errors)} | {100 * accuracy:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
