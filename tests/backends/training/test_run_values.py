"""Gradient windows of a session: every target trains like a program that was compiled with the same window."""

import math
from contextlib import contextmanager

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from nets import recurrent
from poplar_projects import machine
from test_parts_on_tiles import feed_forward
from windowed_nets import Windowed

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.engine_of_parts import EngineOfParts
from snnc.backends.runtime.errors import GradientWindowError, NoStepwiseError, ResumeError, SpikeLimitError
from snnc.backends.session import BackendSession
from snnc.backends.training.saving.checkpoint import Checkpoints
from snnc.backends.training.updates.run_values import GradientWindow
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import fast_sigmoid
from snnc.compiler.tiles.partition import Partition, prepare
from snnc.schedules import Exponential, Linear

STEPS, BATCH = 8, 4


def program_of(window):
    return lower(
        recurrent(np.random.default_rng(3)),
        loss=parse_loss("ce_mean_membrane"),
        loss_output="y",
        optimizer=SGD(1e-2),
        surrogate=fast_sigmoid(5.0),
        gradient_window=window,
        steps=STEPS,
    )


@contextmanager
def emulated(window):
    found = Windowed(recurrent(np.random.default_rng(3)), machine(4), STEPS, BATCH, window, fast_sigmoid(5.0), gradients="auto")
    engine = found.open()
    yield engine
    engine.close()


@contextmanager
def reference(window):
    yield ReferenceEngine(program_of(window))


OPENED = {
    "reference": reference,
    "cpu": lambda window: cpu_projects.opened(program_of(window)),
    "cuda": lambda window: cuda_projects.opened(program_of(window)),
    "emulator": emulated,
}


@pytest.mark.representative("reference-*", "cpu-*-ends0")
@pytest.mark.parametrize(("widest", "ends"), [((-3.0, math.inf), (-0.2,)), ((-100.0, math.inf), (-0.3,)), ((-2.0, 1.5), (-0.4, 0.1))])
@pytest.mark.parametrize("target", OPENED)
def test_a_narrower_window_of_a_session_gives_the_gradients_of_one_that_was_compiled(target, widest, ends):
    narrow = (*ends, math.inf)[:2]
    wanted, plain = ReferenceEngine(program_of(narrow)), ReferenceEngine(program_of(widest))
    inputs, labels = cpu_projects.data(wanted.program, STEPS, BATCH)
    with OPENED[target](widest) as engine:
        window = GradientWindow(plain.program, engine)
        assert window.now == widest
        window.set(*ends)
        losses = [engine.train_batch(inputs, labels, 1e-2) for _ in range(3)]
        assert losses == pytest.approx([wanted.train_batch(inputs, labels, 1e-2) for _ in range(3)], rel=1e-5)
        found, right = engine.gradients(), wanted.gradients()
    [plain.train_batch(inputs, labels, 1e-2) for _ in range(3)]
    changed = []
    for name, gradient in right.items():
        norm = np.linalg.norm(gradient)
        assert np.linalg.norm(found[name] - gradient) <= 1e-4 * norm, name
        changed.append(np.linalg.norm(plain.gradients()[name] - gradient) > 1e-2 * norm)
    assert any(changed), "the window changes something"


def compiled(window, **options):
    net = snnc.Sequential(6, snnc.Dense(8), snnc.LIF(), snnc.Dense(3), snnc.LI())
    return snnc.compile(net, "reference", steps=4, loss="mean membrane", optimizer=snnc.Adam(1e-2), gradient_window=window, **options)


X = (np.random.default_rng(0).random((24, 4, 6)) < 0.5).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 24)


def test_a_session_has_its_window_as_a_value():
    with compiled(-1.0) as session:
        assert session.gradient_window == (-1.0, math.inf)
        session.gradient_window = -0.5
        assert session.gradient_window == (-0.5, math.inf)
        assert set(session.state_dict()) == {p.label for p in session.program.parameters.values() if "window" not in p.label}
    with compiled((-1.0, 1.0)) as session:
        session.gradient_window = (-0.5, 0.5)
        assert session.gradient_window == (-0.5, 0.5)
        session.gradient_window = -0.25
        assert session.gradient_window == (-0.25, 1.0)


@pytest.mark.parametrize(
    ("window", "values", "text"),
    [
        (None, -0.5, "compiled without a gradient window"),
        (-1.0, -2.0, r"is not inside the compiled one, \(-1, inf\), which is narrower"),
        (-1.0, (-0.5, 0.5), "has no upper end to change"),
        ((-1.0, 1.0), (-0.5, 2.0), "is narrower"),
        (-1.0, (0.5, 0.5), "empty"),
        (-1.0, math.nan, "empty or not two numbers"),
        (-1.0, "-0.5", "empty or not two numbers"),
    ],
)
def test_windows_that_the_program_cannot_have_are_refused(window, values, text):
    with compiled(window) as session:
        before = session.gradient_window
        with pytest.raises(GradientWindowError, match=text):
            session.gradient_window = values
        assert session.gradient_window == before


