"""The harness of ``snnc bench --suite cpu``: its numbers, its processes, its rows."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import closing
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from forked_workers import workers_are_forks  # noqa: F401  # the fixture `forked`

from snnc.backends.native.processors import processors
from snnc.benchmarks.cpu import command, process
from snnc.benchmarks.cpu.engine import ENTRIES, Entry, entries
from snnc.benchmarks.cpu.equality import TOLERANCE, UPDATES, adam, difference, gradient_error, write_answer
from snnc.benchmarks.cpu.oracle import MARGIN, make_check, reference_step
from snnc.benchmarks.cpu.plot import draw
from snnc.benchmarks.cpu.problem import make_problem, read_problem, write_problem
from snnc.benchmarks.cpu.process import Process
from snnc.benchmarks.cpu.rows import summary, summary_lines
from snnc.benchmarks.cpu.suite import measure
from snnc.benchmarks.cpu.table import lines
from snnc.benchmarks.cpu.worker import IN_A_ROW, Worker
from snnc.benchmarks.cpu.workloads import WORKLOADS, ConvLayer, DenseLayer, Workload, workloads
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES
from snnc.benchmarks.subprocesses import ProcessError
from snnc.cli import main as cli
from snnc.errors import BenchError

RECURRENT = Workload("recurrent", 0.2, 20, 5, (30,), (DenseLayer(24, True), DenseLayer(16)), 4)
CONV = Workload("maps", 0.1, 12, 3, (2, 13, 13), (ConvLayer(3, 3, 2), ConvLayer(4, 2, 2)), 3, first_current=0.3, later_current=0.2)
LONE = Workload("lone", 0.2, 20, 5, (40,), (DenseLayer(40),), 0)
KEYS = {"workload", "density", "engine", "mode", "ms_median", "ms_p10", "samples_per_s", "peak_mb", "loss"}


@pytest.fixture
def stub(monkeypatch):
    """Entries of the stub engine, importable in processes."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    return lambda *variants, mode="exact", engine="stub": Entry(engine, mode, "bench_stub", variants)


# ---- what is measured ------------------------------------------------------------------------------------------------


def test_workloads_are_found_by_label_and_by_name():
    assert [w.label for w in workloads()] == ["w1-1", "w1-5", "w1-10", "w1-ff-5", "w2-3", "w3-5", "conv-3"]
    assert {w.density for w in workloads("W1")} == {0.01, 0.05, 0.1}
    with pytest.raises(BenchError, match="w1-ff-5"):
        workloads("w9")


def test_several_patterns_choose_what_any_of_them_matches():
    assert [w.label for w in workloads("W3-5, w1-5,conv*,w1-5")] == ["w1-5", "w3-5", "conv-3"]
    assert [w.label for w in workloads("w2,*")] == [w.label for w in workloads()]
    with pytest.raises(BenchError, match="no workload of the suite cpu matches 'w9', 'v\\*'; there are w1-1"):
        workloads("w1-5,w9,v*")
    with pytest.raises(BenchError, match="names no workload"):
        workloads(" ,")


@pytest.mark.parametrize("workload", [*WORKLOADS, RECURRENT, CONV], ids=lambda w: w.label)
def test_problems_survive_their_archive(workload, tmp_path):
    problem = make_problem(workload.small(3, 2), seed=4)
    write_problem(problem, tmp_path / "p.npz")
    again = read_problem(tmp_path / "p.npz")
    assert again.workload == problem.workload
    np.testing.assert_array_equal(again.x, problem.x)
    np.testing.assert_array_equal(again.y, problem.y)
    assert list(again.weights) == list(problem.weights)
    assert all(np.array_equal(again.weights[name], value) for name, value in problem.weights.items())
    assert abs(make_problem(workload).x.mean() / workload.density - 1) < 0.2


def test_hidden_layers_are_neither_silent_nor_busy():
    for workload in (w for w in WORKLOADS if w.name in ("W1", "W1-ff", "W3")):
        assert 0.01 < reference_step(make_problem(workload.small(100, 4))).activity < 0.15


# ---- equal numbers ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def check():
    return make_check(RECURRENT)


def test_rounding_to_bfloat16_loses_nothing_of_the_weights_that_are_checked(check):
    assert check.problem.weights["hidden1.weight"].any()
    for name, weight in check.problem.weights.items():
        assert not (weight.view(np.uint32) & 0xFFFF).any(), name


