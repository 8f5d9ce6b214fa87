"""Benchmark networks by name, and the model's calibration against the published log."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from wide import examples

from snnc.benchmarks.benchmark import by_buffer
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.nets import MACHINES, SUITES, benchmark, names, with_steps
from snnc.benchmarks.published import predict_published
from snnc.benchmarks.published_nets import capacity_of, hidden_sizes, published_net, weight_limit
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.errors import UnknownBenchmarkError

LIMITS = {2312: 0.2037706832433973, 1466: 0.2558990251065398, 978: 0.31330417999518295, 586: 0.4047499544129309}  # printed by the log

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "scripts" / "prediction"


OFTEN = ("logged-h2-a1", "logged-h2-a10", "logged-h5-a1")
"""Points of the log that ``./test`` simulates: the fewest and the most layers, the least and the greatest activity."""


@cache
def simulated():
    return {name: benchmark(name).published for name in examples(OFTEN, tuple(run.name for run in logged_runs()))}


def test_the_log_has_twelve_points_and_bands():
    runs = logged_runs()
    assert len(runs) == 12
    assert {run.name: run.ms for run in runs}["logged-h2-a5"] == (8, 9)
    for run in runs:
        assert sum(run.epochs.values()) == 24
        assert run.ms == tuple(ms for ms, count in run.epochs.items() if count >= 6)
        assert min(run.ms) <= run.logged_ms <= max(run.ms)


@pytest.mark.representative(*OFTEN)
@pytest.mark.parametrize("run", logged_runs(), ids=lambda run: run.name)
def test_logged_nets_have_the_sizes_and_capacities_of_the_log(run):
    net = simulated()[run.name]
    assert tuple(layer.neurons for layer in net.layers) == (*run.hidden, 10)
    assert tuple(layer.capacity for layer in net.layers) == (*run.capacity, 2)


def test_weights_start_within_the_limits_that_the_log_prints():
    for inputs, limit in LIMITS.items():
        assert weight_limit(4.0, inputs) == pytest.approx(limit, rel=1e-12)


def test_simulated_activity_is_what_is_known_of_it():
    """Nearly K at 1 %; at 10 % about 20 to 35 spikes in the first layer and 38 to 52 with those near the threshold, of K = 146."""
    one, ten = simulated()["logged-h2-a1"], simulated()["logged-h2-a10"]
    assert all(layer.spikes > 0.85 * layer.capacity for layer in one.layers[:-1])
    assert 20 < ten.layers[0].spikes < 35
    assert 38 < ten.layers[0].gradients < 52


def test_calibration_is_within_thirty_percent_at_every_point():
    """9 cycles per fragment, simulated activity, Bow's clock, adjacent copies merged."""
    bow, logged = load_target("bow"), {run.name: run.logged_ms for run in logged_runs()}
    ratios = {name: predict_published(net, bow).milliseconds() / logged[name] for name, net in simulated().items()}
    assert ratios.keys() >= set(OFTEN)
    assert {name: ratio for name, ratio in ratios.items() if abs(ratio - 1) > 0.3} == {}


