"""``snnc bench --suite cuda`` and ``--suite paper``: bounds, labels, no GPU, the CPU as a substitute."""

import ctypes
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import snnc
from snnc.backends.cuda import device
from snnc.backends.cuda.errors import CHECK_ON_HOST, GpuMissingError
from snnc.benchmarks.benchmark import Benchmark
from snnc.benchmarks.cpu import process
from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.cpu.network import network
from snnc.benchmarks.cpu.oracle import reference_step
from snnc.benchmarks.cpu.problem import make_problem
from snnc.benchmarks.cpu.process import EngineProcess
from snnc.benchmarks.cpu.rows import ratios_by_turn
from snnc.benchmarks.cpu.workloads import ConvLayer, DenseLayer, Workload, workloads
from snnc.benchmarks.cuda import command, gpu, paper, paper_step, predicted, suite
from snnc.benchmarks.cuda.bound import bound, neurons, parameters, products, table
from snnc.benchmarks.cuda.entries import CUDA_ENTRIES, PRECISIONS, TOLERANCES, precisions, requested
from snnc.benchmarks.cuda.preparation import PreparedFiles
from snnc.benchmarks.cuda.table import lines
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS, CURVE, stand_in
from snnc.cli import main as cli
from snnc.compiler.lowering.lower import lower
from snnc.errors import BenchError

W1 = workloads("w1-5", CUDA_WORKLOADS, "cuda")[0]
CONV = Workload("maps", 0.1, 12, 3, (2, 13, 13), (ConvLayer(3, 3, 2), ConvLayer(4, 2, 2)), 3)