@pytest.mark.parametrize("workload", [RECURRENT, CONV, LONE], ids=lambda w: w.name)
def test_currents_that_are_checked_are_exact_in_bfloat16_and_never_the_threshold(workload):
    problem = make_check(workload).problem
    x = problem.x.reshape(-1, *workload.shape)
    weight, bias = problem.weights["hidden1.weight"].astype(np.float64), problem.weights["hidden1.bias"].astype(np.float64)
    if weight.ndim == 4:
        windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
        currents = np.einsum("nchwij,ocij->nhwo", windows, weight) + bias
    else:
        currents = x @ weight.T + bias
    assert len(np.unique(currents)) > 20
    assert not (currents.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    assert (currents == currents.astype(np.float32)).all()
    assert np.abs(currents - 1).min() > 0


def answered(check, engine, path, tolerance=TOLERANCE):
    losses, gradients, weights = [], [], []
    for _ in range(UPDATES):
        losses.append(engine.step())
        gradients.append(engine.gradients())
        weights.append(engine.weights())
    write_answer(path, losses, gradients, weights)
    return difference(path, check.of(True), check.problem.weights, tolerance)


PEERS = [e for e in (*ENTRIES, next(e for e in CUDA_ENTRIES if e.engine == "spyx")) if e.engine != "snnc"]
INSTALLED = [(e, v) for e in PEERS for v in e.variants if v not in ("compiled", "one thread")]


@cache
def check_of(workload):
    return make_check(workload)


@pytest.mark.representative("recurrent-*", "maps-torch-*", "maps-snntorch-eager0", "lone-torch-*", "lone-snntorch-eager0")
@pytest.mark.parametrize(("entry", "variant"), INSTALLED, ids=lambda x: getattr(x, "engine", x))
@pytest.mark.parametrize("workload", [RECURRENT, CONV, LONE], ids=lambda w: w.name)
def test_frameworks_show_the_numbers_of_the_reference(entry, variant, workload, tmp_path):
    pytest.importorskip(entry.engine, reason=f"{entry.engine} is not installed")
    check = check_of(workload)
    assert answered(check, import_module(entry.module).ENGINE(check.problem, entry.mode, variant), tmp_path / "a.npz") == ""


LOWER = [(e, v) for e in CUDA_ENTRIES if e.precision != "float32" and e.engine != "snnc" for v in e.variants if v in ("eager", "scan")]


@pytest.mark.representative("recurrent-* bfloat16-*", "recurrent-torch *", "maps-torch bfloat16-eager", "lone-torch float16-eager")
@pytest.mark.parametrize(("entry", "variant"), LOWER, ids=lambda x: f"{x.engine} {x.mode}" if hasattr(x, "engine") else x)
@pytest.mark.parametrize("workload", [RECURRENT, CONV, LONE], ids=lambda w: w.name)
def test_frameworks_in_a_lower_precision_are_within_its_error_and_really_round(entry, variant, workload, tmp_path):
    pytest.importorskip(entry.engine, reason=f"{entry.engine} is not installed")
    check, path = check_of(workload), tmp_path / "a.npz"
    assert answered(check, import_module(entry.module).ENGINE(check.problem, entry.mode, variant), path, entry.tolerance) == ""
    error = gradient_error(path, check.exact)
    if entry.precision == "tf32":  # a CPU has no TF32: its products are float32
        assert error < TOLERANCE
    else:
        assert TOLERANCE < error < entry.tolerance


def test_the_optimiser_of_the_check_is_that_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=5), [rng.normal(size=5) for _ in range(4)]
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = torch.optim.Adam([parameter], lr=1e-3)
    for gradient in gradients:
        parameter.grad = torch.from_numpy(gradient)
        optimizer.step()
    np.testing.assert_allclose(adam(start, gradients), parameter.detach().numpy(), rtol=1e-12)


def test_no_checked_membrane_hangs_on_rounding(check):
    shifted = dict(check.problem.weights)
    shifted["hidden1.bias"] = shifted["hidden1.bias"] + np.float32(0.05 * MARGIN)
    moved = replace(check.problem, weights=shifted)
    assert reference_step(moved).activity == reference_step(check.problem).activity


