"""Memory over a step: live data are at least what is always live, and at most everything that exists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_nets import w1
from wide import examples

from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.memory.lifetimes import LIVES, STAGES, by_stage, fullest, peak_bytes, stages_of
from snnc.compiler.tiles.prediction.memory import CATEGORIES, MemoryUse

TILES = 3
numbers = st.integers(0, 1000)
arrays = st.lists(numbers, min_size=TILES, max_size=TILES).map(np.array)
categories = st.sampled_from([name for name in CATEGORIES if name != "exchange"])
holdings = st.dictionaries(st.tuples(categories, st.sampled_from(sorted(LIVES))), arrays, min_size=1)
steps = st.lists(st.tuples(st.sampled_from(STAGES), arrays), min_size=1)


@settings(max_examples=examples(30, 100))
@given(held=holdings, walked=steps)
def test_the_peak_is_at_least_what_is_always_live_and_at_most_what_ever_exists(held, walked):
    memory = MemoryUse(held, tuple((stage, stage.split(":")[0], buffers) for stage, buffers in walked))
    always = sum((size for (_, life), size in held.items() if life == "always"), start=np.zeros(TILES, dtype=np.int64))
    assert (always <= memory.peaks).all()
    assert (memory.peaks <= memory.unshared).all()
    np.testing.assert_array_equal(np.sum(list(memory.at_peak.values()), axis=0), memory.peaks)
    totals = [sum(moment.tile.values()) for moment in memory.phases()]
    assert max(totals) == memory.largest == memory.peaks[memory.tile]
    assert totals[[name for name, *_ in memory.steps].index(memory.phase_of(memory.tile))] <= memory.largest


@settings(max_examples=examples(30, 100))
@given(held=st.dictionaries(st.tuples(categories, st.sampled_from(sorted(LIVES))), numbers, min_size=1))
def test_what_is_added_up_by_stage_is_what_lives_then(held):
    for training in (True, False):
        stages = stages_of(training=training, segment=0)
        for stage, size in by_stage(held, stages).items():
            assert size == sum(bytes_ for (_, life), bytes_ in held.items() if stage in LIVES[life])
        stage, parts = fullest(held, stages)
        assert sum(parts.values()) == peak_bytes(held, stages) == by_stage(held, stages)[stage]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(w1(), load_target("gc200"), steps=20, batch=64, activity={"x0": 0.05, "p0_o0": 0.05}, effort=0)


def test_a_plan_tells_what_its_fullest_tile_holds_in_every_superstep(plan):
    assert [moment.name for moment in plan.memory_over_time] == [phase.name for phase in plan.phases]
    totals = {moment.name: sum(moment.tile.values()) for moment in plan.memory_over_time}
    assert max(totals.values()) == max(plan.tile_memory) == plan.tile_memory[plan.fullest_tile] < plan.unshared_bytes
    assert plan_from_json(plan_to_json(plan)).memory_over_time == plan.memory_over_time
    peak = next(moment for moment in plan.memory_over_time if totals[moment.name] == max(totals.values()))
    assert {name: tiles[plan.fullest_tile] for name, tiles in plan.memory.items()} == peak.tile


def test_what_does_not_live_together_fits_where_all_of_it_would_not(plan):
    small = replace(load_target("gc200"), name="tight", tile_bytes=(max(plan.tile_memory) + plan.unshared_bytes) // 2)
    given_ = {"steps": 20, "batch": 64, "activity": {"x0": 0.05, "p0_o0": 0.05}, "recompute": "off", "effort": 0}
    tight = make_plan(w1(), small, **given_)
    assert max(tight.tile_memory) <= small.tile_bytes
    with pytest.raises(TooBigError) as error:
        make_plan(w1(), replace(small, tile_bytes=20_000), **given_, quick=True)
    assert f"in '{error.value.phase}'" in str(error.value)
