"""The code on the pages runs: Python as it stands but with few steps and on the reference, and the commands of snnc."""

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from page_blocks import CLASSES, INPUTS, ON_TILES, STEPS, blocks, commands, network, samples, write_files

import snnc
from snnc.cli.main import run_command

ROOT = Path(__file__).parents[1]
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")] if ".cache" not in p.parts)
FRAMEWORKS = ("torch", "norse", "snntorch", "spikingjelly", "tensorboard")
ELSEWHERE = {"README.md": "tests/test_docs.py", "docs/extending.md": "tests/test_extending.py"}
"""Pages whose Python has a test of its own."""
RUN_BY = {
    "./demo": ".ci/newest",
    "./test": ".ci/newest",
    "apt-get install": "containers/cpu.Containerfile",
    "python3 -m venv": "containers/cpu.Containerfile",
    ". .venv": "containers/cpu.Containerfile",
    "pip install .": ".ci/environment",
    "uvx --from": ".ci/release",
    "pipx run": ".ci/release",
    "podman build": ".ci/containers",
    "podman run": ".ci/containers",
    "snnc --install-completion": "tests/api/cli/test_completion.py",
    "snnc bench": "tests/benchmarks/test_bench_cpu.py",
    "snnc reproduce": "tests/api/cli/test_command_options.py",
    "snnc emulate": "examples/poplar_program/poplar_program.py",
    "python examples/": "tests/test_examples.py",
}
"""Commands that no test of this file runs, by how they begin, and the file that does."""
SIZES = {"data-sets": (140, 10), "limit-spikes": (2312, 10), "train-on-the-processor": (700, 20)}
"""Inputs and outputs of the network, where the code of a page says how many there are."""
SMALLER = {
    "limit-spikes": (("Dense(512)", "Dense(16)"), ("steps=50", f"steps={STEPS}")),
    "training-recipes": (('    tensorboard="runs/1",\n', ""),),  # needs tensorboardX
    "digits": (('data["x"], data["y"]', 'data["x"][:64], data["y"][:64]'),),
}
FEWER = {"gc200,bow,pod4": "gc200,bow", "1,16,64": "1,16", "0.01,0.1": "0.1"}
"""Values of options of `snnc explore`, and those with which it runs here."""
OF_THE_REFERENCE = ("-o", "--batch", "--steps", "--loss", "--optimizer", "--surrogate")
"""Options of `snnc compile` that every target has."""
WHOLE = ("coming-from", "reference/python", "front.md")
"""Pages whose code stands by itself: nothing is there before it, and nothing in it is made smaller."""


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def with_code(language):
    return [p for p in PAGES if any(b.language == language and b.runs for b in blocks(p))]


def smaller(code, page):
    """Return the code with few steps, and with the NumPy reference in place of targets that build a program."""
    code = re.sub(r'((?:target=|\w, )")(?:gc200|cpu|cuda)"', r'\1reference"', code).replace("steps=100", f"steps={STEPS}")
    for old, new in SMALLER.get(page.stem, ()):
        code = code.replace(old, new)
    return code


def as_run(arguments):
    """Return the commands for one of a page.

    A project of a target that builds programs is kept apart for `inspect`, and compiled for the reference, which builds none.
    """
    words = [re.sub(r"^(5|20|100)$", "2", word) if before == "--epochs" else word for before, word in pairwise(["", *arguments])]
    words = [FEWER.get(word, word) if words[0] == "explore" else word for word in words]
    if words[0] == "inspect" and words[1] == "build/":
        yield [words[0], ON_TILES, *words[2:]]
    elif words[0] == "compile" and "-o" in words and words[words.index("--target") + 1] != "reference":
        yield [*words, "-o", ON_TILES]
        kept = [part for name, value in pairwise(words) if name in OF_THE_REFERENCE for part in (name, value)]
        yield [words[0], words[1], "--target", "reference", *kept]
    else:
        yield words


def session_of(page):
    """Return an open session of the network."""
    return snnc.compile(network(*SIZES.get(page.stem, ())), loss="ce_mean_membrane", optimizer="adam")


def scope_of(page):
    """What a reader of a how-to page has: the names that its code uses without making them."""
    sizes = SIZES.get(page.stem, (INPUTS, CLASSES))
    x, y = samples(sizes[0])
    firing = {"sample": [0, 0, 3], "step": [0, 2, 1], "neuron": [5, 1, 0]}  # events of a recording
    begin, ids = np.arange(0, 3 * len(x) * STEPS + 1, 3), np.tile([1, 5, 9], len(x) * STEPS)  # three in each step of each sample
    return {
        "__name__": "page", "snnc": snnc, "np": np, "os": os, "net": network(*sizes), "session": session_of(page), "x": x, "y": y,
        "test_x": x[:16], "test_y": y[:16], "x_held": x[:16], "y_held": y[:16], "samples": len(x), "steps": STEPS,
        **{name: np.array(values) for name, values in firing.items()}, "begin": begin, "ids": ids,
    }  # fmt: skip


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_files(folder)
    return folder


@pytest.fixture
def folder_of_a_reader(files, tmp_path, monkeypatch):
    """A folder with the files that pages name; what a page writes stays in it."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [p for p in with_code("python") if name_of(p) not in ELSEWHERE], ids=lambda p: p.stem)
def test_the_python_of_a_page_runs(page, folder_of_a_reader):
    found = [block.code for block in blocks(page) if block.language == "python" and block.runs]
    for framework in FRAMEWORKS:
        if re.search(rf"^(import|from) {framework}", "".join(found), re.M):
            pytest.importorskip(framework)
    if any(part in name_of(page) for part in WHOLE):
        exec(compile("\n".join(found), str(page), "exec"), {"__name__": "page"})
        return
    scope = scope_of(page)
    for block in found:
        if scope["session"]._closed:
            scope["session"] = session_of(page)
            scope["session"].save("run.safetensors", optimizer=True)
        scope["x"], scope["y"] = samples(SIZES.get(page.stem, (INPUTS, CLASSES))[0])
        exec(compile(smaller(block, page), str(page), "exec"), scope)


@pytest.mark.parametrize("page", with_code("sh"), ids=lambda p: p.stem if p.stem != "README" else p.parent.name)
def test_the_commands_of_a_page_run(page, folder_of_a_reader, files, capsys):
    if page.stem in SIZES:
        snnc.compile(network(*SIZES[page.stem]), loss="ce_mean_membrane", optimizer="adam", steps=STEPS, output="build").close()
    for block in [block for block in blocks(page) if block.language == "sh" and block.runs]:
        if page.stem == "cli":  # each block is an example of another command
            shutil.copytree(files, folder_of_a_reader, dirs_exist_ok=True)
        for words in commands(block):
            line = " ".join(words)
            if words[:2] == ["python", "-c"]:
                exec(words[2], {})
                continue
            if any(line.startswith(start) for start in RUN_BY):
                continue
            assert words[0] == "snnc", f"{line}: run it, or say in the block's title why it is not run"
            for arguments in as_run(words[1:]):
                assert run_command(arguments) == 0, (line, capsys.readouterr().err)


def test_what_other_files_run_is_in_them():
    for start, place in RUN_BY.items():
        assert re.findall(r"[\w-]{3,}", start)[-1] in (ROOT / place).read_text(), (start, place)
    for page, place in ELSEWHERE.items():
        assert re.search(rf"{Path(page).name}|from extended import", (ROOT / place).read_text()), place
