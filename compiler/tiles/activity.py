"""Activity of neurons (their spike rates), which determines the capacities of windows and the predicted costs of a plan.

A window is a list of the spikes of one step that tiles send to each other; its capacity is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram

GRAIN: Final = 8
"""Capacities are multiples of this number, unless the source has fewer elements (neurons or channels)."""


@dataclass(frozen=True)
class Activity:
    """Measured or assumed activity of every buffer that sends spikes."""

    mean: Mapping[str, float] = field(default_factory=dict)
    """Mean number of spikes per element and step, by buffer."""
    peak: Mapping[str, int] = field(default_factory=dict)
    """Largest number of spikes in one step of one sample, by measured buffer."""
    source: str = "assumed"
    """Description of the data on which the activity was measured."""
    support: Mapping[str, float] = field(default_factory=dict)
    support_peak: Mapping[str, int] = field(default_factory=dict)
    """Like `mean` and `peak`, but for neurons that receive a gradient (that spiked, or are in the support of the surrogate), if the support
    is bounded."""
    rates: Mapping[str, Array] = field(default_factory=dict)
    """Mean number of spikes per step of each element, by measured buffer."""
    counts: Mapping[str, Array] = field(default_factory=dict)
    support_counts: Mapping[str, Array] = field(default_factory=dict)
    """Numbers of spikes, and of neurons that receive a gradient, by measured buffer, [steps, samples]."""
    patterns: Mapping[str, Array] = field(default_factory=dict)
    """The elements that spiked, by measured buffer: bits, [steps, samples, bytes], as :func:`numpy.packbits` packs them."""

    @property
    def measured(self) -> dict[str, Any]:
        """Keyword arguments of :func:`snnc.compiler.tiles.make_plan`: the statistics other than :attr:`mean` and the peaks."""
        return {name: getattr(self, name) for name in ("rates", "support", "counts", "support_counts", "patterns")}


def pattern_at(pattern: Array, index: Array | None) -> Array:
    """Return the part of :attr:`Activity.patterns` for the elements at `index`; None: for all."""
    return pattern if index is None else np.packbits(np.unpackbits(pattern, axis=-1)[..., index], axis=-1)


def capacities(program: StepProgram, peak: Mapping[str, int]) -> dict[str, int]:
    """Return capacities of windows: one more than 125 % of the events in the busiest step (`peak`), rounded up (:data:`GRAIN`)."""
    widths = {name: math.prod(program.buffers[name].shape) for name in peak}
    return {name: min(GRAIN * math.ceil((1.25 * most + 1) / GRAIN), widths[name]) for name, most in peak.items()}