@pytest.fixture
def no_gpu(monkeypatch):
    """No driver, and no check on the CPU."""

    def missing(name):
        raise OSError(name)

    monkeypatch.delenv(CHECK_ON_HOST, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", missing)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_the_bound_is_that_of_counting_by_hand():
    found = bound(W1, gpu.H200, 0.1)
    rows = 64 * 100 * (0.05 * 700 * 256 + 0.1 * 256 * 256 + 0.1 * 256 * 20)
    back = 64 * 100 * (256 * 256 + 256 * 20)
    numbers = 700 * 256 + 256 + 256 * 256 + 256 * 20 + 20
    assert found.operations == pytest.approx((2 * rows + back) / 33.5e12)
    assert found.rows == pytest.approx(8 * rows / 5.5e12)
    assert found.memory == pytest.approx((4 * 64 * 100 * 700 + 16 * 64 * 100 * 276 + 28 * numbers) / 4.8e12)
    assert found.steps == pytest.approx(200 * 1.2e-6)
    assert (found.seconds, found.reason) == (found.steps, "steps")


@pytest.mark.parametrize("workload", [W1, CONV, Workload("lone", 0.2, 3, 2, (30,), (DenseLayer(30),), 0)], ids=lambda w: w.name)
def test_sizes_in_the_bound_are_those_of_the_network(workload):
    program = lower(network(workload).graph())
    learned = [p.value.size for p in program.parameters.values() if p.label.endswith((".weight", ".bias"))]
    assert parameters(workload) == sum(learned)
    assert neurons(workload) == [int(np.prod(p.shape)) for p in program.populations if p.label.isalnum()]


def test_a_convolution_reaches_its_taps():
    first, second, readout = products(CONV, 0.05)
    assert first.inputs * first.fan_out == pytest.approx(3 * 11 * 11 * 2 * 9, rel=0.02)
    assert second.inputs * second.fan_out == pytest.approx(4 * 4 * 4 * 3 * 4, rel=0.2)
    assert [one.returns for one in (first, second, readout)] == [False, True, True]


def test_the_documented_table_is_the_computed_one():
    page = Path(__file__).parents[2] / "docs/explanation/gpu-bounds.md"
    chosen = [w for w in CUDA_WORKLOADS if w.name.split("-")[0] in ("W1", "W2") and w.density == 0.05]
    assert "\n".join(table(chosen, gpu.H200)) in page.read_text()


def test_peaks_follow_from_the_drivers_clocks(monkeypatch):
    values = {16: 132, 13: 1_980_000, 36: 3_201_000, 37: 6144}
    monkeypatch.setattr(gpu, "first_device", lambda: device.Device((9, 0), 1 << 37))
    monkeypatch.setattr(gpu, "device_attributes", lambda *numbers: [values[n] for n in numbers])
    monkeypatch.setattr(gpu, "device_name", lambda: "NVIDIA H200")
    found = gpu.gpu_here()
    assert found.memory_bytes_per_s == pytest.approx(gpu.H200.memory_bytes_per_s, rel=0.03)
    assert found.multiplications_per_s == pytest.approx(gpu.H200.multiplications_per_s, rel=0.01)


# ---- the suite -------------------------------------------------------------------------------------------------------


def test_workloads_are_w1_and_w2_at_three_batches_and_lone_layers():
    labels = [w.label for w in CUDA_WORKLOADS]
    assert {"w1-5", "w1-b256-5", "w1-b1024-5", "w2-5", "w2-b256-5", "w2-b1024-5"} <= set(labels)
    lone = [w for w in CUDA_WORKLOADS if w.name.startswith("open")]
    assert len(lone) == 18
    assert {(w.steps, w.batch, w.classes) for w in lone} == {(500, 16, 0)}
    assert stand_in(lone[-1]).layers == (DenseLayer(512),)
    assert stand_in(W1).layers == W1.layers
    assert {e.engine for e in CUDA_ENTRIES} == {"snnc", "snntorch", "norse", "spikingjelly", "torch", "jax", "spyx"}


@pytest.mark.parametrize("workload", [CURVE[1], CURVE[3]], ids=lambda w: w.name)
def test_networks_of_the_curve_have_about_the_activity_of_their_name(workload):
    activity = reference_step(make_problem(replace(workload, batch=2))).conditions.activity
    hidden = [rate for name, rate in activity.items() if name != "input"]
    assert np.mean(hidden) == pytest.approx(float(workload.name.removeprefix("h3-a")) / 100, rel=0.15)
    assert max(hidden) < 1.6 * min(hidden)


def test_processes_for_a_device_are_not_kept_from_it():
    here = process.environment(1, "cuda")
    assert here.get("CUDA_VISIBLE_DEVICES") != ""
    assert here["JAX_PLATFORMS"] == "cuda"
    assert process.environment(1)["CUDA_VISIBLE_DEVICES"] == ""


def test_without_a_gpu_one_line_says_so_and_names_still_list(no_gpu, capsys):
    assert cli.run_command(["bench", "--suite", "cuda", "--nets", "w1-5"]) == GpuMissingError.exit_code
    assert capsys.readouterr().err.startswith("error: SNNC-E421: there is no CUDA driver")
    assert cli.run_command(["bench", "--suite", "cuda", "--nets", "w1*-5", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["w1-5", "w1-b256-5", "w1-b1024-5", "w1-ff-5"]
    assert gpu.used_bytes(1) is None


@pytest.mark.parametrize(("told", "known"), [(3_000_000, 3_000_000), (2**64 - 1, None)])
def test_memory_of_a_device_is_that_of_the_process(monkeypatch, told, known):
    class Library:
        def nvmlInit_v2(self):
            return 0

        def nvmlDeviceGetHandleByIndex_v2(self, number, handle):
            return 0

        def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, number, found):
            found[0].number, found[0].bytes = 41, 7
            found[1].number, found[1].bytes = 42, told
            number._obj.value = 2
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert gpu.used_bytes(42) == known
    assert gpu.used_bytes(43) is None
    assert ctypes.sizeof(gpu._Used) == 24


class Counter:
    """NVML whose counter of energy advances by 300 J with each call."""

    millijoules = 0

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, number, handle):
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, found):
        self.millijoules += 300_000
        found._obj.value = self.millijoules
        return 0


