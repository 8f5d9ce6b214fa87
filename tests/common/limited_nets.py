"""Networks whose sources drop spikes, and trainings in which an engine must match the reference: losses, weights, counts."""

from itertools import pairwise

import cpu_projects
import numpy as np
import pytest
from indexed_nets import choosing, convolutional, sparse_recurrent
from nets import dense, feedback, recurrent
from poplar_projects import several_inputs

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.lowering.window_values import is_run_value
from snnc.compiler.neurons.surrogates.library import fast_sigmoid

STEPS, BATCH = 9, 5
NETS = {make.__name__: make for make in (recurrent, several_inputs, convolutional, sparse_recurrent, feedback, choosing)}


def events(random):
    return dense(random, kind="spikes")


def strokes():
    """Return four layers of leaky integrate-and-fire neurons that all fire from the start."""
    net = snnc.Network("strokes", seed=2)
    layers = (("a", 20), ("b", 16), ("c", 12), ("y", 4))
    sources = [net.input(24), *(net.population(neurons, snnc.LIF(beta=0.9), name=name) for name, neurons in layers)]
    for source, target in pairwise(sources):
        net.connect(source, target, snnc.Dense(init=snnc.Normal(std=0.6)))
    return net


def program_of(make, limit=None, window=None, optimizer=None):
    return lower(
        make(np.random.default_rng(3)),
        loss=parse_loss("ce_count" if make is events else "ce_mean_membrane"),
        loss_output=None if make is several_inputs else "y",
        optimizer=optimizer or SGD(1e-2),
        surrogate=fast_sigmoid(25.0),
        gradient_window=window,
        limit=limit,
    )


def same_training(engine, program, updates=3, tolerance=1e-5, steps=STEPS, batch=BATCH):
    """Train an engine and the reference; return the number of spikes that both dropped."""
    reference = ReferenceEngine(program)
    for seed in range(updates):
        inputs, labels = cpu_projects.data(program, steps, batch, seed, density=0.6)
        loss, wanted = engine.train_batch(inputs, labels, 1e-2), reference.train_batch(inputs, labels, 1e-2)
        assert loss == pytest.approx(wanted, rel=tolerance)
    weights = {name: value for name, value in reference.get_parameters().items() if not is_run_value(name)}
    for name, value in weights.items():
        np.testing.assert_allclose(engine.get_parameters()[name], value, atol=2e-5, rtol=1e-4, err_msg=name)
    dropped = reference.counters()["dropped_spikes"]
    assert engine.counters()["dropped_spikes"] == dropped
    return dropped
