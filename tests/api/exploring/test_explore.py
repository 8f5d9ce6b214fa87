"""``snnc explore``: every point of the grid, with the reason if it does not fit, as table, JSON and drawing."""

import contextlib
import io
import json
import os
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import snnc
from snnc.cli import main as cli
from snnc.compiler.tiles import misfit_errors
from snnc.errors import ExploreError
from snnc.exploring.plot import draw


def machines(folder):
    """Two small machines of their own kind, so that nobody looks for a larger one."""
    text = (files("snnc.compiler.machines") / "gc200.toml").read_text()
    text = (
        text.replace('"ipu2"', '""')
        .replace("tiles_per_chip = 1472", "tiles_per_chip = 16")
        .replace("tile_bytes = 638976", "tile_bytes = 40000")
    )
    for name in ("tiny", "other"):
        (folder / f"{name}.toml").write_text(text.replace('name = "gc200"', f'name = "{name}"'))


def network():
    return snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")


@pytest.fixture(scope="module", autouse=True)
def _in_haste():
    """What would help where a point does not fit is told elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(misfit_errors, "find_remedies", lambda *_: ())
        yield


def write_model(folder):
    snnc.write_onnx(network().graph(), folder / "small.onnx")
    machines(folder)
    return "small.onnx"


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_model(tmp_path)


def run(*arguments):
    return cli.run_command(["explore", *map(str, arguments)])


GRID = ("--targets", "tiny.toml,other.toml", "--batch", "1,5000", "--activity", "0.5", "--steps", 9)
MODELS = ["other.toml", "small.onnx", "tiny.toml"]


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """What the command says of the grid, and the folder of what it writes."""
    folder = tmp_path_factory.mktemp("explored")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
        assert run(write_model(folder), *GRID, "--json", "found.json", "--plot", "found.svg") == 0
    return said.getvalue(), folder


@pytest.mark.wide
def test_every_combination_is_a_row_and_misfits_say_why(explored):
    said, folder = explored
    rows = said.splitlines()[1:]
    points = json.loads((folder / "found.json").read_text())["points"]
    assert len(rows) == len(points) == 4
    assert {(p["asked"], p["batch"], p["assumed_activity"]) for p in points} == {
        (t, b, a) for t in ("tiny.toml", "other.toml") for b in (1, 5000) for a in (0.5,)
    }
    for row, point in zip(rows, points, strict=True):
        assert point["fits"] == (point["batch"] == 1)
        assert ("does not fit" in row) == (not point["fits"])
        if point["fits"]:
            assert 0 < point["bound_cycles"] <= point["step_cycles"]
            assert point["samples_per_s"] > 0
            assert 0 < point["peak_tile_bytes"] <= point["tile_bytes"]
        else:
            assert point["code"] == "SNNC-E313"
            assert "bytes" in point["reason"]
        assert point["point_s"] >= 0
    assert sorted(os.listdir(folder)) == sorted(["found.json", "found.svg", *MODELS])


def test_points_are_the_estimates_of_their_combination(model):
    asked = ("other.toml", "tiny.toml")
    points = snnc.explore(network(), asked, batches=[2, 5], activities=[None, 0.2], steps=9)
    assert [(p.target, p.batch, p.activity) for p in points] == [(t, b, a) for t in asked for b in (2, 5) for a in (None, 0.2)]
    for point in points[::3]:
        alone = snnc.estimate(network(), point.target, steps=9, batch=point.batch, activity=point.activity)
        assert point.estimate.plan == alone.plan


def test_json_on_stdout_is_pure(model, capsys):
    assert run(model, "--targets", "gc200", "--steps", 9, "--json", "-") == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["points"]) == 1
    assert captured.err.startswith("target ")


@pytest.mark.wide
def test_the_drawing_holds_a_mark_for_each_point_in_each_panel(explored):
    root = ET.parse(explored[1] / "found.svg").getroot()
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert len(titles) == 3 * 4
    assert sum("does not fit" in t for t in titles) == 3 * 2
    assert all(f"{t}, batch {b}" in " ".join(titles) for t in ("tiny.toml", "other.toml") for b in (1, 5000))


def test_the_page_needs_nothing_from_elsewhere(model):
    assert run(model, "--targets", "tiny.toml", "--batch", "1,5000", "--steps", 9, "--plot", "found.html") == 0
    page = Path("found.html").read_text()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            assert tag not in ("script", "link", "img", "iframe")
            assert not {"src", "href"} & {name for name, _ in attributes}

    Tags().feed(page)
    assert page.count("<tr>") == 3


def test_names_of_models_are_text_in_the_drawing():
    points = snnc.explore(network(), ["gc200"], steps=9)
    for fmt in ("svg", "html"):
        drawn = draw(points, "<script>alert(1)</script>", fmt)
        assert "<script>" not in drawn


@pytest.mark.representative("varying0", "varying1")
@pytest.mark.parametrize("varying", [{"batches": [4]}, {"activities": [0.1, 0.2]}, {"targets": ["gc200", "bow", "gc2"]}])
def test_any_one_axis_can_be_drawn(varying):
    points = snnc.explore(network(), **{"targets": ["gc200"], **varying}, steps=9)
    root = ET.fromstring(draw(points, "n", "svg"))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) >= 3 * len(points)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--batch", "1,x"], "SNNC-E544"),
        (["--batch", ","], "SNNC-E544"),
        (["--activity", "a"], "SNNC-E544"),
        (["--targets", ","], "SNNC-E544"),
        (["--targets", "gc200,reference"], "SNNC-E544"),
        (["--plot", "found.pdf"], "SNNC-E544"),
        (["--targets", "gc3000"], "SNNC-E301"),
        (["--batch", "0"], "SNNC-E528"),
        (["--activity", "7"], "SNNC-E528"),
        (["--mode", "lossy"], "SNNC-E528"),
    ],
)
def test_what_cannot_be_explored_is_one_coded_line(model, capsys, arguments, code):
    assert run(model, "--steps", 9, *arguments) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {code}: ")
    assert sorted(os.listdir()) == MODELS


def test_nothing_to_explore_is_refused():
    with pytest.raises(ExploreError, match="target"):
        snnc.explore(network(), [], steps=9)
