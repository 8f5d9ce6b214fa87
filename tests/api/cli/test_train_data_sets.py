"""``snnc train`` on named data sets, with options and with a recipe."""

import csv
import runpy
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

import snnc
from snnc.cli import main as cli
from snnc.recipe import RecipeError, read_recipe

EXAMPLE = Path(__file__).parents[3] / "examples/spoken_digits"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder that the example makes."""
    folder = tmp_path_factory.mktemp("spoken")
    runpy.run_path(str(EXAMPLE / "make.py"))["main"](folder)
    return folder


@pytest.fixture
def project(place, tmp_path):
    shutil.copytree(place / "build", tmp_path / "build")
    return tmp_path / "build"


def trained(*given):
    return cli.run_command(["train", *map(str, given)])


def test_the_example_learns_from_its_file_and_keeps_the_best_weights(place, project, capsys):
    assert trained(project, "--recipe", place / "shd.toml") == 0
    assert "best validation: epoch" in capsys.readouterr().out
    rows = list(csv.DictReader((place / "log.csv").open()))
    assert float(rows[-1]["validation_accuracy"]) > 0.9
    with snnc.open(project) as session:
        held = snnc.data.shd(place / "shd_test.h5").map(snnc.data.Bin(steps=40, duration=1.4, downsample=10))
        best = min(rows, key=lambda row: float(row["validation_loss"]))
        assert session.evaluate(held) == float(best["validation_accuracy"])


def test_options_name_the_same_data_and_a_resumed_training_ends_with_the_same_bits(place, project, tmp_path):
    options = ["--data", f"shd:{place / 'shd_train.h5'}", "--bin-duration", "1.4", "--downsample", "10", "--lr", "0.01"]
    shutil.copytree(project, tmp_path / "other")
    assert trained(project, *options, "--epochs", "2") == 0
    assert trained(tmp_path / "other", *options, "--epochs", "1") == 0
    assert trained(tmp_path / "other", *options, "--epochs", "2", "--resume") == 0
    with snnc.open(project) as one, snnc.open(tmp_path / "other") as two, snnc.open(place / "build") as session:
        data = snnc.data.shd(place / "shd_train.h5").map(snnc.data.Bin(steps=40, duration=1.4, downsample=10))
        session.fit(data, epochs=2, learning_rate=0.01)
        for name, value in session.state_dict().items():
            np.testing.assert_array_equal(one.state_dict()[name], value, err_msg=name)
            np.testing.assert_array_equal(two.state_dict()[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["--data", "shd:missing.h5", "--bin-time", "0.035"], "SNNC-E521"),
        (["--data", "nmnist:missing", "--bin-time", "0.035"], "SNNC-E521"),
        (["--data", "dvsgesture:missing", "--bin-time", "0.035"], "SNNC-E521"),
        (["--data", "mnist:missing"], "SNNC-E521"),
        (["--data", "speech:missing.h5"], "SNNC-E582"),
        (["--data", "missing.npz"], "SNNC-E521"),
        ([], "SNNC-E582"),
        (["--data", "SHD", "--encoder", "rate"], "SNNC-E582"),
        (["--data", "SHD", "--bin-time", "0.1", "--bin-duration", "1"], "SNNC-E582"),
        (["--data", "SHD", "--bin-time", "0.035", "--polarity", "both"], "SNNC-E582"),
        (["--data", "NPZ", "--bin-time", "0.035"], "SNNC-E582"),
        (["--data", "SHD", "--bin-time", "0.035"], "SNNC-E503"),
        (["--data", "SHD", "--bin-time", "0.035", "--downsample", "10", "--bin-steps", "5"], "SNNC-E508"),
        (["--data", "SHD", "--bin-time", "0.035", "--downsample", "10", "--validation", "ssc:missing.h5"], "SNNC-E521"),
    ],
)
def test_what_cannot_be_read_or_has_no_effect_is_refused(place, project, tmp_path, capsys, given, code):
    np.savez(tmp_path / "d.npz", x=np.zeros((2, 40, 70), np.uint8), y=np.zeros(2, int))
    names = {"SHD": f"shd:{place / 'shd_train.h5'}", "NPZ": str(tmp_path / "d.npz")}
    assert trained(project, *(names.get(part, part) for part in given)) == 2
    assert code in capsys.readouterr().err


def test_images_and_polarities_get_the_shape_and_the_steps_of_the_network(tmp_path):
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "00001.bin").write_bytes(bytes([5, 6, 1 << 7, 3, 232]) * 4)
    head = (2051).to_bytes(4, "big") + b"".join(n.to_bytes(4, "big") for n in (3, 28, 28))
    (tmp_path / "a-images-idx3-ubyte").write_bytes(head + bytes(range(256)) * 9 + bytes(48))
    (tmp_path / "a-labels-idx1-ubyte").write_bytes((2049).to_bytes(4, "big") + (3).to_bytes(4, "big") + bytes([1, 2, 3]))
    for name, size, options in (
        (f"nmnist:{tmp_path}", 2 * 34 * 34, ["--bin-time", "0.01"]),
        (f"mnist:{tmp_path / 'a-images-idx3-ubyte'}", 784, ["--encoder", "latency"]),
    ):
        net = snnc.Sequential(size, snnc.Dense(10), snnc.LI())
        snnc.compile(net, "reference", steps=6, loss="ce_mean_membrane", optimizer="adam", output=tmp_path / f"p{size}").close()
        assert trained(tmp_path / f"p{size}", "--data", name, "--record", "1", *options) == 0


def test_a_recipe_names_data_relative_to_itself_and_refuses_other_keys(tmp_path):
    file = tmp_path / "r.toml"
    file.write_text('epochs = 2\n[data]\ntrain = "shd:a.h5"\nvalidation = "v.npz"\ndt = 0.01\n')
    assert read_recipe(file)["data"] == {"train": f"shd:{tmp_path / 'a.h5'}", "validation": str(tmp_path / "v.npz"), "dt": 0.01}
    for text, says in (
        ('[data]\nfile = "a"', "line 2: data.file is not a training setting.*train, validation, steps"),
        ("[data]\ndt = true", "data.dt = True must be a number"),
        ("[data]\nsteps = 0", "data.steps = 0 must be a whole number"),
        ('[data]\ntrain = "speech:a"', "data.train = 'speech:a' must be"),
        ('validation = "a.npz"\n[data]\nvalidation = "b.npz"', "validation data twice"),
        ("data = 3", "data is not a training setting"),
    ):
        file.write_text(text)
        with pytest.raises(RecipeError, match=f"SNNC-E593.*{says}"):
            read_recipe(file)


def test_a_file_of_the_example_has_the_official_layout(place):
    with h5py.File(place / "shd_train.h5") as file:
        assert h5py.check_vlen_dtype(file["spikes/times"].dtype) == np.float16
        assert h5py.check_vlen_dtype(file["spikes/units"].dtype) == np.uint16
