"""Two runs of one network compared, and random arrays to run it on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snnc.compiler.graph import Array, Graph, Input, Output
from snnc.frontends.onnx_writer.errors import FixedSizeError
from snnc.frontends.onnx_writer.runtime import RuntimeModel


@dataclass(frozen=True)
class Comparison:
    """How one output differs.

    Attributes
    ----------
    spikes
        Whether all values of both are 0 or 1; then they have to be equal.
    mismatches, values
        How many differ (by more than the tolerance, where they are no spikes), of how many.
    largest
        Largest difference; None where the shapes differ or a value is not finite.
    step, sample
        Where the first mismatch is, in time, then among samples; None where there is none, or the output has no such axis.
    shapes
        snnc's and ONNX Runtime's.
    """

    output: str
    spikes: bool
    mismatches: int
    values: int
    largest: float | None
    step: int | None
    sample: int | None
    shapes: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return self.mismatches == 0


def compare(name: str, operation: Output, ours: Array, theirs: Array, tolerance: float) -> Comparison:
    """Compare one output of snnc with that of ONNX Runtime; both in the layout of the file."""
    shapes = (tuple(ours.shape), tuple(theirs.shape))
    if shapes[0] != shapes[1]:
        return Comparison(name, False, max(ours.size, theirs.size, 1), theirs.size, None, None, None, shapes)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    spikes = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
    difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, difference)
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
    wrong = ~(difference <= (0.0 if spikes else tolerance * scale))
    finite = bool(np.isfinite(difference).all())
    step, sample = _first(operation, wrong)
    largest = float(difference.max(initial=0.0)) if finite else None
    return Comparison(name, spikes, int(wrong.sum()), wrong.size, largest, step, sample, shapes)


def _first(operation: Output, wrong: Array) -> tuple[int | None, int | None]:
    """Step and sample of the first mismatch."""
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


def random_arrays(runtime: RuntimeModel, graph: Graph, samples: int | None, steps: int | None, seed: int) -> dict[str, Array]:
    """Make inputs: 0 and 1 in even samples, normally distributed values in odd ones.

    Raises
    ------
    FixedSizeError
        The file fixes another number of samples or steps.
    """
    random = np.random.default_rng(seed)
    found = {}
    for name, operation in graph.of_type(Input):
        layout = operation.layout
        batch = _size("samples", samples, runtime.fixed(name, layout.batch_axis), 4)
        length = _size("steps", steps, runtime.fixed(name, layout.time_axis) or graph.steps, 20)
        shape = (length, batch, *operation.shape)
        values = (random.random(shape) < 0.3).astype(np.float32)
        if operation.kind == "values":
            values[:, 1::2] = random.normal(size=shape).astype(np.float32)[:, 1::2]
        values = values if layout.batch_axis is not None else values[:, -1]
        values = values if layout.time_axis is not None else values[0]
        axes = [axis for axis in (layout.time_axis, layout.batch_axis) if axis is not None]
        found[name] = np.ascontiguousarray(np.moveaxis(values, range(len(axes)), axes))
    return found


def _size(what: str, asked: int | None, fixed: int | None, default: int) -> int:
    if asked is not None and fixed is not None and asked != fixed:
        raise FixedSizeError(
            f"--{what} is {asked}, but the file fixes {fixed}; leave the option out, or export the model with that axis open."
        )
    return asked or fixed or default