def test_energy_is_that_of_all_steps_between_two_readings(monkeypatch):
    asked, counter = [], Counter()

    class Worker:
        def ask(self, what, seconds, *, untimed, steps):
            asked.append((what, untimed, steps))
            return {"ms": [20.0] * (steps + 2)}

    runner = EngineProcess(Worker(), 0.0, 0.0, step_ms=40.0)
    monkeypatch.setattr(suite, "time", SimpleNamespace(monotonic=iter([0.0, 0.1, 0.6, 1.2]).__next__))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: counter)
    assert suite.joules_per_step(runner) == pytest.approx(300 / (2 * 27))
    assert asked == [("turn", 0, 25)] * 2


def test_without_a_counter_the_energy_is_unknown(monkeypatch):
    assert suite.joules_per_step(EngineProcess(None, 0.0, 0.0)) is None
    monkeypatch.setattr(Counter, "nvmlDeviceGetTotalEnergyConsumption", lambda *given: 3)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Counter())
    assert gpu.consumed_joules() is None


ROW = {"workload": "W1", "density": 0.05, "batch": 4, "mode": "exact", "variant": "v", "ms_p10": 1.0, "ms_p90": 2.0, "ms_spread": 0.1} | {
    "samples_per_s": 100.0, "peak_mb": 9.0, "device_mb": None, "loss": 3.0, "note": "", "activity": 0.04, "group": "one",
    "precision": "float32", "gradient_error": 2e-6,
}  # fmt: skip
CHOSEN = {"by": "a trial", "trial_ms": {"v": 12.0, "eager": 60.0}, "left_out": {"compiled": "took longer than 60 s"}}
ROWS = [
    ROW | {"engine": "torch", "ms_median": 12.0, "turn_ms": [12.0, 15.0, 12.0], "chosen": CHOSEN},
    ROW | {"engine": "snnc", "ms_median": 1.5, "turn_ms": [1.5, 1.5, 1.2], "chosen": {"by": "", "trial_ms": {}, "left_out": {}}},
]


@pytest.fixture
def measured(monkeypatch):
    """Nothing runs: what would be prepared and measured, and rows in its place."""
    seen = []
    files = {w.label: None for w in CUDA_WORKLOADS}

    def measure(workload, given, lines, settings, tell, keep):
        seen.append((workload, [line.entry for line in lines], settings))
        names = {line.entry.engine for line in lines}
        return [dict(row) | {"workload": workload.name} for row in ROWS if row["engine"] in names], []

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "prepare_workloads", lambda *given: PreparedFiles(files | {stand_in(W1).label: None}))
    monkeypatch.setattr(command, "versions_of", lambda entries, device: {entry.module: {"any": "1"} for entry in entries})
    monkeypatch.setattr(command, "gpu_here", lambda: gpu.H200)
    monkeypatch.setattr(command, "nvcc", lambda: ["nvcc"])
    return seen


def test_rows_of_a_device_tell_their_bound_and_those_of_a_stand_in_that_they_mean_nothing(monkeypatch, measured):
    monkeypatch.delenv(CHECK_ON_HOST, raising=False)
    found = {}
    command.run_suite([W1], ["snnc", "torch"], command.CudaBenchOptions(1, 1), lambda line: None, found)
    assert [row["times"] for row in found["rows"]] == ["measured"] * 2
    assert found["rows"][1]["bound_ms"] == pytest.approx(0.24)
    assert found["summary"][0]["times_best"] == 8.0
    text = lines(found["rows"], [], found["machine"])
    assert "8.00 x" in text[2]
    assert "8.40-10.00" in text[2]
    assert "6.2 x" in text[1]
    assert "W1 5 %, torch exact: v by a trial; eager 60 ms, compiled left out (took longer than 60 s)" in text
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    command.run_suite([W1], ["snnc", "torch"], command.CudaBenchOptions(1, 1), lambda line: None, found)
    assert all("meaningless" in row["times"] for row in found["rows"])
    assert found["summary"] == []
    text = "\n".join(lines(found["rows"], [{**ROW, "engine": "jax", "reason": "not installed"}], found["machine"]))
    assert " x " not in text.split("W1 5 %, torch")[0]
    assert [(w.steps, w.batch, settings.device) for w, _, settings in measured] == [(100, 64, "cuda"), (5, 4, "cpu")]


