"""Check the targets of composed losses (sums of terms): class indices or numbers, per sample or step, with or without sequence lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import DataShapeError, DataTypeError, LabelRangeError
from snnc.compiler.losses.composed import Composed


def as_targets(targets: Array) -> Array:
    """Return targets in the type that engines expect: float32 for numbers, int64 for classes."""
    return targets.astype(np.float32 if targets.dtype.kind == "f" else np.int64)


def has_classes(loss: Any) -> bool:
    """Return whether the targets of a loss contain one class per sample."""
    return not isinstance(loss, Composed) or loss.targets == "class"


def target_shape(loss: Composed, outputs: int, steps: int | None) -> tuple[int | None, ...]:
    """Return the shape of the targets of a sample; None: any number of steps."""
    width = loss.width(outputs)
    return {
        "class": (2,) if loss.lengths else (),
        "step_classes": (steps,),
        "values": (width + loss.lengths,),
        "step_values": (steps, width),
    }[loss.targets]


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(wanted) == len(shape) and all(w in (None, n) for w, n in zip(wanted, shape, strict=True))


def check_targets(loss: Composed, outputs: int, targets: Array, count: int, steps: int | None) -> None:
    """Raise an error unless the targets fit the loss of `outputs` outputs, for `count` samples of `steps` steps (None: any number).

    The error is a DataTypeError, DataShapeError or LabelRangeError.
    """
    of_classes = loss.targets in ("class", "step_classes")
    if targets.dtype.kind not in ("iu" if of_classes else "iuf"):
        kinds = "integers, class indices" if of_classes else "numbers"
        raise DataTypeError(f"the targets are {targets.dtype}; the loss compares with {kinds}.")
    wanted = (count, *target_shape(loss, outputs, steps))
    if not _fits(targets.shape, wanted):
        text = ", ".join("steps" if n is None else str(n) for n in wanted)
        last = ", and the last column is the number of steps of each sequence" if loss.lengths else ""
        swapped = loss.targets.startswith("step") and _fits(targets.shape[1::-1] + targets.shape[2:], wanted)
        hint = " Samples and steps look swapped: give y.swapaxes(0, 1)." if swapped else ""
        raise DataShapeError(f"the targets have shape {list(targets.shape)}; the loss compares with {loss.targets}, [{text}]{last}.{hint}")
    if loss.lengths:
        lengths = targets[:, -1]
        if (lengths < 1).any() or (lengths != np.floor(lengths)).any() or (steps is not None and (lengths > steps).any()):
            most = "T" if steps is None else steps
            raise LabelRangeError(
                f"a sequence length is not a whole number from 1 to {most}; the lengths range from {lengths.min()} to {lengths.max()}."
            )
    if of_classes:
        classes = targets[:, 0] if loss.lengths else targets
        least, most = (-1 if loss.targets == "step_classes" else 0), loss.width(outputs) - 1
        if classes.size and (classes.min() < least or classes.max() > most):
            raise LabelRangeError(f"a target is not from {least} to {most}; the targets range from {classes.min()} to {classes.max()}.")
    elif np.isinf(targets).any():
        raise DataTypeError("a target is infinite; use NaN for targets to ignore.")
