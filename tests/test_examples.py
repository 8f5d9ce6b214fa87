"""The shipped examples do what the documentation says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import snnc

DIGITS = Path(__file__).parents[1] / "examples" / "digits"


@pytest.fixture(scope="module")
def data():
    return np.load(DIGITS / "digits.npz")


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    subprocess.run([sys.executable, str(DIGITS.parent / "papers" / "make.py"), str(folder)], check=True, timeout=300)
    return folder


def snnc_command(arguments, folder):
    """Return what a command prints."""
    command = [sys.executable, "-m", "snnc", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_digits_are_small_and_binary(data):
    assert sum(f.stat().st_size for f in DIGITS.iterdir()) < 500_000
    for name in ("x", "test_x"):
        assert data[name].dtype == np.uint8
        assert data[name].max() == 1
        assert (data[name].sum(axis=1) <= 1).all()
    assert len(data["test_x"]) == json.loads((DIGITS / "digits.json").read_text())["test_samples"]


def test_the_imported_network_is_as_accurate_as_snntorch_says(data):
    facts = json.loads((DIGITS / "digits.json").read_text())
    with snnc.compile(DIGITS / "digits.onnx") as session:
        assert session.evaluate(data["test_x"], data["test_y"]) == pytest.approx(facts["test_accuracy"], abs=1e-9)


def test_the_main_job_runs_trains_and_reports(tmp_path, codelets_as_for_users):
    command = [sys.executable, str(DIGITS / "main_job.py"), "--folder", str(tmp_path / "digits")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = [float(n) for n in re.findall(r"accuracy (0\.\d+)", done.stdout.split("digits on ")[-1])]
    torch, compiled, trained = numbers
    assert compiled == pytest.approx(torch, abs=0.003)
    assert trained > 0.85
    before, after = (float(n) for n in re.findall(r"loss (\d\.\d+)\n", done.stdout.split("digits on ")[-1]))
    assert after < before
    assert "<svg" in (tmp_path / "report.html").read_text() or "canvas" in (tmp_path / "report.html").read_text()
    for file in ("project.json", "plan.json", "codelets.cpp", "host.cpp", "model/graph.json"):
        assert (tmp_path / "digits" / file).exists()


def test_the_emulated_machine_gives_the_numbers_of_the_reference(data):
    x = {"spikes": data["test_x"][:8].swapaxes(0, 1)}
    with snnc.compile(DIGITS / "digits.onnx", target="gc200", batch=4) as one, snnc.compile(DIGITS / "digits.onnx") as two:
        assert (one.run(x)["fired"] == two.run(x)["fired"]).all()
        assert one.project.exists()
    assert not one.project.exists()


@pytest.mark.parametrize(("project", "recipe", "least"), [("sparse", "sparse_bptt", 0.7), ("codes", "population_codes", 0.85)])
def test_the_recipe_of_each_paper_trains(papers, project, recipe, least):
    done = snnc_command(["train", f"{project}/", "--recipe", f"{recipe}.toml", "--json"], papers)
    assert json.loads(done)["validation"]["accuracy"][-1] > least
