"""Batch normalisation over samples, steps and space, with training compared with PyTorch's autograd."""

from dataclasses import replace
from fnmatch import fnmatch

import numpy as np
import pytest
from frameworks import torch
from normalised_nets import BATCH, CLASSES, NORM, NORM_OF_STEPS, PLACES, STEPS, Theirs, data, network
from wide import examples

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.folders.manifest import TRAINED
from snnc.backends.runtime.errors import NormalisationError
from snnc.compiler.errors import NeuronDefinitionError, StatisticsCycleError

UPDATES = examples(3, 6)
TRAINING = {"loss": "ce_mean_membrane", "optimizer": "sgd:0.5", "surrogate": "fast_sigmoid"}


def test_the_names_of_parameters():
    with snnc.compile(network(), steps=STEPS, **TRAINING) as session:
        names = set(session.state_dict())
    assert set(PLACES.values()) <= names
    assert {"input_to_lif_batchnorm_statistics.mean", "lif_to_lif2_batchnorm_statistics.var"} <= names


@pytest.mark.representative("reference-*", "cpu-each step", "cuda-all steps")
@pytest.mark.parametrize("each_step", [False, True], ids=["all steps", "each step"])
@pytest.mark.parametrize("target", ["reference", "cpu", "cuda"])
def test_updates_and_running_statistics_are_those_of_pytorch(target, each_step, monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    x, y = data()
    with snnc.compile(network(norm=NORM_OF_STEPS if each_step else NORM), target, steps=STEPS, **TRAINING) as session:
        before = session.state_dict()
        theirs = Theirs(before, each_step)
        optimizer = torch.optim.SGD(theirs.parameters(), 0.5)
        losses = []
        for _ in range(UPDATES):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(theirs(torch.tensor(x.swapaxes(0, 1).copy())), torch.tensor(y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        history = session.fit(x, y, epochs=UPDATES, batch=BATCH, shuffle=False)
        found = session.state_dict()
        outputs = session.run(x.swapaxes(0, 1))
        session.reset(BATCH)
        stepped = session.step(x[:, 0])
    np.testing.assert_allclose(np.ravel(history.batch_losses), losses, atol=1e-4)
    for name, ours in PLACES.items():
        module, _, what = name.partition(".")
        wanted = getattr(getattr(theirs, module), what).detach().numpy()
        moved = np.abs(found[ours] - before[ours]).max()
        assert moved > 1e-3 or name in ("conv.bias", "fc1.bias")  # the mean takes away what these add
        np.testing.assert_allclose(found[ours].reshape(wanted.shape), wanted, atol=1e-4, rtol=1e-4, err_msg=name)
    for norm, ours in (("bn1", "input_to_lif_batchnorm_statistics"), ("bn2", "lif_to_lif2_batchnorm_statistics")):
        for what in ("mean", "var"):
            wanted = getattr(getattr(theirs, norm), f"running_{what}").numpy()
            mine = found[f"{ours}.{what}"].reshape(len(wanted), -1)
            np.testing.assert_allclose(mine, np.broadcast_to(wanted[:, None], mine.shape), atol=1e-5, rtol=1e-4)
        assert not found[f"{ours}.shift"].any()
        assert not found[f"{ours}.slope"].any()
    theirs.eval()
    assert list(outputs) == list(stepped) == ["output"]
    wanted = theirs(torch.tensor(x.swapaxes(0, 1).copy())).detach().numpy()
    np.testing.assert_allclose(outputs["output"].mean(axis=0), wanted, atol=1e-4)


@pytest.mark.representative("reference-*-7", "cpu-all steps-8")
@pytest.mark.parametrize("samples", [8, 7])
@pytest.mark.parametrize("each_step", [False, True], ids=["all steps", "each step"])
@pytest.mark.parametrize("target", ["reference", "cpu", "cuda"])
def test_parts_of_an_update_have_their_own_statistics_as_in_pytorch(target, each_step, samples, monkeypatch):
    """Seven samples are a part of four and a part of three; the loss is the mean over all samples."""
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    x, y = data(samples=samples)
    with snnc.compile(network(norm=NORM_OF_STEPS if each_step else NORM), target, steps=STEPS, **TRAINING) as session:
        theirs = Theirs(session.state_dict(), each_step)
        optimizer = torch.optim.SGD(theirs.parameters(), 0.5)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            losses.append(0.0)
            for of in np.array_split(np.arange(samples), 2):
                scores = theirs(torch.tensor(x[of].swapaxes(0, 1).copy()))
                part = torch.nn.functional.cross_entropy(scores, torch.tensor(y[of])) * (len(of) / samples)
                part.backward()
                losses[-1] += part.item()
            optimizer.step()
        history = session.fit(x, y, epochs=3, batch=samples, accumulate=2, shuffle=False)
        found = session.state_dict()
    np.testing.assert_allclose(np.ravel(history.batch_losses), losses, atol=1e-4)
    for name, ours in PLACES.items():
        module, _, what = name.partition(".")
        wanted = getattr(getattr(theirs, module), what).detach().numpy()
        np.testing.assert_allclose(found[ours].reshape(wanted.shape), wanted, atol=1e-4, rtol=1e-4, err_msg=name)
    for norm, ours in (("bn1", "input_to_lif_batchnorm_statistics"), ("bn2", "lif_to_lif2_batchnorm_statistics")):
        for what in ("mean", "var"):
            wanted = getattr(getattr(theirs, norm), f"running_{what}").numpy()
            mine = found[f"{ours}.{what}"].reshape(len(wanted), -1)
            np.testing.assert_allclose(mine, np.broadcast_to(wanted[:, None], mine.shape), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_the_parts_of_an_update_have_different_dropout_masks(target):
    """The two halves of the batch are equal, so equal masks would give equal losses, and the loss of one half."""
    x, y = (np.concatenate([a, a]) for a in data())
    with snnc.compile(network(dropout=True), target, steps=STEPS, **TRAINING) as session:
        start = session.state_dict()
        one = session.fit(x[:BATCH], y[:BATCH], batch=BATCH, shuffle=False).losses
        session.load_state_dict(start)
        session.engine.set_optimizer(replace(session.engine.get_optimizer(), updates=0))
        assert session.fit(x[:BATCH], y[:BATCH], batch=BATCH, shuffle=False).losses == one
        session.load_state_dict(start)
        session.engine.set_optimizer(replace(session.engine.get_optimizer(), updates=0))
        both = session.fit(x, y, batch=2 * BATCH, accumulate=2, shuffle=False).losses
    assert abs(both[0] - one[0]) > 1e-3


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_dropout_has_the_same_mask_in_every_pass_of_an_update(target):
    from snnc.backends.training.updates.masks import masks_of

    x, y = data()
    with snnc.compile(network(dropout=True), target, steps=STEPS, **TRAINING) as session:
        values = session.engine.get_parameters()
        (mask,) = masks_of(session.program).of(values.__getitem__, 0, 0, BATCH).values()
        theirs = Theirs({n.replace("dropout", "lif2"): v for n, v in session.state_dict().items()})
        loss = torch.nn.functional.cross_entropy(theirs(torch.tensor(x.swapaxes(0, 1).copy()), torch.tensor(mask)), torch.tensor(y))
        loss.backward()
        session.fit(x, y, batch=BATCH, shuffle=False)
        found = {session.program.parameters[n].label.replace("dropout", "lif2"): g for n, g in session.engine.gradients().items()}
    for name, ours in PLACES.items():
        module, _, what = name.partition(".")
        wanted = getattr(getattr(theirs, module), what).grad.numpy()
        np.testing.assert_allclose(found[ours].reshape(wanted.shape), wanted, atol=1e-5, rtol=1e-4, err_msg=name)


@pytest.mark.wide
def test_a_machine_runs_with_running_statistics():
    x, _ = data()
    net = network()
    with snnc.compile(net, steps=STEPS, batch=BATCH) as wanted, snnc.compile(net, "gc200", steps=STEPS, batch=BATCH) as machine:
        np.testing.assert_allclose(machine.run(x.swapaxes(0, 1))["output"], wanted.run(x.swapaxes(0, 1))["output"], atol=1e-4)


def test_a_normalisation_on_a_recurrent_path_is_refused():
    net = snnc.Network()
    spikes, hidden = net.input(4), net.population(5, snnc.LIF(), name="hidden")
    net.connect(spikes, hidden)
    net.connect(hidden, hidden, [snnc.Dense(5), snnc.BatchNorm()], delay=1)
    net.output(hidden)
    with pytest.raises(StatisticsCycleError, match="SNNC-E031: 'hidden_to_hidden_batchnorm_statistics'"):
        snnc.compile(net, steps=3, **TRAINING)


def test_one_value_of_a_channel_has_no_statistics():
    net = snnc.Sequential(4, snnc.Dense(3), NORM, snnc.LI())
    with snnc.compile(net, steps=1, **TRAINING) as session, pytest.raises(NormalisationError, match="one value per channel"):
        session.fit(np.ones((1, 1, 4)), [0])


BOTH = "input_to_lif*,lif_to_lif2_batchnorm.*"
"""Of two normalisations one has no gradient to pass on; the other passes it, and neither changes its gain or its bias."""


@pytest.mark.representative("reference-*", f"cpu-{BOTH}", f"gc200-{BOTH}")
@pytest.mark.parametrize("patterns", ["*batchnorm.weight", "lif_to_lif2_batchnorm.*", "input_to_lif*", BOTH])
@pytest.mark.parametrize("target", ["reference", "cpu", "cuda", "gc200"])
def test_gain_and_bias_may_be_frozen(target, patterns, monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    x, y = data()
    frozen = patterns.split(",")
    options = {**TRAINING, "optimizer": snnc.SGD(0.5, groups=tuple(snnc.Group(pattern, frozen=True) for pattern in frozen))}
    with snnc.compile(network(), target, steps=STEPS, batch=BATCH, **options) as session:
        theirs = Theirs(session.state_dict())
        for name, ours in PLACES.items():
            theirs.get_parameter(name).requires_grad_(not any(fnmatch(ours, pattern) for pattern in frozen))
        optimizer = torch.optim.SGD(theirs.parameters(), 0.5)
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(theirs(torch.tensor(x.swapaxes(0, 1).copy())), torch.tensor(y)).backward()
            optimizer.step()
        session.fit(x, y, epochs=3, batch=BATCH, shuffle=False)
        found = session.state_dict()
        outputs = session.run(x.swapaxes(0, 1))["output"]
    for name, ours in PLACES.items():
        wanted = theirs.state_dict()[name].numpy()
        np.testing.assert_allclose(found[ours].reshape(wanted.shape), wanted, atol=1e-4, rtol=1e-4, err_msg=name)
    wanted = theirs.eval()(torch.tensor(x.swapaxes(0, 1).copy())).detach().numpy()
    np.testing.assert_allclose(outputs.mean(axis=0), wanted, atol=1e-4, err_msg="with the running statistics")


def test_modules_on_machines_are_refused():
    from snnc.torch import Module

    with pytest.raises(NormalisationError, match="module on a tile machine"):
        Module(network(), target="gc200", steps=STEPS)


def trained(target, optimizer, *, norm=NORM, updates=3, loss=TRAINING["loss"], **fit):
    """Return losses, parameters and counters after some updates."""
    x, y = data(samples=fit.get("accumulate", 1) * BATCH)
    options = {**TRAINING, "optimizer": optimizer, "loss": loss}
    with snnc.compile(network(norm=norm), target, steps=STEPS, batch=BATCH, **options) as session:
        history = session.fit(x, y, epochs=updates, batch=len(x), shuffle=False, **fit)
        return np.ravel(history.batch_losses), session.state_dict(), history.skipped_updates


SCALED = {"one part": {}, "two parts": {"accumulate": 2}, "each step": {"norm": NORM_OF_STEPS}}


@pytest.mark.representative("reference-one part", "reference-two parts")
@pytest.mark.parametrize("case", SCALED)
@pytest.mark.parametrize("target", ["reference", "cpu", "cuda", "gc200"])
def test_a_scaled_loss_changes_no_update(target, case, monkeypatch):
    """The sums for the gradient through the statistics are scaled with it, also after the factor has changed."""
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    accumulate = target == "gc200" and case == "two parts"
    plain, scaled = (
        trained(target, snnc.SGD(0.5, clip_norm=0.5, accumulate=accumulate, loss_scale=scale), **SCALED[case])
        for scale in (None, snnc.LossScale(2.0**10, interval=1))
    )
    np.testing.assert_allclose(scaled[0], plain[0], rtol=1e-5)
    for name, value in plain[1].items():
        np.testing.assert_allclose(scaled[1][name], value, atol=1e-5, err_msg=name)


@pytest.mark.representative("reference")
@pytest.mark.parametrize("target", ["reference", "cpu", "cuda", "gc200"])
def test_updates_whose_scaled_gradients_overflow_are_skipped(target, monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    optimizer = snnc.SGD(0.005, loss_scale=snnc.LossScale(2.0**127, backoff=2.0**-60))
    losses, values, skipped = trained(target, optimizer, updates=4, loss="100 * ce_mean_membrane")
    made = trained("reference", "sgd:0.005", updates=4 - skipped, loss="100 * ce_mean_membrane")
    assert 0 < skipped < 4
    np.testing.assert_allclose(losses[skipped:], made[0], rtol=1e-5)
    for name, value in made[1].items():
        if "statistics" not in name:  # running statistics count skipped updates too, as with PyTorch's GradScaler
            np.testing.assert_allclose(values[name], value, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("given", [{"momentum": 1.5}, {"momentum": -0.1}, {"eps": 0.0}])
def test_numbers_out_of_range_are_refused(given):
    net = snnc.Network()
    with pytest.raises(NeuronDefinitionError, match="of a batch normalisation is"):
        net.connect(net.input(4), net.population(4, snnc.LIF()), snnc.BatchNorm(**given))


@pytest.mark.representative("reference")
@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_a_project_that_is_opened_again_trains_on(target, tmp_path):
    x, y = data()
    with snnc.compile(network(), target, steps=STEPS, batch=BATCH, **TRAINING) as whole:
        whole.fit(x, y, epochs=2, batch=BATCH, shuffle=False)
        wanted = whole.state_dict()
    with snnc.compile(network(), target, steps=STEPS, batch=BATCH, output=tmp_path / "project", **TRAINING) as first:
        first.fit(x, y, epochs=1, batch=BATCH, shuffle=False)
        first.save(tmp_path / "half.safetensors", optimizer=True)
    with snnc.open(tmp_path / "project") as second:
        second.load(tmp_path / "half.safetensors", optimizer=True)
        second.fit(x, y, epochs=1, first_epoch=1, batch=BATCH, shuffle=False)
        for name, value in second.state_dict().items():
            np.testing.assert_array_equal(value, wanted[name])


def test_what_reads_a_trained_project_sees_no_statistics_of_a_batch(tmp_path):
    from snnc.checks.trial import run_once
    from snnc.driver.loading import load_project
    from snnc.project.trained import read_trained

    x, y = data()
    net = network(norm=NORM_OF_STEPS)
    with snnc.compile(net, "reference", steps=STEPS, output=tmp_path / "project", **TRAINING) as session:
        session.fit(x, y, epochs=2, batch=BATCH, checkpoints=snnc.Checkpoints(tmp_path / "project" / TRAINED))
        wanted = session.run(x.swapaxes(0, 1))["output"]
        assert [i.label for i in session.program.inputs] == ["input"]
        assert session.record(x.swapaxes(0, 1)).steps == STEPS
    assert run_once(tmp_path / "project", None).largest_difference < 1e-5
    graph = read_trained(load_project(tmp_path / "project")[0], tmp_path / "project")
    for target in examples(("reference",), ("reference", "gc200")):
        with snnc.compile(graph, target, steps=STEPS, batch=BATCH) as runs:
            np.testing.assert_allclose(runs.run(x.swapaxes(0, 1))["output"], wanted, atol=1e-4)


@pytest.mark.parametrize("segment", [0, 2], ids=["whole sequence", "checkpoints"])
def test_gradients_again_are_those_of_a_new_pass(segment):
    """After a change of parameters that adjoints alone read; with checkpoints the program goes forward again by itself."""
    x, y = data()
    inputs = {"x0": np.ascontiguousarray(x.swapaxes(0, 1))}
    with snnc.compile(network(), "cpu", steps=STEPS, **TRAINING) as session:
        engine, program = session.engine.engine, session.program
        engine.segment = segment
        (slope,) = (p.name for p in program.parameters.values() if p.label == "lif_to_lif2_batchnorm_statistics.slope")
        loss = engine.gather_parts([(inputs, y)], BATCH)
        before = engine.gradients()
        engine.set_parameters({slope: np.full(program.parameters[slope].value.shape, 0.3, np.float32)})
        assert engine.gather_again(BATCH) == pytest.approx(loss, rel=1e-6)
        again = engine.gradients()
        engine.gather_parts([(inputs, y)], BATCH)
        wanted = engine.gradients()
    for name, gradient in again.items():
        np.testing.assert_array_equal(gradient, wanted[name], err_msg=name)
    assert any((gradient != before[name]).any() for name, gradient in again.items())


@pytest.mark.wide
@pytest.mark.parametrize("norm", [NORM, NORM_OF_STEPS], ids=["all steps", "each step"])
def test_a_machine_trains_a_network_in_parts(norm):
    random = np.random.default_rng(0)
    weights = [np.where(random.random((40, n)) < 0.2, random.normal(size=(40, n)), 0).astype(np.float32) for n in (20, 40)]
    net = snnc.Network()
    spikes, hidden = net.input(20), net.population(40, snnc.LIF(beta=0.8), name="hidden")
    second, readout = net.population(10, snnc.LIF(beta=0.8)), net.population(CLASSES, snnc.LI(beta=0.9))
    net.connect(spikes, hidden, snnc.Sparse(weights[0]))
    net.connect(hidden, hidden, snnc.Sparse(weights[1]), delay=1)
    net.connect(hidden, second, [snnc.Dense(10), norm])
    net.connect(second, readout)
    x, y = (random.random((BATCH, STEPS, 20)) < 0.4).astype(np.float32), np.arange(BATCH) % CLASSES
    found = []
    for target, options in (("reference", {}), ("gc200", {"parts": 2})):
        with snnc.compile(net, target, steps=STEPS, batch=BATCH, **options, **TRAINING) as session:
            session.fit(x, y, epochs=3, batch=BATCH, shuffle=False)
            found.append(session.state_dict())
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, atol=1e-5, rtol=1e-4, err_msg=name)


@pytest.mark.representative("cpu")
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_small_batch_after_a_large_one_trains_as_on_the_reference(target, monkeypatch):
    """The vectors of the last layers are longer than its neurons; what lies in the rest must not count."""
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    parts = [snnc.Dense(8), snnc.BatchNorm(), snnc.LIF(0.9), snnc.Dense(4), snnc.BatchNorm(), snnc.LI(0.9)]
    random = np.random.default_rng(1)
    x, y = random.random((11, 9, 6)) < 0.4, random.integers(0, 4, 11)
    found = []
    for on in (target, "reference"):
        with snnc.compile(snnc.Sequential(6, *parts, seed=3), on, loss="ce_mean_membrane", optimizer="sgd:0.1") as session:
            session.fit(x, y, batch=10, shuffle=False)
            found.append(session.state_dict())
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, atol=1e-5, err_msg=name)
