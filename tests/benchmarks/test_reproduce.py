"""``snnc reproduce``: rows are kept, kinds of numbers are never mixed, bounds follow from counts, and every claim has an answer."""

import csv
import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

import snnc
from snnc.benchmarks.benchmark import by_buffer
from snnc.benchmarks.conditions import Conditions
from snnc.benchmarks.cuda.predicted import predict_gpu_step
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.nets import benchmark, on_chips
from snnc.benchmarks.reproduce import claims, command, training
from snnc.benchmarks.reproduce.chart import _linear, draw
from snnc.benchmarks.reproduce.claims import CLAIMS, verdicts
from snnc.benchmarks.reproduce.command import RowsFile, chosen_figures, reproduce
from snnc.benchmarks.reproduce.emulated import emulate_small
from snnc.benchmarks.reproduce.energy import energies, moved_words, processor_joules, product_joules, synaptic_work
from snnc.benchmarks.reproduce.figure import Figure, Point, Row
from snnc.benchmarks.reproduce.figures import FIGURES, gpu_activity
from snnc.benchmarks.reproduce.figures import energy as energy_figure
from snnc.benchmarks.reproduce.figures.plans import GPU, dense_bound, gpu_row, plan_row
from snnc.benchmarks.reproduce.figures.snntorch.neuron_models import PRECISION_BATCH, neuron_row
from snnc.benchmarks.reproduce.figures.snntorch.training import code_row
from snnc.benchmarks.reproduce.figures.sparse_bptt import scaling
from snnc.benchmarks.reproduce.measured import MeasuredStep, measured_steps
from snnc.benchmarks.reproduce.sparse_runs import SHARES, TrainingRuns, sparse_runs
from snnc.benchmarks.reproduce.training import spikes_over_training, train_depth, train_neuron_model, train_population_code
from snnc.benchmarks.reproduce.work import run_row
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.errors import BenchError

COUNTS = {f"{what} {of}": 1e9 for what in ("accumulates", "multiplications") for of in ("of spikes", "of all values")}
PERCENTS = {"hidden1": [10.0, 20.0], "hidden2": [5.0, 6.0]}
LAYER = {"layer": "hidden1", "neurons": 978, "tiles": 400, "mean_bytes": 5e5, "largest_bytes": 600_000}
OTHERS = {
    "energy counts": {"moved_words": 1e6} | COUNTS,
    "tile map": {"target": "gc200", "layers": [LAYER], "svg": "<svg>map</svg>"},
    "population code": {"accuracy": [0.8, 0.9], "update_ms": 2.0},
    "learning curve": {"accuracy": [[0.5, 0.8], [0.6, 0.9]]},
    "depth": {"accuracy": [0.8, 0.9]},
    "spikes over training": {"largest": PERCENTS, "mean": PERCENTS, "accuracy": [0.1, 0.8]},
}
"""Results of rows that map nothing."""


def planned(row, ms=2.0):
    """A result as a row of plans has it, or one of a neuron model."""
    if row.work == "neuron":
        return {**row.arguments, "target": "gc200", "samples_per_s": 100.0, "step_ms": ms, "peak_tile_bytes": 1, "steps": 25}
    if row.work == "emulate":
        numbers = {f"{kind}_{what}": 1000 for kind in ("predicted", "emulated") for what in ("cycles", "bytes")}
        return {**row.arguments, **numbers, "target": "48 tiles x 1"}
    if row.work == "matched":
        return {"net": row.arguments["name"], "target": "gc200", "batch": 48, "steps": 100, "fits": True, "step_ms": ms}
    if row.work == "gpu step":
        return {"net": row.arguments["name"], "device": "NVIDIA H100 SXM", "batch": 48, "steps": 100, "step_ms": ms}
    if row.work in OTHERS:
        return OTHERS[row.work]
    about = {"net": row.arguments["name"], "target": "gc200", "ipus": 1, "batch": 48, "steps": 100, "activity": {}}
    return about | {"fits": True, "step_ms": ms, "neurons": 1000, "memory_bytes": {"states": 2**20}}


def results_of(figures, quick=False):
    return {row.key: planned(row) for figure in figures for row in figure.rows(quick)}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_line_of_a_figure_has_one_kind_and_says_it(figure):
    points = figure.points(results_of(FIGURES))
    assert points
    kinds = {}
    for point in points:
        kinds.setdefault(point.series, set()).add(point.kind)
        assert point.kind in point.series
    assert all(len(kind) == 1 for kind in kinds.values())


