"""The emitted C++ program, built for this processor, compared with the reference."""

import numpy as np
import pytest
from cpu_projects import (
    assert_initial_values_are_forgotten,
    assert_runs_and_trains_like_the_reference,
    assert_same_records,
    assert_same_training,
    data,
    opened,
    wide,
)
from indexed_nets import choosing, convolutional, shaping, sparse_recurrent
from nets import NETS, dense, of_model
from poplar_projects import hostile, several_inputs

import snnc
from snnc.backends.cpu.collapse import collapsed
from snnc.backends.native.library import NativeError
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import ALIF, LI, LIF, SLSTM, Alpha, CubaLIF
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import parse_surrogate

LOSSES = ("ce_mean_membrane", "ce_rate", "ce_count", "mse_count:0.8,0.1", "ce_max_membrane")
OPTIMIZERS = (Adam(1e-2), SGD(1e-2, 0.9), SGD(1e-2))
CASES = {make.__name__: make for make in (*NETS, several_inputs, convolutional, sparse_recurrent, shaping, choosing)}
CASES |= {model.name: lambda random, model=model: of_model(random, model) for model in (ALIF(), CubaLIF(0.8, 0.9), Alpha(), SLSTM(0.1))}


def program_of(name, **options):
    at = list(CASES).index(name)
    graph = CASES[name](np.random.default_rng(3))
    output = {"loss_output": "y"} if len([n for n in graph.names if type(graph.operation(n)).__name__ == "Output"]) > 1 else {}
    if name == "behind_linear":
        output = {"loss_output": "readout"}
    return lower(graph, loss=parse_loss(LOSSES[at % 5]), optimizer=OPTIMIZERS[at % 3], **output, **options)


@pytest.mark.representative("several_inputs", "convolutional", "sparse_recurrent", "choosing", "SLSTM")
@pytest.mark.parametrize("name", CASES)
def test_records_and_training_steps_equal_those_of_the_reference(name):
    program = program_of(name)
    with opened(program) as engine:
        assert_runs_and_trains_like_the_reference(engine, program)


def test_names_that_would_be_code_are_data_and_initial_values_are_forgotten_afterwards():
    program = lower(hostile(np.random.default_rng(3)))
    with opened(program) as engine:
        assert_initial_values_are_forgotten(engine, program)


SECOND_ORDER = neuron(
    "second order",
    states={"a": 0.0, "v": 0.25},
    params={"alpha": 0.7, "beta": 0.9},
    equations="a = alpha*a + i\nv = beta*v + a / 2",
    output="v",
)
GATED = neuron(
    "gated",
    states={"v": 0.0},
    params={"beta": 0.9},
    equations="u = beta*v + i\ny = min(max(sign(u - 0.2), 0), 1)\nv = u*(1 - y)",
    output="y",
)
WINDOWS = {
    "open": parse_surrogate("fast_sigmoid:25").windowed(-0.3),
    "boxcar": parse_surrogate("boxcar:0.5"),
    "none": parse_surrogate("boxcar:1,0"),
}


def test_an_output_may_be_what_the_backward_pass_reads():
    program = lower(of_model(np.random.default_rng(3), GATED), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2))
    kernel = program.populations[0].kernel
    assert set(kernel.saved) & set(kernel.outputs)
    with opened(program) as engine:
        assert_same_training(engine, program, updates=3)


@pytest.mark.representative("boxcar", "none")
@pytest.mark.parametrize("surrogate", WINDOWS)
def test_gradients_of_neurons_near_their_thresholds_equal_those_of_the_reference(surrogate):
    graph = wide(np.random.default_rng(3), LI(0.9))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2, 0.9), surrogate=WINDOWS[surrogate])
    assert len(SequenceStorage(program).outputs_with_support) == 2
    for batch in (3, 20):
        with opened(program, threads=1) as engine:
            assert_same_training(engine, program, updates=2, batch=batch)


def test_weights_that_no_cache_holds_are_added_in_the_same_order():
    """A matrix of more than a MiB is passed once for all samples of a worker, if it has some; else rows are taken sample by sample."""
    graph = dense(np.random.default_rng(3), 680, 410, kind="spikes")
    program = lower(graph, loss=parse_loss("ce_max_membrane"), optimizer=SGD(1e-2))
    inputs, _ = data(program, steps=3, batch=9, density=0.05)
    reference = ReferenceEngine(program).forward(inputs, {})
    found = []
    for threads in (1, 2):
        with opened(program, threads) as engine:
            found.append(engine.forward(inputs, {}))
    for name, record in reference.items():
        np.testing.assert_allclose(found[0][name], record, atol=1e-4, rtol=1e-5)
        np.testing.assert_array_equal(found[0][name], found[1][name])
        assert record.any()


@pytest.mark.representative("second order")
@pytest.mark.parametrize(("readout", "delay"), [(LI(0.9), 2), (SECOND_ORDER, 0)], ids=["delay", "second order"])
def test_readouts_of_which_only_the_mean_is_read_train_as_in_the_reference(readout, delay):
    program = lower(wide(np.random.default_rng(3), readout, delay), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2, 0.9))
    assert collapsed(SequenceStorage(program)) is not None
    with opened(program) as engine:
        assert_same_training(engine, program, updates=3)
        with pytest.raises(NativeError, match="run the sequence"):
            engine.session.get(program.outputs[0].record)
        inputs, _ = data(program)
        reference = ReferenceEngine(program)
        reference.set_parameters(engine.get_parameters())
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))


@pytest.mark.parametrize("loss", ["ce_max_membrane", "ce_rate"])
def test_other_readouts_run_step_by_step(loss):
    assert collapsed(SequenceStorage(lower(wide(np.random.default_rng(3), LI(0.9)), loss=parse_loss(loss), optimizer=SGD(1e-2)))) is None
    spiking = lower(wide(np.random.default_rng(3), LIF(0.9)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2))
    assert collapsed(SequenceStorage(spiking)) is None


def test_a_neuron_that_is_undefined_at_zero_trains_with_a_single_sample_and_a_clipped_norm():
    """The five neurons occupy a vector of sixteen, whose rest has currents of 0."""
    random = np.random.default_rng(2)
    net = snnc.Network("inverse")
    layers = [snnc.LI(0.9), neuron("Inverse", equations="y = 1 / i", output="y"), snnc.LI()]
    before = net.input(4, kind="values")
    for width, model in zip((6, 5, 3), layers, strict=True):
        layer = net.population(width, model)
        net.connect(before, layer, snnc.Dense(bias=False, init=random.random((width, before.shape[0]))))
        before = layer
    x, y = random.random((4, 7, 4)), np.arange(4) % 3
    found = []
    for target in ("cpu", "reference"):
        with snnc.compile(net, target, loss="ce_mean_membrane", optimizer="sgd:0.1,clip_norm=0.1") as session:
            session.fit(x, y, batch=1, shuffle=False)
            found.append(session.state_dict())
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, atol=1e-5, err_msg=name)
