"""Wrap data sets of other libraries: tonic's, and any PyTorch data set with indexed items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.backends.runtime.arrays import array_of
from snnc.compiler.ir.graph import Shape
from snnc.data.data_set import DataSet, Reader
from snnc.data.sample import Aer, Array, Sample
from snnc.errors import SampleError


@dataclass(frozen=True, eq=False)
class Foreign:
    """A data set of a different library; see :class:`snnc.data.data_set.SampleSource`."""

    data: Any
    sensor: Shape | None
    classes: int | None
    timed: bool

    def __len__(self) -> int:
        return len(self.data)

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """See :class:`snnc.data.data_set.SampleSource`."""

        def read(number: int) -> tuple[Sample, Any]:
            item = self.data[number]
            if not isinstance(item, tuple | list) or len(item) != 2:
                raise SampleError(f"item {number} of the {type(self.data).__name__} is a {type(item).__name__}; it must be a pair (x, y).")
            array, target = array_of(item[0], f"sample {number}"), array_of(item[1], f"the target of sample {number}")
            return (array if array.dtype.names is None else _events(array, self.sensor, number)), target

        yield read

    def __repr__(self) -> str:
        return type(self.data).__name__


def adapt(data: Any, *, sensor: tuple[int, int, int] | None = None, classes: int | None = None, timed: bool = True) -> DataSet:
    """Return a :class:`DataSet` over another library's data set, which has a length and items ``(x, y)``.

    Parameters
    ----------
    data
        The other data set. Its samples are arrays or tensors, or structured arrays as in tonic, with the fields ``t`` (microseconds), ``x``
        and, if the sensor has them, ``y`` and ``p``. Its items are read in the thread that prepares batches.
    sensor
        Width, height and number of polarities of events; defaults to the data set's ``sensor_size``, as in tonic.
    classes
        Number of classes; None if unknown.
    timed
        Whether the first axis of array samples is time.

    Raises
    ------
    SampleError
        The data set has no length, or no items accessible by index.
    """
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise SampleError(f"a {type(data).__name__} has no len() or no items by number; give a data set with both.")
    size = sensor if sensor is not None else getattr(data, "sensor_size", None)
    return DataSet(Foreign(data, None if size is None else tuple(int(n) for n in size), classes, timed))


def _events(array: Array, sensor: Shape | None, number: int) -> Aer:
    names = array.dtype.names or ()
    if sensor is None or len(sensor) != 3 or not {"t", "x"} <= set(names):
        raise SampleError(f"sample {number} has the fields {', '.join(names)} and the sensor is {sensor}; give t, x and sensor=(w, h, p).")
    width, height, polarities = sensor
    x = array["x"].astype(np.int64)
    y = array["y"].astype(np.int64) if height > 1 and "y" in names else np.zeros_like(x)
    polarity = array["p"].astype(np.int64) if polarities > 1 and "p" in names else np.zeros_like(x)
    for name, values, bound in (("x", x, width), ("y", y, height), ("p", polarity, polarities)):
        if len(values) and (values.min() < 0 or values.max() >= bound):
            raise SampleError(f"sample {number} has an event with {name} = {values.max()}; the sensor has {bound}.")
    shape = (width,) if height == 1 else (height, width)
    units = (polarity * height + y) * width + x
    return Aer(array["t"].astype(np.int64), units, (polarities, *shape) if polarities > 1 else shape, polar=polarities > 1)
