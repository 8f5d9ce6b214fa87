"""Mapping of gradients returned in windows: where sums are computed, the predicted cost, and the choice of the path."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wide import examples

import snnc
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.cycles.indexed_cycles import expected_halvings
from snnc.compiler.tiles.errors import CapacityError, MappingOptionError


@cache
def chain(*widths: int, window: float | None = -0.1) -> StepProgram:
    layers = [part for width in widths[1:] for part in (snnc.Dense(width), snnc.LIF())]
    net = snnc.Sequential(widths[0], *layers)
    return lower(
        net.graph(), loss=parse_loss("ce_count"), optimizer=SGD(), gradient_window=None if window is None else (window, math.inf), steps=5
    )


def small(tiles: int, chips: int = 1) -> Target:
    return replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips)


def producers_of(plan: Plan, bus: str, sample: int) -> list[tuple[str, int]]:
    """Connections and first neurons of the column groups that make partial products of a sample, in order."""
    targets = [c.target for c in plan.connections if c.bus == bus]
    found = []
    for target in targets:
        population = next(p for p in plan.populations if p.id == target)
        mine = [b for b in population.blocks if b.sample <= sample < b.sample + b.samples]
        found += [(target, b.first) for b in mine]
    return found


@settings(max_examples=examples(4, 15), deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=3, max_size=5),
    st.integers(1, 20),
    st.sampled_from([small(1), small(3), small(40), small(200), small(10, 3)]),
    st.one_of(st.none(), st.integers(1, 70)),
)
def test_every_partial_product_is_added_once(widths: list[int], batch: int, target: Target, capacity: int | None) -> None:
    plan = make_plan(chain(*widths), target, steps=5, batch=batch, gradients="windowed", gradient_capacity=capacity, capacity=1, effort=0)
    windowed = [b for b in plan.buses if b.gradient is not None]
    assert len(windowed) == len(widths) - 2, "all but the input and the last layer"
    for bus in windowed:
        assert bus.gradient is not None
        wanted = bus.width if capacity is None else min(capacity, bus.width)
        assert bus.gradient.capacity == wanted
        groups = len(producers_of(plan, bus.id, 0))
        added = np.zeros((groups, batch, wanted), dtype=int)
        by_part = np.zeros((bus.gradient.parts, batch, wanted), dtype=int)
        for v in bus.gradient.sums:
            samples, entries = slice(v.sample, v.sample + v.samples), slice(v.entry, v.entry + v.entries)
            assert v.samples == 1 or v.entries == wanted
            assert v.producers >= 1
            added[v.first : v.first + v.producers, samples, entries] += 1
            by_part[v.part, samples, entries] += 1
            assert 0 <= v.tile < target.tiles
        assert (added == 1).all()
        assert (by_part == 1).all()
        assert all(len(producers_of(plan, bus.id, sample)) == groups for sample in range(batch))
    assert plan_from_json(plan_to_json(plan)) == plan


def test_no_tile_adds_with_more_vertices_than_it_has_workers_when_jobs_are_few() -> None:
    plan = make_plan(chain(50, 120, 90, 10), load_target("gc200"), steps=5, batch=8, gradients="windowed", gradient_capacity=20)
    tiles = [v.tile for b in plan.buses if b.gradient for v in b.gradient.sums]
    assert max(tiles.count(t) for t in set(tiles)) <= plan.target.workers


@pytest.mark.wide
def test_the_faster_way_is_taken() -> None:
    spikes = dict.fromkeys(("x0_in", "p0_o0", "p1_o0"), 0.01)
    given = {"steps": 50, "batch": 16, "mode": "drop", "activity": spikes, "support": {"p0_o0": 0.02, "p1_o0": 0.02}}
    wide = chain(200, 600, 600, 10)
    plans = {way: make_plan(wide, load_target("gc200"), gradients=way, **given) for way in ("dense", "windowed", "auto")}
    assert plans["windowed"].cycles < plans["dense"].cycles
    assert plans["auto"].cycles <= plans["windowed"].cycles
    assert any(b.gradient for b in plans["auto"].buses)
    assert not any(b.gradient for b in plans["dense"].buses)
    narrow = make_plan(chain(20, 12, 12, 10), load_target("gc200"), steps=50, batch=4)
    dense = make_plan(chain(20, 12, 12, 10), load_target("gc200"), steps=50, batch=4, gradients="dense")
    assert narrow.cycles <= dense.cycles


def test_no_weights_are_copied_to_a_source_with_windows() -> None:
    given = {"steps": 5, "batch": 2, "chips": 1}
    one = {way: make_plan(chain(40, 30, 20), small(1), gradients=way, **given) for way in ("dense", "windowed")}
    copies = 4 * 30 * 20
    assert one["dense"].memory["weights"][0] - one["windowed"].memory["weights"][0] == copies


def test_unbounded_surrogates_stay_dense() -> None:
    plan = make_plan(chain(40, 30, 20, window=None), small(4), steps=5, batch=2, gradients="windowed")
    assert not any(b.gradient for b in plan.buses)
    assert "backward: reduction" not in {p.name for p in plan.phases}


def test_windows_hold_what_was_measured_or_everything() -> None:
    make = chain(40, 400, 20)
    full = make_plan(make, small(20), steps=5, batch=2, gradients="windowed")
    assert [b.gradient.capacity for b in full.buses if b.gradient] == [400]
    drop = {"gradients": "windowed", "mode": "drop", "activity": {"p0_o0": 0.02}}
    seen = make_plan(make, small(20), steps=5, batch=2, support={"p0_o0": 0.05}, **drop)
    (bus,) = [b for b in seen.buses if b.gradient]
    assert bus.gradient is not None
    mean = 400 * 0.05
    assert mean + 3 * math.sqrt(mean) < bus.gradient.capacity < mean + 6 * math.sqrt(mean) + 4
    assert bus.gradient.capacity >= bus.capacity
    alone = make_plan(make, small(20), steps=5, batch=2, support={"p0_o0": 0.05}, gradients="windowed", mode="drop", capacity=10)
    assert [b.gradient.capacity for b in alone.buses if b.gradient] == [bus.gradient.capacity]
    guessed = make_plan(make, small(20), steps=5, batch=2, **drop)
    (twice,) = [b.gradient.capacity for b in guessed.buses if b.gradient]
    assert bus.capacity < twice < bus.gradient.capacity, "twice as many as spike"


@pytest.mark.parametrize(
    "options", [{"support": {"p0_o0": 1.5}}, {"support": {"y": 0.5}}, {"gradient_capacity": 0}, {"gradient_capacity": {"y": 3}}]
)
def test_capacities_and_shares_outside_their_range(options: dict) -> None:
    with pytest.raises(CapacityError, match="SNNC-E311"):
        make_plan(chain(40, 30, 20), small(4), steps=5, batch=2, **options)


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(MappingOptionError, match=r"gradients is 'sparse'; it must be 'auto', 'dense' or 'windowed'"):
        make_plan(chain(40, 30, 20), small(4), steps=5, batch=2, gradients="sparse")


@pytest.mark.parametrize("mean", [0.0, 0.3, 2.0, 7.5, 40.0, 300.0])
def test_expected_halvings_are_those_of_a_poisson_distribution(mean: float) -> None:
    numbers = np.random.default_rng(0).poisson(mean, 40_000)
    wanted = float(np.mean([0 if n == 0 else math.floor(math.log2(n)) + 1 for n in numbers]))
    assert expected_halvings(mean) == pytest.approx(wanted, abs=0.15)