@pytest.mark.parametrize("figure", [figure for figure in FIGURES if figure.rows(True)], ids=lambda figure: figure.name)
@pytest.mark.parametrize("result", [{"failed": "took longer than 3 s"}, {"fits": False, "error": "too big. Try more.", "target": "gc200"}])
def test_a_row_without_a_number_has_no_point_with_one(figure, result):
    found = figure.points({row.key: result for row in figure.rows(True)})
    assert [p for p in found if p.kind == "predicted" and p.y is not None and "bound" not in p.series] == []


def test_gpu_steps_of_the_curve_are_drawn_only_at_the_predictions_problem():
    conditions = Conditions("w", "d", {"input": 0.02, "hidden1": 0.04, "hidden2": 0.06})
    net = next(net for net, percent in gpu_activity.NETS.items() if percent == 5)
    steps = [
        MeasuredStep(net, program, ms, "H100", "2030-01-01", "abc", replace(conditions, data=data), "GPU")
        for program, ms, data in (("torch", 4.8, "d"), ("snnc", 2.4, "other"))
    ]
    rows = {row.key: planned(row, 24.0) | {"conditions": asdict(conditions)} for row in gpu_activity.FIGURE.rows(True)}
    found = {point.series: point for point in gpu_activity.points(rows, steps) if point.about["net"] == net}
    assert {point.x for point in found.values()} == {5.0}
    assert found["GPU, torch (measured)"].y == pytest.approx(10_000)
    assert found[GPU].y == pytest.approx(2_000)
    assert found["GPU, snnc (measured)"].y is None
    assert "not the problem" in found["GPU, snnc (measured)"].note


def test_gpu_steps_of_the_curve_are_predicted_by_launches():
    found = run_row(gpu_row("h3-a5-2"), 60)
    assert 0.1 < found["step_ms"] < 10


def test_the_bound_of_dense_products_is_their_number_over_the_peak_rate():
    point = dense_bound("nmnist-h3-a5", 5.0)
    sizes = [(2312, 978), (978, 978), (978, 978), (978, 10)]
    weights = [a * b for a, b in sizes]
    operations = 2 * 100 * (3 * sum(weights) - weights[0])
    assert point.y == pytest.approx(62.5e12 / operations, rel=0.01)


STORED = ("accuracy", "convergence-strokes")
"""Figures whose claims are answered from stored results alone."""


def test_without_results_no_claim_is_answered_that_needs_rows():
    assert {claim["answer"] for claim in verdicts({}) if claim["figure"] not in STORED} == {"cannot be decided"}
    assert len(verdicts({})) == len(CLAIMS)


def test_every_claim_names_a_figure_of_the_page():
    assert {claim.figure for claim in CLAIMS} <= {figure.name for figure in FIGURES}


def test_the_sparse_program_is_compared_with_both_dense_ones():
    sparse, dense = plan_row("nmnist-h3-a0.5"), plan_row("nmnist-h3-a5", "dense")
    ms = 48e3 / dense_bound("nmnist-h3-a5", 0.5).y
    found = verdicts({sparse.key: planned(sparse, ms / 2), dense.key: planned(dense, 5 * ms)})
    (why,) = (claim["why"] for claim in found if claim["figure"] == "activity")
    assert "10 x faster than snnc's program without events" in why
    assert "the sparse program is 2 x that of a step of dense products" in why


def answer_to(figure, results):
    return next(claim for claim in verdicts(results) if claim["figure"] == figure)


def test_accuracy_and_convergence_are_answered_from_stored_runs(monkeypatch):
    good = TrainingRuns(((0.5, 0.9, 0.92),), 0.0, "here")
    late = TrainingRuns(((0.5, 0.6, 0.92),), 0.0, "here")
    low = TrainingRuns(((0.5, 0.88, 0.89),), 0.0, "here")
    monkeypatch.setattr(claims, "sparse_runs", lambda data: {"dense": good, "10 %": good})
    assert [answer_to(f, {})["answer"] for f in ("accuracy", "convergence-strokes")] == ["reproduced", "reproduced"]
    monkeypatch.setattr(claims, "sparse_runs", lambda data: {"dense": good, "10 %": late, "5 %": good})
    assert [answer_to(f, {})["answer"] for f in ("accuracy", "convergence-strokes")] == ["reproduced", "not reproduced"]
    monkeypatch.setattr(claims, "sparse_runs", lambda data: {"dense": good, "1 %": low})
    assert [answer_to(f, {})["answer"] for f in ("accuracy", "convergence-strokes")] == ["not reproduced", "reproduced"]
    assert "1 %: 3.0" in answer_to("accuracy", {})["why"]