def test_rows_have_the_keys_of_the_contract(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    script = importlib.import_module("logged")
    found = list(script.predictions(logged_runs()[0]))
    assert len(found) == 2 * 2 * 2 * 3
    assert {row["clock_ghz"] for row in found} == {1.33, 1.85}
    row = next(row for row in found if row["fragment_cycles"] == script.RULE)
    assert row["predicted_ms"] == pytest.approx(row["step_cycles"] / row["clock_ghz"] / 1e6)
    assert row["ratio"] == pytest.approx(row["predicted_ms"] / row["logged_ms"])
    assert {"net", "target", "strategy", "step_cycles", "logged_ms", "predicted_ms", "clock_ghz"} <= set(row)
    assert row["strategy"] == "published"


# ---- the grid --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES)
def test_every_name_is_a_benchmark_of_its_suite(suite):
    found = names(suite)
    assert len(found) == len(set(found)) > 0
    for name in found if suite != "logged" else ():
        one = benchmark(name)
        assert (one.name, one.suite) == (name, suite)
        assert one.chips <= load_target(one.target).chips
        assert all(0 <= a <= 1 for a in one.activity.values())


@pytest.mark.parametrize("name", ["w3", "logged-h6-a1", "shd-n3-a5", "shd-x3-n2-a5", "", "nmnist-h2"])
def test_other_names_are_refused(name):
    with pytest.raises(UnknownBenchmarkError, match="logged-h2-a1"):
        benchmark(name)


def test_an_unknown_suite_is_refused():
    with pytest.raises(UnknownBenchmarkError, match="multi_ipu"):
        names("everything")


def test_the_largest_net_has_188284_neurons_and_184_million_weights():
    net = benchmark("shd-x16-n8-a5").published
    assert sum(layer.neurons for layer in net.layers) == 188_284
    assert net.weights == 184_350_624
    found = predict_published(net, load_target("pod16"))
    assert found.layout.chips == 16
    assert found.layout.ranges[0].neurons == 8


@pytest.mark.representative("1-*", "4-*", "16-2", "64-2")
@pytest.mark.parametrize("per_tile", [2, 4, 8, 16])
@pytest.mark.parametrize("ipus", MACHINES)
def test_layers_grow_with_ipus_and_fill_them(ipus, per_tile):
    net = benchmark(f"shd-x{ipus}-n{per_tile}-a5").published
    found = predict_published(net, replace(load_target("pod16"), chips=ipus))
    assert found.layout.chips == ipus
    assert {where.neurons for where in found.layout.ranges} == {per_tile}
    used = sum(where.tiles for where in found.layout.ranges)
    assert 0.99 < used / (1472 * ipus) <= 1


def test_hidden_sizes_and_capacities_are_those_of_the_scripts():
    assert hidden_sizes(2, 2, 10) == (1466, 1466)
    assert hidden_sizes(5, 2, 10) == (588, 586, 586, 586, 586)
    assert sum(hidden_sizes(3, 2, 0)) == 2 * 1471
    assert [capacity_of(n, 0.05) for n in (1466, 978, 734, 588)] == [72, 48, 36, 28]
    assert capacity_of(10, 0.01) == 2


def test_small_benchmarks_are_built_and_mapped():
    for name in ("w1", "w1-ff"):
        one = benchmark(name)
        program = one.program()
        activity = by_buffer(program, one.activity)
        assert set(activity.values()) == {0.05}
        plan = make_plan(program, load_target(one.target), steps=one.steps, batch=one.batch, activity=activity)
        assert plan.cycles > 0


def test_a_network_of_the_grid_has_the_layers_of_its_net():
    one = benchmark("shd-n2-b2-a5")
    program = one.program()
    assert tuple(math.prod(p.shape) for p in program.populations) == one.published.widths[1:]
    assert by_buffer(program, one.capacity) == {c.source_buffer: k for c, k in zip(program.connections, one.capacity.values(), strict=True)}
    limit = weight_limit(2.0, 700) * 0.5
    weight = program.parameters[program.connections[0].weight].value
    assert abs(weight).max() <= limit
    assert weight.std() == pytest.approx(limit / math.sqrt(3), rel=0.02)


def test_random_sparse_net_has_fan_out_40():
    program = benchmark("random-10k").program()
    (pool,) = [p for p in program.populations if p.label == "pool"]
    assert pool.shape == (10_000,)
    sizes = {c.label: program.parameters[c.weight].value.size for c in program.connections if c.kind == "sparse"}
    assert sorted(sizes.values()) == [40 * 1000, 40 * 10_000]


def test_suites_behind_the_log_run_the_later_program():
    assert benchmark("shd-x4-n2-a5").published_options.surrogate == "every tile"
    assert benchmark("logged-h5-a1").published_options.surrogate == "one tile"


def test_steps_can_be_changed():
    one = with_steps(benchmark("shd-n2-b3-a5"), 10)
    assert (one.steps, one.published.steps) == (10, 10)


def test_a_net_of_the_grid_in_the_making():
    from snnc.benchmarks.published_nets import DATASETS

    net = published_net("x", DATASETS["dvs"], layers=3, per_tile=2, ipus=1, activity=0.02, batch=48, optimizer="adam")
    assert net.widths[0] == 4608
    assert net.layers[-1].neurons == 11
    assert net == net.full()
