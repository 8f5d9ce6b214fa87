"""The examples behave as documented."""

import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from wide import examples

import snnc
from snnc.cli.main import run_command

EXAMPLES = Path(__file__).parents[1] / "examples"
DIGITS = EXAMPLES / "digits"
SCRIPTS = {
    "own_neuron": r"11 spikes, the same steps .* accuracy (0\.9|1)",
    "event_convolution": r"test accuracy (0\.9|1).*predicted",
    "spoken_digits": r"validation accuracy (0\.9|1)",
    "population_code": r"25 steps,  1 neurons per class: test accuracy 0\.9.* 1 steps, 10 neurons per class: test accuracy 0\.9",
    "nir_frameworks": r"snntorch.nir: \d{3} spikes, 0 differ.*norse.nir: \d{3} spikes, 0 differ.*spikingjelly.nir: \d{3} spikes, 0 differ",
    "torchrun": r"one process: loss 1\.\d+ -> 0.*two processes: 1\.\d+ -> 0",
    "four_ipus": r"on 4 IPUs.*\(emulated\)",
    "exploring": r"pod4   batch 256 activity 0.10 .* samples/s",
    "poplar_program": r"160 spikes, the same as in NumPy",
    "papers": r"accuracy 0\.[89].*accuracy 0\.[89]",
}
"""Each example's script, in the folder of that name, and what it prints when it works; the digits' is below."""
OFTEN = ("nir_frameworks", "poplar_program", "spoken_digits")
"""Examples that ``./test`` runs. The others take 4 to 20 seconds each; continuous integration runs all of them (``.ci/wide``)."""


@pytest.fixture
def run_script(monkeypatch):
    """Run a script in this process, and the commands of snnc that it starts too: each process would import all packages again."""
    start = subprocess.run

    def run_here(command, **options):
        if command[1:3] not in (["-m", "snnc"], ["-c", "from snnc.cli.main import main; main()"]):
            return start(command, **options)
        captured = StringIO() if options.get("stdout") == subprocess.PIPE else sys.stdout
        with chdir(options.get("cwd", os.curdir)), redirect_stdout(captured):
            code = run_command(command[3:])
        if code and options["check"]:
            raise subprocess.CalledProcessError(code, command)
        printed = captured.getvalue().encode() if options.get("stdout") == subprocess.PIPE else None
        return subprocess.CompletedProcess(command, code, printed)

    def call(script, *arguments):
        monkeypatch.setattr(subprocess, "run", run_here)
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        with monkeypatch.context() as patch, redirect_stdout(StringIO()) as printed:
            patch.syspath_prepend(script.parent)
            try:
                runpy.run_path(str(script), run_name="__main__")
            finally:
                plt.close("all")
        return printed.getvalue()

    yield call
    sys.modules.pop("make", None)


@pytest.fixture(scope="module")
def data():
    return np.load(DIGITS / "digits.npz")


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


