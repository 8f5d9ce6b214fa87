"""Variants of engines in ``snnc bench --suite cuda``: prepared in parallel, tried, chosen, cached; and rows that outlast their run."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from forked_workers import workers_are_forks  # noqa: F401  # the fixture `forked`

from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.benchmarks.cpu.engine import Entry, entries
from snnc.benchmarks.cpu.workloads import DenseLayer, Workload
from snnc.benchmarks.cuda import command, lines, preparation, ways
from snnc.benchmarks.cuda.command import CudaBenchOptions
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES
from snnc.benchmarks.cuda.lines import BenchLine, SuiteSettings
from snnc.benchmarks.cuda.preparation import prepare_workloads, versions_of
from snnc.benchmarks.cuda.preparation_process import prepare_here
from snnc.benchmarks.cuda.resuming import read_rows
from snnc.benchmarks.cuda.suite import measure
from snnc.benchmarks.subprocesses import ProcessError
from snnc.cli import main as cli
from snnc.errors import BenchError

SMALL = Workload("small", 0.2, 5, 4, (12,), (DenseLayer(10, True),), 3)
LONE = Workload("lone", 0.2, 5, 4, (16,), (DenseLayer(16),), 0)
SETTINGS = SuiteSettings(2, 1, "cpu", ways.FASTEST, 60.0)


@pytest.fixture
def stub(monkeypatch, forked):
    """Entries of the stub engine, whose workers are forks."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    return lambda *variants, engine="stub", **more: Entry(engine, "exact", "bench_stub", variants, **more)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SNNC_CACHE", str(folder))
    return folder


