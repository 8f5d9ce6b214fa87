"""Check arrays, and convert them between the axes of a model's file and [T, B, …] (steps, samples, …)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import DataNotFiniteError, DataShapeError, DataTypeError, NotBinaryError
from snnc.compiler.ir.graph import FileLayout, Kind, Shape
from snnc.compiler.ir.step_program import InputInfo, OutputInfo

_REDUCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
"""Reductions over time by the name of the readout."""


def checked(values: object, kind: Kind, where: str) -> Array:
    """Return `values` as an array of real, finite numbers; spikes must be 0 or 1.

    Raises a DataTypeError, DataNotFiniteError or NotBinaryError, which says how many values are invalid, and where the first one is.
    """
    array = array_of(values, where)
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{where} contains {array.dtype}; give real numbers.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))
        raise DataNotFiniteError(
            f"{where} is {array[tuple(wrong[0])]} at index {wrong[0].tolist()} ({len(wrong)} of {array.size} are not finite)."
        )
    if kind == "spikes" and array.dtype.kind != "b":
        wrong = np.argwhere((array != 0) & (array != 1))
        if len(wrong):
            raise NotBinaryError(
                f"{where} takes spikes, 0 or 1, but is {array[tuple(wrong[0])]} at index {wrong[0].tolist()} "
                f"({len(wrong)} of {array.size} values); declare the input as values, or encode it."
            )
    return array


def array_of(values: object, where: str) -> Array:
    """Return `values` as an array; a PyTorch tensor is copied from its device.

    Raises a DataTypeError if rows have different lengths, or values are objects.
    """
    try:
        if hasattr(values, "detach") and hasattr(values, "cpu"):
            values = values.detach().cpu()
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise DataTypeError(f"{where} is not an array of numbers ({reason}); give an array whose rows all have the same length.") from None
    if array.dtype == object:
        kinds = sorted({type(item).__name__ for item in array.flat})
        contents = f"objects ({', '.join(kinds[:3])})" if kinds else "objects"
        raise DataTypeError(f"{where} contains {contents}, not numbers; give an array of numbers whose rows all have the same length.")
    return array


def to_sequence(array: Array, info: InputInfo) -> Array:
    """Convert an array in the file's layout to [T, B, *shape]; T or B is 1 if the file has no such axis.

    An input without a time axis also accepts an array with a leading time axis. Raises a DataShapeError if the shape is wrong.
    """
    layout = info.layout
    if layout.time_axis is None and array.ndim == len(axes(info.shape, layout)) + 1:
        layout = FileLayout(0, None if layout.batch_axis is None else layout.batch_axis + 1)
    wanted = axes(info.shape, layout)
    time, batch = layout.time_axis, layout.batch_axis
    inner = tuple(n for axis, n in enumerate(array.shape) if axis not in (time, batch))
    if array.ndim != len(wanted) or inner != info.shape or 0 in array.shape:
        raise DataShapeError(f"the input {info.label!r} has shape {list(array.shape)}; it takes {describe(info.shape, layout)}.")
    order = [*([] if time is None else [time]), *([] if batch is None else [batch])]
    moved = np.moveaxis(array, order, range(len(order)))
    return moved.reshape(1 if time is None else array.shape[time], 1 if batch is None else array.shape[batch], *info.shape)


def axes(shape: Shape, layout: FileLayout) -> list[str]:
    """Name the axes of an array: ``["T", "B", "700"]``."""
    names = [str(n) for n in shape]
    for axis, name in sorted((axis, name) for axis, name in ((layout.time_axis, "T"), (layout.batch_axis, "B")) if axis is not None):
        names.insert(axis, name)
    return names


def describe(shape: Shape, layout: FileLayout) -> str:
    """Print :func:`axes`: ``[T, B, 700]``."""
    return f"[{', '.join(axes(shape, layout))}]"


def from_sequence(record: Array, info: OutputInfo) -> Array:
    """Convert the steps of [T, B, *shape] that an output returns to the file's layout, reduced over time according to its readout.

    If the file has no time axis but there are several steps, a leading time axis is added. If it has no batch axis but there are several
    samples, a batch axis is added after the time axis.
    """
    time, batch = info.layout.time_axis, info.layout.batch_axis
    record = record[slice(*info.window)]
    if info.readout != "all":
        summary = summarise(record, info.readout)
        at = 0 if batch is None else batch - (time is not None and time < batch)
        return summary[0] if batch is None and len(summary) == 1 else np.moveaxis(summary, 0, at)
    if time is None and len(record) == 1:
        return record[0][0] if batch is None and record.shape[1] == 1 else np.moveaxis(record[0], 0, batch or 0)
    if batch is None and record.shape[1] == 1:
        return np.moveaxis(record[:, 0], 0, time or 0)
    if time is None:
        time, batch = 0, 1 if batch is None else batch + 1
    elif batch is None:
        batch = time + 1
    return np.moveaxis(record, [0, 1], [time, batch])


def summarise(record: Array, readout: str) -> Array:
    """Apply a readout along the first axis."""
    return np.asarray(record[-1] if readout == "last" else _REDUCTIONS[readout](record, axis=0))


def padded(array: Array, axis: int, missing: int) -> Array:
    """Append `missing` zeros along `axis`."""
    return np.pad(array, [(0, missing if n == axis else 0) for n in range(array.ndim)])
