"""``snnc bench``: rows that external checks read, each from a separate process; a failure is also a row."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from snnc.benchmarks import subprocesses, suites
from snnc.benchmarks.growth import draw_growth
from snnc.benchmarks.measure import measure
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.suites import SuiteTask, at_another_clock, derived_row, run, strategies, tasks
from snnc.benchmarks.table import compile_lines, mapping_lines
from snnc.cli import main as cli

KEYS = {"net", "target", "strategy", "step_cycles", "bound_cycles", "compile_s", "peak_rss_mb"}


def test_the_mapping_suite_compares_all_strategies_on_all_kinds_of_networks():
    chosen = tasks("mapping")
    nets = {task.net for task in chosen}
    assert {"w1", "w2", "dvs-conv", "random-10k", "shd-x16-n8-a5"} <= nets
    assert sum(net.startswith("logged-") for net in nets) == 12
    assert {task.target for task in chosen if task.net == "logged-h2-a1"} == {"gc200", "bow"}
    for net in nets:
        assert {task.strategy for task in chosen if task.net == net} == set(strategies())
    assert all(task.emit == (task.strategy == "snnc") for task in chosen)


@pytest.mark.parametrize(("there", "name"), [(True, "metis"), (False, "greedy")])
def test_the_own_partition_is_never_called_metis(monkeypatch, there, name):
    monkeypatch.setattr(suites, "has_metis", lambda: there)
    assert strategies() == ("snnc", "published", "linear", "random", name)


def test_a_row_is_measured_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = run(SuiteTask("logged-h5-a1", "linear", "bow", False))
    assert set(row) >= KEYS
    assert (row["net"], row["target"], row["strategy"], row["clock_ghz"]) == ("logged-h5-a1", "bow", "linear", 1.85)
    assert 0 < row["bound_cycles"] <= row["step_cycles"]
    assert row["predicted_ms"] == pytest.approx(row["step_cycles"] / 1.85e6)
    assert row["logged_ms"] > 0
    assert 20 < row["peak_rss_mb"] < 4000
    assert 0 < row["compile_s"] < 600
    assert os.listdir() == []


def test_at_another_clock_the_same_plan_takes_other_milliseconds():
    measured = {target: measure("logged-h5-a1", "linear", target) for target in ("gc200", "bow")}
    derived = at_another_clock([measured["gc200"]], SuiteTask("logged-h5-a1", "linear", "bow", False))
    own = {"compile_s", "cpu_s", "map_s", "peak_rss_mb", "same_plan_as"}
    assert derived["same_plan_as"] == "gc200"
    assert derived["memory_bytes"] == measured["bow"]["memory_bytes"]
    own |= {"memory_bytes"}
    assert {k: v for k, v in derived.items() if k not in own} == pytest.approx({k: v for k, v in measured["bow"].items() if k not in own})
    assert at_another_clock([measured["gc200"]], SuiteTask("logged-h5-a1", "random", "bow", False)) is None
    assert at_another_clock([measured["gc200"]], SuiteTask("logged-h5-a1", "linear", "gc2", False)) is None


def test_a_network_that_stands_in_two_grids_is_measured_once():
    one, other = (
        replace(found, name="", suite="", build=None, build_dense=None, published=replace(found.published, name=""))
        for found in (benchmark("shd-n4-b3-a5"), benchmark("shd-x1-n4-a5"))
    )
    assert one == other
    row = {"net": "shd-n4-b3-a5", "strategy": "linear", "target": "gc200", "fits": False, "step_cycles": 3.0}
    again = row | {"net": "shd-x1-n4-a5", "same_plan_as": "shd-n4-b3-a5"}
    assert derived_row([row], SuiteTask("shd-x1-n4-a5", "linear", None, False)) == again
    for net, strategy in (("shd-x1-n4-a5", "random"), ("shd-x1-n2-a5", "linear"), ("shd-x2-n4-a5", "linear"), ("shd-n4-b2-a5", "linear")):
        assert derived_row([row], SuiteTask(net, strategy, None, False)) is None


def test_compile_seconds_of_snnc_go_to_the_emitted_project():
    row = measure("w1-ff", "snnc", emit=True)
    assert row["emitted"]
    assert 0 < row["emit_s"] < row["compile_s"]
    assert row["map_s"] + row["emit_s"] == pytest.approx(row["compile_s"], rel=0.2)


def test_the_published_program_has_a_row_of_its_own_model():
    row = measure("logged-h2-a1", "published")
    low, high = row["predicted_ms_band"]
    assert low <= row["predicted_ms"] <= high
    assert row["predicted_ms"] <= row["predicted_ms_full"]
    assert row["bound_cycles"] is None
    refused = measure("random-10k", "published")
    assert "chains of dense layers" in refused["error"]
    assert refused["step_cycles"] is None


def test_a_process_that_dies_is_a_row_with_an_error(monkeypatch):
    real = subprocess.run
    dying = [sys.executable, "-c", "raise SystemExit('no memory')"]
    monkeypatch.setattr(subprocesses.subprocess, "run", lambda command, **options: real(dying, **options))
    row = run(SuiteTask("w1", "snnc", None, True))
    assert KEYS - {"compile_s", "peak_rss_mb"} <= set(row)
    assert row["error"] == "no memory"
    assert not row["fits"]


def test_a_process_that_takes_too_long_is_given_up():
    row = run(SuiteTask("w1", "snnc", None, False), seconds=0.01)
    assert "longer than" in row["error"]
    assert row["target"] == "gc200"


ROWS = [
    {"net": "a", "target": "gc200", "strategy": "snnc", "fits": True, "step_cycles": 100.0, "bound_cycles": 80.0, "ideal_cycles": 5.0}
    | {"balance": 0.8, "step_ms": 1.0, "peak_tile_bytes": 2048, "compile_s": 1.5, "peak_rss_mb": 90.0, "logged_ms": 4.0},
    {"net": "a", "target": "gc200", "strategy": "linear", "fits": True, "step_cycles": 250.0, "bound_cycles": 80.0, "step_ms": 2.5},
    {"net": "a", "target": "gc200", "strategy": "random", "fits": False, "step_cycles": None, "peak_tile_bytes": 10**6, "error": "too big"},
]


def test_the_table_holds_the_balance_and_every_baseline_over_snnc():
    head, row, error = mapping_lines(ROWS)
    assert head.split()[-8] != ""
    cells = row.split()
    assert cells[:4] == ["a", "gc200", "1", "0.80"]
    assert "0.25" in cells
    assert cells[-3:] == ["x", "977", "KiB!"]
    assert "2.50" in cells
    assert error == "a, random: too big"


def test_growth_is_listed_and_drawn_from_small_to_large():
    rows = [
        {"net": f"n{k}", "target": "gc200", "fits": True, "weights": 10**k, "neurons": 10, "tiles_used": 5, "compile_s": 10.0 ** (k - 6)}
        | {"emit_s": 0.1, "peak_rss_mb": 100.0 * k}
        for k in (7, 5, 6)
    ]
    *lines, powers = compile_lines(rows)
    assert [line.split()[0] for line in lines] == ["net", "n5", "n6", "n7"]
    assert powers == "CPU seconds grow as weights^1.00 (1 is linear)"
    root = ET.fromstring(draw_growth([*rows, {"net": "bad", "fits": False, "error": "no"}]))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert len(titles) == 3 * 3
    first, linear = [p.get("points") for p in root.iter("{http://www.w3.org/2000/svg}polyline")][:2]
    assert first.split()[0] == linear.split()[0]
    assert first.split()[-1] == linear.split()[-1]


def test_rows_are_written_as_json_and_progress_goes_to_stderr(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        suites, "run", lambda task: {"net": task.net, "strategy": task.strategy, "fits": False, "step_cycles": None, "error": "x"}
    )
    assert cli.run_command(["bench", "--nets", "w1", "--json", str(tmp_path / "rows.json")]) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["strategy"] for row in rows] == list(strategies())
    captured = capsys.readouterr()
    assert captured.err.count("w1 ") == len(rows)
    assert captured.out.startswith("net ")


def test_what_ends_a_run_leaves_the_rows_before(tmp_path, monkeypatch):
    def run_one(task):
        if task.strategy == "linear":
            raise KeyboardInterrupt
        return {"net": task.net, "strategy": task.strategy, "fits": False, "step_cycles": None, "error": "x"}

    monkeypatch.setattr(suites, "run", run_one)
    file = tmp_path / "rows.json"
    kept = []
    monkeypatch.setattr("snnc.cli.commands.bench.note", lambda text: kept.append(file.exists()))
    assert cli.run_command(["bench", "--nets", "w1", "--json", str(file)]) != 0
    assert kept == [False, True]
    assert [row["strategy"] for row in json.loads(file.read_text())["rows"]] == ["snnc", "published"]


def test_names_are_listed_and_nothing_runs(capsys):
    assert cli.run_command(["bench", "--list", "--nets", "w*"]) == 0
    assert capsys.readouterr().out.split() == ["w1", "w1-ff", "w2"]
    assert cli.run_command(["bench", "--list", "--suite", "compile", "--nets", "w2,logged-h2-a1"]) == 0
    assert capsys.readouterr().out.split() == ["logged-h2-a1", "w2"]
    assert cli.run_command(["bench", "--list", "--nets", "w2,nothing-*,none"]) == 2
    assert "no benchmark matches 'nothing-*', 'none'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--suite", "speed"], ["--nets", "nothing-*"], ["--plot", "x.svg"], ["--suite", "compile", "--plot", "x.png"]]
)
def test_what_cannot_be_measured_is_one_coded_line(capsys, arguments):
    assert cli.run_command(["bench", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: SNNC-E545: ")
