"""How often neurons fire, as a plan is given it: it sets window capacities and predicted costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram

GRAIN: Final = 8
"""Capacities are multiples of this."""


@dataclass(frozen=True)
class Activity:
    """Spikes of every buffer that sends spikes.

    Attributes
    ----------
    mean
        A value and step.
    peak
        The most in one step of one sample, of buffers that were measured.
    source
        Where it was measured.
    support, support_peak
        The same of neurons that receive gradient (that spiked, or are inside the support of their surrogate), where that is bounded.
    rates
        A step, of each single value of a buffer that was measured.
    patterns
        Which values of a buffer that was measured spiked: bits, [steps, samples, bytes], as :func:`numpy.packbits` packs them.
    counts, support_counts
        Spikes, and neurons that receive gradient, of a buffer that was measured, [steps, samples].
    """

    mean: Mapping[str, float]
    peak: Mapping[str, int]
    source: str
    support: Mapping[str, float] = field(default_factory=dict)
    support_peak: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, Array] = field(default_factory=dict)
    counts: Mapping[str, Array] = field(default_factory=dict)
    support_counts: Mapping[str, Array] = field(default_factory=dict)
    patterns: Mapping[str, Array] = field(default_factory=dict)

    @property
    def measured(self) -> dict[str, Any]:
        """Keyword arguments of :func:`snnc.compiler.tiles.make_plan`: the statistics beside :attr:`mean`."""
        found = (self.rates, self.support, self.counts, self.support_counts, self.patterns)
        return dict(zip(("rates", "support", "counts", "support_counts", "patterns"), found, strict=True))

    def capacities(self, program: StepProgram) -> dict[str, int]:
        """Return windows that hold a quarter more than the busiest step that was seen."""
        return _with_room(program, self.peak)

    def gradient_capacities(self, program: StepProgram) -> dict[str, int]:
        """Return the same for windows of the backward pass."""
        return _with_room(program, self.support_peak)


def taken(pattern: Array, index: Array | None) -> Array:
    """Return :attr:`Activity.patterns` of the values at `index`; None: of all."""
    return pattern if index is None else np.packbits(np.unpackbits(pattern, axis=-1)[..., index], axis=-1)


def _with_room(program: StepProgram, peak: Mapping[str, int]) -> dict[str, int]:
    widths = {name: math.prod(program.buffers[name].shape) for name in peak}
    return {name: min(GRAIN * math.ceil((1.25 * most + 1) / GRAIN), widths[name]) for name, most in peak.items()}