def test_a_curve_of_training_has_runs_of_one_network():
    runs = {training: sparse_runs("words")[training] for training in SHARES}
    assert {len(run.accuracy) for run in runs.values()} == {5}
    below = [runs["dense"].mean[-1] - runs[training].mean[-1] for training in ("10 %", "5 %", "1 %")]
    assert below == pytest.approx([1.2, 1.9, 2.2], abs=0.05)  # docs/explanation/gradient-window.md


def test_epochs_are_counted_until_accuracy_stays_near_its_end():
    assert claims.epochs_needed([90.0, 91.0, 91.5]) == 1
    assert claims.epochs_needed([50.0, 91.0, 80.0, 90.0, 91.0]) == 4


@pytest.mark.parametrize(
    ("accuracy", "ms", "answer"), [(0.9, 1.0, "reproduced"), (0.9, 9.0, "not reproduced"), (0.7, 1.0, "not reproduced")]
)
def test_population_codes_must_be_as_accurate_and_faster(accuracy, ms, answer):
    long, short = code_row(25, 1, 5), code_row(1, 50, 5)
    found = {long.key: {"accuracy": [0.9], "update_ms": 8.0}, short.key: {"accuracy": [accuracy], "update_ms": ms}}
    assert answer_to("population-codes", found)["answer"] == answer


@pytest.mark.parametrize(("half", "answer"), [(0.5, "predicted"), (1.5, "not reproduced")])
def test_half_precision_must_save_time(half, answer):
    rows = [neuron_row("Leaky", PRECISION_BATCH, p) for p in ("float32", "float16")]
    found = {row.key: {"step_ms": ms, "peak_tile_bytes": size} for row, ms, size in zip(rows, (1.0, half), (100, 60), strict=True)}
    assert answer_to("precision", found)["answer"] == answer
    assert "0.60 to 0.60 x the memory" in answer_to("precision", found)["why"]


@pytest.mark.parametrize(("rate", "answer"), [(16_000.0, "not reproduced"), (55_000.0, "predicted")])
def test_a_predicted_throughput_far_below_the_published_one_does_not_reproduce_it(rate, answer):
    found = {neuron_row("Leaky", 128).key: {"samples_per_s": rate, "step_ms": 1.0}}
    (claim,) = (claim for claim in verdicts(found) if claim["figure"] == "neuron-models" and "60,000" in claim["says"])
    assert claim["answer"] == answer
    assert f"{rate / 60_000:.2f} x" in claim["why"]


def test_efficiency_is_the_first_step_over_each_step():
    rows = {x: scaling.NET.format(x, 2) for x in (1, 4, 16)}
    found = {plan_row(net).key: planned(plan_row(net), ms) for net, ms in zip(rows.values(), (2.0, 2.5, 4.0), strict=True)}
    found |= {scaling.strong_row("shd-n8-b3-a5", x).key: planned(plan_row("n"), ms) for x, ms in ((1, 8.0), (4, 4.0))}
    points = {(p.series[:6], p.x): p.y for p in scaling.EFFICIENCY.points(found)}
    assert points == {("weak, ", 1.0): 100, ("weak, ", 4.0): 80, ("weak, ", 16.0): 50, ("strong", 1.0): 100, ("strong", 4.0): 50}


def test_a_network_on_more_ipus_is_the_same_network():
    case = on_chips(benchmark("shd-n8-b3-a5"), 4)
    assert (case.chips, case.target) == (4, "m2000")
    assert case.published == benchmark("shd-n8-b3-a5").published
    assert scaling.strong_row("shd-n8-b3-a5", 1) == plan_row("shd-x1-n8-a5")


