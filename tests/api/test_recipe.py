"""Recipes: ``fit`` receives the settings of a TOML file; invalid entries are refused with the file, the line and the key."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc.backends.training.updates.run_values import RunValues
from snnc.cli import main as cli
from snnc.recipe import RecipeError, read_recipe


class Wide:
    """The window of a session."""

    now = (-100.0, 100.0)


WIDE = Wide()


def test_a_recipe_is_read_with_paths_relative_to_it(tmp_path):
    (tmp_path / "r.toml").write_text('epochs = 3\nlearning_rate = "cosine:0.1,epochs=3"\nlog = "log.csv"\nmetrics = ["f1"]\n')
    found = read_recipe(tmp_path / "r.toml")
    assert found == {"epochs": 3, "learning_rate": "cosine:0.1,epochs=3", "log": tmp_path / "log.csv", "metrics": ["f1"]}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("epoch = 3", "is not a training setting"),
        ('epochs = "3"', "whole number of 1"),
        ("epochs = true", "whole number"),
        ("epochs = 0", "whole number of 1"),
        ("seed = -1", "whole number of 0"),
        ("learning_rate = -0.1", "number of 0 or more"),
        ("learning_rate = nan", "number of 0 or more"),
        ('learning_rate = "fast"', "not a schedule"),
        ("gradient_window = true", "a list of two"),
        ("gradient_window = [-1, 0, 1]", "a list of two"),
        ('gradient_window = "wide"', "not a schedule"),
        ('gradient_window = "-1 to wide"', "not a schedule"),
        ("shuffle = 1", "true or false"),
        ('metrics = "f1"', "list of names"),
        ('metrics = ["speed"]', "no metric"),
        ('monitor = "speed"', "loss or accuracy"),
        ("log = 3", "a path"),
        ('checkpoint_every = "soon"', "a time"),
        ("[log]\nfile = 3", "a path"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, line, says):
    (tmp_path / "r.toml").write_text(f"# settings\n\n{line}\n")
    with pytest.raises(
        RecipeError, match=rf"SNNC-E593: .*r\.toml', line 3: {line.split('=')[0].strip('[] ').splitlines()[0].strip(']')}.*{says}"
    ):
        read_recipe(tmp_path / "r.toml")


@pytest.mark.parametrize("window", ["-0.1", '"exponential:-100,-0.1"', '"linear:-4,-1,updates=3 to 2"', '[-1, "linear:2,1,updates=3"]'])
def test_a_window_is_a_number_or_a_schedule_or_two_of_them(tmp_path, window):
    (tmp_path / "r.toml").write_text(f"gradient_window = {window}\n")
    assert RunValues(WIDE, **read_recipe(tmp_path / "r.toml")).window_text == {
        "-0.1": "-0.1",
        '"exponential:-100,-0.1"': "exponential:first=-100,last=-0.1",
        '"linear:-4,-1,updates=3 to 2"': "linear:first=-4,last=-1,updates=3 to constant:value=2",
        '[-1, "linear:2,1,updates=3"]': "-1.0 to linear:first=2,last=1,updates=3",
    }.get(window, "")


@pytest.mark.parametrize("content", [b"epochs = ", b"\xff", None])
def test_a_file_that_is_no_toml_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "r.toml").write_bytes(content)
    with pytest.raises(RecipeError, match=r"r\.toml"):
        read_recipe(tmp_path / "r.toml")


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("d", "v"):
        np.savez(tmp_path / f"{name}.npz", x=rng.integers(0, 2, (23, 8, 6)).astype(np.uint8), y=rng.integers(0, 3, 23))
    return tmp_path


@pytest.mark.representative("reference", "cpu")
@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_a_recipe_trains_as_the_same_arguments_do(place, capsys, target):
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    sizes = {"steps": 8} if target == "gc200" else {}
    snnc.compile(net, target, loss="ce_mean_membrane", optimizer="adam:0.01", batch=5, output=place / "p", **sizes).close()
    (place / "r.toml").write_text(
        'epochs = 3\nlearning_rate = "cosine:0.1,epochs=3"\nvalidation = "v.npz"\nlog = "log.csv"\nrestore_best = true\n'
    )
    assert (
        cli.run_command(["train", str(place / "p"), "--data", str(place / "d.npz"), "--recipe", str(place / "r.toml"), "--epochs", "2"])
        == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in out[:3]] == ["epoch 1", "epoch 2", "best validation"]
    assert "accuracy" in out[0]
    assert len((place / "log.csv").read_text().splitlines()) == 3
    data, held = (dict(np.load(place / f"{name}.npz")) for name in ("d", "v"))
    with (
        snnc.compile(net, target, loss="ce_mean_membrane", optimizer="adam:0.01", batch=5, **sizes) as session,
        snnc.open(place / "p") as kept,
    ):
        session.fit(
            data["x"],
            data["y"],
            epochs=2,
            learning_rate=snnc.schedules.Cosine(0.1, epochs=3),
            validation=(held["x"], held["y"]),
            restore_best=True,
        )
        for name, value in session.state_dict().items():
            np.testing.assert_array_equal(kept.state_dict()[name], value)


def test_the_example_trains(place, capsys):
    example = Path(__file__).parents[2] / "examples/digits/cosine.toml"
    shutil.copy(example, place / "cosine.toml")
    shutil.copy(place / "v.npz", place / "validation.npz")
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    snnc.compile(net, loss="ce_mean_membrane", optimizer="adam:0.01", batch=5, output=place / "p").close()
    given = ["--data", str(place / "d.npz"), "--recipe", str(place / "cosine.toml")]
    assert cli.run_command(["train", str(place / "p"), *given]) == 0
    assert "best validation: epoch" in capsys.readouterr().out
    assert (place / "p" / "model" / "best.safetensors").is_file()