def wrong_answers(check):
    """An answer by an engine that is right, and changes that make it wrong."""
    expected, start = check.exact, check.problem.weights
    gradients = [expected.gradients, {n: 0.5 * g for n, g in expected.gradients.items()}]
    weights = [expected.weights, {n: adam(start[n].astype(float), [g[n] for g in gradients]) for n in start}]
    right = (expected.loss, gradients, weights)
    name = "hidden1.recurrent"
    other = lambda step, change: {**step, name: change(step[name])}  # noqa: E731
    yield "", right
    yield "the loss is", (1.0002 * expected.loss, gradients, weights)
    yield "the loss is", (float("nan"), gradients, weights)
    yield f"gradient of {name} is off", (expected.loss, [other(gradients[0], lambda g: 1.0002 * g), gradients[1]], weights)
    yield f"gradient of {name} is missing", (expected.loss, [other(gradients[0], lambda g: g[:-1]), gradients[1]], weights)
    yield f"gradient of {name} is not finite", (expected.loss, [other(gradients[0], lambda g: g * np.nan), gradients[1]], weights)
    yield f"{name} after a step", (expected.loss, gradients, [other(weights[0], lambda w: start[name] + 2 * (w - start[name])), weights[1]])
    yield (
        f"change of {name} in 2 steps",
        (expected.loss, gradients, [weights[0], other(weights[1], lambda w: w + 0.01 * (w - start[name]))]),
    )
    window = check.window.gradients
    yield "gradient of", (expected.loss, [window, gradients[1]], weights)


def test_each_wrong_number_is_told(check, tmp_path):
    for told, (loss, gradients, weights) in wrong_answers(check):
        write_answer(tmp_path / "a.npz", [loss] * UPDATES, gradients, weights)
        found = difference(tmp_path / "a.npz", check.exact, check.problem.weights)
        assert found.startswith(told), (told, found)
        assert bool(found) == bool(told)


# ---- processes -------------------------------------------------------------------------------------------------------


def test_a_process_answers_and_keeps_its_answers_apart_from_what_libraries_print(stub, tmp_path):
    write_problem(make_problem(RECURRENT), tmp_path / "p.npz")
    with closing(Process(stub("right"), "right", 1)) as running:
        assert running.versions["numpy"] == np.__version__
        assert running.versions["no-such-package"] == "unknown"
        running.ask("open", data=str(tmp_path / "p.npz"))
        losses = [running.ask("step")["loss"] for _ in range(3)]
        assert losses[0] == pytest.approx(reference_step(make_problem(RECURRENT)).loss, rel=1e-5)
        assert len(set(losses)) == 3
        assert len(running.ask("turn", untimed=1, steps=4)["ms"]) == 4
        running.ask("reset_peak")
        assert 0 <= running.ask("memory")["peak_mb"] < 500
        with pytest.raises(ProcessError, match="no request 'jump'"):
            running.ask("jump")


def test_weights_are_reset_after_few_timed_steps_so_that_all_engines_see_the_same_activity(tmp_path):
    done: list[str] = []

    class Engine:
        def __init__(self, *_: object) -> None:
            pass

        def step(self) -> float:
            done.append("step")
            return 0.0

        def reset(self) -> None:
            done.append("reset")

    write_problem(make_problem(RECURRENT), tmp_path / "p.npz")
    worker = Worker(SimpleNamespace(ENGINE=Engine), "exact", "", "cpu")
    worker.answer({"do": "open", "data": str(tmp_path / "p.npz")})
    assert len(worker.answer({"do": "turn", "untimed": 1, "steps": IN_A_ROW + 1})["ms"]) == IN_A_ROW + 1
    assert done == ["reset", *["step"] * (1 + IN_A_ROW), "reset", "step", "step"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [("dies", "ended with 3: no memory left"), ("raises", "ValueError: a shape is wrong"), ("hangs", "took longer than 1 s")],
)
def test_an_engine_that_fails_is_ended_with_its_reason(stub, forked, tmp_path, fault, told):
    write_problem(make_problem(RECURRENT), tmp_path / "p.npz")
    running = Process(stub(fault), fault, 1)
    running.ask("open", data=str(tmp_path / "p.npz"))
    with pytest.raises(ProcessError, match=told):
        running.ask("step", seconds=1.0 if fault == "hangs" else 60.0)
    assert running._process.returncode is not None


def test_a_framework_that_is_missing_is_not_an_error_of_the_harness(stub):
    with pytest.raises(ProcessError, match=r"not installed: No module named 'no_such_framework'"):
        Process(Entry("other", "exact", "no_such_framework", ("eager",)), "eager", 1)


