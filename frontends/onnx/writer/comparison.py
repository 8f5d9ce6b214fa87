"""Compare two runs of one network, and draw random inputs for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Input, Output
from snnc.frontends.common.functions import difference, largest_magnitude
from snnc.frontends.onnx.writer.errors import FixedSizeError
from snnc.frontends.onnx.writer.hidden import Observed


@dataclass(frozen=True)
class Comparison:
    """Differences between one output in snnc and in another implementation."""

    output: str
    spikes: bool
    """Whether all values in both implementations are 0 or 1; then they must be equal."""
    mismatches: int  # number of values that differ (spikes: at all; others: by more than the tolerance)
    values: int  # number of compared values
    largest: float | None  # largest difference; None if the shapes differ or a difference is not finite
    step: int | None
    sample: int | None
    """Step and sample of the earliest mismatch; None without a mismatch, or without a time or batch axis."""
    shapes: tuple[tuple[int, ...], tuple[int, ...]]  # shapes of the output in snnc and in the other implementation

    @property
    def agrees(self) -> bool:
        """Whether no value differs."""
        return self.mismatches == 0


def compare(name: str, operation: Output, ours: Array, theirs: Array, tolerance: float) -> Comparison:
    """Compare one output in snnc, `ours`, and in the other implementation, `theirs`; both have the file's layout.

    Values other than spikes may differ by `tolerance` times the larger of 1 and the largest magnitude in `theirs`.
    """
    shapes = (tuple(ours.shape), tuple(theirs.shape))
    if shapes[0] != shapes[1]:
        return Comparison(name, False, max(ours.size, theirs.size, 1), theirs.size, None, None, None, shapes)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    spikes = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
    gap = difference(a, b)
    scale = max(1.0, largest_magnitude(b))
    wrong = ~(gap <= (0.0 if spikes else tolerance * scale))
    finite = bool(np.isfinite(gap).all())
    step, sample = _first(operation, wrong)
    largest_gap = float(gap.max(initial=0.0)) if finite else None
    return Comparison(name, spikes, int(wrong.sum()), wrong.size, largest_gap, step, sample, shapes)


def _first(operation: Output, wrong: Array) -> tuple[int | None, int | None]:
    if not wrong.any():
        return None, None
    time, batch = operation.layout.time_axis, operation.layout.batch_axis
    if operation.readout != "all":
        batch = batch if batch is None or time is None else batch - (time < batch)
        time = None
    places = np.argwhere(wrong)
    order = [axis for axis in (time, batch) if axis is not None and axis < wrong.ndim]
    if not order:
        return None, None
    first = places[np.lexsort([places[:, axis] for axis in reversed(order)])][0]
    return None if time is None else int(first[time]), None if batch is None else int(first[batch])


@dataclass(frozen=True)
class PortComparison:
    """Differences between one spike output or state of a population in snnc and in another implementation.

    `values` and `mismatches` are counted as in :class:`Comparison`.
    """

    port: str  # name in the population's equations
    fires: bool  # whether the values are spikes, which must be equal
    values: int
    mismatches: int
    by_step: tuple[float | None, ...]
    """For each step, the number of spikes that differ, or the largest difference (None if not finite); 0 for steps not in `compared`."""
    compared: tuple[int, ...]  # steps that both implementations compute
    largest: float | None  # largest difference of all steps; None if a difference is not finite. For spikes, 1 if any differs, else 0.
    first: int | None  # first step with a mismatch, or None
    fired: int  # number of nonzero values in the other implementation

    @property
    def agrees(self) -> bool:
        """Whether no value differs."""
        return self.mismatches == 0

    @property
    def worst(self) -> int | None:
        """First step at which `by_step` is largest; None if no step was compared."""
        ranked = [(math.inf if d is None else d, -t) for t, d in enumerate(self.by_step) if t in self.compared]
        return -max(ranked)[1] if ranked else None


def compare_port(theirs: Observed, ours: Array, tolerance: float) -> PortComparison:
    """Compare a port's values in another implementation, `theirs`, with `ours` [steps, batch, *neurons].

    See :func:`compare` for `tolerance`.
    """
    steps = sorted(t for t in theirs.by_step if t < len(ours))
    scale = max([1.0, *(largest_magnitude(theirs.by_step[t]) for t in steps)])
    allowed = 0.0 if theirs.fires else tolerance * scale
    by_step: list[float | None] = [0.0] * len(ours)
    values = mismatches = fired = 0
    first: int | None = None
    for t in steps:
        gap = np.broadcast_to(difference(ours[t].astype(np.float64), theirs.by_step[t]), ours[t].shape)
        wrong = int((~(gap <= allowed)).sum())
        largest_gap = float(gap.max(initial=0.0))
        by_step[t] = float(wrong) if theirs.fires else largest_gap if math.isfinite(largest_gap) else None
        values, mismatches, fired = values + gap.size, mismatches + wrong, fired + int(np.count_nonzero(theirs.by_step[t]))
        first = t if wrong and first is None else first
    known = [d for t in steps if (d := by_step[t]) is not None]
    overall = float(mismatches > 0) if theirs.fires else max(known, default=0.0) if len(known) == len(steps) else None
    return PortComparison(theirs.port, theirs.fires, values, mismatches, tuple(by_step), tuple(steps), overall, first, fired)


def random_arrays(
    graph: Graph,
    samples: int | None,
    steps: int | None,
    seed: int,
    fixed: Callable[[str, int | None], int | None],
    check: Callable[[int, int], None],
) -> dict[str, Array]:
    """Draw inputs: 0 and 1 (30 % are 1) in even samples, normally distributed values in odd ones, with standard deviations 1 and 3 in turn.

    A single sample alternates in the same way from step to step. Inputs of kind "spikes" only get 0 and 1.

    `samples` and `steps` are None for the numbers that the model fixes, or 4 samples and 20 steps if it fixes none; numbers that the model
    does not allow raise a FixedSizeError. `fixed` returns the size that the model fixes for an axis of an input, in the graph's layout, or
    None. `check` is called with (steps, samples) before anything is drawn, and refuses numbers that would exceed the memory.
    """
    random = np.random.default_rng(seed)
    arrays = {}
    for name, operation in graph.of_type(Input):
        layout = operation.layout
        batch = _size("samples", samples, fixed(name, layout.batch_axis), 4)
        length = _size("steps", steps, fixed(name, layout.time_axis) or graph.steps, 20)
        check(length, batch)
        shape = (length, batch, *operation.shape)
        values = (random.random(shape) < 0.3).astype(np.float32)
        if operation.kind == "values":
            turn = np.add.outer(np.zeros(length, int) if batch > 1 else np.arange(length), np.arange(batch))
            deviation = (turn % 2 * (1 + turn // 2 % 2 * 2)).reshape(*turn.shape, *(1,) * len(operation.shape))  # 0, 1, 0, 3, …
            values = np.where(deviation == 0, values, deviation * random.normal(size=shape)).astype(np.float32)
        values = values if layout.batch_axis is not None else values[:, -1]
        values = values if layout.time_axis is not None else values[0]
        axes = [axis for axis in (layout.time_axis, layout.batch_axis) if axis is not None]
        arrays[name] = np.ascontiguousarray(np.moveaxis(values, range(len(axes)), axes))
    return arrays


def _size(what: str, requested: int | None, fixed: int | None, default: int) -> int:
    if requested is not None and fixed is not None and requested != fixed:
        raise FixedSizeError(
            f"--{what} is {requested}, but the file fixes {fixed}; leave the option out, or export the model with that axis open."
        )
    return requested or fixed or default
