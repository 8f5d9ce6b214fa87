"""Estimates: the numbers that external checks read, from the command line and from Python; nothing is written."""

import json
import os
from importlib.resources import files

import numpy as np
import pytest

import snnc
from snnc.cli import main as cli
from snnc.compiler.errors import StepsNeededError
from snnc.compiler.ir.plan_json import plan_from_json
from snnc.compiler.tiles import misfit_errors
from snnc.driver.compiling import compile_to_folder
from snnc.errors import EstimateError, OptionValueError
from snnc.options.compile_options import options as make_options

TYPES = {
    "target": str,
    "strategy": str,
    "ipus": int,
    "tiles_used": int,
    "step_cycles": float,
    "bound_cycles": float,
    "ideal_cycles": float,
    "step_ms": float,
    "samples_per_s": float,
    "peak_tile_bytes": int,
    "tile_bytes": int,
    "compile_s": float,
}


def network():
    return snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model file in an otherwise empty working folder."""
    snnc.write_onnx(network().graph(), tmp_path / "small.onnx")
    monkeypatch.chdir(tmp_path)
    return "small.onnx"


@pytest.fixture
def tiny(tmp_path):
    """A small machine of its own kind."""
    text = (files("snnc.compiler.machines") / "gc200.toml").read_text()
    text = (
        text.replace('"ipu2"', '""')
        .replace("tiles_per_chip = 1472", "tiles_per_chip = 16")
        .replace("tile_bytes = 638976", "tile_bytes = 40000")
    )
    (tmp_path / "tiny.toml").write_text(text)


def run(*arguments):
    return cli.run_command(["compile", *map(str, arguments)])


def test_estimate_only_prints_one_object_and_writes_nothing(model, capsys):
    assert run(model, "--estimate-only", "--json", "--steps", 9, "--batch", 4, "--loss", "ce_mean_membrane", "--target", "bow") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert {name: type(found[name]) for name in TYPES} == TYPES
    assert found["target"] == "bow"
    assert found["ipus"] == 1
    assert 0 < found["bound_cycles"] <= found["step_cycles"]
    assert found["step_ms"] == pytest.approx(1e3 * found["step_cycles"] / 1.85e9)
    assert 0 < found["peak_tile_bytes"] <= found["tile_bytes"] == 638976
    assert 0 < found["tiles_used"] <= 1472
    assert os.listdir() == [model]


def test_the_memory_of_a_gpus_program_is_predicted_for_each_precision(model, capsys):
    def predicted(precision, *more):
        sizes = ("--steps", 400, "--batch", 8, "--loss", "ce_mean_membrane")
        assert run(model, "--estimate-only", "--json", "--target", "cuda", "--precision", precision, *sizes, *more) == 0
        return json.loads(capsys.readouterr().out)

    exact, half = predicted("float32"), predicted("float16")
    # What 16 bits spare of two layers, sums of one of them in 32 bits take.
    assert 0 < half["bytes"] <= exact["bytes"]
    assert half["segment"] is None
    bounded = predicted("float16", "--memory", half["bytes"] - 1)
    assert bounded["bytes"] < half["bytes"]
    assert 0 < bounded["segment"] < 400
    assert run(model, "--estimate-only", "--target", "cpu", "--steps", 9) == 0
    assert "MiB for a forward pass, predicted (cpu, float32; 9 steps" in capsys.readouterr().out
    assert os.listdir() == [model]


def test_each_thread_of_the_processors_program_adds_gradients_of_its_own(model, capsys, monkeypatch):
    def predicted(*more):
        sizes = ("--steps", 40, "--batch", 8, "--loss", "ce_mean_membrane")
        assert run(model, "--estimate-only", "--json", "--target", "cpu", *sizes, *more) == 0
        return json.loads(capsys.readouterr().out)["bytes"]

    one, two, three = (predicted("--threads", n) for n in (1, 2, 3))
    weights = 6 * 5 + 5 * 3
    assert 4 * weights < two - one
    assert 4 * weights < three - two
    monkeypatch.setenv("SNNC_THREADS", "2")
    assert predicted() == two


def test_the_text_form_is_the_plan_with_its_bounds(model, capsys):
    assert run(model, "--estimate-only", "--steps", 9) == 0
    out = capsys.readouterr().out
    assert "target    gc200" in out
    assert "bounds    " in out
    assert "nothing was written" in out


def test_python_and_the_command_line_agree(model, capsys):
    found = snnc.estimate(network(), "gc200", steps=9, batch=4, loss="ce_mean_membrane").to_data()
    assert run(model, "--estimate-only", "--json", "--steps", 9, "--batch", 4, "--loss", "ce_mean_membrane") == 0
    printed = json.loads(capsys.readouterr().out)
    assert {k: v for k, v in found.items() if k not in ("compile_s", "name")} == {
        k: v for k, v in printed.items() if k not in ("compile_s", "name")
    }


def test_the_estimate_is_the_plan_that_is_emitted(tmp_path):
    options = {"steps": 9, "batch": 4, "loss": "ce_mean_membrane"}
    compile_to_folder(network().graph(), make_options("gc200", **options), tmp_path / "p")
    emitted = plan_from_json((tmp_path / "p" / "plan.json").read_text())
    assert snnc.estimate(network(), "gc200", **options).plan == emitted


def test_fewer_spikes_cost_fewer_cycles():
    cycles = [snnc.estimate(network(), steps=9, activity=a).plan.cycles for a in (0.01, 0.9)]
    assert cycles[0] < cycles[1]


def test_activity_is_measured_on_data(model, capsys):
    np.savez("x.npz", input=np.ones((9, 4, 6), dtype=np.uint8))
    assert run(model, "--estimate-only", "--json", "--steps", 9, "--data", "x.npz") == 0
    assert json.loads(capsys.readouterr().out)["activity"] == "measured on x.npz"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--estimate-only", "--target", "reference", "--steps", 9], "SNNC-E543"),
        (["--estimate-only", "--run", "--steps", 9], "SNNC-E543"),
        (["--activity", 0.1, "-o", "q", "--steps", 9], "SNNC-E543"),
        (["--strategy", "linear", "-o", "q", "--steps", 9], "SNNC-E543"),
        (["--estimate-only", "--activity", 1.5, "--steps", 9], "SNNC-E528"),
        (["--estimate-only", "--steps", 9, "--batch", 0], "SNNC-E528"),
        (["--estimate-only", "--steps", 9, "--target", "gc3000"], "SNNC-E301"),
        (["--estimate-only", "--steps", 9, "--batch", 5000, "--target", "tiny.toml"], "SNNC-E313"),
        (["--steps", 9], "SNNC-E520"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_what_cannot_be_estimated_is_one_coded_line(model, capsys, monkeypatch, arguments, code):
    monkeypatch.setattr(misfit_errors, "find_remedies", lambda *_: ())  # what would help is not looked for
    assert run(model, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith(f"error: {code}: ")
    assert sorted(os.listdir()) == sorted([model, "tiny.toml"])


def test_an_open_number_of_steps_is_asked_for():
    with pytest.raises(StepsNeededError):
        snnc.estimate(network())


def test_activity_is_measured_or_assumed_but_not_both():
    with pytest.raises(EstimateError, match="one of the two"):
        snnc.estimate(network(), steps=3, activity=0.1, calibrate=np.zeros((3, 1, 6)))
    with pytest.raises(OptionValueError):
        snnc.estimate(network(), steps=3, activity=-0.1)