# ---- precisions ------------------------------------------------------------------------------------------------------


def test_every_engine_is_compared_in_every_precision():
    engines = {e.engine for e in CUDA_ENTRIES}
    for precision in PRECISIONS:
        assert {e.engine for e in CUDA_ENTRIES if e.precision == precision} == engines
    assert len({(e.engine, e.mode) for e in CUDA_ENTRIES}) == len(CUDA_ENTRIES)
    for entry in CUDA_ENTRIES:
        if entry.precision in TOLERANCES:
            assert (entry.mode, entry.tolerance) == (entry.precision, TOLERANCES[entry.precision])
            assert entry.note.startswith(f"{entry.precision}: ")


def test_precisions_choose_the_lines_and_a_mode_with_its_engine_needs_none():
    def names(engines, chosen):
        return [f"{e.engine}:{e.mode}" for e in requested(engines, precisions(chosen), CUDA_ENTRIES)]

    assert names(["snnc", "torch"], "float32") == ["snnc:exact", "snnc:events", "snnc:window", "snnc:checkpoint", "torch:exact"]
    assert names(["snnc", "torch"], "tf32, bfloat16") == ["snnc:tf32", "torch:tf32", "snnc:bfloat16", "torch:bfloat16"]
    assert names(["snnc:float16"], "float32") == ["snnc:float16"]
    assert names([], "all") == [f"{e.engine}:{e.mode}" for e in CUDA_ENTRIES]
    with pytest.raises(BenchError, match="no requested engine runs in the precision tf32"):
        requested(["brian"], ("tf32",), (Entry("brian", "exact", "module", ("eager",)),))


def test_processes_multiply_in_the_precision_of_their_line():
    for entry in CUDA_ENTRIES:
        if entry.engine in ("jax", "spyx"):
            expected = {"float32": None, "tf32": "tensorfloat32"}.get(entry.precision, "default")
            assert {entry.settings.get(way, {}).get("JAX_DEFAULT_MATMUL_PRECISION") for way in entry.variants} == {expected}


@pytest.mark.parametrize(("mode", "tf32", "short"), [("exact", False, None), ("tf32", True, None), ("bfloat16", False, "bfloat16")])
def test_pytorch_multiplies_in_the_precision_of_the_mode(mode, tf32, short):
    torch = pytest.importorskip("torch")
    from snnc.benchmarks.cpu.engines.with_torch import PlainTorchEngine

    engine = PlainTorchEngine(make_problem(stand_in(W1)), mode, "eager")
    seen = set()
    hidden = engine.hidden
    engine.hidden = lambda currents, recurrent: seen.add(currents.dtype) or hidden(currents, recurrent)
    engine.step()
    assert seen == {torch.float32 if short is None else getattr(torch, short)}
    assert torch.backends.cuda.matmul.allow_tf32 == torch.backends.cudnn.allow_tf32 == tf32
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in engine.parameters.values())
    PlainTorchEngine(make_problem(stand_in(W1)), "exact", "eager")
    assert not torch.backends.cuda.matmul.allow_tf32