@pytest.mark.parametrize("figure", ["accuracy", "convergence-strokes", "convergence-words", "schedules"])
def test_figures_of_stored_results_have_points_device_date_and_commit(figure):
    (found,) = chosen_figures(figure)
    points = found.points({})
    assert points
    assert found.rows(False) == ()
    assert all(p.kind == "measured" and "AMD EPYC" in p.note and "2026-" in p.note and "commit" in p.note for p in points)


def test_ratios_lie_between_their_extremes_under_changed_coefficients():
    (found,) = chosen_figures("sensitivity")
    places = {}
    for point in found.points({}):
        places.setdefault(point.x, []).append(point.y)
    assert len(places) >= 5
    assert all(least < base < most for base, least, most in places.values())


@pytest.mark.wide
def test_a_tile_map_draws_every_tile_of_the_machine():
    found = run_row(Row("tile map", {"name": "nmnist-h2-a1"}), 300)
    assert found["svg"].count("<rect") >= 1472
    assert sum(layer["neurons"] for layer in found["layers"]) == 2 * 1466 + 10
    assert all(0 < layer["mean_bytes"] <= layer["largest_bytes"] <= 638_976 for layer in found["layers"])


@pytest.fixture
def small_training(monkeypatch):
    """Narrow layers and few test samples."""
    monkeypatch.setattr(training, "WIDTH", 64)
    monkeypatch.setattr(training, "TEST", 96)


def test_the_capacity_that_training_needs_is_counted_after_each_epoch(small_training):
    found = spikes_over_training(None, samples=96, epochs=2)
    assert {len(series) for what in ("largest", "mean") for series in found[what].values()} == {3}
    assert set(found["largest"]) == {"hidden1", "hidden2"}
    assert all(
        0 < mean <= most <= 100 for name in found["mean"] for mean, most in zip(found["mean"][name], found["largest"][name], strict=True)
    )


def test_rows_that_train_give_an_accuracy_for_each_seed_and_epoch(small_training):
    assert len(train_depth(2, 10.0, 2, samples=96, epochs=1)["accuracy"]) == 2
    assert [len(curve) for curve in train_neuron_model("Synaptic", 1, samples=96, epochs=2)["accuracy"]] == [2]
    code = train_population_code(2, 10, 1, samples=96, epochs=1)
    assert code["update_ms"] > 0
    assert 0 <= code["accuracy"][0] <= 1


def test_an_axis_that_need_not_begin_at_zero_shows_small_differences():
    whole, near = _linear([90.0, 96.0], 0.0, 100.0), _linear([90.0, 96.0], 0.0, 100.0, zero=False)
    assert whole.ticks[0][1] == "0"
    assert near.ticks[0][1] == "90"
    assert near.place(96.0) - near.place(90.0) > 5 * (whole.place(96.0) - whole.place(90.0))


def drawing(points, **more):
    return draw(Figure("f", "Title", "", "x", "y", lambda results: (), **more), points)


def test_each_kind_has_its_own_mark_and_dashes():
    kinds = ("predicted", "emulated", "measured", "published")
    drawings = [drawing([Point(f"a ({kind})", kind, 1.0, 2.0), Point(f"a ({kind})", kind, 2.0, 4.0)]) for kind in kinds]
    marks = [set(re.findall(r' d="([^"]*)"', text)) for text in drawings]
    assert [len(found) for found in marks] == [1] * 4
    assert len(set.union(*marks)) == 4
    assert len({re.search(r"stroke-dasharray=.([^\"]*)", text).group(1) if "dasharray" in text else "" for text in drawings}) == 4


def test_series_stand_beside_each_other_on_an_axis_of_names():
    text = drawing([Point("a (predicted)", "predicted", "net", 1.0), Point("b (measured)", "measured", "net", 1.0)])
    places = re.findall(r"translate\(([0-9.]+) ([0-9.]+)\)[^>]*><title>", text)
    assert len({x for x, _ in places}) == 2
    assert len({y for _, y in places}) == 1


def test_stacked_bars_lie_one_above_the_other():
    points = [Point(f"{name} (predicted)", "predicted", "net", size) for name, size in (("weights", 30.0), ("code", 10.0))]
    text = drawing(points, log_y=False, stacked=True)
    bars = [tuple(map(float, found)) for found in re.findall(r'<rect x="[0-9.]+" y="([0-9.]+)" width="[0-9.]+" height="([0-9.]+)"', text)]
    (low_y, low_height), (high_y, high_height) = bars
    assert low_height == pytest.approx(3 * high_height, abs=0.3)
    assert high_y + high_height == pytest.approx(low_y, abs=0.2)