@pytest.fixture
def few_digits(tmp_path, data):
    """A copy of the digits' example with fewer samples, whose accuracy is that of the reference; the whole one with ``--wide``."""
    train, test = examples((128, 64), (len(data["x"]), len(data["test_x"])))
    facts = json.loads((DIGITS / "digits.json").read_text())
    folder = tmp_path / "example"
    folder.mkdir()
    for name in ("main_job.py", "digits.onnx"):
        shutil.copy(DIGITS / name, folder)
    few = {name: data[name][:number] for name, number in (("x", train), ("y", train), ("test_x", test), ("test_y", test))}
    np.savez(folder / "digits.npz", **few)
    if test < len(data["test_x"]):
        with snnc.compile(DIGITS / "digits.onnx") as session:
            facts["test_accuracy"] = session.evaluate(few["test_x"], few["test_y"])
    (folder / "digits.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def few_tiles(tmp_path):
    """A machine like GC200 with 64 tiles; GC200 with ``--wide``."""
    file = tmp_path / "few.toml"
    file.write_text('extends = "gc200"\nname = "few"\ntiles_per_chip = 64\n')
    return examples(file, "gc200")


def test_the_main_job_runs_trains_and_reports(tmp_path, few_digits, few_tiles, run_script):
    options = ("--folder", tmp_path / "digits", "--epochs", 1, *examples(("--batch", 16), ()), "--target", few_tiles)
    said = run_script(few_digits / "main_job.py", *options).split("digits on ")[-1]
    numbers = [float(n) for n in re.findall(r"accuracy (0\.\d+)", said)]
    torch, compiled, trained = numbers
    assert compiled == pytest.approx(torch, abs=0.003)
    assert trained > 0.85
    before, after = (float(n) for n in re.findall(r"loss (\d\.\d+)\n", said))
    assert after < before
    assert "<svg" in (tmp_path / "report.html").read_text() or "canvas" in (tmp_path / "report.html").read_text()
    assert "<rect" in (tmp_path / "picture.svg").read_text()
    for file in ("project.json", "plan.json", "codelets.cpp", "host.cpp", "model/graph.json"):
        assert (tmp_path / "digits" / file).exists()


def test_the_emulated_machine_gives_the_numbers_of_the_reference(data):
    x = {"spikes": data["test_x"][:8].swapaxes(0, 1)}
    with snnc.compile(DIGITS / "digits.onnx", target="gc200", batch=4) as one, snnc.compile(DIGITS / "digits.onnx") as two:
        assert (one.run(x)["fired"] == two.run(x)["fired"]).all()
        assert one.project.exists()
    assert not one.project.exists()


@pytest.mark.representative(*OFTEN)
@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_and_draws_its_picture(name, tmp_path, run_script):
    if name == "torchrun":
        pytest.importorskip("torch")
    said = run_script(EXAMPLES / name / f"{name}.py", tmp_path)
    assert re.search(SCRIPTS[name], said, re.S), said
    drawn = np.asarray(Image.open(tmp_path / "picture.png").convert("L"))
    shipped = Image.open(EXAMPLES / name / "picture.png")
    assert drawn.std() > 5
    assert shipped.size[0] / shipped.size[1] == pytest.approx(drawn.shape[1] / drawn.shape[0], rel=0.2)


def test_the_words_of_the_papers_train_by_their_recipe(tmp_path, monkeypatch):
    """A smaller network and fewer words."""
    monkeypatch.syspath_prepend(EXAMPLES / "papers")
    monkeypatch.chdir(tmp_path)
    make = importlib.import_module("make")
    try:
        make.make_words(tmp_path, samples=48, widths=(200, 120, 100))
    finally:
        del sys.modules["make"]
    printed = StringIO()
    with redirect_stdout(printed):
        assert run_command(["train", "words/", "--recipe", "sparse_words.toml", "--json"]) == 0
    history = json.loads(printed.getvalue())
    assert len(history["validation"]["accuracy"]) == 6
    assert history["loss"][-1] < history["loss"][0]


def test_every_folder_of_examples_has_a_page_a_script_and_a_picture_and_is_in_the_gallery():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and any(path.iterdir())}
    assert folders == {"digits", *SCRIPTS}
    gallery = (EXAMPLES / "README.md").read_text()
    for folder in folders:
        page = (EXAMPLES / folder / "README.md").read_text()
        picture = "picture.svg" if folder == "digits" else "picture.png"
        assert f"]({picture})" in page
        assert (EXAMPLES / folder / picture).stat().st_size < 200_000
        assert f"]({folder}/README.md)" in gallery
        assert f'src="{folder}/{picture}"' in gallery
        for heading in ("What it shows", "Run it", "Output", "Next steps"):
            assert f"\n## {heading}\n" in page


def test_the_readme_leads_to_the_gallery_in_one_click():
    readme = (EXAMPLES.parent / "README.md").read_text()
    assert "](examples/README.md)" in readme.split("\n## ")[0]
    assert all(f"](examples/{name}/README.md)" in readme for name in ("digits", *SCRIPTS))
