"""The rates of the predictions, applied to the kernels of a prototype whose times were measured on one H100 on 2026-11-23.

The prototype divides the work in other ways than the program, so its kernels are described here: W1 (700 inputs, 256 recurrent neurons, 100
steps) and W2 (two recurrent layers of 1,024 neurons, 250 steps, both in one kernel).
"""

import math

import pytest

from snnc.backends.cuda.schedule.cores import ARRIVAL, BYTE, CLOCK, COUNT, MEMORY_BYTES, NEURONS
from snnc.backends.cuda.schedule.prediction import H100

INPUTS = 700
W1 = ((256, 256), (INPUTS, 256))
W2 = ((1024, 1024), (1024, 1024), (1024, 1024), (INPUTS, 1024))
"""Sizes of the weights that have a gradient, without the readout."""
READOUT = 20


def close(predicted, microseconds):
    return microseconds / 1.5 <= 1e6 * predicted <= 1.5 * microseconds


def input_currents(rows, neurons):
    """A block splits 64 columns of 768 weights, then multiplies every so many tiles of 64 rows, four at a time."""
    columns = neurons // 64
    own = math.ceil(rows / 64 / (H100.processors // columns))
    return H100.launch + 64 * 768 / H100.split + own * 64 * 64 * 768 * 2 / H100.group_product


def gradients(rows, weights, splits):
    """All gradients in one launch: a block multiplies 128 x 256 numbers over a part of the rows."""
    blocks = splits * sum(math.ceil(inputs / 128) * math.ceil(outputs / 256) for inputs, outputs in weights)
    assert blocks <= H100.processors
    depth = 64 * math.ceil(rows / 64 / splits)
    written = 4 * splits * sum(inputs * outputs for inputs, outputs in weights)
    return H100.launch + depth * 128 * 256 * 2 / H100.group_product + H100.tile + written / H100.memory


def update(weights, splits):
    """Adam: weights and moments are read and written, the parts of gradients read."""
    neurons = weights[0][1]
    numbers = sum(inputs * outputs for inputs, outputs in weights)
    return H100.launch + ((24 + 4 * splits) * numbers + 28 * neurons * READOUT) / H100.memory


def step_of_both_layers(neurons, blocks, *, back):
    """Clusters share the neurons of W2, the blocks of a cluster the inputs: a block multiplies 64 samples and sends sums to the others."""
    inputs = 1024 // blocks
    past = 64 * inputs * (4 if back else 2)
    products = 3 * 64 * neurons * inputs * (3 if back else 2) / (H100.group_product / CLOCK)
    sums = 2 * 64 * neurons * 4 * (blocks - 1) / blocks
    always, each = NEURONS[back]
    units = neurons * 64 / blocks / 128
    return (COUNT + past / MEMORY_BYTES + products + ARRIVAL + BYTE * sums + always + each * units) / CLOCK


@pytest.mark.parametrize(
    ("predicted", "microseconds"),
    [
        (input_currents(6400, 256), 23),
        (input_currents(102400, 256), 111),
        (input_currents(16000, 1024), 78),
        (input_currents(1280, 1024), 29.2),
        (gradients(6400, W1, 16), 21),
        (gradients(102400, W1, 16), 169),
        (gradients(16000, W2, 1), 310),
        (gradients(1280, W2, 1), 34.8),
        (update(W1, 16), 8.5),
        (update(W2, 1), 37),
    ],
    ids=[
        *(f"input currents of {of}" for of in ("W1", "W1 with 1024 samples", "W2", "W2 with 20 steps")),
        *(f"gradients of {of}" for of in ("W1", "W1 with 1024 samples", "W2", "W2 with 20 steps")),
        *(f"update of {of}" for of in ("W1", "W2")),
    ],
)
def test_products_and_updates_are_predicted_within_half_of_what_they_took(predicted, microseconds):
    assert close(predicted, microseconds)


@pytest.mark.parametrize(
    ("neurons", "blocks", "back", "microseconds"),
    [(72, 8, False, 4.01), (40, 4, False, 3.655), (72, 8, True, 4.497), (72, 8, True, 4.707)],
)
def test_steps_of_two_recurrent_layers_at_once_are_predicted_within_half_of_what_they_took(neurons, blocks, back, microseconds):
    """From rates that were measured alone or fitted to W1: none to these kernels."""
    assert close(step_of_both_layers(neurons, blocks, back=back), microseconds)


def test_multiplications_reach_what_two_lengths_of_the_same_products_took():
    """Weight gradients and input currents of W2 at 250 and 20 steps: their difference is free of launches, first copies and results."""
    longer = (250 - 20) * 64
    assert longer * 128 * 256 * 2 / (309.6e-6 - 34.6e-6) == pytest.approx(H100.group_product, rel=0.01)
    currents = longer * 1024 * 768 * 2 / 128 / (78.2e-6 - 29.2e-6)
    assert currents == pytest.approx(H100.group_product, rel=0.1)