@pytest.mark.parametrize("argument", [(-1, 0, 1), (None, 1.0), True])
def test_arguments_of_fit_that_are_no_window_are_refused(argument):
    with compiled((-1.0, 1.0)) as session, pytest.raises(GradientWindowError, match="lower end or both ends"):
        session.fit(X, Y, gradient_window=argument)


def test_a_schedule_sets_the_window_before_each_update():
    seen = []
    with compiled((-4.0, 2.0)) as session:
        session.fit(
            X,
            Y,
            epochs=2,
            batch=8,
            gradient_window=(Linear(-4.0, -1.0, updates=3), "linear:2,1,updates=2"),
            callback=lambda stage: seen.append(session.gradient_window),
        )
    assert seen == [(-4.0, 2.0), (-3.0, 1.5), (-2.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)]


def test_a_stream_of_batches_has_the_same_windows_as_arrays():
    found = []
    for batches in (False, True):
        with compiled(-100) as session:
            given = ([(X[at : at + 8], Y[at : at + 8]) for at in (0, 8, 16)],) if batches else (X, Y)
            options = {} if batches else {"batch": 8, "shuffle": False}
            session.fit(*given, epochs=2, gradient_window=Exponential(-100, -0.1), **options)
            found.append(session.state_dict())
            assert session.gradient_window[0] == pytest.approx(-0.1 - 99.9 / 32)
    for name, value in found[0].items():
        np.testing.assert_array_equal(found[1][name], value)


class StopError(Exception):
    """Ends a training in its middle."""


def test_a_resumed_training_has_the_same_windows_and_bits(tmp_path):
    schedule = "exponential:-100,-0.05,factor=0.4"

    def train(path, stop=None, resume=False, window=schedule):
        def watch(stage):
            if stage.update == stop:
                raise StopError

        with compiled(-100, seed=3) as session:
            kept = Checkpoints(path, every="1ms", resume=resume)
            session.fit(X, Y, epochs=3, batch=8, gradient_window=window, checkpoints=kept, callback=watch)
            return session.state_dict(), session.gradient_window

    whole, last = train(tmp_path / "whole")
    for stop in (2, 4, 7):
        with pytest.raises(StopError):
            train(tmp_path / f"{stop}", stop)
        found, window = train(tmp_path / f"{stop}", resume=True)
        assert window == last
        for name, value in whole.items():
            np.testing.assert_array_equal(found[name], value)
    with pytest.raises(ResumeError, match="gradient window"):
        train(tmp_path / "whole", resume=True, window=-0.05)


def dropping(target="reference", policy="random", **options):
    net = snnc.Sequential(6, snnc.Dense(8), snnc.LIF(), snnc.Dense(3), snnc.LI())
    chosen = {"loss": "mean membrane", "optimizer": snnc.Adam(1e-2), "mode": "drop", "capacity": 4, "drop": policy, **options}
    return snnc.compile(net, target, steps=4, **chosen)


def test_a_session_has_its_capacity_and_policy_as_values():
    with dropping() as session:
        assert (session.capacity, session.drop) == (4, "random")
        session.capacity, session.drop = 2, "lowest"
        assert (session.capacity, session.drop) == (2, "lowest")
        assert not any("capacity" in name or "choice" in name for name in session.state_dict())
        for wrong in (5, 0, "5", True, math.nan):
            with pytest.raises(SpikeLimitError, match="from 1 to the compiled capacity, 4"):
                session.capacity = wrong
        with pytest.raises(SpikeLimitError, match="one of lowest, random"):
            session.drop = "highest"
        session.step(X[:1, 0])
        session.drop = "random"
        with pytest.raises(NoStepwiseError, match="drop='lowest'"):
            session.step(X[:1, 0])
    with compiled(None) as session:
        assert (session.capacity, session.drop) == (None, None)
        with pytest.raises(SpikeLimitError, match="no capacity that a run can change"):
            session.fit(X, Y, capacity=3)


@pytest.mark.representative("random")
@pytest.mark.parametrize("policy", ["lowest", "random"])
def test_a_schedule_of_the_capacity_is_the_same_on_the_processor(policy):
    found, seen = {}, []
    for target in ("reference", "cpu"):
        with dropping(target, policy, seed=5) as session:
            history = session.fit(
                X,
                Y,
                epochs=3,
                batch=8,
                capacity=Linear(4, 1, updates=6),
                callback=lambda stage, session=session: seen.append(session.capacity),
            )
            session.run(X[:2].swapaxes(0, 1))
            found[target] = history.batch_losses, session.counters()["dropped_spikes"]
    assert seen == [4, 4, 3, 2, 2, 2, 1, 1, 1] * 2
    np.testing.assert_allclose(found["cpu"][0], found["reference"][0], rtol=1e-5)
    assert found["cpu"][1] == found["reference"][1] > 0


