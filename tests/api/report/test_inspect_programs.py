"""Reports of projects without tiles: the recovered network, memory, spikes and time, each with its origin."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import closed_browser, opened, serious  # noqa: F401  # a fixture that closes the browser

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.backends.folders.manifest import PROFILE
from snnc.backends.runtime.history import History
from snnc.cli import main as cli
from snnc.driver.compiling import compile_to_folder
from snnc.driver.loading import as_graph
from snnc.errors import NoTilesError
from snnc.options.compile_options import options
from snnc.report.program import read_timing, timing_of

EVIL = "</script><img src=x onerror=alert(1)>{{ 7*7 }}\x1b[31m"


def network(hidden="hidden"):
    net = snnc.Network("net")
    source = net.input(6, kind="values", name="input")
    first = net.population(12, snnc.LIF(beta=0.9), name=hidden)
    readout = net.population(3, snnc.LI(), name="readout")
    net.connect(source, first, snnc.Dense(init=snnc.Normal(std=0.8)))
    net.connect(first, readout, snnc.Dense())
    return net


def samples():
    rng = np.random.default_rng(0)
    return rng.random((20, 8, 6)).astype(np.float32), rng.integers(0, 3, 20)


def call(*arguments):
    return cli.run_command([str(a) for a in arguments])


def shown(capsys, *arguments):
    assert call(*arguments) == 0
    return capsys.readouterr().out


OPTIONS = {"loss": "ce_mean_membrane", "optimizer": "adam:0.01", "steps": 8, "batch": 4}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project for the CPU after a training, with recorded spikes."""
    folder = tmp_path_factory.mktemp("report")
    x, y = samples()
    np.savez(folder / "d.npz", x=x, y=y)
    snnc.compile(network(), target="cpu", output=folder / "p", **OPTIONS).close()
    assert call("train", folder / "p", "--data", folder / "d.npz", "--epochs", 2, "--record", 1) == 0
    return folder / "p"


def test_the_report_of_a_processor_holds_layers_memory_spikes_and_time(trained, capsys):
    found = json.loads(shown(capsys, "inspect", trained, "--format", "json"))
    assert [row["name"] for row in found["table"]] == ["input", "input_to_hidden", "hidden", "hidden_to_readout", "readout"]
    assert found["target"] == "cpu"
    assert (found["steps"], found["batch"], found["neurons"], found["kind"]) == (8, 4, 15, "training step")
    stored = 6 * 12 + 12 + 12 * 3 + 3
    assert found["memory"]["parameters"] == 4 * found["parameters"]
    assert found["parameters"] >= stored
    assert found["memory"]["predicted"] > found["memory"]["parameters"]
    assert {one["name"]: one["value"] for one in found["options"]}["optimizer"] == "adam, lr 0.01"
    measured = found["timing"]["measured"]
    assert measured["updates"] == 5
    assert measured["batch"] == 4
    assert measured["milliseconds"] == pytest.approx(1e3 * measured["seconds"] / 5)
    assert measured["samples_per_second"] == pytest.approx(20 / measured["seconds"])
    (fired,) = found["recording"]["activity"]
    assert fired["label"] == "hidden"
    with snnc.open(trained) as session:
        x, _ = samples()
        recording = session.record_samples(x, 1)
    assert fired["measured"] == pytest.approx(len(recording.trains[0].ids) / (8 * 12))


def test_the_text_labels_what_is_predicted_counted_and_measured(trained, capsys):
    text = shown(capsys, "inspect", trained, "--format", "text")
    for wanted in ("v[t] = 0.9 v[t-1]", "predicted", "counted", "measured, fastest epoch", "activity (measured)", "assumptions"):
        assert wanted in text
    with snnc.open(trained) as session:
        assert "net: a training step on cpu" in session.report_text("text")


@pytest.mark.wide  # test_accessible_pages.py opens such a page too
def test_the_page_is_drawn_in_a_browser_wide_and_narrow(trained, capsys):
    assert "wrote" in shown(capsys, "inspect", trained)
    for width, dark in ((1300, False), (420, True)):
        with opened(trained / "report.html", width=width, dark=dark) as one:
            one.page.wait_for_timeout(100)
            assert one.said == []
            assert one.page.evaluate("document.documentElement.scrollWidth") <= width
            assert one.page.locator(".raster").count() == 1
            assert len(one.colours(".raster canvas")) > 1
            assert [p for p in one.page.locator("canvas").all() if not p.get_attribute("aria-label")] == []
            assert serious(one) == []
            heads = one.page.locator("section h2").all_inner_texts()
            assert [head.split(" ")[0] for head in heads] == ["Layers", "What", "How", "Activity"]
            one.page.click("table.sortable th >> nth=0")
            assert one.page.get_attribute("table.sortable th >> nth=0", "aria-sort") == "descending"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)


@pytest.mark.parametrize("target", ["cpu", "cuda", "reference"])
def test_names_are_text_on_every_target_without_tiles(target, tmp_path, capsys):
    compile_to_folder(as_graph(network(EVIL)), options(target, **OPTIONS), tmp_path / "p")
    text = shown(capsys, "inspect", tmp_path / "p", "--format", "text")
    shown(capsys, "inspect", tmp_path / "p")
    tags = Tags()
    tags.feed((tmp_path / "p" / "report.html").read_text())
    assert "img" not in tags.found
    assert tags.found.count("script") == 2
    assert "\x1b" not in text
    assert "not measured" in text
    assert "not predicted" in text if target == "reference" else re.search(r"a training step of 8 steps, 4 samples +[\d.]+ ", text)
    found = json.loads(shown(capsys, "inspect", tmp_path / "p", "--format", "json"))
    assert found["timing"] is None
    assert (found["memory"] is None) == (target == "reference")


