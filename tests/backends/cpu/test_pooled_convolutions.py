"""Convolutions read only by max pooling, and gradients of neurons near their thresholds after convolutions, against the reference."""

import numpy as np
import pytest
from cpu_projects import assert_same_training, data, opened
from hypothesis import given
from hypothesis import strategies as st
from indexed_nets import pooled

from snnc.backends.cpu.pooled import with_pooled_convolutions
from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import Population
from snnc.compiler.ir.step_operations import Convolve, NeuronStep
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.surrogates.library import parse_surrogate


@pytest.mark.representative("boxcar:0.2")
@pytest.mark.parametrize("surrogate", ["fast_sigmoid:25", "boxcar:0.2"])
def test_training_steps_equal_those_of_the_reference(surrogate):
    graph, given = pooled(np.random.default_rng(3)), parse_surrogate(surrogate)
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y", surrogate=given)
    fused, windows = with_pooled_convolutions(program)
    assert len(windows) == 4
    assert len(SequenceStorage(fused, windows).outputs_with_support) == 3 * ("boxcar" in surrogate)
    for density in (0.2, 0.9):
        with opened(program) as engine:
            assert_same_training(engine, program, updates=2, density=density)
    with opened(program) as engine:
        inputs, labels = data(program, 11, 5)
        whole = engine.train_batch(inputs, labels, 0.0), engine.gradients()
        engine.segment = 4
        assert engine.train_batch(inputs, labels, 0.0) == whole[0]
        for name, gradient in engine.gradients().items():
            np.testing.assert_allclose(gradient, whole[1][name], atol=1e-6 * np.abs(whole[1][name]).max())


def test_relays_that_someone_else_reads_stay():
    graph = pooled(np.random.default_rng(3))
    graph.add("watcher", Population(LIF(0.9), (18, 9, 8)))
    graph.connect("a from x", "watcher")
    graph.connect("watcher", graph.add("seen", type(graph.operation("y"))()))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y")
    fused, windows = with_pooled_convolutions(program)
    kept = [op for op in fused.forward if isinstance(op, Convolve) and op.connection not in windows]
    assert len(windows) == 3
    assert len(kept) == 2  # that of the watcher, and the plain one
    assert len([op for op in fused.forward if isinstance(op, NeuronStep)]) == len(fused.populations) == len(program.populations) - 3


@given(
    size=st.integers(1, 12),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    before=st.integers(0, 2),
    dilation=st.integers(1, 3),
    ceil=st.booleans(),
)
def test_what_windows_reach_is_what_their_taps_read(size, kernel, stride, before, dilation, ceil):
    windows = Windows(1, (size,), (kernel,), (stride,), ((before, 0),), (dilation,), ceil)
    read = [i * stride - before + j * dilation for i in range(windows.output[0]) for j in range(kernel)]
    inside = [place for place in read if 0 <= place < size]
    assert all(place < windows.reach[0] for place in inside)
    assert not inside or windows.reach[0] <= max(size, max(inside) + 1)
