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
def pages(tmp_path_factory):
    """The report of a project for each kind of target, two plans side by side, and an exploration."""
    folder = tmp_path_factory.mktemp("pages")
    net = snnc.Network("net")
    source, hidden, readout = net.input(6), net.population(12, snnc.LIF(), name="hidden"), net.population(3, snnc.LI(), name="readout")
    net.connect(source, hidden, snnc.Dense())
    net.connect(hidden, readout, snnc.Dense())
    snnc.write_onnx(net.graph(), folder / "net.onnx")
    for target in ("gc200", "bow", "cpu", "cuda", "poptorch"):
        call("compile", folder / "net.onnx", "--target", target, *OPTIONS, "-o", folder / target)
        call("inspect", folder / target, "-o", folder / f"{target}.html")
    call("inspect", folder / "gc200", "--compare", folder / "bow", "-o", folder / "comparison.html")
    call("explore", folder / "net.onnx", "--targets", "gc200,bow", "--batch", "1,8", "--steps", 8, "--plot", folder / "explore.html")
    return folder


@pytest.mark.representative("gc200-1300-light", "gc200-420-dark", "cpu-1300-light", "explore-1300-light")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0]}-{'dark' if form[1] else 'light'}")
@pytest.mark.parametrize("name", ["gc200", "cpu", "cuda", "poptorch", "comparison", "explore"])
def test_axe_finds_nothing_serious(pages, name, form):
    width, dark = form
    with opened(pages / f"{name}.html", width=width, dark=dark) as one:
        assert serious(one) == []
        assert one.said == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
