"""The two bounds of a plan: never above the prediction, and equal to a hand computation."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_nets import Wire, program, w1
from wide import examples

from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan


def machine(tiles: int, chips: int = 1, **changes: float) -> Target:
    return replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips, **changes)


@settings(max_examples=examples(8, 20), deadline=None)
@given(
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    tiles=st.integers(1, 40),
    chips=st.integers(1, 3),
    batch=st.integers(1, 9),
    steps=st.integers(1, 6),
    training=st.booleans(),
    kind=st.sampled_from(["spikes", "values"]),
)
def test_the_balance_bound_never_exceeds_the_prediction(
    widths: list[int], tiles: int, chips: int, batch: int, steps: int, training: bool, kind: str
) -> None:
    names = ["x0", *(f"p{n}" for n in range(len(widths)))]
    wires = [Wire(a, b) for a, b in itertools.pairwise(names)]
    net = program(dict(zip(names, [7, *widths], strict=True)), wires, training=training, input_kind=kind)
    plan = make_plan(net, machine(tiles, chips), steps=steps, batch=batch, effort=0)
    assert 0 < plan.bound_cycles <= plan.cycles * (1 + 1e-12)
    assert plan.ideal_cycles > 0


def test_one_worker_on_one_tile_reaches_the_balance_bound() -> None:
    """Nothing moves, nothing waits: work is a sum on the only worker."""
    net = program({"x0": 5, "p0": 3, "p1": 2}, [Wire("x0", "p0"), Wire("p0", "p1")])
    plan = make_plan(net, machine(1, workers=1, fragment_cycles=0.0), steps=4, batch=3)
    assert plan.bound_cycles == pytest.approx(plan.cycles)


def test_more_idle_tiles_lower_the_bound_and_not_the_prediction() -> None:
    net = program({"x0": 5, "p0": 3, "p1": 2}, [Wire("x0", "p0"), Wire("p0", "p1")])
    few, many = (make_plan(net, machine(tiles), steps=4, batch=3) for tiles in (64, 256))
    assert few.cycles == many.cycles
    barriers = sum(p.runs * p.sync for p in few.phases)
    assert many.bound_cycles - barriers == pytest.approx((few.bound_cycles - barriers) / 4)


def test_the_ideal_bound_of_w1_is_what_a_hand_computation_gives() -> None:
    batch, steps, tiles = 64, 100, 1472
    spikes, hidden = 0.05 * 700, 0.05 * 256
    forward = spikes * 128 + hidden * 128 + hidden * 10
    source_gradients = 256 * 128 + 256 * 10
    issues = batch * (2 * forward + source_gradients)
    ids = batch * 2 * (spikes + hidden)  # two bytes each; both readers of the hidden spikes see them with one lag
    target = load_target("gc200")
    expected = steps * (issues / tiles + ids / (4 * tiles) + 2 * target.sync_cycles)
    plan = make_plan(w1(), target, steps=steps, batch=batch, effort=0)
    assert plan.ideal_cycles == pytest.approx(expected)
    assert plan.ideal_cycles < plan.bound_cycles


def test_bounds_and_strategy_are_kept_in_the_plan_file() -> None:
    net = program({"x0": 5, "p0": 3, "p1": 2}, [Wire("x0", "p0"), Wire("p0", "p1")])
    plan = make_plan(net, machine(8), steps=10, batch=8)
    again = plan_from_json(plan_to_json(plan))
    assert (again.bound_cycles, again.ideal_cycles, again.strategy) == (plan.bound_cycles, plan.ideal_cycles, "snnc")


def test_wider_vectors_lower_the_ideal_bound() -> None:
    net = program({"x0": 16, "p0": 16, "p1": 8}, [Wire("x0", "p0"), Wire("p0", "p1")])
    two = machine(1)
    four = replace(two, compute=replace(two.compute, fp32_width=4))
    unknown = replace(two, compute=replace(two.compute, fp32_width=0))
    barriers = 2 * 4 * two.sync_cycles
    plans = [make_plan(net, target, steps=4, batch=3).ideal_cycles - barriers for target in (two, four, unknown)]
    assert plans == pytest.approx([plans[0], plans[0] / 2, plans[0]])
