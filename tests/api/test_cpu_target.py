"""The processor as a target of the command line and of the Python interface."""

import json

import numpy as np
import pytest

import snnc
from snnc.errors import EstimateError, ExploreError, ProjectFolderError


def network():
    return snnc.Sequential(6, snnc.Dense(12, seed=1), snnc.LIF(), snnc.Dense(3, seed=2), snnc.LI())


def samples(seed=0):
    random = np.random.default_rng(seed)
    return (random.random((20, 8, 6)) < 0.5).astype(np.float32), random.integers(0, 3, 20)


def test_training_in_python_is_that_of_the_reference():
    x, y = samples()
    losses, found = [], []
    for target in ("cpu", "reference"):
        with snnc.compile(network(), target=target, loss="ce_mean_membrane", optimizer="adam:0.01") as session:
            losses.append(session.fit(x, y, epochs=3, batch=8).losses)
            found.append(session.predict(x))
            assert session.plan is None
            with pytest.raises(ProjectFolderError, match="no plan"):
                session.report_text("text")
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    np.testing.assert_array_equal(found[0], found[1])


def test_the_command_line_compiles_runs_and_trains_for_the_processor(command, tmp_path):
    snnc.write_onnx(network().graph(), tmp_path / "model.onnx")
    x, y = samples()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    np.savez(tmp_path / "inputs.npz", x=x.swapaxes(0, 1))
    options = ("--loss", "ce_mean_membrane", "--optimizer", "adam", "--input-kind", "spikes", "--run")
    done = command("compile", "model.onnx", "--target", "cpu", *options, "-o", "build")
    assert done.returncode == 0, done.stderr
    assert "largest difference from the reference" in done.stdout
    assert json.loads((tmp_path / "build" / "project.json").read_text())["kind"] == "cpu"
    done = command("train", "build", "--data", "data.npz", "--epochs", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["loss"]) == 2
    for target, out in (("cpu", "a.npz"), ("reference", "b.npz")):
        done = command("run", "build", "--inputs", "inputs.npz", "--outputs", out, "--target", target)
        assert done.returncode == 0, done.stderr
    a, b = (np.load(tmp_path / name) for name in ("a.npz", "b.npz"))
    for name in b.files:
        np.testing.assert_allclose(a[name], b[name], atol=1e-5)


def test_what_needs_tiles_is_refused():
    with pytest.raises(EstimateError, match="'cpu' has no tiles"):
        snnc.estimate(network(), "cpu", steps=5)
    with pytest.raises(ExploreError, match="cpu, cuda and reference"):
        snnc.explore(network(), ["gc200", "cpu"], steps=5)


def test_a_kept_project_is_opened_with_its_trained_weights(tmp_path):
    x, y = samples()
    with snnc.compile(network(), target="cpu", loss="ce_count", optimizer="sgd:0.1", output=tmp_path / "build") as session:
        session.fit(x, y, epochs=1)
        wanted = session.state_dict()
        session.save(tmp_path / "build" / "model" / "trained.safetensors")
    with snnc.open(tmp_path / "build") as session:
        for name, value in wanted.items():
            np.testing.assert_array_equal(session.state_dict()[name], value)


def test_training_in_two_commands_is_training_in_one(command, tmp_path):
    x, y = samples()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    options = {"target": "cpu", "loss": "ce_count", "optimizer": "adam:0.01", "batch": 8}
    weights = []
    for name, runs in (("whole", [("--epochs", "2")]), ("parts", [("--epochs", "1"), ("--epochs", "1", "--first-epoch", "1")])):
        snnc.compile(network(), output=tmp_path / name, **options).close()
        for run in runs:
            done = command("train", tmp_path / name, "--data", tmp_path / "data.npz", *run)
            assert done.returncode == 0, done.stderr
        with snnc.open(tmp_path / name) as session:
            weights.append(session.state_dict())
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name])
