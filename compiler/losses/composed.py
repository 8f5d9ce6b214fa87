"""Losses composed as weighted sums of terms, over population-coded outputs and hidden populations, with several kinds of targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Loss, LossPort, Reals
from snnc.compiler.losses.cross_entropy import CrossEntropyCount, CrossEntropyMaxMembrane, CrossEntropyMeanMembrane, CrossEntropyRate
from snnc.compiler.losses.evaluate_term import BatchTargets, scores_of, value_and_gradient
from snnc.compiler.losses.mse_count import MeanSquaredCount
from snnc.compiler.losses.term import SQUARED_ERROR, TargetKind, Term

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Composed:
    """A weighted sum of terms; ``+`` adds losses, ``*`` scales them.

    Attributes
    ----------
    terms
        The terms; a loss for training needs at least one term that reads targets.
    classes
        Number of classes, if each class has a group of output neurons, which are summed at every step; None: one neuron per class.
    targets
        Kind of the targets, see :mod:`snnc.compiler.losses.term`.
    lengths
        Whether each sequence has its own length. Targets then have one more column, the number of valid steps:
        [B, 2] with classes, [B, n + 1] with values.
    slices
        After lowering: range of outputs that each term reads, as (first, last + 1).
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
        for term in self.terms:
            if term.reads_targets:
                _check(term, self.targets)

    @property
    def port(self) -> LossPort:
        """Port read by the first term with targets, or by the first term if no term has targets."""
        return next((term for term in self.terms if term.reads_targets), self.terms[0]).port

    @property
    def main(self) -> Term:
        """The first term with targets, which determines predictions."""
        for term in self.terms:
            if term.reads_targets:
                return term
        raise UnknownLossError("no term of the loss reads targets; add a term with targets, as in snnc.losses.CrossEntropy() + 0.1 * ….")

    def __add__(self, other: Any) -> Composed:
        if not isinstance(other, Composed):
            return NotImplemented
        first, second = self._own(), other._own()
        if first is not None and second is not None and first != second:
            raise UnknownLossError(f"all terms of a loss must have the same kind of targets, but these have {first} and {second}.")
        classes, targets, lengths = first or second or (None, "class", False)
        return Composed((*self.terms, *other.terms), classes, targets, lengths)

    def __mul__(self, factor: Any) -> Composed:
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            return NotImplemented
        return replace(self, terms=tuple(replace(term, weight=term.weight * factor) for term in self.terms))

    __rmul__ = __mul__

    def _own(self) -> tuple[int | None, TargetKind, bool] | None:
        """Return `classes`, `targets` and `lengths`; None if no term reads targets."""
        return (self.classes, self.targets, self.lengths) if any(term.reads_targets for term in self.terms) else None

    def simplified(self) -> Loss:
        """Return an equivalent loss with dedicated code in backends, such as ``ce_count``; this loss if no such loss exists."""
        if len(self.terms) != 1 or self.targets != "class" or self.lengths or (self.group != 1 and self.main.squares_counts):
            return self
        (term,) = self.terms
        if term.weight != 1:
            return self
        if term.squares_counts:
            return MeanSquaredCount(term.on, term.off)
        kinds: dict[str, type[Loss]] = {
            "count": CrossEntropyCount,
            "steps": CrossEntropyRate,
            "mean": CrossEntropyMeanMembrane,
            "max": CrossEntropyMaxMembrane,
        }
        return kinds[term.statistic]() if term.softmax and term.statistic in kinds else self

    # ---- reference ----------------------------------------------------------------------------------------------------

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
        """See :class:`~snnc.compiler.losses.base.Loss`: scores of the first term with targets, over all steps or the first `lengths`."""
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
        return width + (1 if self.lengths else 0)

    def _slices(self, output: Reals) -> tuple[tuple[int, int], ...]:
        return self.slices or ((0, output.shape[2]),) * len(self.terms)

    def _targets(self, target: Array, steps: int) -> tuple[BatchTargets, Array]:
        if not self.lengths:
            return BatchTargets(self.targets, target, self.group), np.full(len(target), steps)
        values = target[:, 0] if self.targets == "class" else target[:, :-1]
        return BatchTargets(self.targets, values, self.group), target[:, -1].astype(np.int64)


def _check(term: Term, targets: TargetKind) -> None:
    """Check that a term can be compared with these targets."""
    if targets in ("step_classes", "step_values") and term.statistic != "steps":
        raise UnknownLossError(f"targets of every step need the statistic 'steps', not {term.statistic!r}.")
    if term.softmax and targets in ("values", "step_values"):
        raise UnknownLossError("a cross entropy has classes as targets; for numbers, use a squared error or an equation.")


def squared(statistic: Any, **more: Any) -> Term:
    """Return a squared error of `statistic`.

    For ``"first_spike"``, the default targets are those of snnTorch: step 0 for the right class, and the last step for all others.
    """
    if statistic == "first_spike":
        more = {"on": 0.0, "off": -1.0} | more
    return Term(statistic, SQUARED_ERROR, **more)
