"""Changed coefficients, ranks and ratios of ``benchmarks/scripts/prediction/coefficient_sensitivity.py``."""

import sys
from pathlib import Path

import pytest

from snnc.compiler.machines import load_target

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "scripts" / "prediction"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import coefficient_sensitivity

    yield coefficient_sensitivity
    sys.modules.pop("coefficient_sensitivity", None)


def test_costs_are_multiplied_and_rates_divided(script):
    machine = load_target("gc200")
    assert script.changes(machine, "fragments", 1.3) == {"fragment_cycles": pytest.approx(11.7)}
    assert script.changes(machine, "exchange rate", 1.25) == {"exchange_bytes_per_cycle": pytest.approx(3.2)}
    assert script.changes(machine, "links and host", 0.5)["links.bytes_per_second"] == pytest.approx(27.2e9)
    assert script.changes(machine, script.BASE, 1.0) == {}


def test_a_changed_machine_is_read_from_its_file(script, tmp_path):
    machine = load_target("pod16")
    changed = {key: value for group in script.SCALED for key, value in script.changes(machine, group, 1.3).items()}
    (tmp_path / "machine.toml").write_text(script.machine_file("pod16", changed))
    found = load_target(tmp_path / "machine.toml")
    assert found.name == "pod16"
    assert found.tiles == machine.tiles
    assert found.sync_cycles == pytest.approx(1.3 * machine.sync_cycles)
    assert found.links.bytes_per_second == pytest.approx(machine.links.bytes_per_second / 1.3)
    assert found.links.wires(16) == machine.links.wires(16)
    assert found.host.bytes_per_second == pytest.approx(machine.host.bytes_per_second / 1.3)


def test_what_vertices_add_is_what_all_other_costs_leave(script):
    """Of a step that is a x vertices + b x others, the others over f and the time times f give f x vertices."""
    machine = load_target("gc200")
    changed = script.changes(machine, script.VERTICES, 1.3)
    assert changed.keys() == {key.removeprefix("/") for keys in script.SCALED.values() for key in keys}
    assert script.time_factor(script.VERTICES, 1.3) * changed["sync_cycles"] == pytest.approx(machine.sync_cycles)
    assert changed["exchange_bytes_per_cycle"] / 1.3 == pytest.approx(machine.exchange_bytes_per_cycle)
    assert script.time_factor("fragments", 1.3) == 1


def test_30_percent_on_all_groups_is_30_percent_on_the_step_of_one_placement(script):
    """So no cycle of the step is outside the groups, and none is in two."""
    from dataclasses import replace

    from snnc.benchmarks.benchmark import by_buffer
    from snnc.benchmarks.nets import benchmark
    from snnc.compiler.tiles import make_plan
    from snnc.compiler.tiles.replan import as_planned

    case, machine = benchmark("w1-ff"), load_target("gc200")
    program = case.program()
    sizes = {"steps": case.steps, "batch": case.batch, "activity": by_buffer(program, case.activity)}
    plan = make_plan(program, machine, **sizes, quick=True)

    def cycles(group):
        changed = {key: value for key, value in script.changes(machine, group, 1.3).items() if "." not in key}
        again = make_plan(program, replace(machine, **changed), **sizes, placer=as_planned(plan), fused=plan.latency > 1, quick=True)
        return script.time_factor(group, 1.3) * again.cycles

    base = cycles(script.BASE)
    on_chip = [group for group in script.GROUPS if group != "links and host"]
    assert sum(cycles(group) - base for group in on_chip) == pytest.approx(0.3 * base, rel=0.02)


def test_ties_share_a_rank_and_what_does_not_fit_has_none(script):
    assert script.ranks({"snnc": 1.0, "linear": 3.0, "random": 3.0005, "greedy": None, "metis": 4.0}) == {
        "snnc": 1,
        "linear": 2,
        "random": 2,
        "metis": 4,
    }


def test_a_table_names_what_changes_the_order(script):
    results = {}
    for net, strategy, group, factor in script.wanted(("w1",), ()):
        ms = {"snnc": 1.0, "linear": 1.2}.get(strategy, 5.0)
        if strategy == "snnc" and (group, factor) == (script.VERTICES, 1.3):
            ms = 1.3
        results[net, strategy, group, factor] = {"ms": ms, "logged_ms": None}
    row = list(script.rank_table(results))[-1]
    assert row == "| w1 | 1 snnc, 2 linear, 3 greedy, 3 metis, 3 random | 1.20 | 0.92 to 1.20 | vertices x 1.3 |"


def test_strategies_are_ranked_that_all_cases_have(script):
    results = {}
    for net, strategy, group, factor in script.wanted(("w1",), ()):
        if strategy != "metis" or group == script.BASE:
            results[net, strategy, group, factor] = {"ms": {"snnc": 2.0, "metis": 1.0}.get(strategy, 5.0), "logged_ms": None}
    row = list(script.rank_table(results))[-1]
    assert row == "| w1 | 1 snnc, 2 greedy, 2 linear, 2 random | 2.50 | 2.50 to 2.50 | nothing |"


def test_a_ratio_is_of_two_times_or_to_a_log(script):
    of_times = script.Ratio("two", ("a", "dense"), ("b", "snnc"))
    of_log = script.Ratio("log", ("a", "published"), 0.0)
    results = {
        ("a", "dense", "none", 1.0): {"ms": 8.0},
        ("b", "snnc", "none", 1.0): {"ms": 2.0},
        ("a", "published", "none", 1.0): {"ms": 3.0, "logged_ms": 4.0},
    }
    assert script.ratio_of(of_times, results, "none", 1.0) == 4
    assert script.ratio_of(of_log, results, "none", 1.0) == 0.75
    assert script.ratio_of(of_times, results, "fragments", 1.3) is None