def prepare_in_this_process(patch):
    """Prepare workloads in this process, which has imported snnc; a new one needs a second."""
    patch.setattr(preparation, "prepare", lambda what, folder, workload, _, mode="": prepare_here(what, folder, mode, workload))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What processes read of the small workload, as a run prepares it."""
    with pytest.MonkeyPatch.context() as patch:
        prepare_in_this_process(patch)
        ready = prepare_workloads([(SMALL, [])], tmp_path_factory.mktemp("files"), SETTINGS, print)
    return ready.files[SMALL.label]


# ---- which way is taken ----------------------------------------------------------------------------------------------


def test_a_trial_takes_the_fastest_way_whose_numbers_are_right(stub, files):
    stubs = [stub("slow", "right"), stub("loss", "slow", engine="wrong"), stub("right", "dies", engine="half")]
    chosen = [BenchLine(entry) for entry in stubs]
    rows, left_out = measure(SMALL, files, chosen, SETTINGS, lambda text: None)
    found = {row["engine"]: row for row in rows}
    assert {engine: row["variant"] for engine, row in found.items()} == {"stub": "right", "wrong": "slow", "half": "right"}
    assert left_out == []
    for row in rows:
        assert row["chosen"]["by"] == ways.TRIAL
        assert (row["turns"], len(row["turn_ms"]), row["ways"]) == (2, 2, "fastest")
        assert 0 < row["gradient_error"] < 1e-5
    assert found["stub"]["chosen"]["trial_ms"]["slow"] > found["stub"]["chosen"]["trial_ms"]["right"]
    assert "its numbers differ" in found["wrong"]["chosen"]["left_out"]["loss"]
    assert "no memory left" in found["half"]["chosen"]["left_out"]["dies"]
    assert len({row["group"] for row in rows}) == 1
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.wide
def test_all_ways_are_rows_where_all_are_asked_for(stub, files):
    rows, left_out = measure(SMALL, files, [BenchLine(stub("slow", "right", "dies"))], replace(SETTINGS, ways=ways.ALL), lambda text: None)
    assert [row["variant"] for row in rows] == ["slow", "right"]
    assert left_out == []
    assert all("no memory left" in row["chosen"]["left_out"]["dies"] for row in rows)


def test_a_way_whose_first_step_takes_too_long_is_left_out(stub, files):
    rows, left_out = measure(SMALL, files, [BenchLine(stub("hangs"))], replace(SETTINGS, first_step_s=2.0), lambda text: None)
    assert rows == []
    assert "took longer than" in left_out[0]["reason"]


def test_a_choice_of_an_earlier_run_is_taken_without_a_trial_and_dropped_when_it_fails(stub, files):
    kept = lambda way: ways.FastestWay(way, ways.STORED_TRIAL, {way: 1.0}, {})  # noqa: E731
    taken, failed = BenchLine(stub("right", "slow"), kept("slow")), BenchLine(stub("right", "dies", engine="other"), kept("dies"))
    rows, _ = measure(SMALL, files, [taken, failed], SETTINGS, lambda text: None)
    assert [(row["variant"], row["chosen"]["by"]) for row in rows] == [("slow", ways.STORED_TRIAL), ("right", ways.TRIAL)]


def test_a_way_that_finds_no_room_beside_others_has_another_try_alone(stub, files, monkeypatch):
    opened, tried = lines.open_timed_problem, []

    def full(process, *given):
        tried.append(process.variant)
        if tried.count("right") == 1 and process.variant == "right":
            raise ProcessError("OutOfMemoryError: CUDA out of memory")
        return opened(process, *given)

    monkeypatch.setattr(lines, "open_timed_problem", full)
    rows, _ = measure(SMALL, files, [BenchLine(stub("slow", "right"))], SETTINGS, lambda text: None)
    assert rows[0]["variant"] == "right"
    assert tried.count("right") == 2


def test_compilers_that_time_kernels_take_their_first_step_alone(stub, files, monkeypatch):
    opened, spans = lines.open_timed_problem, {}

    def watched(process, *given):
        begin = time.monotonic()
        try:
            return opened(process, *given)
        finally:
            spans[process.entry.engine, process.variant] = (begin, time.monotonic())

    monkeypatch.setattr(lines, "open_timed_problem", watched)
    chosen = [BenchLine(stub("slow", "right", engine="tunes", alone=True)), BenchLine(stub("right", "slow"))]
    measure(SMALL, files, chosen, SETTINGS, lambda text: None)
    alone = [span for (engine, _), span in spans.items() if engine == "tunes"]
    for begin, end in alone:
        assert not any(begin < other[1] and other[0] < end for other in spans.values() if other != (begin, end))


# ---- choices are kept ------------------------------------------------------------------------------------------------


def test_choices_are_kept_for_what_they_hang_on(cache):
    entry = Entry("any", "exact", "module", ("eager", "graphed"))
    of = ways.identity(entry, SMALL, {"torch": "2.11"}, ["H100"], 60.0)
    choice = ways.FastestWay("graphed", ways.TRIAL, {"graphed": 1.0, "eager": 9.0}, {"compiled": "slow"})
    assert ways.load_choice(of) is None
    ways.store_choice(of, choice)
    assert ways.load_choice(of) == replace(choice, reason=ways.STORED_TRIAL)
    for other in (
        ways.identity(entry, SMALL, {"torch": "2.12"}, ["H100"], 60.0),
        ways.identity(entry, SMALL, {"torch": "2.11"}, ["H200"], 60.0),
        ways.identity(entry, replace(SMALL, batch=5), {"torch": "2.11"}, ["H100"], 60.0),
        ways.identity(replace(entry, variants=("eager",)), SMALL, {"torch": "2.11"}, ["H100"], 60.0),
    ):
        assert ways.load_choice(other) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[1, 2]", b'{"format": 0}', b"\xff" * 40])
def test_a_damaged_choice_is_ignored_and_written_anew(cache, damage):
    from snnc.compiler.files.cache import write_checked

    of = ways.identity(Entry("any", "exact", "module", ("eager",)), SMALL, {}, [], 60.0)
    choice = ways.FastestWay("eager", ways.TRIAL, {"eager": 1.0}, {})
    ways.store_choice(of, choice)
    (file,) = (cache / "ways").iterdir()
    for write in (file.write_bytes, lambda data: write_checked(file, data)):
        write(damage)
        assert ways.load_choice(of) is None
    ways.store_choice(of, choice)
    assert ways.load_choice(of) is not None
    assert cli.run_command(["clean", "--cache"]) == 0
    assert ways.load_choice(of) is None


def test_where_no_choice_can_be_kept_the_run_goes_on(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "file" / "cache"))
    of = ways.identity(Entry("any", "exact", "module", ("eager",)), SMALL, {}, [], 60.0)
    ways.store_choice(of, ways.FastestWay("eager", ways.TRIAL, {}, {}))
    assert ways.load_choice(of) is None


# ---- preparing -------------------------------------------------------------------------------------------------------


def test_compiled_ways_are_warmed_and_slow_ones_left_out_before_anything_is_timed(stub, tmp_path, monkeypatch):
    prepare_in_this_process(monkeypatch)
    line = BenchLine(stub("right", "hangs", compiled=("hangs",)))
    ready = prepare_workloads([(SMALL, [line]), (LONE, [])], tmp_path, replace(SETTINGS, first_step_s=2.0), print)
    assert set(ready.files) == {SMALL.label, LONE.label}
    assert line.left_out == {"hangs": "took longer than 2 s"}
    assert ready.files[LONE.label].check.problem.workload.classes == 0
    assert (tmp_path / SMALL.label / "whole.npz").exists()


def test_a_workload_without_a_problem_is_lost_and_the_others_are_not(tmp_path, monkeypatch):
    broken, in_a_process = replace(SMALL, name="broken", density=0.0), preparation.prepare
    prepare_in_this_process(monkeypatch)
    here = preparation.prepare
    monkeypatch.setattr(preparation, "prepare", lambda *given: (in_a_process if broken in given else here)(*given))
    ready = prepare_workloads([(broken, []), (SMALL, [])], tmp_path, SETTINGS, print)
    assert set(ready.files) == {SMALL.label}
    assert ready.lost["broken-0"].startswith("its problem was not prepared: ")


def test_versions_come_from_processes_and_what_is_missing_is_told(stub):
    snnc, missing = entries(["snnc:exact"], CUDA_ENTRIES, "cuda")[0], Entry("absent", "exact", "no_such_framework", ("eager",))
    found = versions_of([snnc, stub("right"), missing], "cpu")
    assert found["bench_stub"]["no-such-package"] == "unknown"
    assert "not installed" in found["no_such_framework"]
    assert "+" in found[snnc.module]["snnc"]


# ---- rows outlive their run ------------------------------------------------------------------------------------------


@pytest.fixture
def suite(monkeypatch, stub, cache):
    """Run the suite on stub engines, the CPU in the place of a device; preparations run in this process, which has imported snnc."""
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    prepare_in_this_process(monkeypatch)
    monkeypatch.setattr(command, "CUDA_ENTRIES", (stub("right", "slow"), stub("right", engine="peer")))

    def run(chosen, path, told=None, engines=(), **options):
        found = {}
        save = lambda: path.write_text(json.dumps(found, allow_nan=False))  # noqa: E731
        said = [] if told is None else told
        command.run_suite(chosen, engines, CudaBenchOptions(rounds=1, threads=1, resumed=path, **options), said.append, found, save)
        return found

    return run


def test_rows_are_there_after_each_workload_and_a_further_run_measures_what_is_missing(suite, tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    measured, real = [], command.measure

    def breaks(workload, *given):
        if workload.name == "lone":
            raise KeyboardInterrupt
        return real(workload, *given)

    monkeypatch.setattr(command, "measure", breaks)
    with pytest.raises(KeyboardInterrupt):
        suite([SMALL, LONE], path)
    kept = json.loads(path.read_text())["rows"]
    assert [(row["workload"], row["engine"], row["variant"]) for row in kept] == [("small", "stub", "right"), ("small", "peer", "right")]

    def counted(workload, files, chosen, *given):
        measured.append((workload.name, [(one.entry.engine, one.choice and one.choice.reason) for one in chosen]))
        return real(workload, files, chosen, *given)

    monkeypatch.setattr(command, "measure", counted)
    told = []
    found = suite([SMALL, LONE], path, told)
    assert measured == [("lone", [("stub", None), ("peer", None)])]
    assert found["rows"][:2] == kept
    assert [row["workload"] for row in found["rows"]] == ["small", "small", "lone", "lone"]
    assert "small-20 stub exact: measured before" in told
    measured.clear()
    suite([SMALL], path, ways="all")
    assert measured == [("small", [("stub", None), ("peer", None)])]
    assert sum(row["workload"] == "small" for row in json.loads(path.read_text())["rows"]) == 3
    measured.clear()
    path.unlink()
    suite([SMALL], path, engines=["stub"])
    assert measured == [("small", [("stub", ways.STORED_TRIAL)])]


@pytest.mark.wide
def test_rows_of_other_versions_are_measured_anew(suite, tmp_path):
    path = tmp_path / "rows.json"
    data = suite([SMALL], path, engines=["peer"])
    data["rows"][0] |= {"versions": {"numpy": "1.0"}, "loss": -1.0}
    path.write_text(json.dumps(data))
    (row,) = suite([SMALL], path, engines=["peer"])["rows"]
    assert row["loss"] > 0


MACHINE = {"GPU": "H100", "CPU": "any", "threads": "2", "times": "measured"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [{}], "left_out": [], "machine": {}}', '{"rows": 1}'])
def test_a_file_that_holds_something_else_is_not_gone_on_with(tmp_path, content):
    path = tmp_path / "rows.json"
    assert read_rows(path, MACHINE) == ([], [])
    path.write_text(content)
    with pytest.raises(BenchError, match="no rows of this suite"):
        read_rows(path, MACHINE)


def test_rows_of_another_machine_are_not_mixed_with_those_of_this_one(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"rows": [], "left_out": [], "machine": MACHINE}))
    assert read_rows(path, MACHINE) == ([], [])
    with pytest.raises(BenchError, match="measured elsewhere \\(GPU H100, not H200\\)"):
        read_rows(path, MACHINE | {"GPU": "H200"})


@pytest.mark.wide
def test_a_run_that_is_killed_leaves_its_rows(stub, cache, tmp_path):
    path, script = tmp_path / "rows.json", tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            from snnc.cli import main as cli
            from snnc.benchmarks.cpu.engine import Entry
            from snnc.benchmarks.cpu.workloads import DenseLayer, Workload
            from snnc.benchmarks.cuda import command, workloads

            command.CUDA_ENTRIES = (Entry("peer", "exact", "bench_stub", ("right",)),)
            both = tuple(Workload(name, 0.2, 5, 4, (12,), (DenseLayer(10, True),), 3) for name in ("first", "second"))
            workloads.CUDA_WORKLOADS = both
            real = command.measure

            def measure(workload, *given):
                if workload.name == "second":
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(workload, *given)

            command.measure = measure
            sys.exit(cli.run_command(["bench", "--suite", "cuda", "--rounds", "1", "--json", sys.argv[1]]))
            """
        )
    )
    done = subprocess.run([sys.executable, script, path], env={**os.environ, CHECK_ON_HOST: "1"}, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert [row["workload"] for row in json.loads(path.read_text())["rows"]] == ["first"]


@pytest.mark.parametrize("option", [["--ways", "all"], ["--first-step", "9"], ["--precision", "tf32"], ["--resume"]])
def test_options_of_the_suite_are_refused_elsewhere(capsys, option):
    assert cli.run_command(["bench", "--suite", "cpu", "--list", *option]) == 2
    assert "--suite cuda" in capsys.readouterr().err
