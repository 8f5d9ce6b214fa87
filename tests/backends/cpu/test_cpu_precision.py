"""Histories and dense weights in bfloat16: equal to the reference with the same rounding, close to the one without."""

import numpy as np
import pytest
from bfloat16 import rounded
from cpu_projects import assert_same_records, data, opened, wide
from hypothesis import given
from hypothesis import strategies as st
from indexed_nets import convolutional
from nets import delayed, dense, learnable, of_model, recurrent

import snnc
from snnc.backends.cpu.network import network_context
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.reference import engine as engine_module
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.reference.forward import population_of
from snnc.compiler.ir.graph import Population
from snnc.compiler.ir.step_operations import DenseInputGradient, NeuronAdjoint
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.expression import Number, Symbol
from snnc.compiler.neurons.library import ALIF, LI, LIF, SLSTM
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.rounded_values import rounded_values
from snnc.errors import OptionValueError

FEW_BITS = 2.0**-8
"""Half of what two neighbours in bfloat16 differ by, next to the larger: 8 significant bits."""


def windowed(random):
    return wide(random, LI(0.9))


def gated(random):
    return of_model(random, SLSTM(0.1))


def program_of(make, loss="ce_max_membrane"):
    output = {"loss_output": "y"} if make in (recurrent, delayed, learnable) else {}
    window = {"gradient_window": (-0.3, float("inf"))} if make is windowed else {}
    graph = make(np.random.default_rng(3))
    return lower(graph, loss=parse_loss(loss), optimizer=SGD(1e-2), **output, **window)


def dense_weights(program):
    return {c.weight for c in program.connections if c.kind == "dense"}


def with_rounded_weights(program):
    """The reference with the weights that a program in bfloat16 reads."""
    reference = ReferenceEngine(program)
    values = reference.get_parameters()
    reference.set_parameters(values | {n: rounded(values[n]) for n in dense_weights(program)})
    return reference


@pytest.fixture
def rounding_reference(monkeypatch):
    """The reference with rounded histories, and rounded factors where something comes back through a dense weight."""
    usual = engine_module.run_backward

    def dense_input(op, memory, t):
        if t >= op.source.delay:
            memory[f"d_{op.source.buffer}"][t - op.source.delay] += rounded(memory[f"d_{op.target}"]) @ memory[op.weight]

    def neuron_adjoint(op, memory, t):
        kernel = population_of(memory, op.population).kernel
        parameters = dict(zip(kernel.parameters, op.parameters, strict=True))
        names = dict(zip((*kernel.states, *kernel.saved), (*op.states, *op.saved), strict=True))
        whole = {}
        for canonical, subtracted in rounded_values(kernel).items():
            name = names[canonical]
            whole[name] = memory[name].copy()
            offset = np.float32(subtracted.value) if isinstance(subtracted, Number) else memory[parameters[subtracted.name]]
            memory[name][...] = rounded(memory[name] - offset) + offset
        usual(op, memory, t)
        for name, values in whole.items():
            memory[name][...] = values

    def rounding(op, memory, t):
        {DenseInputGradient: dense_input, NeuronAdjoint: neuron_adjoint}.get(type(op), usual)(op, memory, t)

    monkeypatch.setattr(engine_module, "run_backward", rounding)


def errors(found, reference):
    """Relative errors of gradients; those that are small beside the others are compared with the others."""
    gradients = reference.gradients()
    whole = np.sqrt(sum(float(np.square(g).sum()) for g in gradients.values()))
    return {n: np.linalg.norm(found[n] - g) / max(np.linalg.norm(g), 0.05 * whole) for n, g in gradients.items()}


@pytest.mark.parametrize("make", [recurrent, pytest.param(delayed, marks=pytest.mark.wide)])
def test_training_steps_are_those_of_the_reference_that_rounds_alike(make, rounding_reference):
    program = program_of(make)
    inputs, labels = data(program, 9, 11)
    reference, changed = with_rounded_weights(program), {}
    loss = reference.train_batch(inputs, labels, 0.0)
    with opened(program, precision="bfloat16") as engine:
        assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
        found = errors(engine.gradients(), reference)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        engine.train_batch(inputs, labels, 1e-4)
        changed = engine.get_parameters()
    # A delta within rounding of a tie may round either way: one of 256 parts of it.
    assert max(found.values()) < 3e-4
    for name in dense_weights(program):
        # Small updates are kept: what the optimiser changes is float32.
        np.testing.assert_allclose(changed[name], program.parameters[name].value - 1e-4 * reference.gradients()[name], atol=1e-6)


