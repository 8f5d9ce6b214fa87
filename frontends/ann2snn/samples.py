"""Sample data for conversion: checked, and split into one part for balancing thresholds and one for measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.graph import Array, Graph, Input, Output
from snnc.compiler.ir.shapes import port_map, size
from snnc.frontends.ann2snn.errors import CalibrationMissingError, CalibrationShapeError, CalibrationValueError, LabelError

MAX_SAMPLES: Final = 2048
"""Maximum number of samples used; larger sets are subsampled at equal distances."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs by name, [samples, *shape] each, their labels if known, and a description of the selection, as in "samples 0, 2, 4, …"."""

    inputs: Mapping[str, Array]
    labels: Array | None
    described: str

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def chosen(self, index: Array | slice, described: str) -> Samples:
        """Return the samples at `index`."""
        labels = None if self.labels is None else self.labels[index]
        return Samples({n: a[index] for n, a in self.inputs.items()}, labels, described)


def check_samples(graph: Graph, arrays: Mapping[str, npt.ArrayLike], labels: npt.ArrayLike | None = None) -> Samples:
    """Return sample data that fit the inputs and the first output of a ReLU network, at most :data:`MAX_SAMPLES` samples.

    `arrays` contains each input by name, or ``x`` for a single input: [samples, *shape]. Class indices [samples] are in `labels`, or in
    `arrays` as ``y``, unless an input is called ``y``.

    Raise CalibrationMissingError, CalibrationShapeError, CalibrationValueError or LabelError if the data do not fit the network.
    """
    shapes = {name: operation.shape for name, operation in graph.of_type(Input)}
    # Names of arrays by input; the arrays stay unread, because an .npz archive reads an array each time it is accessed.
    names = {name: name for name in arrays}
    if len(shapes) == 1 and "x" in names and next(iter(shapes)) not in names:
        names[next(iter(shapes))] = names.pop("x")
    missing = [n for n in shapes if n not in names]
    if missing:
        raise CalibrationMissingError(
            f"the sample data lack {', '.join(map(repr, missing))} and contain {', '.join(map(repr, names)) or 'nothing'}; give every "
            "input of the network by name, or as 'x' if there is only one: [samples, …]."
        )
    inputs = {name: _values(name, np.asarray(arrays[names[name]]), shape) for name, shape in shapes.items()}
    counts = {name: len(a) for name, a in inputs.items()}
    if len(set(counts.values())) > 1:
        given_counts = ", ".join(f"{c} samples of {n!r}" for n, c in counts.items())
        raise CalibrationShapeError(f"the sample data contain {given_counts}; give the same number of each.")
    if labels is None and "y" not in shapes:
        labels = arrays["y"] if "y" in names else None
    count = next(iter(counts.values()))
    class_indices = None if labels is None else _labels(graph, np.asarray(labels), count)
    samples = Samples(inputs, class_indices, f"{count} samples")
    if count <= MAX_SAMPLES:
        return samples
    index = np.linspace(0, count - 1, MAX_SAMPLES).astype(int)
    return samples.chosen(index, f"{MAX_SAMPLES} of {count:,} samples, at equal distances")


def split(samples: Samples) -> tuple[Samples, Samples]:
    """Return every second sample for balancing and the others for measuring: halves of sorted data could have different classes."""
    if len(samples) < 2:
        same = samples.chosen(slice(None), "the only sample")
        return same, same
    return samples.chosen(slice(0, None, 2), "samples 0, 2, 4, …"), samples.chosen(slice(1, None, 2), "samples 1, 3, 5, …")


def _values(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    if array.dtype.kind not in "biuf":
        raise CalibrationValueError(f"the sample data of {name!r} have the type {array.dtype}; give real numbers.")
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape or not len(array):
        needed = ", ".join(map(str, ("samples", *shape)))
        raise CalibrationShapeError(
            f"the sample data of {name!r} have the shape {list(array.shape)}; give [{needed}] with at least one sample."
        )
    finite = np.isfinite(array)
    if not finite.all():
        at = np.argwhere(~finite)
        raise CalibrationValueError(
            f"the sample data of {name!r} are {array[tuple(at[0])]} at index {at[0].tolist()}; {len(at)} of {array.size} values are not "
            "finite."
        )
    return array


def _labels(graph: Graph, labels: Array, count: int) -> Array:
    output, _ = next(graph.of_type(Output))
    classes = size(port_map(graph)[output, "in"].shape)
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise LabelError(
            f"the labels are {labels.dtype} of shape {list(labels.shape)}; give {count} integers, one per sample, or leave them out."
        )
    if count and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        wrong = int(np.argmax((labels < 0) | (labels >= classes)))
        raise LabelError(
            f"the label of sample {wrong} is {labels[wrong]}; {output!r} has {classes} values, so labels are between 0 and {classes - 1}."
        )
    return labels
