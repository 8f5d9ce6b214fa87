"""Dropped spikes: one definition, compared with PyTorch's autograd, and the same spikes on every target."""

import cpu_projects
import numpy as np
import pytest
import snntorch
import snntorch.functional
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from limited_nets import BATCH, NETS, STEPS, events, program_of, same_training
from nets import recurrent
from option_cells import MACHINES
from poplar_projects import machine
from torch_spikes import fast_sigmoid_spike
from windowed_nets import Windowed

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import SpikeLimitError
from snnc.compiler.lowering.spike_limits import SpikeLimit, choice_key, limited_sources, scores, sent
from snnc.compiler.neurons.surrogates.library import fast_sigmoid


def step_by_step(program, x, target, limit):
    """Loss and gradients of :func:`nets.dense` by snnTorch: what is dropped is a constant."""
    spike = fast_sigmoid_spike()
    layers = {"fc1": torch.nn.Linear(6, 8), "fc2": torch.nn.Linear(8, 4)}
    values = {p.label: torch.tensor(p.value) for p in program.parameters.values()}
    for name, layer in layers.items():
        layer.load_state_dict({part: values[f"{name}.{part}"] for part in ("weight", "bias")})
    first, second = snntorch.Leaky(beta=0.9, spike_grad=spike), snntorch.Leaky(beta=0.8, spike_grad=spike)

    def limited(spikes, name, t):
        left = torch.tensor(sent(spikes.detach().numpy(), limit.capacity, choice_key(limit, name, 0), t))
        return spikes + (left - spikes).detach()

    m1, m2, out = first.init_leaky(), second.init_leaky(), []
    for t, spikes in enumerate(torch.tensor(x)):
        s, m1 = first(layers["fc1"](limited(spikes, "x0_in", t)), m1)
        s, m2 = second(layers["fc2"](limited(s, "p0_o0", t)), m2)
        out.append(s)
    loss = snntorch.functional.ce_count_loss()(torch.stack(out), torch.tensor(target))
    loss.backward()
    return loss.item(), {
        f"{name}.{part}": getattr(layer, part).grad.numpy() for name, layer in layers.items() for part in ("weight", "bias")
    }


@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_gradients_are_those_of_autograd_with_a_constant_choice(policy, capacity):
    limit = SpikeLimit(capacity, policy, seed=7)
    program = program_of(events, limit)
    random = np.random.default_rng(5)
    x = (random.random((STEPS, BATCH, 6)) < 0.6).astype(np.float32)
    target = random.integers(0, 4, BATCH)
    engine = ReferenceEngine(program)
    loss, found = engine.loss_and_gradients({"x0": x}, target)
    wanted, gradients = step_by_step(program, x, target, limit)
    assert loss == pytest.approx(wanted, rel=1e-5)
    for name, gradient in found.items():
        right = gradients[program.parameters[name].label]
        assert np.linalg.norm(gradient - right) <= 1e-5 * np.linalg.norm(right) + 1e-9, name
    exact, _ = ReferenceEngine(program_of(events)).loss_and_gradients({"x0": x}, target)
    assert abs(loss - exact) > 1e-5, "something was dropped"
    assert engine.counters()["dropped_spikes"] > 0


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31), width=st.integers(1, 40), capacity=st.integers(1, 50), key=st.sampled_from([-1.0, 0.0, 5.0, 2.0**24 - 1])
)
def test_what_is_sent_is_part_of_what_fired(seed, width, capacity, key):
    spikes = (np.random.default_rng(seed).random((4, width)) < 0.5).astype(np.float32)
    found = sent(spikes, capacity, key, 3)
    assert (found <= spikes).all()
    np.testing.assert_array_equal(found.sum(axis=1), np.minimum(spikes.sum(axis=1), capacity))
    if capacity >= width:
        np.testing.assert_array_equal(found, spikes)
    elif key < 0:
        for row, whole in zip(found, spikes, strict=True):
            np.testing.assert_array_equal(np.flatnonzero(row), np.flatnonzero(whole)[:capacity])


