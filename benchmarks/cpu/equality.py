"""Check that the losses, gradients and weights of an engine agree with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from snnc.benchmarks.cpu.workloads import LEARNING_RATE
from snnc.compiler.ir.graph import Array
from snnc.data.arrays import read_arrays

if TYPE_CHECKING:
    from snnc.benchmarks.cpu.oracle import Expected

TOLERANCE: Final = 1e-4
"""Maximum accepted relative error of a loss, and of each gradient and weight (norm of the difference over norm)."""
CHANGE: Final = 1e-3
"""Maximum accepted relative error of the changes of weights; the expected changes are those of Adam for the engine's own gradients."""
TIMED_LOSS: Final = 1e-2
"""Maximum accepted relative error of the loss of the timed problem, in which a neuron near its threshold may spike in one engine only."""
TIMED_LOSS_ROUNDED: Final = 0.2
"""Maximum accepted relative error of the loss of the timed problem in precisions below float32, in which rounding moves more spikes: the
error in float16 was 7 % for W3 and 0.2 % for W1."""
UPDATES: Final = 2
"""Number of compared training steps: Adam's first change of a weight does not depend on beta1 and beta2, the second does."""


def write_answer(path: Path, losses: list[float], gradients: list[Mapping[str, Array]], weights: list[Mapping[str, Array]]) -> None:
    """Write an engine's numbers: losses and gradients of consecutive steps, and the weights after each."""
    arrays = {"losses": np.array(losses)}
    for kind, steps in (("g", gradients), ("w", weights)):
        arrays |= {f"{kind}{n}:{name}": value for n, step in enumerate(steps) for name, value in step.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]


def difference(path: Path, expected: Expected, start: Mapping[str, Array], tolerance: float = TOLERANCE) -> str:
    """Compare an answer of :func:`write_answer` with `expected`; return the difference that exceeds its tolerance most as text, else "".

    Loss, gradients and weights of the first step are compared with `expected`. The second step shows whether the optimiser is Adam: its
    weights are compared with those that Adam computes from the weights `start` and the engine's own gradients. The expected gradients of
    that step would differ, because the rounding of gradients near 0 decides the first change of weights, and so the spikes of the second
    step. Engines that round the factors of products need a larger `tolerance`.
    """
    answer = read_arrays(path)
    loss = float(answer["losses"][0])
    error = abs(loss - expected.loss) / abs(expected.loss)
    worst = [(error / tolerance if np.isfinite(error) else np.inf, f"the loss is {loss:.6g}, not {expected.loss:.6g}")]
    for name, reference in expected.gradients.items():
        worst.append(_compared(answer.get(f"g0:{name}"), reference, f"gradient of {name}", tolerance))
        worst.append(_compared(answer.get(f"w0:{name}"), expected.weights[name], f"{name} after a step", tolerance))
    ratio, text = max(worst, key=lambda item: item[0])
    return text if ratio > 1 else _compare_updates(answer, expected, start)


def gradient_error(path: Path, expected: Expected) -> float:
    """Return the largest relative error of a gradient of the first step in an answer, norm of the difference over norm."""
    answer = read_arrays(path)
    pairs = ((np.asarray(answer[f"g0:{name}"], np.float64), reference) for name, reference in expected.gradients.items())
    return max(float(np.linalg.norm(value - reference)) / max(float(np.linalg.norm(reference)), 1e-12) for value, reference in pairs)


def _compare_updates(answer: Mapping[str, Array], expected: Expected, start: Mapping[str, Array]) -> str:
    """Compare the changes of the weights with those that Adam computes from the engine's gradients; return a difference as text, or ""."""
    for name in expected.gradients:
        gradients = [np.asarray(answer[f"g{n}:{name}"], np.float64) for n in range(UPDATES)]
        reference = adam(np.asarray(start[name], np.float64), gradients) - start[name]
        ratio, text = _compared(answer[f"w{UPDATES - 1}:{name}"] - start[name], reference, f"change of {name} in {UPDATES} steps", CHANGE)
        if ratio > 1:
            return text
    return ""


def adam(weights: Array, gradients: Sequence[Array]) -> Array:
    """Return weights after steps of Adam (Kingma & Ba, arXiv 1412.6980, algorithm 1, epsilon outside the root)."""
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for n, gradient in enumerate(gradients, 1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        root = np.sqrt(second / (1 - 0.999**n))
        weights = weights - LEARNING_RATE * first / (1 - 0.9**n) / (root + 1e-8)
    return weights


def _compared(value: Array | None, reference: Array, what: str, most: float) -> tuple[float, str]:
    """Return the error divided by the tolerance `most`, and a message about the error."""
    if value is None or value.shape != reference.shape:
        return np.inf, f"{what} is missing or has another shape than {list(reference.shape)}"
    size = float(np.linalg.norm(reference))
    error = float(np.linalg.norm(np.asarray(value, np.float64) - reference)) / max(size, 1e-12)
    if not np.isfinite(error):
        return np.inf, f"{what} is not finite"
    return error / most, f"{what} is off by {error:.2g} of its norm {size:.3g}, more than {most:g}"
