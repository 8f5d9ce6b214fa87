"""Losses that are weighted sums of terms, with their value and gradient in NumPy, the reference for the emitted code of every target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Loss, LossPort, Reals
from snnc.compiler.losses.named_losses import CROSS_ENTROPIES, MeanSquaredCount, cross_entropy
from snnc.compiler.losses.term import TargetKind, Term
from snnc.compiler.neurons.interpret import evaluate

Array: TypeAlias = npt.NDArray[Any]
Lengths: TypeAlias = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Composed:
    """A weighted sum of terms; ``+`` adds losses, ``*`` scales them."""

    terms: tuple[Term, ...]  # a loss for training needs at least one term that reads targets
    classes: int | None = None
    """Number of classes, if each class has a group of neurons, whose outputs are summed at every step; None: one neuron per class."""
    targets: TargetKind = "class"  # kind of the targets, a row of the table in :mod:`snnc.compiler.losses.term`
    lengths: bool = False
    """Whether each sequence has its own length. Targets then have one more column, the number of valid steps: [B, 2] with classes,
    [B, n + 1] with values."""
    slices: tuple[tuple[int, int], ...] = ()  # after lowering: for each term, the range (first, last + 1) of the outputs that it reads
    group: int = 1  # after lowering: number of neurons per class
    name: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        if self.classes is not None and self.classes < 1:
            raise UnknownLossError(f"classes is {self.classes}; it must be 1 or more.")
        of_steps = self.targets in ("step_classes", "step_values")
        if of_steps and self.lengths:
            raise UnknownLossError("targets of every step mark ignored steps with class -1 or NaN; omit lengths.")
        for term in filter(lambda term: term.reads_targets, self.terms):
            if of_steps and term.statistic != "steps":
                raise UnknownLossError(f"targets of every step need the statistic 'steps', not {term.statistic!r}.")
            if term.softmax and self.targets in ("values", "step_values"):
                raise UnknownLossError("a cross entropy has classes as targets; for numbers, use a squared error or an equation.")

    @property
    def port(self) -> LossPort:
        """Port read by the first term with targets, or by the first term if no term has targets."""
        return next((term for term in self.terms if term.reads_targets), self.terms[0]).port

    @property
    def main(self) -> Term:
        """The first term with targets, which determines predictions."""
        main = next((term for term in self.terms if term.reads_targets), None)
        if main is None:
            raise UnknownLossError(
                "no term of the loss reads targets; add a term with targets, as in snnc.losses.CrossEntropy() + 0.1 * …."
            )
        return main

    def __add__(self, other: Any) -> Composed:
        if not isinstance(other, Composed):
            return NotImplemented
        of_targets = [
            (loss.classes, loss.targets, loss.lengths) for loss in (self, other) if any(term.reads_targets for term in loss.terms)
        ]
        if len(set(of_targets)) > 1:
            first, second = of_targets
            raise UnknownLossError(f"all terms of a loss must have the same kind of targets, but these have {first} and {second}.")
        classes, targets, lengths = of_targets[0] if of_targets else (None, "class", False)
        return Composed((*self.terms, *other.terms), classes, targets, lengths)

    def __mul__(self, factor: Any) -> Composed:
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            return NotImplemented
        return replace(self, terms=tuple(replace(term, weight=term.weight * factor) for term in self.terms))

    __rmul__ = __mul__

    def simplified(self) -> Loss:
        """Return an equivalent loss with dedicated code in backends, such as ``ce_count``; this loss if no such loss exists."""
        (term, *others) = self.terms
        if others or term.weight != 1 or self.targets != "class" or self.lengths or (self.group != 1 and term.squares_counts):
            return self
        if term.squares_counts:
            return MeanSquaredCount(term.on, term.off)
        return CROSS_ENTROPIES[term.statistic]() if term.softmax and term.statistic in CROSS_ENTROPIES else self

    def value_and_gradient(self, output: Reals, target: Array) -> tuple[float, Reals]:
        """See :class:`~snnc.compiler.losses.base.Loss`; `output` contains all slices, and `target` has the kind :attr:`targets`."""
        targets, lengths = self._targets(target, output.shape[0])
        total, gradient = 0.0, np.zeros_like(output)
        for term, (first, stop) in zip(self.terms, self._slices(output), strict=True):
            value, part = _value_and_gradient(term, output[:, :, first:stop], lengths, targets)
            total += term.weight * value
            gradient[:, :, first:stop] += output.dtype.type(term.weight) * part
        return total, gradient

    def scores(self, output: Reals, lengths: Array | None = None) -> Reals:
        """See :class:`~snnc.compiler.losses.base.Loss`: scores of the main term, over the first `lengths` steps (None: all)."""
        first, stop = self._slices(output)[self.terms.index(self.main)]
        valid_steps = np.full(output.shape[1], output.shape[0]) if lengths is None else lengths
        return _scores_of(self.main, output[:, :, first:stop], valid_steps)

    def width(self, outputs: int) -> int:
        """Return the number of outputs compared with targets; `outputs`, the number that the loss reads, is only used before lowering."""
        first, stop = self.slices[self.terms.index(self.main)] if self.slices else (0, outputs)
        return stop - first

    @property
    def plain_targets(self) -> bool:
        """Whether the target of a sample is its class only."""
        return self.targets == "class" and not self.lengths

    @property
    def columns(self) -> int:
        """Number of values in the stored targets of a sample (of one step if targets are given per step), including the length.

        For targets that are numbers, the loss must have its `slices`.
        """
        width = self.width(0) if self.targets in ("values", "step_values") else 1
        return width + self.lengths

    def _slices(self, output: Reals) -> tuple[tuple[int, int], ...]:
        return self.slices or ((0, output.shape[2]),) * len(self.terms)

    def _targets(self, target: Array, steps: int) -> tuple[_BatchTargets, Array]:
        if not self.lengths:
            return _BatchTargets(self.targets, target, self.group), np.full(len(target), steps)
        values = target[:, 0] if self.targets == "class" else target[:, :-1]
        return _BatchTargets(self.targets, values, self.group), target[:, -1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _BatchTargets:
    """Targets of a batch: their kind, the array, and the number of output neurons per class."""

    kind: TargetKind
    values: npt.NDArray[Any]
    group: int = 1


def _valid(output: Reals, lengths: Lengths) -> npt.NDArray[np.bool_]:
    return np.arange(len(output))[:, None] < lengths


def _statistic(term: Term, output: Reals, lengths: Lengths) -> tuple[Reals, Lengths]:
    """Return the statistic [B, n] of outputs [T, B, n] over the first `lengths` steps, and the step from which each value is taken.

    A sum or mean is taken from all steps, and its step is 0.
    """
    valid = _valid(output, lengths)[:, :, None]
    at = np.zeros(output.shape[1:], dtype=np.int64)
    match term.statistic:
        case "count":
            return np.asarray(np.where(valid, output, 0).sum(axis=0)), at
        case "mean":
            return np.asarray(np.where(valid, output, 0).sum(axis=0) / lengths[:, None].astype(output.dtype)), at
        case "max":
            at = np.where(valid, output, -np.inf).argmax(axis=0)
        case "last":
            at = np.broadcast_to(lengths[:, None] - 1, at.shape)
        case "first_spike":
            fired = (output > 0) & valid
            at = np.where(fired.any(axis=0), fired.argmax(axis=0), lengths[:, None] - 1)
            return at.astype(output.dtype), at
        case _:
            raise AssertionError("the values of every step are not a statistic")
    return np.take_along_axis(output, at[None], axis=0)[0], at


def _scores_of(term: Term, output: Reals, lengths: Lengths) -> Reals:
    """Return scores [B, n]; the output with the largest score is the prediction."""
    if term.statistic == "steps":
        return np.asarray(np.where(_valid(output, lengths)[:, :, None], output, 0).sum(axis=0))
    statistic, _ = _statistic(term, output, lengths)
    return _scores_of_times(term, statistic)[0] if term.statistic == "first_spike" else statistic


def _value_and_gradient(term: Term, output: Reals, lengths: Lengths, targets: _BatchTargets) -> tuple[float, Reals]:
    """Return the batch mean of a term, without its weight, and its gradient with respect to `output`, [T, B, n]."""
    if term.statistic == "steps":
        return _of_steps(term, output, lengths, targets)
    values, at = _statistic(term, output, lengths)
    if term.softmax:
        scores, slope = _scores_of_times(term, values) if term.statistic == "first_spike" else (values, np.ones_like(values))
        loss, gradient = cross_entropy(scores, targets.values)
        gradient *= slope
    else:
        target = _targets_of(term, values, lengths, targets) if term.reads_targets else None
        loss, gradient = _elementwise(term, values, target, lengths)
    gradient = gradient / output.dtype.type(output.shape[1])
    if term.statistic in ("count", "mean"):
        share = gradient if term.statistic == "count" else gradient / lengths[:, None].astype(output.dtype)
        return float(loss.mean()), np.where(_valid(output, lengths)[:, :, None], share, output.dtype.type(0))
    placed = np.zeros_like(output)
    # A larger output makes the first spike earlier, so the gradient changes its sign.
    np.put_along_axis(placed, at[None], (-gradient if term.statistic == "first_spike" else gradient)[None], axis=0)
    return float(loss.mean()), placed


def _scores_of_times(term: Term, times: Reals) -> tuple[Reals, Reals]:
    """Return the scores of the times of first spikes, and the derivatives of the scores with respect to the times."""
    if term.inverse == "negate":
        return -times, np.full_like(times, -1)
    return 1 / (times + 1), -1 / ((times + 1) * (times + 1))


def _targets_of(term: Term, statistic: Reals, lengths: Lengths, targets: _BatchTargets) -> Reals:
    """Return the targets of a statistic, [B, n] and with its type; negative steps of first spikes count from the end of the sequence."""
    length = lengths[:, None].astype(statistic.dtype)
    if targets.kind == "values":
        target = targets.values.astype(statistic.dtype)
    else:
        right = targets.values[:, None] == np.arange(statistic.shape[1])
        if term.squares_counts:
            on, off = ((lengths * rate * targets.group).astype(np.int64)[:, None] for rate in (term.on, term.off))
            return np.where(right, on, off).astype(statistic.dtype)
        target = np.where(right, term.on, term.off).astype(statistic.dtype)
    return np.where(target < 0, length + target, target) if term.statistic == "first_spike" else target


def _elementwise(term: Term, x: Reals, y: Reals | None, lengths: Lengths) -> tuple[Reals, Reals]:
    """Return the losses [B] of the statistics `x` [B, n] for the targets `y`, and their gradients; NaN marks an ignored target."""
    valid = np.ones(x.shape, dtype=bool) if y is None else ~np.isnan(y)
    assigned = evaluate(term.equations, {"x": x} if y is None else {"x": x, "y": np.where(valid, y, 0)})
    factor = np.array([term.scale(float(length)) for length in lengths]) / np.maximum(valid.sum(axis=1), 1)
    share = np.where(valid, factor[:, None], 0).astype(x.dtype)
    return (share * assigned["loss"]).sum(axis=1), share * assigned["slope"]


def _of_steps(term: Term, output: Reals, lengths: Lengths, targets: _BatchTargets) -> tuple[float, Reals]:
    """Return the result of :func:`_value_and_gradient` for a term over the values of every step."""
    steps, batch, width = output.shape
    valid = _valid(output, lengths)
    if term.softmax:
        classes = targets.values.T if targets.kind == "step_classes" else np.broadcast_to(targets.values, (steps, batch))
        valid = valid & (classes >= 0)
        loss, gradient = cross_entropy(output.reshape(-1, width), np.where(valid, classes, 0).reshape(-1))
        share = (valid / (np.maximum(valid.sum(axis=0), 1) * batch)).astype(output.dtype)
        return float((share * loss.reshape(steps, batch)).sum()), share[:, :, None] * gradient.reshape(output.shape)
    valid_values = np.broadcast_to(valid[:, :, None], output.shape)
    y: Reals | None = None
    if term.reads_targets:
        y = _targets_of_steps(term, output, targets)
        valid_values = valid_values & ~np.isnan(y)
        y = np.where(valid_values, y, 0)
    assigned = evaluate(term.equations, {"x": output} if y is None else {"x": output, "y": y})
    share = np.where(valid_values, 1 / (np.maximum(valid_values.sum(axis=(0, 2)), 1) * batch)[:, None], 0).astype(output.dtype)
    return float((share * assigned["loss"]).sum()), np.broadcast_to(share * assigned["slope"], output.shape).astype(output.dtype)


def _targets_of_steps(term: Term, output: Reals, targets: _BatchTargets) -> Reals:
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
    values = np.where(classes[:, :, None] == np.arange(output.shape[2]), term.on, term.off)
    return np.where(classes[:, :, None] < 0, np.nan, values).astype(output.dtype)
