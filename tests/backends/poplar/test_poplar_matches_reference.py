"""The emitted Poplar program, built and emulated, compared with the reference."""

import numpy as np
import pytest
from poplar_projects import BATCH, CASES, STEPS, project
from resuming import assert_same_optimizer

from snnc.backends.native.library import NativeError
from snnc.backends.runtime.errors import NotTrainableError

EXACT = [name for name in CASES if name != "drop"]
TRAINED = [name for name in EXACT if name != "hostile"]


def assert_same_records(found, wanted):
    assert found.keys() == wanted.keys()
    for name, record in wanted.items():
        scale = max(1.0, float(np.abs(record).max()))
        np.testing.assert_allclose(found[name], record, atol=1e-6 * scale, rtol=1e-5, err_msg=name)


@pytest.mark.representative("recurrent", "lstm", "exact", "exact several inputs", "hostile")
@pytest.mark.parametrize("name", EXACT)
def test_records_equal_those_of_the_reference(monkeypatch, name):
    case = project(name)
    if name == "exact":  # its codelets are compiled as for users
        monkeypatch.delenv("SNNC_CODELET_FLAGS", raising=False)
    inputs, _ = case.data()
    engine = case.open()
    assert_same_records(engine.forward(inputs, {}), case.reference().forward(inputs, {}))
    # A second sequence starts from the initial states again.
    inputs, _ = case.data(seed=2, density=0.7)
    assert_same_records(engine.forward(inputs, {}), case.reference().forward(inputs, {}))
    assert any(record.any() for record in engine.forward(inputs, {}).values())


@pytest.mark.representative("lstm", "exact")
@pytest.mark.parametrize("name", TRAINED)
def test_five_training_steps_equal_those_of_the_reference(name):
    case = project(name)
    engine, reference = case.open(), case.reference()
    for step in range(5):
        inputs, target = case.data(seed=step)
        rate = 1e-2 if step < 3 else 3e-3
        found, wanted = engine.train_batch(inputs, target, rate), reference.train_batch(inputs, target, rate)
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        gradients = engine.gradients()
        assert gradients.keys() == reference.gradients().keys()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))
        for parameter, gradient in reference.gradients().items():
            error = np.linalg.norm(gradients[parameter] - gradient)
            # The sum that makes a number shared by many neurons may cancel: its error is that of its terms.
            assert error <= 1e-5 * max(np.linalg.norm(gradient), 0.05 * whole), (step, parameter)
        updated, parameters = engine.get_parameters(), reference.get_parameters()
        for parameter, value in parameters.items():
            np.testing.assert_allclose(updated[parameter], value, atol=1e-5, err_msg=parameter)
        # Rounding that feeds back through spikes is not what is asked here: the next step starts from equal weights.
        engine.set_parameters(parameters)
    assert_same_optimizer(engine, reference)


@pytest.mark.wide
def test_the_wide_cases_cover_what_they_name():
    assert project("feedback").plan.interval == 2
    assert project("feedback").plan.target.tiles == 1472
    assert max(b.tile for p in project("learnable").plan.populations for b in p.blocks) >= 2, "both chips are used"
    assert {project(n).program.loss.name for n in TRAINED} == {"ce_mean_membrane", "ce_rate", "ce_count", "mse_count", "ce_max_membrane"}


def test_the_cases_cover_what_they_name():
    assert project("exact several inputs").plan.interval == 2
    assert max(b.count for p in project("drop").plan.populations for b in p.blocks) > 32, "a block has several words of spikes"
    assert len(project("lstm").program.populations[0].ports) >= 2


def test_further_windows_are_counted():
    case = project("exact")
    engine = case.open()
    inputs, _ = case.data()
    records = engine.forward(inputs, {})
    bus = next(b for b in case.plan.buses if b.source == "x0")
    events = inputs["x0"].sum(axis=-1)
    wanted = int(np.maximum(np.ceil(events / bus.capacity) - 1, 0).sum())
    assert engine.counters()[f"{bus.id}_further"] == wanted > 0
    assert engine.counters()["forward_rounds"] > 0
    assert engine.counters()["dropped_spikes"] == 0
    assert records["y0"].any()