def test_random_choices_differ_by_seed_and_update_and_are_the_same_after_a_resume(tmp_path):
    def train(path, stop=None, resume=False, **options):
        def watch(stage):
            if stage.update == stop:
                raise StopError

        with dropping(**{"seed": 3, **options}) as session:
            kept = Checkpoints(path, every="1ms", resume=resume)
            session.fit(X, Y, epochs=3, batch=8, shuffle=False, capacity="linear:4,2,updates=5", checkpoints=kept, callback=watch)
            return session.state_dict()

    whole = train(tmp_path / "whole")
    other = train(tmp_path / "other", seed=4)
    assert any((other[name] != value).any() for name, value in whole.items())
    for stop in (2, 4):
        with pytest.raises(StopError):
            train(tmp_path / f"{stop}", stop)
        found = train(tmp_path / f"{stop}", resume=True)
        for name, value in whole.items():
            np.testing.assert_array_equal(found[name], value)


def test_a_training_without_a_window_argument_keeps_that_of_the_session():
    program = program_of((-2.0, math.inf))
    inputs, labels = cpu_projects.data(program, STEPS, 8)
    session = BackendSession(ReferenceEngine(program), program)
    session.gradient_window = -0.5
    session.fit(inputs["x0"].swapaxes(0, 1), labels, batch=4)
    assert session.gradient_window == (-0.5, math.inf)
    assert session.engine.get_parameters()["p0_window_low"] == np.float32(-0.5)


@pytest.mark.wide
def test_windows_on_a_machine_come_back_in_windows_too():
    widest, narrow = (-1.0, math.inf), (-0.2, math.inf)
    wanted = ReferenceEngine(program_of(narrow))
    inputs, labels = cpu_projects.data(wanted.program, STEPS, BATCH)
    case = Windowed(recurrent(np.random.default_rng(3)), machine(4), STEPS, BATCH, widest, fast_sigmoid(5.0), gradients="windowed")
    assert any(bus.gradient is not None for bus in case.plan.buses)
    engine = case.open()
    GradientWindow(case.program, engine).set(-0.2)
    for _ in range(2):
        assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(wanted.train_batch(inputs, labels, 1e-2), rel=1e-5)
    engine.close()


def test_a_window_that_is_no_bound_stays_dense_on_a_machine():
    case = Windowed(recurrent(np.random.default_rng(3)), machine(4), STEPS, BATCH, (-100.0, math.inf), gradients="auto")
    assert all(bus.gradient is None for bus in case.plan.buses)
    assert {"p0_window_low", "p1_window_low"} & case.program.parameters.keys()


def test_parts_have_the_window_of_their_whole():
    graph = feed_forward(np.random.default_rng(3))
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": SGD(1e-2), "steps": STEPS}
    whole, narrow = (lower(graph, loss_output="y", gradient_window=(low, math.inf), **options) for low in (-2.0, -0.1))
    random = np.random.default_rng(0)
    partition = Partition(
        {name: np.arange(n) % 3 for name, n in (("first", 40), ("second", 30))}, {"first": random.permutation(40), "second": np.arange(30)}
    )
    found = prepare(graph, options["loss"], "y").lower(whole, partition, gradient_window=(-2.0, math.inf), **options)
    engine, wanted = EngineOfParts(ReferenceEngine(found.program_of_parts), found), ReferenceEngine(narrow)
    GradientWindow(whole, engine).set(-0.1)
    inputs, labels = cpu_projects.data(whole, STEPS, BATCH)
    for _ in range(3):
        assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(wanted.train_batch(inputs, labels, 1e-2), rel=1e-5)
    for name, gradient in wanted.gradients().items():
        np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-5 * max(1.0, np.abs(gradient).max()), err_msg=name)


@pytest.mark.wide
def test_bfloat16_has_windows_at_run_time():
    program, narrow = program_of((-2.0, math.inf)), program_of((-0.3, math.inf))
    inputs, labels = cpu_projects.data(program, STEPS, BATCH)
    gradients = []
    for one in (program, narrow):
        with cpu_projects.opened(one, precision="bfloat16") as engine:
            GradientWindow(one, engine).set(-0.3)
            engine.train_batch(inputs, labels, 1e-2)
            gradients.append(engine.gradients())
    for name, gradient in gradients[1].items():
        np.testing.assert_array_equal(gradients[0][name], gradient)
