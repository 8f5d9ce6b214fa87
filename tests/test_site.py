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
from page_blocks import blocks
from wide import examples

import snnc
from snnc.cli.main import make_app
from snnc.compiler.ir import graph, step_operations
from snnc.compiler.neurons.expression import FUNCTIONS

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
NAMES = ROOT / "docs" / "reference" / "python"


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


def code_of(page):
    return "\n".join(block.code for block in blocks(page) if block.language == "python")


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
        assert [n for n in names if not re.search(rf"\b(snnc\.)?{re.escape(n)}\b", code_of(page))] == [], page


@pytest.mark.representative("own-network")
@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    if any("torch" in "".join(cell["source"]) for cell in cells):
        pytest.importorskip("snntorch")
    scope = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        code = "".join(cell["source"])
        for whole, few in (("samples(600)", "samples(100)"), ("epochs=6", "epochs=1")):
            code = code.replace(whole, examples(few, whole))
        exec(compile(code, f"{notebook.name}, cell {number}", "exec"), scope)


def test_the_map_shows_what_the_code_imports(stage):
    pytest.importorskip("grimp")
    house = importlib.import_module("house")
    packages = house.packages(house.imports())
    assert (ROOT / "docs" / "map.md").read_text() == house.page(packages), "run: python docs/site/house.py"
    assert (ROOT / "docs" / "images" / "house.svg").read_text() == house.picture(packages), "run: python docs/site/house.py"
    assert not {(a[0], b[0]) for a, b in packages.edges} & {("compiler", "api"), ("compiler", "backends"), ("frontends", "backends")}


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
        for block in [block.code for block in blocks(page) if block.language == "sh"]:
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


def test_every_block_says_what_it_is():
    """Python and shell run, or say why not; text is output; settings are read; changes and C++ are those of docs/extending.md."""
    found = {(page.relative_to(ROOT).as_posix(), block.language): block for page in PAGES for block in blocks(page)}
    assert {language for _, language in found} <= {"python", "sh", "text", "toml", "diff", "cpp"}
    assert {page for page, language in found if language in ("diff", "cpp")} == {"docs/extending.md"}
    for (page, language), block in found.items():
        assert block.runs or language in ("python", "sh"), page
        assert language != "toml" or tomllib.loads(block.code), page


def test_python_on_the_pages_is_python_and_its_names_of_snnc_exist():
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python":
                compile(block.code, str(page), "exec")
        for name in set(re.findall(r"\bsnnc\.([A-Za-z_]\w*)", code_of(page))) - {"compiler", "frontends", "backends", "torch", "driver"}:
            assert hasattr(snnc, name), (page, name)