def test_long_names_are_slanted_and_the_legend_is_below_them():
    short, long = (drawing([Point("a (predicted)", "predicted", name + str(n), 1.0) for n in range(4)]) for name in ("w", "w" * 40))
    assert "rotate(-20)" not in short
    assert "rotate(-20)" in long
    height = [float(re.search(r'height="([0-9.]+)"', text).group(1)) for text in (short, long)]
    assert height[1] > height[0] + 0.34 * 6.6 * 40 - 10


def test_weak_scaling_is_the_ratio_of_two_predicted_steps():
    one, many = plan_row("shd-x1-n8-a5"), plan_row("shd-x16-n8-a5")
    found = verdicts({one.key: planned(one, 2.0), many.key: planned(many, 4.0)})
    assert ["an efficiency of weak scaling of 50 %" in claim["why"] for claim in found if claim["figure"] == "scaling"] == [True]


def test_an_interrupted_run_keeps_its_rows_and_goes_on(tmp_path, monkeypatch):
    ran = []

    def run(row, seconds):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(row.key)
        return planned(row) if len(ran) != 2 else {"failed": "exit code 1"}

    monkeypatch.setattr(command, "run_row", run)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, "memory", quick=True, resume=False, report=lambda line: None, jobs=1)
    with (tmp_path / "rows.jsonl").open("a") as stream:
        stream.write('{"row": "torn')
    with pytest.raises(BenchError, match="--resume"):
        reproduce(tmp_path, "memory", quick=True, resume=False, report=lambda line: None, jobs=1)
    first, lines = ran[0], []
    ran[:] = [""] * 3
    page = reproduce(tmp_path, "memory", quick=True, resume=True, report=lines.append, jobs=1)
    assert first not in ran[3:]
    assert len(lines) == len(ran) - 3 == len(chosen_figures("memory")[0].rows(True)) - 1
    assert "Memory of one IPU" in page.read_text()
    rows = list(csv.DictReader((tmp_path / "memory.csv").open()))
    assert {row["y"] for row in rows} == {"1.0"}
    assert json.loads((tmp_path / "memory.json").read_text())["points"][0]["kind"] == "predicted"
    assert len(RowsFile(tmp_path, resume=True).results) == 3


def test_a_row_that_crashes_or_takes_too_long_says_so():
    assert "KeyError" in run_row(Row("nothing", {}), 60)["failed"]
    assert run_row(Row("plan", {"name": "w1", "strategy": "snnc"}), 0.01) == {"failed": "took longer than 0 s"}


@pytest.mark.wide
def test_a_row_maps_its_network():
    found = run_row(Row("neuron", {"model": "Leaky", "batch": 16}), 300)
    assert found["steps"] == 25
    assert found["samples_per_s"] == pytest.approx(16e3 / found["step_ms"])


def test_a_step_of_a_gpu_is_predicted_for_networks_of_both_suites():
    own, logged = predict_gpu_step("w1-5"), predict_gpu_step("nmnist-h3-a5")
    assert (own["batch"], own["steps"], logged["batch"], logged["steps"]) == (64, 100, 48, 100)
    assert own["device"] == logged["device"] == "NVIDIA H100 SXM"
    assert logged["step_ms"] == predict_gpu_step("nmnist-h3-a50")["step_ms"] > own["step_ms"]


def test_the_gpu_program_of_this_version_is_compared_with_the_prediction_for_an_ipu():
    results = results_of(FIGURES)
    for row in (row for figure in FIGURES for row in figure.rows(False) if row.work == "gpu step"):
        results[row.key] = planned(row, 0.5)
    said = [claim["why"] for claim in verdicts(results) if claim["figure"] == "gpu"]
    assert len(said) == 2
    assert all("takes 0.5 ms (predicted): 4.0 x faster than the IPU" in text for text in said)


def test_an_unknown_figure_is_refused_with_the_names():
    with pytest.raises(BenchError, match="activity"):
        chosen_figures("nothing")


