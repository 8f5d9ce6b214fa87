"""``snnc train`` that is stopped, fails or is started twice: the weights are kept, and the message explains how to continue."""

import json
import os
import resource
import signal
import sys

import numpy as np
import pytest
from forked import command

import snnc
from snnc.backends.folders.folder_lock import locked
from snnc.backends.folders.manifest import TRAINED
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import WeightFileError
from snnc.backends.runtime.weights import load_weights, weight_file_bytes
from snnc.backends.training.saving.checkpoint import read_position
from snnc.cli import main as cli
from snnc.driver.compiling import compile_to_folder
from snnc.options.compile_options import options


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.integers(0, 2, (23, 8, 6)).astype(np.uint8), y=rng.integers(0, 3, 23))
    return tmp_path / "d.npz"


def network():
    return snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")


def compiled(folder, target="reference", **given):
    snnc.compile(network(), target, loss="ce_mean_membrane", optimizer="adam:0.01", batch=5, output=folder, **given).close()
    return folder


def run(*arguments):
    return cli.run_command([str(a) for a in arguments])


def entries(folder):
    return load_weights(folder / TRAINED)


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def start(before_batch, *arguments):
    """Start a training that waits before a batch until a line comes in; return its process when it waits."""
    train, left = ReferenceEngine.train_parts, [before_batch]

    def paused(self, *arguments):
        left[0] -= 1
        if left[0] == 0:
            print("paused", file=sys.stderr, flush=True)
            if sys.stdin.readline() == "full\n":
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return train(self, *arguments)

    process = command("train", *arguments, prepare=lambda: setattr(ReferenceEngine, "train_parts", paused))
    said = []
    for line in process.stderr:
        said.append(line)
        if line == "paused\n":
            break
    assert said[-1:] == ["paused\n"], said
    return process


@pytest.mark.representative("2-130", "15-143")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_keeps_what_was_reached_and_the_same_command_resumes_it(tmp_path, data, capsys, number, code):
    whole, folder = compiled(tmp_path / "whole"), compiled(tmp_path / "p")
    assert run("train", whole, "--data", data, "--epochs", 3, "--seed", 4, "--lr", 0.02) == 0
    process = start(8, folder, "--data", data, "--epochs", 3, "--seed", 4, "--lr", 0.02)
    process.send_signal(number)
    assert "a second signal stops immediately" in process.stderr.readline()
    _, err = process.communicate("on\n")
    assert process.returncode == code
    assert f"training is saved after 1 of 3 epochs and 3 of 5 batches; continue with: snnc train {folder} --data {data} --resume" in err
    assert "Traceback" not in err
    found = read_position(folder / TRAINED)
    assert (found.epoch, found.batch, found.until) == (1, 3, 3)
    capsys.readouterr()
    assert run("train", folder, "--data", data) == 2
    err = capsys.readouterr().err
    assert "SNNC-E536" in err
    assert "--resume" in err
    assert "--no-resume" in err
    assert run("train", folder, "--data", data, "--resume") == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[:2]] == ["epoch 2", "epoch 3"]
    assert_same(entries(folder), entries(whole))
    assert run("train", folder, "--data", data, "--resume") == 0
    assert "all epochs are already trained" in capsys.readouterr().out
    assert_same(entries(folder), entries(whole))


def test_a_resumed_training_may_go_further_but_not_otherwise(tmp_path, data, capsys):
    whole, folder = compiled(tmp_path / "whole"), compiled(tmp_path / "p")
    assert run("train", whole, "--data", data, "--epochs", 3) == 0
    assert run("train", folder, "--data", data, "--epochs", 1, "--resume") == 0
    assert run("train", folder, "--data", data, "--epochs", 3, "--resume", "--seed", 1) == 2
    assert "SNNC-E537" in capsys.readouterr().err
    assert run("train", folder, "--data", data, "--epochs", 3, "--resume") == 0
    assert_same(entries(folder), entries(whole))


def test_another_training_begins_with_the_weights_of_one_that_was_stopped(tmp_path, data):
    folder = compiled(tmp_path / "p")
    process = start(3, folder, "--data", data, "--checkpoint-every", "0.001ms")
    process.kill()
    process.communicate()
    assert read_position(folder / TRAINED).batch == 2
    assert run("train", folder, "--data", data, "--no-resume", "--lr", 0.1) == 0
    found = read_position(folder / TRAINED)
    assert found.finished
    assert int(entries(folder)["optimizer:updates"][0]) == 2 + 5


def test_a_line_an_epoch_is_there_at_once_where_stdout_is_no_terminal(tmp_path, data):
    folder = compiled(tmp_path / "p")
    process = start(6, folder, "--data", data, "--epochs", 2)
    line = process.stdout.readline()
    assert line.startswith("epoch 1: loss ")
    assert line.rstrip().endswith(" s")
    out, _ = process.communicate("on\n")
    assert out.startswith("epoch 2: loss ")


def test_with_json_stdout_holds_json_alone_and_epochs_are_told_on_stderr(tmp_path, data, capsys):
    folder = compiled(tmp_path / "p")
    assert run("train", folder, "--data", data, "--epochs", 2, "--json") == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["loss"]) == 2
    assert [line.split(":")[0] for line in captured.err.splitlines()] == ["epoch 1", "epoch 2"]