def test_the_report_of_a_gpu_draws_its_launches_as_predicted(tmp_path, capsys):
    folder = tmp_path / "p"
    compile_to_folder(as_graph(network()), options("cuda", **OPTIONS), folder)
    schedule = json.loads(shown(capsys, "inspect", folder, "--format", "json"))["schedule"]
    emitted = json.loads((folder / "project.json").read_text())
    assert [(one["kind"], one["of"]) for one in schedule["kernels"]] == [(one["kind"], one["of"]) for one in emitted["launches"]]
    assert schedule["milliseconds"] == pytest.approx(1e-3 * (schedule["host_us"] + sum(one["us"] for one in schedule["kernels"])))
    assert max(one["share"] for one in schedule["kernels"]) == 1
    text = shown(capsys, "inspect", folder, "--format", "text")
    assert f"schedule (predicted, {schedule['card']})" in text
    shown(capsys, "inspect", folder)
    page = (folder / "report.html").read_text()
    assert page.count('<div class="bar"') == len(schedule["kernels"])


def test_times_of_kernels_stand_beside_the_predicted_ones(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    folder = tmp_path / "p"
    x, y = samples()
    np.savez(tmp_path / "d.npz", x=x, y=y)
    snnc.compile(network(), target="cuda", output=folder, **OPTIONS).close()
    assert call("train", folder, "--data", tmp_path / "d.npz", "--time-kernels") == 0
    stored = json.loads((folder / PROFILE).read_text())["kernels"]
    assert (stored["device"], stored["updates"], stored["steps"], stored["batch"]) == ("host check", 5, 8, 4)
    capsys.readouterr()
    schedule = json.loads(shown(capsys, "inspect", folder, "--format", "json"))["schedule"]
    assert [one["measured_us"] for one in schedule["kernels"]] == stored["us"]
    assert schedule["measured"]["milliseconds"] == pytest.approx(1e-3 * sum(us for us in stored["us"] if us is not None))
    text = shown(capsys, "inspect", folder, "--format", "text")
    assert "measured on host check" in text
    rows = [line for line in text.splitlines() if re.match(r"  (forward|backward|gradient|once) ", line)]
    assert all(us is None or f"{us:.1f}" in row for us, row in zip(stored["us"], rows, strict=True))
    shown(capsys, "inspect", folder)
    page = (folder / "report.html").read_text()
    assert "timed on host check in 5 steps" in page
    assert f"<td>{next(us for us in stored['us'] if us is not None):.1f}</td>" in page

    # Times that do not belong to these kernels are left out.
    kept = json.loads((folder / PROFILE).read_text())
    (folder / PROFILE).write_text(json.dumps(kept | {"kernels": stored | {"us": stored["us"][1:]}}))
    schedule = json.loads(shown(capsys, "inspect", folder, "--format", "json"))["schedule"]
    assert schedule["measured"] is None


def test_a_target_without_kernels_cannot_time_them(trained, tmp_path, capsys):
    assert call("train", trained, "--data", trained.parent / "d.npz", "--time-kernels") == 2
    error = capsys.readouterr().err
    assert "SNNC-E650" in error
    assert "the target 'cpu' has no kernels to time" in error


def test_what_draws_tiles_is_refused(trained, capsys):
    for fmt in ("svg", "png", "graphml", "dot", "trace"):
        assert call("inspect", trained, "--format", fmt) == 2
        assert "SNNC-E575" in capsys.readouterr().err
    assert call("inspect", trained, "--format", "pdf") == 2
    assert "SNNC-E315" in capsys.readouterr().err
    assert call("inspect", trained, "--compare", trained) == 2
    assert "SNNC-E575" in capsys.readouterr().err
    with snnc.open(trained) as session, pytest.raises(NoTilesError, match="cpu"):
        session.report_text("svg")


def test_open_sizes_and_damaged_times_are_said(tmp_path, capsys):
    compile_to_folder(as_graph(network()), options("cpu"), tmp_path / "p")
    assert re.search(
        r"a forward pass of \d+ steps, \d+ samples +\d.* predicted", shown(capsys, "inspect", tmp_path / "p", "--format", "text")
    )
    (tmp_path / "p" / PROFILE).write_text("{")
    assert call("inspect", tmp_path / "p") == 2
    assert "SNNC-E526" in capsys.readouterr().err


def test_times_are_read_with_suspicion():
    good = timing_of(History([1.0, 0.9], [[1.0, 1.0], [0.9, 0.9]], [0.4, 0.2], dropped=1), 9)
    assert good == {"measured": {"updates": 2, "seconds": 0.2, "milliseconds": 100.0, "samples_per_second": 40.0, "batch": 4}}
    assert read_timing(json.loads(json.dumps(good))) == good
    assert timing_of(History(), 9) is None
    for wrong in (
        None,
        [],
        {"measured": []},
        {"measured": good["measured"] | {"seconds": "<b>"}},
        {"measured": good["measured"] | {"more": 1}},
    ):
        assert read_timing(wrong) is None
    kernels = {"device": "a GPU", "updates": 3, "steps": 8, "batch": 4, "us": [None, 1.5, 2]}
    assert read_timing(good | {"kernels": kernels}) == good | {"kernels": kernels}
    for wrong in ({}, {"device": 1}, {"updates": 0}, {"updates": True}, {"us": 3}, {"us": ["1"]}, {"us": [-1.0]}, {"us": [True]}, {"x": 1}):
        assert read_timing(good | {"kernels": kernels | wrong if wrong else []}) == good
