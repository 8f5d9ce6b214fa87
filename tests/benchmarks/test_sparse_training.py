"""The script for sparse training, shortened: its data, and the effect of the bound on rates on dropped spikes."""

import importlib
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc.compiler.lowering.lower import lower
from snnc.driver.activity import measure_activity

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks" / "scripts" / "training"
STORED = ROOT / "benchmarks" / "results" / "sparse-training-2026-11-27.jsonl"
PAGE = ROOT / "docs" / "explanation" / "gradient-window.md"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("sparse_training")


def test_words_are_files_of_shd_and_strokes_are_spikes_of_two_polarities(script, tmp_path):
    for name in ("one.h5", "again.h5"):
        script.write_words(tmp_path / name, 12, 5, 100)
    one, again = ([snnc.data.shd(tmp_path / name).map(snnc.data.Bin(steps=20, duration=1.0))] for name in ("one.h5", "again.h5"))
    (x, y), (same, _) = (next(iter(data[0].batches(12))) for data in (one, again))
    assert x.shape == (20, 12, 700)
    np.testing.assert_array_equal(x.dense(), same.dense())
    assert 0 <= y.min() < y.max() < script.WORDS
    strokes, kinds = script.strokes(4, 1, steps=10)
    assert strokes.shape == (4, 10, 2312)
    assert strokes.max() == 1
    assert len(kinds) == 4
    polarities = strokes.reshape(4, 10, 2, -1).sum(axis=(1, 3))
    assert polarities.min() > 0


def test_a_bound_on_rates_leaves_fewer_spikes_to_drop(script, monkeypatch):
    for name, value in {"STEPS": 20, "BATCH": 16}.items():
        monkeypatch.setattr(script, name, value)
    x, y = script.strokes(240, 1)
    data = script.Data(x[:192], y[:192], x[192:], y[192:], script.KINDS)
    settings = (script.Setting(3, pressure, widths=(64, 48, 32)) for pressure in (3.0, 0.0))
    bounded, free = (script.train(script.TRAININGS["5 %"], 0, data, setting) for setting in settings)
    assert 0 < bounded["dropped"] < 0.8 * free["dropped"]
    assert len(bounded["accuracy"]) == 3


def test_curves_are_drawn_and_finished_runs_are_kept(script, tmp_path):
    text = script.draw_curves({"dense": np.array([[0.1, 0.5], [0.2, 0.7]]), "1 %": np.array([[0.1, 0.2, 0.3]])})
    assert text.count("<polyline") == 2
    of = '{"data": "words", "training": "dense", "seed": 3, '
    settings = "", '"setting": {"epochs": 15, "rate": "0.002"}, '
    lines = [f'{of}{setting}"accuracy": [{number}], "dropped": 0.0}}' for number, setting in enumerate(settings)]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines))
    found = script.runs(tmp_path / "runs.jsonl")
    assert found["words", "dense", 3, script.Setting()]["accuracy"] == [0]
    assert found["words", "dense", 3, script.Setting(15, rate="0.002")]["accuracy"] == [1]
    assert script.runs(None) == {}


def test_a_layer_may_have_its_own_factor_of_the_bound(script):
    stored = script.setting_of({"pressure": [1.0, 3.0, 3.0]})
    assert stored == script.Setting(pressure=(1.0, 3.0, 3.0))
    assert script.pressures_of(stored) == (1.0, 3.0, 3.0)
    assert script.pressures_of(script.Setting(pressure=2.0)) == (2.0, 2.0, 2.0)


def test_gains_multiply_the_weights_into_a_layer(script):
    x, y = script.strokes(48, 1, steps=10)
    data = script.Data(x, y, x, y, script.KINDS)
    plain, scaled = (script.initial(data, 0, script.Setting(widths=(20, 16, 12), gains=gains)) for gains in ((1, 1, 1), (1, 1.5, 2)))
    for layer, gain in zip(script.HIDDEN, (1, 1.5, 2), strict=True):
        (one,), (other,) = (script.incoming_weights(graph)[layer] for graph in (plain, scaled))
        np.testing.assert_allclose(other.operation.weight, gain * one.operation.weight, rtol=1e-6)


