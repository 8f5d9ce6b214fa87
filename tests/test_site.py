"""The pages of the site: their position in the navigation, and their code."""

import importlib
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import typer

import snnc
from snnc.cli.main import make_app
from snnc.compiler.ir import graph, step_operations
from snnc.compiler.neurons.expression import FUNCTIONS

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
NAMES = ROOT / "docs" / "reference" / "python"
NEED_FILES = {"data.mnist", "data.nmnist", "data.dvs_gesture", "data.shd", "data.ssc", "data.verify_archive", "data.Source"}
"""Readers of published files, and the protocol of sources: no code of a page uses them."""


@pytest.fixture(scope="module")
def stage():
    sys.path.insert(0, str(SITE))
    spec = importlib.util.spec_from_file_location("stage", SITE / "stage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["stage"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SITE))
    del sys.modules["stage"]


@pytest.fixture(scope="module")
def laid_out(stage, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    stage.write(folder)
    return folder


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)


def code_of(page):
    return "\n".join(blocks_of(page))


def test_every_page_is_in_the_navigation_once(stage, laid_out):
    pages = [p.relative_to(laid_out / "pages").as_posix() for p in (laid_out / "pages").rglob("*.md")]
    nav = stage.pages_of(stage.navigation((ROOT / "docs" / "index.md").read_text()))
    assert sorted(nav) == sorted(pages)
    assert len(tomllib.loads((laid_out / "zensical.toml").read_text())["project"]["nav"]) > 5


def test_links_of_the_laid_out_pages_lead_somewhere(stage, laid_out):
    for page in (laid_out / "pages").rglob("*.md"):
        text = "".join(part for n, part in enumerate(stage.FENCE.split(page.read_text())) if n % 2 == 0)
        for _, target in stage.LINK.findall(text):
            if "://" not in target and not target.startswith("#"):
                assert (page.parent / target.partition("#")[0]).is_file(), (page, target)


def test_every_public_name_has_its_place_in_the_reference_and_its_use_in_code():
    public = {*snnc.__all__, *(f"data.{n}" for n in snnc.data.__all__), *(f"losses.{n}" for n in snnc.losses.__all__)}
    listed = {page: re.findall(r"^::: snnc\.(\S+)$", page.read_text(), re.M) for page in sorted(NAMES.glob("*.md"))}
    assert sorted(name for names in listed.values() for name in names) == sorted(public)
    for page, names in listed.items():
        unused = [n for n in names if not re.search(rf"\b(snnc\.)?{re.escape(n)}\b", code_of(page))]
        assert set(unused) <= NEED_FILES, page


RUN = [*sorted(NAMES.glob("*.md")), ROOT / "docs" / "front.md", *sorted((ROOT / "docs" / "coming-from").glob("*.md"))]
FRAMEWORKS = ("torch", "norse", "snntorch", "spikingjelly")


@pytest.mark.parametrize("page", RUN, ids=lambda p: p.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = code_of(page)
    for framework in FRAMEWORKS:
        if re.search(rf"^(import|from) {framework}", code, re.M):
            pytest.importorskip(framework)
    exec(compile(code, str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    if any("torch" in "".join(cell["source"]) for cell in cells):
        pytest.importorskip("snntorch")
    scope = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), scope)


def test_the_map_of_the_house_is_what_the_code_imports(stage):
    pytest.importorskip("grimp")
    house = importlib.import_module("house")
    rooms = house.rooms(house.imports())
    assert (ROOT / "docs" / "map.md").read_text() == house.page(rooms), "run: python docs/site/house.py"
    assert (ROOT / "docs" / "images" / "house.svg").read_text() == house.picture(rooms), "run: python docs/site/house.py"
    assert not {(a[0], b[0]) for a, b in rooms.edges} & {("compiler", "api"), ("compiler", "backends"), ("frontends", "backends")}


def test_the_grammars_name_every_operation():
    page = (ROOT / "docs" / "explanation" / "how-it-works.md").read_text()
    unions = (graph.Operation, step_operations.ForwardOp, step_operations.BackwardOp)
    named = {kind.__name__ for union in unions for kind in get_args(union)} | set(FUNCTIONS)
    assert sorted(name for name in named if not re.search(rf"\b{name}\b", page)) == []


PAGES = [p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")] if ".cache" not in p.parts]


def test_commands_and_options_on_the_pages_exist():
    group = typer.main.get_command(make_app())
    wrong, seen = [], 0
    for page in PAGES:
        for block in re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text(), re.S | re.M):
            for line in block.replace("\\\n", " ").splitlines():
                words = line.partition("#")[0].split()
                if words[:1] != ["snnc"] or len(words) < 2 or words[1].startswith("-"):
                    continue
                seen += 1
                command = group.commands.get(words[1])
                known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} if command else set()
                given = words[: words.index("--")] if "--" in words else words
                options = [w.partition("=")[0] for w in given[2:] if w.startswith("--")]
                wrong += [(page.name, line) for option in options if option not in known]
                wrong += [(page.name, line)] * (command is None)
    assert wrong == []
    assert seen > 50


def test_python_on_the_pages_is_python_and_its_names_of_snnc_exist():
    for page in PAGES:
        for code in blocks_of(page):
            compile(code, str(page), "exec")
        for name in set(re.findall(r"\bsnnc\.([A-Za-z_]\w*)", code_of(page))) - {"compiler", "frontends", "backends", "torch", "driver"}:
            assert hasattr(snnc, name), (page, name)
