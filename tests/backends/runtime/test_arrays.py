"""Arrays in a file's layout become sequences [T, B, *shape] and return to that layout."""

import itertools

import numpy as np
import pytest

from snnc.backends.runtime.arrays import from_sequence, to_sequence
from snnc.compiler.ir.graph import FileLayout
from snnc.compiler.ir.step_operations import BufferValue
from snnc.compiler.ir.step_program import InputInfo, OutputInfo

SHAPE = (5, 4)
LAYOUTS = [
    FileLayout(time, batch)
    for time, batch in itertools.product((None, 0, 1, 2, 3), repeat=2)
    if (time is None or time != batch)
    and all(axis is None or axis < 2 + (time is not None) + (batch is not None) for axis in (time, batch))
]


def output(layout):
    return OutputInfo("y", "y", BufferValue("p0_o0", 0), "p0_o0", SHAPE, "all", layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: f"{one.time_axis}-{one.batch_axis}")
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("samples", [1, 2])
def test_a_sequence_survives_the_layout_of_a_file(layout, steps, samples):
    samples = 1 if layout.batch_axis is None else samples
    record = np.random.default_rng(0).random((steps, samples, *SHAPE))
    found = from_sequence(record, output(layout))
    np.testing.assert_array_equal(to_sequence(found, InputInfo("x", "x", SHAPE, "values", layout)), record)


@pytest.mark.parametrize("time", [None, 0, 1, 2])
def test_several_samples_of_a_layout_without_a_batch_axis_get_one_after_the_time_axis(time):
    record = np.random.default_rng(0).random((3, 2, *SHAPE))
    found = from_sequence(record, output(FileLayout(time, None)))
    at = time or 0
    np.testing.assert_array_equal(np.moveaxis(found, (at, at + 1), (0, 1)), record)