@pytest.mark.wide
def test_a_capacity_may_fall_to_that_of_the_training(script, monkeypatch):
    """In the first epoch, more spikes are sent."""
    for name, value in {"STEPS": 20, "BATCH": 16}.items():
        monkeypatch.setattr(script, name, value)
    x, y = script.strokes(112, 1)
    data = script.Data(x[:96], y[:96], x[96:], y[96:], script.KINDS)
    settings = (script.Setting(1, widths=(100, 80, 60), falling=falling) for falling in (None, (100.0, 4)))
    constant, falling = (script.train(script.TRAININGS["1 %"], 0, data, setting) for setting in settings)
    assert falling["dropped"] < 0.5 * constant["dropped"]


def test_the_recipe_of_the_words_gives_the_figures_of_the_page_and_is_the_recipe_of_the_examples(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sparse_training.py", "--recipe", "words", "--results", str(STORED)])
    monkeypatch.setattr(script, "train", lambda *_: pytest.fail("all runs are stored"))
    script.main()
    said = capsys.readouterr().out
    assert "1 %: 0.1 (standard error 0.2) points below dense training at the last epoch" in said
    rows = {name: next(line for line in said.splitlines() if line.startswith(f"| {name} |")) for name in ("dense", "1 %")}
    for name, shown in (("dense", "dense | 0.003 to 0.0001"), ("1 %", "capacity 1 % | 0.006 to 0.0001")):
        cells = [cell.strip() for cell in rows[name].split("|")[2:-1]]
        assert f"| {shown} | {' | '.join(cells[i] for i in (0, 1, 2, 3, 4, 6, 7))} |" in PAGE.read_text(encoding="utf-8")
    setting = script.RECIPES["words"].setting
    recipe = tomllib.loads((ROOT / "examples" / "papers" / "sparse_words.toml").read_text(encoding="utf-8"))
    assert (recipe["epochs"], recipe["batch"], recipe["learning_rate"]) == (setting.epochs, setting.batch, setting.rate)
    assert recipe["gradient_window"] == f"exponential:{script.WIDE:g},{script.NARROW:g},{setting.factor:g}"
    assert recipe["data"]["duration"] == script.SECONDS


def test_the_recipe_of_the_strokes_gives_the_figures_of_the_page(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sparse_training.py", "--recipe", "strokes", "--results", str(STORED)])
    monkeypatch.setattr(script, "train", lambda *_: pytest.fail("all runs are stored"))
    script.main()
    said = capsys.readouterr().out
    assert "1 %: -0.1 (standard error 0.3) points below dense training at the last epoch" in said
    for name, shown in (("dense", "dense"), ("1 %", "capacity 1 %, six epochs")):
        row = next(line for line in said.splitlines() if line.startswith(f"| {name} |"))
        cells = [cell.strip() for cell in row.split("|")[2:-1]]
        wanted = f"| {shown} | {' | '.join(cells[i] for i in (0, 1, 2, 4, 6, 10, 11))} |".replace("|  |", "| |")
        assert wanted in PAGE.read_text(encoding="utf-8")


def test_the_spikes_at_the_start_are_those_of_the_reference(script, monkeypatch):
    monkeypatch.setattr(script, "BATCH", 16)
    x, y = script.strokes(16, 1, steps=20)
    data = script.Data(x, y, x, y, script.KINDS)
    setting = script.Setting(widths=(40, 30, 20), gains=(1, 1.5, 1.5))
    for fluctuating in (False, True):
        training = replace(script.TRAININGS["dense"], fluctuating=fluctuating)
        program = lower(script.first_weights(training, data, 0, setting))
        found = measure_activity(program, {"x0": x.swapaxes(0, 1).astype(np.float32)}, "the strokes").mean
        fired = script.firing(training, 0, data, setting)
        for number, (width, (spikes, sent)) in enumerate(zip(setting.widths, fired, strict=True)):
            assert sent == spikes
            assert spikes == pytest.approx(width * found[f"p{number}_o0"], rel=1e-5)
    (spikes, sent), *_ = script.firing(script.TRAININGS["1 %"], 0, data, setting)
    assert spikes == fired[0][0] > sent > 0