def test_energies_of_products_follow_from_counts_and_published_numbers():
    case = benchmark("logged-h2-a1")
    known, program = energies(), case.program()
    activity = by_buffer(program, case.activity)
    dense = synaptic_work(program, activity, case.steps, case.batch, events=False)
    sizes = [(2312, 1466), (1466, 1466), (1466, 10)]
    products = sum(a * b for a, b in sizes) * case.steps * case.batch
    assert dense.accumulates == pytest.approx(2 * products)
    assert dense.multiplications == pytest.approx(products - 2312 * 1466 * case.steps * case.batch)
    sparse = synaptic_work(program, activity, case.steps, case.batch, events=True)
    assert sparse.multiplications == dense.multiplications
    assert sparse.accumulates < 0.1 * dense.accumulates
    each = 0.9 + 3.7 + 2 * 5.0
    assert product_joules(dense, known, events=False) == pytest.approx(1e-12 * each * (dense.accumulates + dense.multiplications))


def test_measured_energies_of_a_gpu_are_points_of_their_own_kind(monkeypatch):
    step = next(step for step in measured_steps() if step.net == "w1-5" and step.program == "snnc" and step.processor == "GPU")
    monkeypatch.setattr(energy_figure, "measured_steps", lambda: (replace(step, joules=0.25), step))
    found = [point for point in energy_figure.points(results_of(FIGURES)) if point.kind == "measured"]
    assert [(point.series, point.x, point.y) for point in found] == [("GPU, snnc (measured)", "w1-5", 0.25)]
    assert "NVML" in found[0].note


def test_the_energy_of_a_processor_follows_from_counts_by_hand():
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    program = lower(net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=5)
    numbers = [b for b in program.buffers.values() if b.lifetime == "sequence" and b.role in ("state", "output", "saved")]
    histories = sum(int(np.prod(b.shape)) for b in numbers)
    assert histories >= 3 + 3 + 2
    assert moved_words(program, 5, 6) == 2 * 5 * 6 * histories + 2 * 4 * (4 * 3 + 3 + 3 * 2 + 2)
    work = synaptic_work(program, {program.connections[0].source_buffer: 0.5, program.connections[1].source_buffer: 0.1}, 5, 6, events=True)
    assert work.accumulates == pytest.approx(2 * 5 * 6 * (0.5 * 12 + 0.1 * 6))
    assert work.multiplications == 5 * 6 * 6
    add = 0.9 + 2 * 50 + 70 / 8
    picojoules = work.accumulates * add + work.multiplications * (add + 3.7) + 1000 * 650
    assert processor_joules(work, 1000.0, energies()) == pytest.approx(1e-12 * picojoules)


def test_products_of_a_convolution_are_not_counted_as_dense_ones():
    net = snnc.Sequential((1, 4, 4), snnc.Conv(2, 3), snnc.LIF(), snnc.Flatten(), snnc.Dense(2), snnc.LI())
    program = lower(net.graph(), loss=parse_loss("ce_mean_membrane"), steps=5)
    with pytest.raises(ValueError, match="convolution"):
        synaptic_work(program, {}, 5, 6, events=True)


def test_each_energy_has_a_source():
    known = energies()
    assert set(known.sources) == {*known.picojoules, *known.watts}
    assert all(len(source) > 20 for source in known.sources.values())


@pytest.mark.representative("True")
@pytest.mark.parametrize("dense", [False, True])
def test_a_small_network_is_emulated_as_predicted(dense):
    found = emulate_small(0.1, dense=dense)
    assert found["predicted_cycles"] == pytest.approx(found["emulated_cycles"], rel=0.05)
    assert found["predicted_bytes"] == pytest.approx(found["emulated_bytes"], rel=0.01)
    if not dense:
        assert all(rate > 0.01 for rate in found["realised_activity"].values())


def test_every_published_point_stands_beside_ours():
    points = {figure.name: figure.points(results_of(FIGURES)) for figure in FIGURES}
    published = {p.about["net"]: p.y for p in points["layers"] if p.kind == "published"}
    assert published == pytest.approx({run.name: 1e3 * 48 / run.logged_ms for run in logged_runs()})
    for run in logged_runs():
        kinds = {p.kind for p in points["layers"] if p.x == run.name.removeprefix("logged-") and p.y is not None}
        assert kinds == {"published", "predicted"}
    quoted = [p for p in points["neuron-models"] if p.kind == "published"]
    assert [p.y for p in quoted] == [60_000]
    assert any(p.kind == "predicted" and p.x == quoted[0].x for p in points["neuron-models"])
