"""Losses that are weighted sums of terms: an output may have several neurons per class, and there are several kinds of targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Loss, LossPort, Reals
from snnc.compiler.losses.evaluate_term import BatchTargets, scores_of, value_and_gradient
from snnc.compiler.losses.named_losses import CROSS_ENTROPIES, MeanSquaredCount
from snnc.compiler.losses.term import TargetKind, Term

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Composed:
    """A weighted sum of terms; ``+`` adds losses, ``*`` scales them.

    Attributes
    ----------
    terms
        The terms; a loss for training needs at least one term that reads targets.
    classes
        Number of classes, if each class has a group of output neurons, whose outputs are summed at every step; None: one neuron per class.
    targets
        Kind of the targets, a row of the table in :mod:`snnc.compiler.losses.term`.
    lengths
        Whether each sequence has its own length. Targets then have one more column, the number of valid steps:
        [B, 2] with classes, [B, n + 1] with values.
    slices
        After lowering: for each term, the range (first, last + 1) of the outputs that it reads.
    group
        After lowering: number of neurons per class.
    """

    terms: tuple[Term, ...]
    classes: int | None = None
    targets: TargetKind = "class"
    lengths: bool = False
    slices: tuple[tuple[int, int], ...] = ()
    group: int = 1
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
        whole, gradient = 0.0, np.zeros_like(output)
        for term, (first, stop) in zip(self.terms, self._slices(output), strict=True):
            value, part = value_and_gradient(term, output[:, :, first:stop], lengths, targets)
            whole += term.weight * value
            gradient[:, :, first:stop] += output.dtype.type(term.weight) * part
        return whole, gradient

    def scores(self, output: Reals, lengths: Array | None = None) -> Reals:
        """See :class:`~snnc.compiler.losses.base.Loss`: scores of the main term, over the first `lengths` steps (None: all)."""
        first, stop = self._slices(output)[self.terms.index(self.main)]
        whole = np.full(output.shape[1], output.shape[0]) if lengths is None else lengths
        return scores_of(self.main, output[:, :, first:stop], whole)

    def width(self, outputs: int) -> int:
        """Return the number of outputs that are compared with targets, out of all `outputs` that the loss reads."""
        first, stop = self.slices[self.terms.index(self.main)] if self.slices else (0, outputs)
        return stop - first

    @property
    def plain_targets(self) -> bool:
        """Whether the target of a sample is its class only."""
        return self.targets == "class" and not self.lengths

    @property
    def columns(self) -> int:
        """Number of values in the stored targets of a sample (of one step if targets are given per step), including the length."""
        width = self.width(0) if self.targets in ("values", "step_values") else 1
        return width + self.lengths

    def _slices(self, output: Reals) -> tuple[tuple[int, int], ...]:
        return self.slices or ((0, output.shape[2]),) * len(self.terms)

    def _targets(self, target: Array, steps: int) -> tuple[BatchTargets, Array]:
        if not self.lengths:
            return BatchTargets(self.targets, target, self.group), np.full(len(target), steps)
        values = target[:, 0] if self.targets == "class" else target[:, :-1]
        return BatchTargets(self.targets, values, self.group), target[:, -1].astype(np.int64)
