"""Value and gradient of a term in NumPy: the reference with which the emitted code of every target is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from snnc.compiler.losses.base import Reals
from snnc.compiler.losses.named_losses import cross_entropy
from snnc.compiler.losses.term import TargetKind, Term
from snnc.compiler.neurons.interpret import evaluate

Lengths = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class BatchTargets:
    """Targets of a batch: their kind, the array, and the number of output neurons per class."""

    kind: TargetKind
    values: npt.NDArray[Any]
    group: int = 1


def _valid(output: Reals, lengths: Lengths) -> npt.NDArray[np.bool_]:
    """Return whether each step of each sample is within its length, [T, B]."""
    return np.arange(len(output))[:, None] < lengths


def _statistic(term: Term, output: Reals, lengths: Lengths) -> tuple[Reals, Lengths]:
    """Return the statistic [B, n] of outputs [T, B, n] over the first `lengths` steps, and the step from which each value is taken.

    A sum or mean is taken from all steps, and its step is 0.
    """
    counts = _valid(output, lengths)[:, :, None]
    at = np.zeros(output.shape[1:], dtype=np.int64)
    match term.statistic:
        case "count":
            return np.asarray(np.where(counts, output, 0).sum(axis=0)), at
        case "mean":
            return np.asarray(np.where(counts, output, 0).sum(axis=0) / lengths[:, None].astype(output.dtype)), at
        case "max":
            at = np.where(counts, output, -np.inf).argmax(axis=0)
        case "last":
            at = np.broadcast_to(lengths[:, None] - 1, at.shape)
        case "first_spike":
            fired = (output > 0) & counts
            at = np.where(fired.any(axis=0), fired.argmax(axis=0), lengths[:, None] - 1)
            return at.astype(output.dtype), at
        case _:
            raise AssertionError("the values of every step are not a statistic")
    return np.take_along_axis(output, at[None], axis=0)[0], at


def scores_of(term: Term, output: Reals, lengths: Lengths) -> Reals:
    """Return scores [B, n]; the output with the largest score is the prediction."""
    if term.statistic == "steps":
        return np.asarray(np.where(_valid(output, lengths)[:, :, None], output, 0).sum(axis=0))
    found, _ = _statistic(term, output, lengths)
    return _scores_of_times(term, found)[0] if term.statistic == "first_spike" else found


def value_and_gradient(term: Term, output: Reals, lengths: Lengths, targets: BatchTargets) -> tuple[float, Reals]:
    """Return the batch mean of a term, without its weight, and its gradient with respect to `output`, [T, B, n]."""
    if term.statistic == "steps":
        return _of_steps(term, output, lengths, targets)
    values, at = _statistic(term, output, lengths)
    if term.softmax:
        scores, slope = _scores_of_times(term, values) if term.statistic == "first_spike" else (values, np.ones_like(values))
        loss, gradient = cross_entropy(scores, targets.values)
        gradient *= slope
    else:
        wanted = _targets_of(term, values, lengths, targets) if term.reads_targets else None
        loss, gradient = _elementwise(term, values, wanted, lengths)
    gradient = gradient / output.dtype.type(output.shape[1])
    if term.statistic in ("count", "mean"):
        share = gradient if term.statistic == "count" else gradient / lengths[:, None].astype(output.dtype)
        return float(loss.mean()), np.where(_valid(output, lengths)[:, :, None], share, output.dtype.type(0))
    whole = np.zeros_like(output)
    # A larger output makes the first spike earlier, so the gradient changes its sign.
    np.put_along_axis(whole, at[None], (-gradient if term.statistic == "first_spike" else gradient)[None], axis=0)
    return float(loss.mean()), whole


def _scores_of_times(term: Term, times: Reals) -> tuple[Reals, Reals]:
    """Return the scores of the times of first spikes, and the derivatives of the scores with respect to the times."""
    if term.inverse == "negate":
        return -times, np.full_like(times, -1)
    return 1 / (times + 1), -1 / ((times + 1) * (times + 1))


def _targets_of(term: Term, like: Reals, lengths: Lengths, targets: BatchTargets) -> Reals:
    """Return the targets of a statistic, [B, n]."""
    length = lengths[:, None].astype(like.dtype)
    if targets.kind == "values":
        target = targets.values.astype(like.dtype)
    else:
        right = targets.values[:, None] == np.arange(like.shape[1])
        if term.squares_counts:
            on, off = ((lengths * rate * targets.group).astype(np.int64)[:, None] for rate in (term.on, term.off))
            return np.where(right, on, off).astype(like.dtype)
        target = np.where(right, term.on, term.off).astype(like.dtype)
    return np.where(target < 0, length + target, target) if term.statistic == "first_spike" else target


def _elementwise(term: Term, x: Reals, y: Reals | None, lengths: Lengths) -> tuple[Reals, Reals]:
    """Return the losses [B] of the statistics `x` [B, n] for the targets `y`, and their gradients; NaN marks an ignored target."""
    counts = np.ones(x.shape, dtype=bool) if y is None else ~np.isnan(y)
    found = evaluate(term.equations, {"x": x} if y is None else {"x": x, "y": np.where(counts, y, 0)})
    factor = np.array([term.scale(float(length)) for length in lengths]) / np.maximum(counts.sum(axis=1), 1)
    share = np.where(counts, factor[:, None], 0).astype(x.dtype)
    return (share * found["loss"]).sum(axis=1), share * found["slope"]


def _of_steps(term: Term, output: Reals, lengths: Lengths, targets: BatchTargets) -> tuple[float, Reals]:
    """Return the result of :func:`value_and_gradient` for a term over the values of every step."""
    steps, batch, width = output.shape
    valid = _valid(output, lengths)
    if term.softmax:
        classes = targets.values.T if targets.kind == "step_classes" else np.broadcast_to(targets.values, (steps, batch))
        valid = valid & (classes >= 0)
        loss, gradient = cross_entropy(output.reshape(-1, width), np.where(valid, classes, 0).reshape(-1))
        share = (valid / (np.maximum(valid.sum(axis=0), 1) * batch)).astype(output.dtype)
        return float((share * loss.reshape(steps, batch)).sum()), share[:, :, None] * gradient.reshape(output.shape)
    counts = np.broadcast_to(valid[:, :, None], output.shape)
    y: Reals | None = None
    if term.reads_targets:
        y = _targets_of_steps(term, output, targets)
        counts = counts & ~np.isnan(y)
        y = np.where(counts, y, 0)
    found = evaluate(term.equations, {"x": output} if y is None else {"x": output, "y": y})
    share = np.where(counts, 1 / (np.maximum(counts.sum(axis=(0, 2)), 1) * batch)[:, None], 0).astype(output.dtype)
    return float((share * found["loss"]).sum()), np.broadcast_to(share * found["slope"], output.shape).astype(output.dtype)


def _targets_of_steps(term: Term, output: Reals, targets: BatchTargets) -> Reals:
    """Return the targets of every step, broadcast to [T, B, n]; NaN for ignored targets."""
    match targets.kind:
        case "values":
            return np.broadcast_to(targets.values.astype(output.dtype), output.shape)
        case "step_values":
            return targets.values.transpose(1, 0, 2).astype(output.dtype)
        case "class":
            classes = np.broadcast_to(targets.values, output.shape[:2])
        case _:
            classes = targets.values.T
    wanted = np.where(classes[:, :, None] == np.arange(output.shape[2]), term.on, term.off)
    return np.where(classes[:, :, None] < 0, np.nan, wanted).astype(output.dtype)