def test_rows_are_compared_with_snnc_in_the_same_precision(monkeypatch, measured):
    monkeypatch.delenv(CHECK_ON_HOST, raising=False)
    short = [row | {"mode": "bfloat16", "precision": "bfloat16", "ms_median": row["ms_median"] / 4} for row in ROWS]
    short[0] |= {"gradient_error": 3.1e-3, "ms_median": 1.5}
    monkeypatch.setattr(command, "measure", lambda workload, *given: ([dict(row) | {"workload": "W1"} for row in (*ROWS, *short)], []))
    found = {}
    options = command.CudaBenchOptions(1, 1, precisions=("float32", "bfloat16"))
    command.run_suite([W1], ["snnc", "torch"], options, lambda line: None, found)
    assert found["machine"]["precision"] == "float32, bfloat16"
    assert [(one["mode"], one["precision"], one["times_best"]) for one in found["summary"]] == [
        ("exact", "float32", 8.0),
        ("bfloat16", "bfloat16", 4.0),
    ]
    assert [row["bound_ms"] is None for row in found["rows"]] == [False, False, True, True]
    json.dumps(found, allow_nan=False)
    text = [line for line in lines(found["rows"], [], found["machine"]) if line.startswith("W1 5 %  ")]
    assert [line.split()[4:7] for line in text] == [
        ["float32", "snnc", "exact"],
        ["float32", "torch", "exact"],
        ["bfloat16", "snnc", "bfloat16"],
        ["bfloat16", "torch", "bfloat16"],
    ]
    assert ["8.00 x" in line for line in text] == [False, True, False, False]
    assert "4.00 x" in text[3]
    assert text[3].endswith("3.1e-03")


