"""Compute scores from recorded outputs, and check labels."""

from __future__ import annotations

import numpy as np

from snnc.backends.runtime.arrays import summarise
from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import AmbiguousOutputError, DataShapeError, DataTypeError, LabelRangeError, UnknownNameError
from snnc.backends.runtime.targets import check_targets
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import OutputInfo, StepProgram
from snnc.compiler.losses.composed import Composed


def prediction_output(program: StepProgram, wanted: str | None = None) -> OutputInfo:
    """Return the output used for predictions: `wanted`, by default the output that the loss reads, or the only output.

    Raises an UnknownNameError if `wanted` is not an output, and an AmbiguousOutputError if there are several outputs and none is named.
    """
    names = ", ".join(o.label for o in program.outputs)
    for output in program.outputs:
        if output.label == wanted or (wanted is None and output.id == program.loss_output):
            return output
    if wanted is not None:
        raise UnknownNameError(f"there is no output {wanted!r}; {program.name!r} has {names}.")
    if len(program.outputs) > 1:
        raise AmbiguousOutputError(f"{program.name!r} has the outputs {names}; select one with output=….")
    return program.outputs[0]


def scores(program: StepProgram, output: OutputInfo, record: Array) -> Array:
    """Return scores [B, classes] from [T, B, *shape], as the loss or the output's readout defines; a readout "all" is summed over time."""
    flat = record.reshape(*record.shape[:2], -1)
    if program.loss is not None and output.id == program.loss_output:
        return program.loss.scores(flat)
    return summarise(flat[slice(*output.window)], "sum" if output.readout == "all" else output.readout)


def check_training_targets(program: StepProgram, targets: Array, count: int, steps: int) -> None:
    """Raise an error unless the targets fit the loss and `count` samples of `steps` steps; see :func:`check_labels`."""
    if isinstance(program.loss, Composed) and not program.loss.plain_targets:
        check_targets(program.loss, size(prediction_output(program).shape), targets, count, steps)
    else:
        check_labels(program, targets, count, steps=steps)


def classes_of(program: StepProgram, targets: Array) -> Array:
    """Return the targets; if they are class indices with a column of sequence lengths, return only the class indices."""
    loss = program.loss
    return targets[:, 0] if isinstance(loss, Composed) and loss.lengths and loss.targets == "class" else targets


def scores_by_length(program: StepProgram, record: Array, targets: Array, default: Array) -> Array:
    """Return the scores of a record [T, B, n] up to the lengths of the sequences, if the targets contain these; else `default`."""
    loss = program.loss
    return loss.scores(record, targets[:, -1].astype(np.int64)) if isinstance(loss, Composed) and loss.lengths else default


def class_targets(program: StepProgram, targets: Array, output: str | None = None) -> Array:
    """Return the class index of each sample in the targets of a loss; raise a DataTypeError if the targets contain none."""
    loss = program.loss
    if not isinstance(loss, Composed) or loss.plain_targets or prediction_output(program, output).id != program.loss_output:
        return targets
    if loss.targets != "class" or targets.ndim != 2 or targets.shape[1] != 2:
        raise DataTypeError(
            f"the loss compares with {loss.targets}, but the targets have shape {list(targets.shape)}, so accuracy is not defined. "
            "fit(validation=…) reports the loss on validation data instead."
        )
    return classes_of(program, targets)


def check_labels(program: StepProgram, labels: Array, count: int, output: str | None = None, steps: int | None = None) -> None:
    """Raise an error unless the labels are one class index for each of `count` samples.

    The error is a DataTypeError, DataShapeError or LabelRangeError. With `steps`, its message also says whether samples and steps look
    swapped.
    """
    if labels.dtype.kind not in "iu":
        numbered = ", as in np.unique(y, return_inverse=True)[1]"
        hints = {"f": ", as in y.astype(int)", "b": ", as in y.astype(int)", "U": numbered, "S": numbered}
        raise DataTypeError(f"the labels are {labels.dtype}; give integers, class indices{hints.get(labels.dtype.kind, '')}.")
    if labels.shape != (count,):
        how = "; for one-hot labels, give y.argmax(axis=1)" if labels.ndim == 2 and len(labels) == count else ""
        if labels.shape == (steps,):
            how = f"; the samples have {steps} steps, so samples and steps of x look swapped: give x.swapaxes(0, 1)"
        raise DataShapeError(f"the labels have shape {list(labels.shape)}; {count} samples need [{count}]{how}.")
    chosen = prediction_output(program, output)
    classes = size(chosen.shape)
    if isinstance(program.loss, Composed) and chosen.id == program.loss_output:
        classes = program.loss.width(classes)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise LabelRangeError(
            f"label {labels[wrong[0]]} of sample {wrong[0]} is not in 0 … {classes - 1} ({len(wrong)} of {count} are not)."
        )
