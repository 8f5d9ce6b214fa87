"""Pages that a command writes, in a browser: axe-core finds nothing serious, wide and narrow, light and dark."""

import pytest
from browser import closed_browser, opened, serious  # noqa: F401  # a fixture that closes the browser

import snnc
from snnc.cli import main as cli

OPTIONS = ("--loss", "ce_mean_membrane", "--optimizer", "adam:0.01", "--steps", "8", "--batch", "4")
FORMS = [(1300, False), (420, True), (1300, True), (420, False)]


def call(*arguments):
    assert cli.run_command([str(a) for a in arguments]) == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    net = snnc.Network("net")
    source, hidden, readout = net.input(6), net.population(12, snnc.LIF(), name="hidden"), net.population(3, snnc.LI(), name="readout")
    net.connect(source, hidden, snnc.Dense())
    net.connect(hidden, readout, snnc.Dense())
    snnc.write_onnx(net.graph(), folder / "net.onnx")
    return folder


def page(folder, name):
    """Write the report of a project for a target, of two plans side by side, or of an exploration, unless it is there."""
    file = folder / f"{name}.html"
    if file.exists():
        return file
    if name == "explore":
        call("explore", folder / "net.onnx", "--targets", "gc200,bow", "--batch", "1,8", "--steps", 8, "--plot", file)
        return file
    if name == "comparison":
        call("inspect", compiled(folder, "gc200"), "--compare", compiled(folder, "bow"), "-o", file)
    else:
        call("inspect", compiled(folder, name), "-o", file)
    return file


def compiled(folder, target):
    project = folder / target
    if not project.exists():
        call("compile", folder / "net.onnx", "--target", target, *OPTIONS, "-o", project)
    return project


@pytest.mark.representative("cpu-1300-light", "cpu-420-dark", "explore-1300-light")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0]}-{'dark' if form[1] else 'light'}")
@pytest.mark.parametrize("name", ["gc200", "cpu", "cuda", "poptorch", "comparison", "explore"])
def test_axe_finds_nothing_serious(place, name, form):
    width, dark = form
    with opened(page(place, name), width=width, dark=dark) as one:
        assert serious(one) == []
        assert one.said == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
