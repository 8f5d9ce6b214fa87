"""Sizes of a loss, from which its memory and cycles on tiles are predicted: the outputs that it reads, and scores and targets of a sample.

An *output* is one neuron of the network's output that the loss reads. A score is a statistic of it over time, such as its number of spikes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.term import Statistic

ScoreKind: TypeAlias = Statistic | Literal["known"]
"""What a score contains: a statistic of an output over time, or the number of steps at which its target is known (not NaN)."""
_OF_STEPS: Final = "ce_rate"
"""Name of the loss that is computed in every step, without scores."""
_OF_ONE_STEP: Final = ("ce_max_membrane", Composed.name)
"""Names of losses with scores that may be the value of a single step."""


@dataclass(frozen=True)
class ScoreSlot:
    """Scores of consecutive outputs."""

    kind: ScoreKind
    first: int
    stop: int
    """The range of outputs, among all that the loss reads."""
    place: int
    """Index of the first score of the slot among all scores."""


@dataclass(frozen=True)
class LossShape:
    """The properties of a loss that determine its memory and cycles."""

    name: str | None = None
    width: int = 0
    """Number of outputs that the loss reads."""
    slots: tuple[ScoreSlot, ...] = ()
    """Scores computed before the adjoints. Losses that are not composed have one score for each output, or none."""
    columns: int = 0
    """Number of target values of a sample, or of a step with `each_step`; 0 if the target is the class of the sample (an integer)."""
    each_step: bool = False
    """Whether every step has its own targets."""
    lengths: bool = False
    """Whether the last column is the length of the sequence, in steps."""
    masked: int = 0
    """Number of target values of a sample, or of a step with `each_step`, that every worker reads to count those that are known.

    Targets that are NaN, or class -1, are unknown: the loss ignores them."""

    @property
    def external(self) -> bool:
        """Whether the loss is computed outside the program."""
        return self.name == ExternalLoss.name

    @property
    def scores(self) -> int:
        """Number of scores stored per sample before its adjoints are computed; 0 if the loss needs no scores."""
        return sum(slot.stop - slot.first for slot in self.slots)

    @property
    def chooses_step(self) -> bool:
        """Whether a score is the value of one step, whose number the vertices store."""
        return self.name in _OF_ONE_STEP and self.scores > 0

    @property
    def reads_steps(self) -> bool:
        """Whether the vertex that computes the adjoints reads every step; each worker then writes the loss of its own steps."""
        return self.name in (_OF_STEPS, Composed.name)

    @property
    def scores_read_targets(self) -> bool:
        """Whether scores depend on targets: on the length of a sequence, or on which targets are known."""
        return self.lengths or any(slot.kind == "known" for slot in self.slots)

    def targets(self, steps: int) -> int:
        """Return the number of target values of a sample; 0 if the target is the class of the sample."""
        return self.columns * (steps if self.each_step else 1)

    def targets_per_worker(self, steps: int) -> int:
        """Return the number of a sample's target values that every worker reads."""
        return self.masked * (steps if self.each_step else 1)

    def score_of(self, kind: ScoreKind, first: int, stop: int) -> ScoreSlot:
        """Return the slot of a statistic of the outputs ``[first, stop)``."""
        return next(slot for slot in self.slots if (slot.kind, slot.first, slot.stop) == (kind, first, stop))


def loss_shape(program: StepProgram) -> LossShape:
    """Return the shape of the loss of a program."""
    loss = program.loss
    if loss is None:
        return LossShape()
    width = next((math.prod(o.shape) for o in program.outputs if o.id == program.loss_output), 0)
    if isinstance(loss, Composed):
        columns, each_step = (0 if loss.plain_targets else loss.columns), loss.targets.startswith("step")
        # Classes of samples are always known, and values of steps are counted as scores. `width` does not read its argument here.
        masked = sum(term.reads_targets for term in loss.terms) * {"step_classes": 1, "values": loss.width(0)}.get(loss.targets, 0)
        return LossShape(loss.name, width, _slots(loss), columns, each_step, loss.lengths, masked)
    scored = not isinstance(loss, ExternalLoss) and loss.name != _OF_STEPS
    # The kind "count" stands for any: kinds are read only in composed losses.
    return LossShape(loss.name, width, (ScoreSlot("count", 0, width, 0),) if scored else ())


def _slots(loss: Composed) -> tuple[ScoreSlot, ...]:
    keys: list[tuple[ScoreKind, int, int]] = []
    for term, (first, stop) in zip(loss.terms, loss.slices, strict=True):
        known = loss.targets == "step_values" and term.reads_targets
        if term.statistic != "steps" or known:
            keys.append(("known" if known else term.statistic, first, stop))
    slots, place = [], 0
    for kind, first, stop in dict.fromkeys(keys):
        slots.append(ScoreSlot(kind, first, stop, place))
        place += stop - first
    return tuple(slots)