def test_workers_get_their_threads(monkeypatch):
    assert process.environment(3)["OMP_NUM_THREADS"] == "3"
    assert 1 <= processors() <= os.cpu_count()


PEAKS = """
import numpy as np
from snnc.benchmarks.cpu.memory import peak_bytes, reset_peak, resident_bytes
if reset_peak():
    base = resident_bytes()
    block = np.ones(60 * 2**17)
    grown = peak_bytes() - base
    del block
    print(grown, reset_peak(), peak_bytes() - base)
"""


def test_a_peak_of_memory_is_counted_from_its_reset():
    """In a process of its own: threads of libraries in this one may free memory meanwhile."""
    printed = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True).stdout.split()
    if not printed:
        pytest.skip("this system cannot reset the peak of a process")
    assert 50e6 < float(printed[0]) < 90e6
    assert printed[1] == "True"
    assert float(printed[2]) < 20e6


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_right_engines_get_rows_and_wrong_ones_a_reason(stub, forked):
    wrong = ("loss", "gradient", "window as exact", "dies", "dies later")
    chosen = [stub("slow", "right"), stub("right", mode="window"), *(stub(fault, engine=fault) for fault in wrong)]
    chosen.append(Entry("absent", "exact", "no_such_framework", ("eager",)))
    said = []
    rows, left_out = measure(RECURRENT, chosen, 2, 1, said.append)
    assert [(row["engine"], row["mode"], row["variant"]) for row in rows] == [("stub", "exact", "right"), ("stub", "window", "right")]
    for row in rows:
        assert set(row) >= KEYS
        assert (row["workload"], row["density"], row["turns"]) == ("recurrent", 0.2, 2)
        assert 0 < row["ms_p10"] <= row["ms_median"] <= row["ms_p90"]
        assert row["samples_per_s"] == pytest.approx(5e3 / row["ms_median"])
        assert row["loss"] == pytest.approx(reference_step(make_problem(RECURRENT)).loss, rel=1e-5)
        assert row["steps_timed"] >= 2
        assert row["first_step_s"] > 0
    assert rows[0]["gradient_cosine"] == 1
    assert 0.5 < rows[1]["gradient_cosine"] < 1
    reasons = {row["engine"]: row["reason"] for row in left_out}
    assert list(reasons)[:-1] == [*wrong[:-1], "absent"]
    assert all("its numbers differ" in reasons[name] for name in wrong[:3])
    assert "no memory left" in reasons["dies"]
    assert "not installed" in reasons["absent"]
    assert "ended with 3" in reasons["dies later"]
    assert json.loads(json.dumps([rows, left_out], allow_nan=False))


ROWS = [
    {"workload": "W1", "density": 0.05, "engine": engine, "mode": "exact", "variant": "v", "ms_median": ms, "ms_p10": ms, "ms_p90": ms}
    | {"ms_spread": 0.1 * ms, "samples_per_s": 64e3 / ms, "peak_mb": mb, "loss": 3.0, "note": note}
    for engine, ms, mb, note in (("jax", 40.0, 90.0, "scanned"), ("snnc", 5.0, 30.0, ""))
]
LEFT_OUT = [{"workload": "W1", "density": 0.05, "engine": "norse", "mode": "exact", "reason": "not installed: no"}]


def test_the_table_is_sorted_by_time_and_tells_ratios_and_reasons():
    head, first, second, _, ratios, _, *rest = lines(ROWS, LEFT_OUT, {"CPU": "any"})
    assert head.split()[:4] == ["workload", "engine", "mode", "variant"]
    assert first.split()[2:4] == ["%", "snnc"]
    assert "8.00 x" in second
    assert "3.00 x" in second
    assert ratios == "W1 5 %, snnc exact: 8.0 x the best other (jax), memory 0.33 of jax"
    assert rest[0] == "jax: scanned"
    assert rest[1] == "left out: W1 5 %, norse exact: not installed: no"
    assert lines([], LEFT_OUT, {})[0].startswith("left out")


