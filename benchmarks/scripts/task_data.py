"""Small common data sets as spike trains: digits, yin-yang, randman.

Samples are arrays [samples, T, inputs] of 0 and 1, in which each input spikes at most once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.npz"


def latency(values: npt.NDArray[np.float64], steps: int) -> Array:
    """Encode values in [0, 1], [samples, inputs], as one spike each, at step round(value (steps - 1))."""
    times = np.rint(values * (steps - 1)).astype(np.int64)
    spikes = np.zeros((len(values), steps, values.shape[1]), np.float32)
    np.put_along_axis(spikes, times[:, None, :], 1.0, axis=1)
    return spikes


def digits() -> tuple[Array, Labels, Array, Labels]:
    """Return scikit-learn's 8 x 8 digits in 25 steps, bright pixels first, dark ones never (as ``examples/digits/make_digits.py``)."""
    with np.load(DIGITS) as data:
        x, y, test_x, test_y = (data[name] for name in ("x", "y", "test_x", "test_y"))
    return x.astype(np.float32), y.astype(np.int64), test_x.astype(np.float32), test_y.astype(np.int64)


def yin_yang_class(points: npt.NDArray[np.float64]) -> Labels:
    """Return the class of points [n, 2] inside the circle of radius 0.5 around (0.5, 0.5): 0 yang, 1 yin, 2 a dot.

    Kriener, Goeltz and Petrovici 2022, "The Yin-Yang dataset" (arXiv 2102.08211): the boundary between yin and yang follows two half
    circles of radius 0.25, and at the centre of each lies a dot of radius 0.1.
    """
    left, right = (np.hypot(points[:, 0] - x, points[:, 1] - 0.5) for x in (0.25, 0.75))
    yin = (left <= 0.25) | ((points[:, 1] > 0.5) & (right > 0.25))
    dots = np.minimum(left, right) < 0.1
    return np.where(dots, 2, yin).astype(np.int64)


def yin_yang(samples: int, seed: int, steps: int = 30) -> tuple[Array, Labels]:
    """Return balanced samples: x, y, 1 - x and 1 - y as latencies, and a bias that always spikes first."""
    rng = np.random.default_rng(seed)
    points = rng.random((60 * samples, 2))  # many more than needed, because the smallest class, the dots, covers 6 % of the square
    points = points[np.hypot(*(points - 0.5).T) <= 0.5]
    classes = yin_yang_class(points)
    chosen = rng.permutation(np.concatenate([np.flatnonzero(classes == c)[: (samples + 2 - c) // 3] for c in range(3)]))
    inside = points[chosen]
    return latency(np.hstack([inside, 1 - inside, np.zeros((len(inside), 1))]), steps), classes[chosen]


def randman(
    samples: int, seed: int, *, classes: int = 10, inputs: int = 20, dimensions: int = 1, alpha: float = 3.0, steps: int = 50
) -> tuple[Array, Labels]:
    """Return samples of smooth random manifolds, one manifold per class, as latencies.

    Zenke and Vogels 2021, "The Remarkable Robustness of Surrogate Gradient Learning", Neural Computation 33, section 4.1: the value of
    input i of a class is the product, over the manifold's dimensions j, of sum_k k^-alpha a sin(2 pi (k x_j b + c)), with uniform random
    a, b and c. The values of an input, scaled to the range 0 to 1 over the manifold, are its spike times.
    """
    rng = np.random.default_rng(seed)
    order = np.arange(1, 101)
    values_of_classes, labels = [], np.repeat(np.arange(classes), -(-samples // classes))[:samples]
    for label in range(classes):
        at = rng.random((int((labels == label).sum()), dimensions))
        grid = rng.random((1000, dimensions))
        a, b, c = rng.random((3, inputs, dimensions, len(order)))

        def value(x: npt.NDArray[np.float64], a: object = a, b: object = b, c: object = c) -> npt.NDArray[np.float64]:
            waves = a * np.sin(2 * np.pi * (order * x[:, None, :, None] * b + c)) * order**-alpha
            return waves.sum(axis=3).prod(axis=2)

        values = value(np.concatenate([grid, at]))
        low, high = values.min(axis=0), values.max(axis=0)
        values_of_classes.append(((values - low) / (high - low))[len(grid) :])
    shuffled = rng.permutation(samples)
    return latency(np.concatenate(values_of_classes), steps)[shuffled], labels[shuffled].astype(np.int64)
