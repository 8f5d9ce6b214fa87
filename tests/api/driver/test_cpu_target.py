"""The CPU as a target on the command line and in Python."""

import json
import mmap

import numpy as np
import pytest

import snnc
from snnc.backends.native.library import NativeError
from snnc.cli import main as cli
from snnc.compiler.ir.graph import Linear
from snnc.driver.compiling import compile_to_folder
from snnc.errors import EstimateError, ExploreError, ProjectFolderError
from snnc.options.compile_options import options

pytestmark = pytest.mark.usefixtures("cpu_projects_as_for_users")
TRAINED = {"target": "cpu", "loss": "ce_mean_membrane", "optimizer": "adam:0.01"}
"""Tests that train share a program."""


def call(*arguments):
    return cli.run_command([str(a) for a in arguments])


def network():
    return snnc.Sequential(6, snnc.Dense(12, seed=1), snnc.LIF(), snnc.Dense(3, seed=2), snnc.LI())


def samples(seed=0):
    random = np.random.default_rng(seed)
    return (random.random((20, 8, 6)) < 0.5).astype(np.float32), random.integers(0, 3, 20)


def test_training_in_python_is_that_of_the_reference():
    x, y = samples()
    losses, found = [], []
    for target in ("cpu", "reference"):
        with snnc.compile(network(), **TRAINED | {"target": target}) as session:
            losses.append(session.fit(x, y, epochs=3, batch=8).losses)
            found.append(session.predict(x))
            assert session.plan is None
            assert f"a training step on {target}" in session.report_text("text")
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    np.testing.assert_array_equal(found[0], found[1])


def test_the_command_line_compiles_runs_and_trains_for_the_processor(command, tmp_path, capsys):
    snnc.write_onnx(network().graph(), tmp_path / "model.onnx")
    x, y = samples()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    np.savez(tmp_path / "inputs.npz", x=x.swapaxes(0, 1))
    given = ("--loss", "ce_mean_membrane", "--optimizer", "adam", "--input-kind", "spikes", "--run")
    assert call("compile", tmp_path / "model.onnx", "--target", "cpu", *given, "-o", tmp_path / "build") == 0
    assert "largest difference from the reference" in capsys.readouterr().out
    assert json.loads((tmp_path / "build" / "project.json").read_text())["kind"] == "cpu"
    assert call("train", tmp_path / "build", "--data", tmp_path / "data.npz", "--epochs", 2, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["loss"]) == 2
    done = command("run", "build", "--inputs", "inputs.npz", "--outputs", "a.npz", "--target", "cpu")
    assert done.returncode == 0, done.stderr
    chosen = ("--inputs", tmp_path / "inputs.npz", "--outputs", tmp_path / "b.npz", "--target", "reference")
    assert call("run", tmp_path / "build", *chosen) == 0
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
    with snnc.compile(network(), output=tmp_path / "build", **TRAINED) as session:
        session.fit(x, y, epochs=1)
        wanted = session.state_dict()
        session.save(tmp_path / "build" / "model" / "trained.safetensors")
    with snnc.open(tmp_path / "build") as session:
        for name, value in wanted.items():
            np.testing.assert_array_equal(session.state_dict()[name], value)


def test_training_in_two_commands_is_training_in_one(tmp_path):
    x, y = samples()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    weights = []
    for name, runs in (("whole", [("--epochs", "2")]), ("parts", [("--epochs", "1"), ("--epochs", "1", "--first-epoch", "1")])):
        snnc.compile(network(), output=tmp_path / name, batch=8, **TRAINED).close()
        for run in runs:
            assert call("train", tmp_path / name, "--data", tmp_path / "data.npz", *run) == 0
        with snnc.open(tmp_path / name) as session:
            weights.append(session.state_dict())
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name])


def test_an_opened_session_keeps_no_second_copy_of_weights_that_its_program_holds(tmp_path):
    net = snnc.Network("views")
    source = net.input(40, name="input", kind="spikes")
    hidden = net.population(30, snnc.LIF(), name="hidden")
    net.connect(source, hidden, snnc.Dense())
    net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
    graph = net.graph()
    drawn = {f"{name}.weight": op.weight for name, op in graph.of_type(Linear)}

    snnc.compile(graph, "cpu", output=tmp_path / "p").close()
    file = tmp_path / "p" / "weights.safetensors"
    before = file.read_bytes()
    for session in (snnc.open(tmp_path / "p"), snnc.compile(graph, "cpu")):
        with session:
            for parameter in session.program.parameters.values():
                assert is_view_of_a_file(parameter.value)
                np.testing.assert_array_equal(parameter.value, session.state_dict()[parameter.label])
            for name, op in session.graph.of_type(Linear):
                assert is_view_of_a_file(op.weight)
                np.testing.assert_array_equal(op.weight, drawn[f"{name}.weight"])
                op.weight[:] = 0
    assert file.read_bytes() == before
    assert all(np.any(value) for value in drawn.values())


def is_view_of_a_file(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array.base, mmap.mmap)


@pytest.mark.parametrize("damage", [lambda file: b"", lambda file: file[:-8], lambda file: b"x" * len(file), lambda file: None])
def test_a_damaged_file_of_weights_is_told(tmp_path, damage):
    compile_to_folder(network().graph(), options("cpu"), tmp_path / "p")
    file = tmp_path / "p" / "weights.safetensors"
    content = damage(file.read_bytes())
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises((NativeError, ProjectFolderError), match=r"weights\.safetensors"):
        snnc.open(tmp_path / "p")
