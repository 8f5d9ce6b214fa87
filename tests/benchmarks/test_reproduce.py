"""``snnc reproduce``: rows are kept, kinds are never mixed, bounds follow from counts, and every claim has an answer."""

import csv
import json

import pytest

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.reproduce import command
from snnc.benchmarks.reproduce.claims import CLAIMS, verdicts
from snnc.benchmarks.reproduce.command import chosen_figures, reproduce
from snnc.benchmarks.reproduce.emulated import emulate_small
from snnc.benchmarks.reproduce.energy import energies, product_joules, synaptic_work
from snnc.benchmarks.reproduce.figure import Row
from snnc.benchmarks.reproduce.figures import FIGURES
from snnc.benchmarks.reproduce.figures.plans import dense_bound, plan_row
from snnc.benchmarks.reproduce.rows_file import RowsFile
from snnc.benchmarks.reproduce.work import run_row
from snnc.errors import BenchError


def planned(row, ms=2.0):
    """A result as a row of plans has it, or one of a neuron model."""
    if row.work == "neuron":
        return {**row.given, "target": "gc200", "samples_per_s": 100.0, "step_ms": ms, "peak_tile_bytes": 1, "steps": 25}
    if row.work == "emulate":
        numbers = {f"{kind}_{what}": 1000 for kind in ("predicted", "emulated") for what in ("cycles", "bytes")}
        return {**row.given, **numbers, "target": "48 tiles x 1"}
    if row.work == "matched":
        return {"net": row.given["name"], "target": "gc200", "batch": 48, "steps": 100, "fits": True, "step_ms": ms}
    about = {"net": row.given["name"], "target": "gc200", "ipus": 1, "batch": 48, "steps": 100, "activity": {}}
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


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
@pytest.mark.parametrize("result", [{"failed": "took longer than 3 s"}, {"fits": False, "error": "too big. Try more.", "target": "gc200"}])
def test_a_row_without_a_number_has_no_point_with_one(figure, result):
    found = figure.points({row.key: result for row in figure.rows(True)})
    assert [p for p in found if p.kind == "predicted" and p.y is not None and "bound" not in p.series] == []


def test_the_bound_of_dense_products_is_their_number_over_the_peak_rate():
    point = dense_bound("nmnist-h3-a5", 5.0)
    sizes = [(2312, 978), (978, 978), (978, 978), (978, 10)]
    weights = [a * b for a, b in sizes]
    operations = 2 * 100 * (3 * sum(weights) - weights[0])
    assert point.y == pytest.approx(62.5e12 / operations, rel=0.01)


def test_without_results_no_claim_is_answered():
    assert {claim["answer"] for claim in verdicts({})} == {"cannot be said here"}
    assert len(verdicts({})) == len(CLAIMS)


def test_the_sparse_program_is_compared_with_both_dense_ones():
    sparse, dense = plan_row("nmnist-h3-a0.5"), plan_row("nmnist-h3-a5", "dense")
    ms = 48e3 / dense_bound("nmnist-h3-a5", 0.5).y
    found = verdicts({sparse.key: planned(sparse, ms / 2), dense.key: planned(dense, 5 * ms)})
    (why,) = (claim["why"] for claim in found if claim["figure"] == "activity")
    assert "10 x faster than snnc's program without events" in why
    assert "has 2 x the throughput of dense products" in why


def test_weak_scaling_is_the_ratio_of_two_predicted_steps():
    one, many = plan_row("shd-x1-n8-a5"), plan_row("shd-x16-n8-a5")
    found = verdicts({one.key: planned(one, 2.0), many.key: planned(many, 4.0)})
    assert ["weak scaling keeps 50 %" in claim["why"] for claim in found if claim["figure"] == "scaling"] == [True]


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


def test_a_row_maps_its_network():
    found = run_row(Row("neuron", {"model": "Leaky", "batch": 16}), 300)
    assert found["steps"] == 25
    assert found["samples_per_s"] == pytest.approx(16e3 / found["step_ms"])


def test_an_unknown_figure_is_refused_with_the_names():
    with pytest.raises(BenchError, match="activity"):
        chosen_figures("nothing")


def test_energies_of_products_follow_from_counts_and_published_numbers():
    case = benchmark("logged-h2-a5")
    known = energies()
    dense = synaptic_work(case, events=False)
    sizes = [(2312, 1466), (1466, 1466), (1466, 10)]
    products = sum(a * b for a, b in sizes) * case.steps * case.batch
    assert dense.accumulates == pytest.approx(2 * products)
    assert dense.multiplications == pytest.approx(products - 2312 * 1466 * case.steps * case.batch)
    sparse = synaptic_work(case, events=True)
    assert sparse.multiplications == dense.multiplications
    assert sparse.accumulates < 0.1 * dense.accumulates
    each = 0.9 + 3.7 + 2 * 5.0
    assert product_joules(dense, known, events=False) == pytest.approx(1e-12 * each * (dense.accumulates + dense.multiplications))


def test_each_energy_has_a_source():
    known = energies()
    assert set(known.sources) == {*known.picojoules, *known.watts}
    assert all(len(source) > 20 for source in known.sources.values())


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