def test_rows_of_turns_that_were_not_taken_together_have_no_spread_of_ratios(monkeypatch):
    own, other = ROWS[1], ROWS[0]
    assert ratios_by_turn(ROWS, other) == [8.0, 10.0, 10.0]
    assert ratios_by_turn([own, other | {"group": "two"}], other | {"group": "two"}) == []
    assert ratios_by_turn([other], other) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nets", "w9"],
        ["--engines", "brian"],
        ["--engines", "snnc:sparse"],
        ["--threads", "100000"],
        ["--plot", "x.png"],
        ["--ways", "some"],
        ["--precision", "float64"],
        ["--precision", ","],
        ["--resume"],
        ["--resume", "--json", "-"],
    ],
)
def test_what_cannot_be_measured_is_one_coded_line(capsys, arguments):
    assert cli.run_command(["bench", "--suite", "cuda", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: SNNC-E545: ")


def test_the_documented_predictions_are_those_of_the_launches():
    page = (Path(__file__).parents[2] / "docs/explanation/gpu-bounds.md").read_text()
    found = predicted.lines()
    assert len(found) == 2 + len(predicted.FASTEST_OTHERS)
    assert [line for line in found if line not in page] == []


# ---- the paper's networks ---------------------------------------------------------------------------------------------

PREDICTED = {"fits": True, "step_ms": 1.3, "steps": 100, "batch": 48, "ipus": 1, "target": "gc200"}


def test_predicted_and_measured_have_columns_of_their_own(monkeypatch, no_gpu, tmp_path, capsys):
    monkeypatch.setattr(paper, "in_process", lambda module, given, seconds: PREDICTED | {"target": given[1]})
    assert cli.run_command(["bench", "--suite", "paper", "--nets", "logged-h5-a1", "--json", str(tmp_path / "rows.json")]) == 0
    (row,) = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(one["kind"], one["target"], one["ms"]) for one in row["ipu"]] == [("predicted", "gc200", 1.3), ("predicted", "bow", 1.3)]
    assert row["log"] == {"kind": "measured", "by": "its authors", "ms": 4.0}
    own = row["gpu_predicted"]
    assert (own["kind"], own["target"], own["steps"]) == ("predicted", "NVIDIA H100 SXM", 100)
    assert 0 < own["ms"] < 100
    assert row["gpu"]["kind"] == "not measured"
    assert row["gpu"]["reason"].startswith("no GPU: there is no CUDA driver")
    head, first, *rest = capsys.readouterr().out.splitlines()
    places = [head.index(name) for name in ("IPU ms, predicted", "IPU ms, log", "GPU ms, predicted", "GPU ms, measured")]
    assert places == sorted(places)
    assert first.split()[-5:] == ["1.3", "4", f"{own['ms']:.4g}", "not", "measured"]
    assert any(line.startswith("GPU: not measured: no GPU") for line in rest)


def test_the_file_is_rewritten_after_each_network_of_the_paper(monkeypatch, no_gpu, tmp_path):
    file, kept = tmp_path / "rows.json", []

    def in_process(module, given, seconds):
        kept.append(len(json.loads(file.read_text())["rows"]) if file.exists() else None)
        return PREDICTED

    monkeypatch.setattr(paper, "in_process", in_process)
    assert cli.run_command(["bench", "--suite", "paper", "--nets", "shd-n8-b3-a5,shd-x2-n2-a5", "--json", str(file)]) == 0
    assert kept == [None, 1]
    assert len(json.loads(file.read_text())["rows"]) == 2


def test_a_measured_step_and_one_that_fails_are_rows(monkeypatch):
    monkeypatch.setattr(paper, "in_process", lambda *given: {"fits": False, "error": "too big"})
    monkeypatch.setattr(paper, "reason_without_gpu", lambda: "")
    answers = iter([{"kind": "measured", "device": "NVIDIA H200", "ms": 2.5}, {"kind": "not measured", "reason": "its numbers differ"}])
    monkeypatch.setattr(paper, "measured", lambda name: next(answers))
    text = list(paper.lines(list(paper.rows(["shd-n8-b3-a5", "shd-x2-n2-a5"], lambda line: None))))
    assert text[1].split()[-1] == "2.5"
    assert "does not fit" in text[1]
    assert text[2].endswith("not measured")
    assert "shd-x2-n2-a5, not measured: its numbers differ" in text
    assert any("NVIDIA H200" in line for line in text)


def test_a_process_that_fails_is_a_reason(monkeypatch):
    assert "there is no benchmark 'no-net'" in paper.measured("no-net")["reason"]
    assert "longer than" in paper.measured("no-net", seconds=0.01)["reason"]
    with pytest.raises(BenchError, match="logged-h2-a1"):
        paper.nets("logged-h2-a1,nothing-*")
    assert paper.nets("shd-x2-n2-a5,logged-h2-a1") == ("logged-h2-a1", "shd-x2-n2-a5")
    assert "logged-h5-a10" in paper.nets()


def small_case():
    def build():
        net = snnc.Network("small")
        hidden = net.population(20, snnc.LIF(beta=0.95, reset="zero"), name="hidden1")
        net.connect(net.input(30, name="input"), hidden, snnc.Dense(seed=1))
        readout = net.population(4, snnc.LIF(beta=0.95, reset="zero"), name="readout")
        net.connect(hidden, readout, snnc.Dense(seed=2), delay=1)
        return net

    return Benchmark(
        "small", "multi_layer", "gc200", 1, 8, 3, "ce_count", "adam", "fast_sigmoid:10", build, {"input": 0.4}, "assumed", {}, None
    )


def test_the_step_of_a_network_is_compared_with_the_reference_before_it_is_timed(monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    case = small_case()
    assert paper_step.step_of(case) == {"checked": "6 steps of 2 samples equal the reference"}
    engines = []
    opened = paper_step.load_engine
    monkeypatch.setattr(paper_step, "load_engine", lambda *given: engines.append(opened(*given)) or engines[-1])
    monkeypatch.setattr(paper_step, "difference", lambda *given: "the loss is 2, not 1")
    with pytest.raises(ArithmeticError, match="the loss is 2"):
        paper_step.step_of(case)


def test_a_wrong_gradient_is_told(monkeypatch):
    program = small_case().program()

    class Wrong:
        """The reference, with one gradient a little off."""

        def __init__(self):
            from snnc.backends.reference.engine import ReferenceEngine

            self.engine = ReferenceEngine(program)

        def __getattr__(self, name):
            return getattr(self.engine, name)

        def gradients(self):
            return {name: 1.01 * g for name, g in self.engine.gradients().items()}

    assert "gradient of" in paper_step.difference(small_case(), program, Wrong(), 0)
    right = Wrong()
    right.gradients = right.engine.gradients
    assert paper_step.difference(small_case(), program, right, 0) == ""
