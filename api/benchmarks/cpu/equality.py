"""Whether an engine shows the numbers that it has to show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from snnc.compiler.graph import Array
from snnc.data import read_arrays

if TYPE_CHECKING:
    from snnc.benchmarks.cpu.oracle import Expected

TOLERANCE: Final = 1e-4
"""Largest error of a loss, over the loss, and of each gradient and weight, norm of the difference over norm."""
CHANGE: Final = 1e-2
"""The same for what one step of Adam changes: where a gradient is near 0, its sign decides."""
WHOLE: Final = 1e-2
"""Largest error of the loss at the size that is timed: a membrane within rounding of its threshold may spike in one engine only."""


def write_answer(path: Path, losses: list[float], gradients: Mapping[str, Array], weights: list[Mapping[str, Array]]) -> None:
    """Write what an engine found: losses of consecutive steps, gradients of the first, weights after each."""
    arrays = {"losses": np.array(losses)} | {f"g:{name}": value for name, value in gradients.items()}
    for n, step in enumerate(weights):
        arrays |= {f"w{n}:{name}": value for name, value in step.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]


def difference(path: Path, expected: Expected, start: Mapping[str, Array]) -> str:
    """Compare an answer with `expected`; return what differs most, with its numbers, or "" where nothing does.

    Parameters
    ----------
    path
        What :func:`write_answer` wrote.
    expected
        The numbers in double precision.
    start
        The weights before the first step.
    """
    found = read_arrays(path)
    worst: list[tuple[float, str]] = []
    for n, loss in enumerate(expected.losses):
        error = abs(float(found["losses"][n]) - loss) / max(abs(loss), 1e-12)
        worst.append((error / TOLERANCE, f"loss of step {n + 1} is {float(found['losses'][n]):.6g}, not {loss:.6g}"))
    for name, wanted in expected.gradients.items():
        worst.append(_compared(found.get(f"g:{name}"), wanted, f"gradient of {name}", TOLERANCE))
    for n, weights in enumerate(expected.weights):
        for name, wanted in weights.items():
            own = found.get(f"w{n}:{name}")
            worst.append(_compared(own, wanted, f"{name} after step {n + 1}", TOLERANCE))
            change = None if own is None or own.shape != wanted.shape else own - start[name]
            worst.append(_compared(change, wanted - start[name], f"change of {name} up to step {n + 1}", CHANGE))
    ratio, text = max(worst, key=lambda item: item[0])
    return text if not ratio <= 1 else ""


def _compared(found: Array | None, wanted: Array, what: str, most: float) -> tuple[float, str]:
    """Return the error over the tolerance, and a text."""
    if found is None or found.shape != wanted.shape:
        return np.inf, f"{what} is missing or has another shape than {list(wanted.shape)}"
    size = float(np.linalg.norm(wanted))
    error = float(np.linalg.norm(np.asarray(found, np.float64) - wanted)) / max(size, 1e-12)
    if not np.isfinite(error):
        return np.inf, f"{what} is not finite"
    return error / most, f"{what} is off by {error:.2g} of its norm {size:.3g}, more than {most:g}"