def test_a_second_training_in_a_folder_is_refused_and_the_first_goes_on(tmp_path, data, capsys):
    folder = compiled(tmp_path / "p")
    process = start(3, folder, "--data", data)
    for line in (("train", folder, "--data", data), ("compile", folder, "-o", folder, "--target", "reference")):
        assert run(*line) == 2
        err = capsys.readouterr().err
        assert "SNNC-E417" in err
        assert f"process {process.pid} on" in err
    process.communicate("on\n")
    assert process.returncode == 0
    assert read_position(folder / TRAINED).finished
    assert run("train", folder, "--data", data) == 0
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == []


def test_a_full_disk_stops_training_with_a_code_and_the_last_checkpoint_stays_whole(tmp_path, data):
    folder = compiled(tmp_path / "p")
    process = start(7, folder, "--data", data, "--epochs", 3)
    before = entries(folder)
    _, err = process.communicate("full\n")
    assert process.returncode == 2
    assert "error: SNNC-E538" in err
    assert "Traceback" not in err
    assert_same(entries(folder), before)
    assert not list(folder.rglob("*.part"))
    assert run("train", folder, "--data", data, "--resume") == 0


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_a_training_that_diverges_keeps_the_last_good_weights_and_the_project_opens(tmp_path, data, capsys, target):
    folder = compiled(tmp_path / "p", target)
    assert run("train", folder, "--data", data, "--epochs", 2) == 0
    good = entries(folder)
    capsys.readouterr()
    assert run("train", folder, "--data", data, "--lr", 1e38) == 2
    err = capsys.readouterr().err
    assert "error: SNNC-E535: training diverged" in err
    assert "--no-resume --lr" in err
    after = entries(folder)
    for name in good:
        if not name.startswith("training:"):
            np.testing.assert_array_equal(after[name], good[name])
    assert run("check", folder) == 0
    assert run("train", folder, "--data", data, "--no-resume") == 0


def spoiled(content):
    """A file of weights as a training that did not look has left it."""
    return weight_file_bytes(
        {name: np.full_like(value, np.nan) if value.dtype.kind == "f" else value for name, value in content.items()}, {}
    )


@pytest.mark.representative("spoiled")
@pytest.mark.parametrize("spoil", [spoiled, lambda _: b"", lambda _: weight_file_bytes({"other.weight": np.zeros(3, np.float32)}, {})])
def test_a_project_with_weights_that_cannot_be_used_opens_with_the_compiled_ones(tmp_path, data, capsys, spoil):
    folder = compiled(tmp_path / "p", "cpu", steps=8)
    with snnc.open(folder) as session:
        wanted = session.state_dict()
    assert run("train", folder, "--data", data) == 0
    bad = spoil(entries(folder))
    (folder / TRAINED).write_bytes(bad)
    with pytest.warns(UserWarning, match=r"cannot be used.*replace the file with earlier ones"), snnc.open(folder) as session:
        assert_same(session.state_dict(), wanted)
    capsys.readouterr()
    assert run("check", folder) == 0
    compile_to_folder(network().graph(), options("gc200", steps=8), tmp_path / "tiles")
    (tmp_path / "tiles" / TRAINED).write_bytes(bad)
    assert run("inspect", tmp_path / "tiles", "-o", tmp_path / "r.html") == 0
    np.savez(tmp_path / "x.npz", input=np.zeros((8, 5, 6), np.uint8))
    capsys.readouterr()
    for line in (
        ("run", folder, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"),
        ("run", folder, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", "--target", "reference"),
        ("convert", folder, tmp_path / "m.onnx"),
        ("compile", folder, "-o", tmp_path / "q"),
    ):
        assert run(*line) == 2, line
        assert "SNNC-E424" in capsys.readouterr().err, line
    assert run("train", folder, "--data", data, "--resume") == 2
    assert "SNNC-E424" in capsys.readouterr().err
    assert run("train", folder, "--data", data) == 0
    assert "trained.unusable-1.safetensors" in capsys.readouterr().err
    assert (folder / "model" / "trained.unusable-1.safetensors").read_bytes() == bad
    assert run("train", folder, "--data", data, "--resume") == 0


def test_a_time_between_checkpoints_that_is_none_is_refused_before_anything_is_read(tmp_path, capsys):
    assert run("train", tmp_path / "p", "--data", tmp_path / "missing.npz", "--checkpoint-every", "soon") == 2
    assert "SNNC-E539" in capsys.readouterr().err


def test_a_position_that_is_damaged_does_not_keep_a_project_from_training(tmp_path, data, capsys):
    folder = compiled(tmp_path / "p")
    assert run("train", folder, "--data", data) == 0
    (folder / TRAINED).write_bytes(weight_file_bytes(entries(folder), {"training": "{"}))
    with pytest.raises(WeightFileError):
        read_position(folder / TRAINED)
    assert run("train", folder, "--data", data, "--resume") == 2
    assert "SNNC-E516" in capsys.readouterr().err
    assert run("train", folder, "--data", data) == 0
    assert read_position(folder / TRAINED).finished


def test_the_lock_is_held_before_the_project_is_read(tmp_path, data, capsys, monkeypatch):
    folder = compiled(tmp_path / "p")
    monkeypatch.setattr("snnc.driver.compiling.open_project", lambda *_: pytest.fail("it was read"))
    with locked(folder, "trains"):
        assert run("train", folder, "--data", data) == 2
    assert f"process {os.getpid()} on" in capsys.readouterr().err