def test_drop_mode_keeps_the_lowest_ids_and_counts_the_rest():
    case = project("drop")
    engine = case.open()
    inputs, _ = case.data()
    bus = next(b for b in case.plan.buses if b.source == "x0")
    kept = inputs["x0"] * (np.cumsum(inputs["x0"], axis=-1) <= bus.capacity)
    assert int((inputs["x0"] - kept).sum()) > 0
    found = engine.forward(inputs, {})
    hidden = next(o.id for o in case.program.outputs if o.label == "spikes")
    np.testing.assert_array_equal(found[hidden], case.reference().forward({"x0": kept}, {})[hidden])
    sent = next(b for b in case.plan.buses if b.source == "p0")
    counters = engine.counters()
    assert counters[f"{bus.id}_dropped"] == int((inputs["x0"] - kept).sum())
    over = found[hidden].sum(axis=-1) - sent.capacity
    assert counters[f"{sent.id}_dropped"] == int(np.maximum(over, 0).sum()) > 0
    assert counters["dropped_spikes"] == counters[f"{bus.id}_dropped"] + counters[f"{sent.id}_dropped"]


def test_dropped_spikes_of_the_network_reach_neither_targets_nor_gradients():
    case = project("drop")
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.0)
    bus = next(b for b in case.plan.buses if b.source == "p0")
    weight = next(c.weight for c in case.program.connections if c.source == "p0")
    gradient = engine.gradients()[weight]
    hidden = next(o.id for o in case.program.outputs if o.label == "spikes")
    spikes = engine.forward(inputs, {})[hidden]
    kept = spikes * (np.cumsum(spikes, axis=-1) <= bus.capacity)
    silent = kept.sum(axis=(0, 1)) == 0
    assert silent.any()
    assert not gradient[:, silent].any()
    assert gradient[:, ~silent].any()


def test_initial_values_reach_states_and_delayed_connections_and_are_forgotten_afterwards():
    case = project("hostile")
    engine, reference = case.open(), case.reference()
    inputs, _ = case.data()
    random = np.random.default_rng(0)
    v = random.normal(size=(BATCH, 8)).astype(np.float32)
    population = case.program.populations[0]
    buffer = population.output_buffers["v"]
    initial = {(population.id, "s0"): v, (population.id, buffer): v}
    changed = engine.forward(inputs, initial)
    assert_same_records(changed, reference.forward(inputs, initial))
    plain = engine.forward(inputs, {})
    assert_same_records(plain, reference.forward(inputs, {}))
    assert any((changed[name] != plain[name]).any() for name in plain)


def test_parameters_are_set_and_read_in_the_orientation_of_the_model():
    case = project("recurrent")
    engine, reference = case.open(), case.reference()
    random = np.random.default_rng(0)
    values = {name: random.normal(size=v.shape).astype(np.float32) for name, v in engine.get_parameters().items() if v.ndim == 2}
    engine.set_parameters(values)
    reference.set_parameters(values)
    for name, value in values.items():
        np.testing.assert_array_equal(engine.get_parameters()[name], value)
    inputs, _ = case.data()
    assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))


def test_saved_parameters_are_those_of_the_session(tmp_path):
    from safetensors.numpy import load_file

    case = project("delayed")
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.1)
    engine.session.save(tmp_path / "saved.safetensors")
    saved = load_file(tmp_path / "saved.safetensors")
    for name, value in engine.get_parameters().items():
        np.testing.assert_array_equal(saved[name].reshape(value.shape), value)


def test_inference_projects_hold_no_backward_code_and_refuse_training():
    case = project("hostile")
    host, codelets = ((case.folder / name).read_text() for name in ("host.cpp", "codelets.cpp"))
    assert "backward" not in host
    assert "class Update" not in codelets
    with pytest.raises(NotTrainableError):
        case.open().train_batch(case.data()[0], np.zeros(BATCH, int), 0.1)
    with pytest.raises(NativeError, match="inference"):
        case.open().session.train_step()


def test_the_program_refuses_what_does_not_fit():
    engine = project("drop").open()
    with pytest.raises(NativeError, match="0 or 1"):
        engine.session.set("x0", np.full((STEPS, BATCH, 40), 0.5))
    with pytest.raises(NativeError, match="classes"):
        engine.session.set("labels", np.full(BATCH, 99))
    with pytest.raises(NativeError, match="shape"):
        engine.session.set("x0", np.zeros(3))
    with pytest.raises(NativeError, match="no tensor"):
        engine.session.get("nothing")
    engine.close()
    with pytest.raises(NativeError, match="closed"):
        engine.session.run()


def test_an_unreadable_folder_is_an_error_not_a_crash(tmp_path):
    from snnc.backends.native.library import NativeSession
    from snnc.backends.poplar.build import build_poplar

    with pytest.raises(NativeError, match="cannot be opened"):
        NativeSession(build_poplar(project("drop").folder), tmp_path)