MORE = [pytest.param(make, marks=pytest.mark.wide) for make in (learnable, delayed, convolutional, gated)]


@pytest.mark.parametrize("make", [recurrent, windowed, *MORE])
def test_gradients_are_off_by_some_of_the_last_of_eight_bits(make):
    """A factor of an adjoint is a delta (half of FEW_BITS), a weight (none: they are the rounded ones) or a slope (FEW_BITS at most)."""
    program = program_of(make)
    inputs, labels = data(program, 9, 11)
    reference = with_rounded_weights(program)
    loss = reference.train_batch(inputs, labels, 0.0)
    with opened(program, precision="bfloat16") as engine:
        assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
        found = errors(engine.gradients(), reference)
    assert max(found.values()) < 2 * FEW_BITS, found
    assert max(found.values()) > 1e-6


def test_checkpoints_find_the_same_histories_in_half_the_memory():
    program = program_of(recurrent)
    inputs, labels = data(program, 11, 5)
    found = []
    with opened(program, precision="bfloat16") as engine:
        wide = network_context(SequenceStorage(program), {}, {"steps": 1, "batch": 1})[2]
        assert engine.description["memory"]["rows"]["segment"] == wide.rows["segment"] / 2
        for segment in (0, 4):
            engine.segment = segment
            loss = engine.train_batch(inputs, labels, 0.0)
            found.append((loss, engine.gradients()))
    assert found[0][0] == found[1][0]
    for name, gradient in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name], gradient, atol=1e-6 * np.abs(gradient).max())


def kernel_of(model):
    graph = of_model(np.random.default_rng(3), model)
    name = next(n for n in graph.names if isinstance(graph.operation(n), Population) and graph.operation(n).model is model)
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2))
    return next(p.kernel for p in program.populations if p.label == name)


COUNTING = neuron(
    "counting",
    states={"v": 0.0, "n": 0.0},
    params={"beta": 0.9},
    equations="q = gt(n * n, 0.5)\nv = (1 - q) * beta * v + i\ns = spike(v - 1)\nn = 0.6 * n + 3 * detach(s)",
    output="s",
)


def test_what_decides_something_is_kept_as_a_distance_from_its_threshold_or_whole():
    lif = kernel_of(LIF(0.9))
    assert [type(offset) for offset in rounded_values(lif).values()] == [Symbol] == [Symbol for _ in lif.history]
    assert rounded_values(kernel_of(ALIF())) == {}
    counting = kernel_of(COUNTING)
    whole = {counting.labels[name] for name in counting.history if name not in rounded_values(counting)}
    assert "n" in whole
    assert "v" not in whole


NUMBERS = st.floats(min_value=2.0**-20, max_value=2.0**20, width=32) | st.floats(min_value=-(2.0**20), max_value=-(2.0**-20), width=32)


@given(value=NUMBERS, threshold=NUMBERS, near=st.integers(-3, 3))
def test_the_distance_from_a_threshold_keeps_its_side(value, threshold, near):
    threshold = np.float32(threshold)
    beside = (threshold.view(np.uint32) + np.uint32(near & 0xFFFFFFFF)).view(np.float32) if near >= 0 else threshold - np.spacing(threshold)
    for x in (np.float32(value), np.float32(beside)):
        kept = rounded(np.array([x - threshold]))[0]
        assert np.sign(np.float32(kept + threshold) - threshold) == np.sign(x - threshold)


def test_targets_that_do_not_round_refuse():
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    with pytest.raises(OptionValueError, match="computes in float32"):
        snnc.compile(net, target="reference", precision="bfloat16")
    with pytest.raises(OptionValueError, match="computes in float32"):
        snnc.compile(net, target="gc200", precision="bfloat16")
    with pytest.raises(OptionValueError, match="one of float32, tf32, bfloat16, float16"):
        snnc.compile(net, target="cpu", precision="float8")


@pytest.mark.representative("112")
@pytest.mark.parametrize("size", [9, 100, 112, 200])
def test_layers_of_any_width_read_the_rounded_weights(size):
    """Rows come in parts that registers hold: of 112 numbers, 7 of 8 vectors in two of AVX2's."""
    random = np.random.default_rng(0)
    program = lower(dense(random, 20, size, readout=LI(0.9), kind="spikes"))
    inputs, _ = data(program)
    with opened(program, precision="bfloat16") as engine:
        found = engine.forward(inputs, {})
    assert_same_records(found, with_rounded_weights(program).forward(inputs, {}))