def test_the_summary_names_the_fastest_and_the_smallest_of_the_others():
    slow = ROWS[0] | {"engine": "snntorch", "ms_median": 100.0, "peak_mb": 60.0}
    eager = slow | {"mode": "eager", "ms_median": 150.0}
    elsewhere = ROWS[0] | {"engine": "torch", "workload": "W2", "ms_median": 1.0}
    (found,) = summary([*ROWS, eager, slow, elsewhere])
    assert found == {"workload": "W1", "density": 0.05, "mode": "exact", "times_snntorch": 20.0, "times_best": 8.0, "best": "jax"} | {
        "precision": "float32",
        "times_eager": 30.0,
        "memory_of_best": pytest.approx(30 / 90),
        "least": "snntorch",
        "memory_of_least": 0.5,
    }
    assert summary(ROWS[1:])[0]["times_best"] is None
    assert summary_lines(ROWS[1:]) == []
    assert summary_lines([*ROWS, slow, eager])[0].endswith(
        "20.0 x snnTorch, 30.0 x snnTorch, eager, 8.0 x the best other (jax), memory 0.33 of jax, 0.50 of snntorch, the smallest"
    )


def test_rows_are_drawn_as_marks_of_time_and_memory():
    root = ET.fromstring(draw(ROWS))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert len(titles) == 3 * len(ROWS)
    dots = [(c.get("cx"), c.get("cy"), c.get("fill")) for c in root.iter("{http://www.w3.org/2000/svg}circle") if len(c)]
    assert len(set(dots)) == len(dots)
    assert "W1 5 %, jax exact (v): 40 ms, 1,600 samples/s, 86 MiB" in titles
    ET.fromstring(draw([]))


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_rows_reasons_and_the_machine(tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(command, "measure", lambda *given: (seen.append(given), (ROWS, LEFT_OUT))[1])
    files = ["--json", str(tmp_path / "rows.json"), "--plot", str(tmp_path / "rows.svg")]
    assert (
        cli.run_command(["bench", "--suite", "cpu", "--nets", "w3", "--engines", "snnc,jax", "--rounds", "2", "--threads", "1", *files])
        == 0
    )
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["rows"] == ROWS
    assert found["left_out"] == LEFT_OUT
    assert found["summary"][0]["times_best"] == 8.0
    assert {"CPU", "cores", "threads", "date"} <= set(found["machine"])
    assert (tmp_path / "rows.svg").read_text().startswith("<svg")
    ((workload, chosen, rounds, threads, _),) = seen
    assert (workload.name, rounds, threads) == ("W3", 2, 1)
    assert {entry.engine for entry in chosen} == {"snnc", "jax"}
    assert "left out: W1 5 %, norse" in capsys.readouterr().out


def test_the_file_is_rewritten_after_each_workload(tmp_path, monkeypatch):
    file, kept = tmp_path / "rows.json", []

    def measure(workload, *given):
        kept.append(len(json.loads(file.read_text())["rows"]) if file.exists() else None)
        if workload.name == "W3":
            raise KeyboardInterrupt
        return ROWS, []

    monkeypatch.setattr(command, "measure", measure)
    assert cli.run_command(["bench", "--suite", "cpu", "--nets", "w1-5,w2,w3", "--json", str(file)]) != 0
    assert kept == [None, len(ROWS), 2 * len(ROWS)]
    assert len(json.loads(file.read_text())["rows"]) == 2 * len(ROWS)


def test_workloads_are_listed_and_nothing_runs(capsys):
    assert cli.run_command(["bench", "--suite", "cpu", "--list", "--nets", "w1*"]) == 0
    assert capsys.readouterr().out.split() == ["w1-1", "w1-5", "w1-10", "w1-ff-5"]


def test_modes_of_snnc_are_lines_of_their_own():
    assert {entry.mode for entry in entries(["snnc"])} == {"exact", "window", "events", "checkpoint", "bfloat16"}
    assert {entry.engine for entry in entries()} == {"snnc", "snntorch", "norse", "spikingjelly", "torch", "jax"}


@pytest.mark.parametrize("arguments", [["--nets", "w9"], ["--engines", "brian"], ["--threads", "100000"], ["--plot", "x.png"]])
def test_what_cannot_be_measured_is_one_coded_line(capsys, arguments):
    assert cli.run_command(["bench", "--suite", "cpu", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: SNNC-E545: ")


@pytest.mark.parametrize("option", [["--engines", "jax"], ["--rounds", "3"], ["--threads", "1"]])
def test_options_of_the_suite_are_refused_elsewhere(capsys, option):
    assert cli.run_command(["bench", "--list", *option]) == 2
    assert "--suite cpu" in capsys.readouterr().err
