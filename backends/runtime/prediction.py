"""Class indices from recorded outputs."""

from __future__ import annotations

import numpy as np

from snnc.backends.runtime.arrays import summarise
from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import AmbiguousOutputError, DataShapeError, DataTypeError, LabelRangeError, UnknownNameError
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import OutputInfo, StepProgram


def prediction_output(program: StepProgram, wanted: str | None = None) -> OutputInfo:
    """Return the output used for predictions: the loss's, or the only one.

    Raises
    ------
    UnknownNameError
        `wanted` is not an output.
    AmbiguousOutputError
        There are several, and none is named.
    """
    names = ", ".join(o.label for o in program.outputs)
    for output in program.outputs:
        if output.label == wanted or (wanted is None and output.id == program.loss_output):
            return output
    if wanted is not None:
        raise UnknownNameError(f"there is no output {wanted!r}; {program.name!r} has {names}.")
    if len(program.outputs) > 1:
        raise AmbiguousOutputError(f"{program.name!r} has the outputs {names}; name the one that gives the classes with output=….")
    return program.outputs[0]


def scores(program: StepProgram, output: OutputInfo, record: Array) -> Array:
    """Return [B, classes] from [T, B, *shape], by the loss or the output's readout; without either, sums over time."""
    flat = record.reshape(*record.shape[:2], -1)
    if program.loss is not None and output.id == program.loss_output:
        return program.loss.scores(flat)
    return summarise(flat[slice(*output.window)], "sum" if output.readout == "all" else output.readout)


def check_labels(program: StepProgram, labels: Array, count: int, output: str | None = None) -> None:
    """Refuse labels that are not one class index per sample.

    Raises
    ------
    DataTypeError, DataShapeError, LabelRangeError
        With the labels at fault.
    """
    if labels.dtype.kind not in "iu":
        numbered = ", as in np.unique(y, return_inverse=True)[1]"
        hints = {"f": ", as in y.astype(int)", "b": ", as in y.astype(int)", "U": numbered, "S": numbered}
        raise DataTypeError(f"the labels are {labels.dtype}; give integers, class indices{hints.get(labels.dtype.kind, '')}.")
    if labels.shape != (count,):
        how = "; of one-hot labels, y.argmax(axis=1)" if labels.ndim == 2 and len(labels) == count else ""
        raise DataShapeError(f"the labels have shape {list(labels.shape)}; {count} samples need [{count}]{how}.")
    classes = size(prediction_output(program, output).shape)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise LabelRangeError(
            f"label {labels[wrong[0]]} of sample {wrong[0]} is not in 0 … {classes - 1} ({len(wrong)} of {count} are not)."
        )
