"""The documentation agrees with the code."""

import doctest
import importlib
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reference_pages import reference
from wide import examples

ROOT = Path(__file__).parents[1]
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")] if ".cache" not in p.parts)
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", ["errors", "cli", "options"])
def test_a_reference_page_is_what_the_code_says(name):
    text = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    assert text == getattr(reference(), f"{name}_page")(), "run: python docs/reference/make_reference.py"


def test_the_reference_page_of_training_is_what_the_code_says(monkeypatch):
    """Every fifth row of its tables; all with ``--wide``."""
    made, step = reference(), examples(5, 1)
    for name in ("loss_rows", "optimizer_rows", "precision_rows"):
        every = getattr(made, name)()
        monkeypatch.setattr(made, name, lambda rows=every[::step]: rows)
    page, found = (ROOT / "docs" / "reference" / "training.md").read_text().splitlines(), made.training_page().splitlines()
    assert [line for line in found if line not in page] == [], "run: python docs/reference/make_reference.py"
    assert found == page or step > 1


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_index():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / t).resolve() for t in re.findall(r"\]\(([^)#]+)", index.read_text())}
    assert [p for p in PAGES if p.is_relative_to(ROOT / "docs") and p != index and p.resolve() not in linked] == []


def test_the_first_screen_of_the_readme_shows_exactly_two_commands():
    first = README.split("\n## ")[0]
    commands = [line for block in re.findall(r"```sh\n(.*?)```", first, re.S) for line in block.splitlines()]
    assert len(commands) == 2
    assert len(first.splitlines()) < 40
    for line in commands:
        script = ROOT / line.split()[0]
        assert script.stat().st_mode & 0o111
        subprocess.run(["sh", "-n", script], check=True)


def test_continuous_integration_calls_the_test_command_of_the_readme():
    test = re.findall(r"```sh\n(\./test)", README)
    assert test
    assert f"\n{test[0]} " in (ROOT / ".ci" / "run").read_text()


def test_the_ten_lines_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ten, own = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len([line for line in ten.split("session = ")[0].splitlines() if line]) <= 10
    ten = ten.replace('target="gc200"', 'target="reference"').replace('session.report("shd.html")', "").replace("steps=100", "steps=5")
    ten = ten.replace("epochs=10", "epochs=1")
    rng = np.random.default_rng(0)
    scope = {"x": (rng.random((64, 5, 700)) < 0.05).astype(np.uint8), "y": rng.integers(0, 20, 64)}
    exec(ten + own, scope)
    assert np.isfinite(scope["session"].fit(scope["x"], scope["y"]).losses).all()


def test_the_neuron_of_the_how_to_compiles():
    import snnc

    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "own-neuron.md").read_text(), re.S)
    scope = {}
    exec(code, scope)
    with snnc.compile(scope["net"]) as session:
        out = session.run(np.ones((6, 2, 64), np.uint8))["output"]
    assert np.isfinite(out).all()


def test_the_networks_of_the_how_to_run(capsys):
    import snnc

    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "networks-in-python.md").read_text(), re.S)
    scope = {}
    exec("".join(blocks), scope)
    assert capsys.readouterr().out.strip() == blocks[-1].split("# ")[-1].strip()
    assert scope["found"]["spikes"].any()
    for name in ("net", "digits"):
        with snnc.compile(scope[name]) as session:
            shapes = {info.label: info.shape for info in session.program.inputs}
            out = session.run({label: np.ones((6, 2, *shape), np.float32) for label, shape in shapes.items()})
        assert all(np.isfinite(value).all() and value.any() for value in out.values())


def test_sizes_are_in_multiples_of_1024_bytes():
    """KiB, MiB and GiB; only rates are decimal (GB/s), as in data sheets."""
    kinds = ("api", "backends", "benchmarks", "compiler", "frontends", "templates", "docs")
    files = [f for kind in kinds for f in (ROOT / kind).rglob("*") if f.suffix in (".py", ".jinja", ".js", ".toml", ".ipynb", ".svg")]
    decimal = re.compile(r"\b[kKMG]B\b(?!/s)")
    texts = {file: file.read_text() for file in [*PAGES, *files]}
    found = [(file, text[max(0, hit.start() - 30) : hit.end() + 10]) for file, text in texts.items() for hit in decimal.finditer(text)]
    assert found == []


@pytest.mark.parametrize("name", ["network", "sequential", "connections.dense", "connections.sparse", "connections.windows"])
def test_the_examples_in_docstrings_of_the_dsl_are_right(name):
    module = importlib.import_module(f"snnc.frontends.dsl.{name}")
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted


@pytest.mark.parametrize(
    ("target", "density", "learns", "kinds"),
    [
        ("gc200", 0.2, True, {"sparse"}),
        ("gc200", 0.7, True, {"sparse"}),
        ("gc200", 0.2, False, {"sparse"}),
        ("gc200", 0.7, False, {"dense"}),
        ("cpu", 0.7, False, {"sparse"}),
        ("cpu", 0.2, True, {"sparse"}),
    ],
)
def test_sparse_connections_run_as_the_how_to_says(target, density, learns, kinds):
    import snnc
    from snnc.compiler.ir.graph import Linear, Sparse
    from snnc.options.compile_options import options

    net = snnc.Network()
    source, last = net.input(20), net.population(20, snnc.LI())
    net.connect(source, last, snnc.Sparse(density=density, learnable=learns))
    chosen = options(target, steps=4, loss="ce_mean_membrane")
    graph = chosen.backend.prepare(net.graph(), chosen.for_backend())
    found = {"dense" if isinstance(op, Linear) else "sparse" for _, op in graph.of_type(Linear, Sparse)}
    assert found == kinds