def test_a_random_choice_keeps_every_spike_equally_often():
    width, capacity, draws = 12, 5, 4000
    spikes = np.zeros((1, 40), np.float32)
    spikes[0, ::3][:width] = 1
    counts = sum(
        sent(spikes, capacity, choice_key(SpikeLimit(capacity, "random", seed), "p0_o0", update), step)[0]
        for seed in range(2)
        for update in range(draws // 20)
        for step in range(10)
    )[::3][:width]
    # Standard deviations of the mean of a binomial; the largest of 12 lies beyond 4 in one of 1,300 cases.
    error = np.sqrt(draws * capacity / width * (1 - capacity / width))
    assert counts.sum() == draws * capacity
    assert np.abs(counts - draws * capacity / width).max() < 4 * error


def test_scores_are_the_same_with_any_version_of_numpy():
    assert scores(5, 3, np.arange(4)).tolist() == [1655493740, 2441505064, 3905391513, 3713242806]


@pytest.mark.representative("recurrent-*", "choosing-random")
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("name", NETS)
def test_a_program_for_the_processor_drops_the_same_spikes(name, policy):
    program = program_of(NETS[name], SpikeLimit(2, policy, seed=3))
    with cpu_projects.opened(program) as engine:
        assert same_training(engine, program) > 50


@pytest.mark.parametrize("window", [None, (-0.3, np.inf)])
def test_a_capacity_as_wide_as_its_source_drops_nothing(window):
    inputs, labels = cpu_projects.data(program_of(recurrent), STEPS, BATCH, density=0.6)
    results = []
    for limit in (None, SpikeLimit(1000), SpikeLimit(1000, "random")):
        program = program_of(recurrent, limit, window)
        assert (limit is None) == (not limited_sources(program))
        results.append(ReferenceEngine(program).loss_and_gradients(inputs, labels))
    # The largest that is a value of a run: all fit, too.
    program = program_of(recurrent, SpikeLimit(1), window)
    engine = ReferenceEngine(program)
    widths = {found.capacity: program.buffers[b].shape[0] for b, found in limited_sources(program).items()}
    engine.set_parameters({name: np.float32(width) for name, width in widths.items()})
    results.append(engine.loss_and_gradients(inputs, labels))
    assert engine.counters()["dropped_spikes"] == 0
    for loss, gradients in results[1:]:
        assert loss == results[0][0]
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(gradient, results[0][1][name])


@pytest.mark.representative("recurrent-*")
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("name", ["recurrent", "convolutional"])
def test_a_program_for_the_processor_returns_no_gradient_to_dropped_spikes_of_a_window(name, policy):
    program = program_of(NETS[name], SpikeLimit(2, policy, seed=3), (-0.4, np.inf))
    with cpu_projects.opened(program) as engine:
        assert same_training(engine, program) > 50
    free = program_of(NETS[name], SpikeLimit(2, policy, seed=3), (-100, np.inf))
    inputs, labels = cpu_projects.data(program, STEPS, BATCH, density=0.6)
    windowed, dense_ = ReferenceEngine(program), ReferenceEngine(free)
    dense_.set_parameters({n: np.float32(-0.4) for n in free.parameters if n.endswith("_window_low")})
    gradients = [engine.loss_and_gradients(inputs, labels)[1].values() for engine in (windowed, dense_)]
    changed = [np.abs(a - b).max() for a, b in zip(*gradients, strict=True)]
    assert max(changed) > 0


def test_threads_parts_and_segments_drop_the_same_spikes():
    program = program_of(recurrent, SpikeLimit(2, "random", seed=3))
    inputs, labels = cpu_projects.data(program, 30, 8, density=0.6)
    wanted = ReferenceEngine(program)
    loss = wanted.train_batch(inputs, labels, 1e-2)
    for options in ({"threads": 3}, {"memory": 160_000}):
        with cpu_projects.opened(program, **{"threads": 1, **options}) as engine:
            assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(loss, rel=1e-5)
            assert engine.counters() == wanted.counters()
            assert ("memory" in options) == (engine._sizes.get("segment", 0) not in (0, 30))
    parts = ReferenceEngine(program)
    assert parts.train_parts(cpu_projects.parts_of(inputs, labels, 3), 8, 1e-2) == pytest.approx(loss, rel=1e-5)
    assert parts.counters() == wanted.counters()


def machine_case(make, capacity, window=None, gradients="auto", **options):
    found = Windowed(
        make(np.random.default_rng(3)),
        machine(4),
        STEPS,
        BATCH,
        window,
        fast_sigmoid(25.0),
        gradients=gradients,
        capacity=capacity,
        mode="drop",
        **options,
    )
    return found, program_of(make, SpikeLimit(capacity), window)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "window", "gradients"),
    [("recurrent", None, "dense"), ("recurrent", (-0.4, np.inf), "windowed"), ("sparse_recurrent", None, "dense")],
)
def test_a_machine_drops_the_same_spikes(name, window, gradients):
    case, program = machine_case(NETS[name], 2, window, gradients)
    engine = case.open()
    assert same_training(engine, program) > 50
    engine.close()


SESSIONS = [
    (-100.0, False, "lowest"),
    (-0.4, False, "random"),
    *(pytest.param(*case, marks=pytest.mark.wide) for case in ((None, False, "random"), (-0.4, False, "lowest"), (-0.4, True, "random"))),
]


@pytest.mark.representative("-0.4-False-random")
@pytest.mark.parametrize(("window", "calibrated", "policy"), SESSIONS)
def test_sessions_of_a_machine_and_of_the_reference_train_alike(tmp_path, window, calibrated, policy):
    (tmp_path / "small.toml").write_text(MACHINES["one.toml"])
    net = snnc.Sequential(6, snnc.Dense(9), snnc.LIF(), snnc.Dense(8), snnc.LIF(), snnc.Dense(3), snnc.LI())
    x, y = (np.random.default_rng(0).random((8, 5, 6)) < 0.6).astype(np.float32), np.arange(8) % 3
    options = {"loss": "mean membrane", "optimizer": snnc.Adam(1e-2), "steps": 5, "batch": 4, "mode": "drop", "capacity": 2}
    options |= {"drop": policy, "seed": 4} | ({} if window is None else {"gradient_window": window})
    schedule = {"gradient_window": snnc.schedules.Exponential(-100, -0.1)} if window == -100 else {}
    found = {}
    for target in ("reference", str(tmp_path / "small.toml")):
        more = {"calibrate": x[:4].swapaxes(0, 1)} if calibrated and target != "reference" else {}
        with snnc.compile(net, target, **options, **more) as session:
            losses = session.fit(x, y, epochs=2, shuffle=False, **schedule).batch_losses
            found[target] = np.ravel(losses), session.counters()["dropped_spikes"]
            with pytest.raises(SpikeLimitError, match="from 1 to the compiled capacity, 2"):
                session.capacity = 3
    reference, machine_ = found.values()
    np.testing.assert_allclose(machine_[0], reference[0], rtol=1e-5)
    assert machine_[1] == reference[1] > 0
