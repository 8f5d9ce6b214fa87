"""Train a convolutional network on camera events of bars that move in four directions, and predict its time on an IPU.

    python examples/event_convolution/event_convolution.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import snnc

SIDE, STEPS = 16, 12
DIRECTIONS = ("right", "left", "down", "up")


def bars(samples, seed):
    """Return events [samples, T, 2, side, side] and directions: a bar's leading edge causes on events, its trailing edge off events."""
    random = np.random.default_rng(seed)
    y = random.integers(0, len(DIRECTIONS), samples)
    x = (random.random((samples, STEPS, 2, SIDE, SIDE)) < 0.005).astype(np.uint8)
    for sample, direction in enumerate(y):
        lower = random.integers(0, SIDE - 8)
        position, width = random.integers(0, SIDE), random.integers(3, 6)
        for step in range(STEPS):
            for polarity, edge in ((0, position + step), (1, position + step - width)):
                frame = np.zeros((SIDE, SIDE), np.uint8)
                frame[lower : lower + 8, edge % SIDE] = 1
                frame = frame[:, ::-1] if direction in (1, 3) else frame
                x[sample, step, polarity] |= frame.T if direction >= 2 else frame
    return x, y


def network():
    """Return a network of two convolutions with pooling, and a dense readout."""
    return snnc.Sequential(
        (2, SIDE, SIDE),
        snnc.Conv(8, 5, padding=2),
        snnc.LIF(beta=0.7),
        snnc.MaxPool(2),
        snnc.Conv(16, 3, padding=1),
        snnc.LIF(beta=0.7),
        snnc.MaxPool(2),
        snnc.Dense(len(DIRECTIONS)),
        snnc.LI(beta=0.9),
        name="bars",
    )


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    net, test = network(), bars(256, 2)
    options = {"steps": STEPS, "loss": "ce_mean_membrane", "optimizer": "adam:0.003", "surrogate": "fast_sigmoid:10"}
    with snnc.compile(net, target="cpu", batch=32, **options) as session:
        history = session.fit(*bars(512, 1), epochs=6, batch=32, validation=test)
        accuracy, guesses = session.evaluate(*test), session.predict(test[0])
    print(f"test accuracy {accuracy:.3f}")
    estimate = snnc.estimate(net, "gc200", batch=32, **options).to_data()
    print(f"on one GC200 (predicted): {estimate['step_ms']:.2f} ms a training step, {estimate['tiles_used']} tiles")
    draw(folder / "picture.png", test, guesses, history.losses, accuracy)


def draw(path, test, guesses, losses, accuracy):
    """Draw an example of each direction, on in red and off in blue, and the losses of training."""
    figure, axes = plt.subplots(1, 5, figsize=(10, 2.4), width_ratios=(1, 1, 1, 1, 1.3), layout="constrained")
    for direction, name in enumerate(DIRECTIONS):
        sample = int(np.flatnonzero(test[1] == direction)[0])
        on, off = test[0][sample, 5].astype(float)
        axes[direction].imshow(np.stack([1 - off, 1 - np.maximum(on, off), 1 - on], axis=-1))
        axes[direction].set(title=f"{name}: read as {DIRECTIONS[guesses[sample]]}", xticks=[], yticks=[])
        axes[direction].title.set_fontsize(9)
    axes[4].plot(range(1, len(losses) + 1), losses, marker="o")
    axes[4].set(xlabel="epoch", title=f"loss; test accuracy {100 * accuracy:.0f} %", ylim=(0, None))
    axes[4].title.set_fontsize(9)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/event_convolution"))
