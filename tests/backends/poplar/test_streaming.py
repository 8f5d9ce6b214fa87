"""Segments whose inputs, boundaries or histories are not on the tiles: bit-identical gradients, and the costs."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from poplar_projects import BATCH, STEPS, Project, machine, project, several_inputs, spiking_recurrent
from test_any_mapping import random_placement
from test_recompute import LONG, assert_equal_to_the_bit, long_plan, long_program, make_long_plan, small, trained, without
from wide import sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.ir.segments import Segments
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines.target import Streaming
from snnc.compiler.tiles import make_plan, remedies, request_search
from snnc.compiler.tiles.errors import MappingOptionError, TooBigError
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

WAYS = ("inputs", "boundaries", "history")


def emitted(program, plan, folder):
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


def assert_trains_alike(case, wanted):
    (found, records), (steps, whole) = trained(case), wanted
    for (loss, gradients, parameters, counters), (loss_, gradients_, parameters_, counters_) in zip(found, steps, strict=True):
        assert loss == loss_
        assert_equal_to_the_bit(gradients, gradients_)
        assert_equal_to_the_bit(parameters, parameters_)
        assert counters == counters_
    assert_equal_to_the_bit(records, whole)
    assert any(gradient.any() for gradient in steps[0][1].values())


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "length", "way"),
    sampled(
        [
            ("recurrent", 5, "inputs"),
            ("drop", 5, "inputs"),
            ("lstm", 5, "boundaries"),
            ("exact several inputs", 3, "history"),
            ("exact several inputs", 2, "boundaries"),
            ("feedback", 7, "history"),
        ],
        3,
    ),
)
def test_what_lies_outside_the_tiles_changes_no_result(tmp_path, name, length, way):
    case = project(name)
    plan = replace(case.plan, segment=length, streamed=way)
    assert plan.segments.number > 2
    assert_trains_alike(emitted(case.program, plan, tmp_path), without(name))


PLACED = [(8, 5, True, "boundaries"), (5, 5, False, "history"), (2, 1, True, "history")]


@pytest.mark.wide
@pytest.mark.parametrize(("seed", "copies", "windowed", "way"), sampled(PLACED, 3))
def test_each_chip_has_its_own_streaming_memory_and_windowed_gradients_work_with_it(tmp_path, seed, copies, windowed, way):
    window = (-0.5, 0.5) if windowed else None
    loss, graph = parse_loss("ce_mean_membrane"), spiking_recurrent(np.random.default_rng(3))
    program = lower(graph, loss=loss, loss_output="y", optimizer=Adam(1e-2), steps=STEPS, gradient_window=window)
    target = machine(110, 2) if copies == 1 else machine(40, copies)
    how = {"gradients": "windowed", "gradient_capacity": 6} if windowed else {}
    place = random_placement(np.random.default_rng(seed), copies)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, placer=place, recompute=4, streaming=way, **how)
    assert (plan.segment, plan.streamed) == (4, way)
    assert copies == 1 or sum(size > 0 for size in plan.streaming_bytes) == copies
    cut, whole = emitted(program, plan, tmp_path / "cut"), replace(plan, segment=0, streamed="off")
    engine = cut.open()
    inputs, labels = cut.data()
    engine.train_batch(inputs, labels, 1e-2)
    assert engine.profile()["emulator"]["remote_memory"] == list(plan.streaming_bytes)
    assert_trains_alike(cut, trained(emitted(program, whole, tmp_path / "whole")))


@pytest.mark.wide
def test_inputs_that_come_as_bits_come_in_segments(tmp_path, monkeypatch):
    def every(problem):
        return [replace(problem, bits=frozenset(s for s in problem.network.sources if s.kind == "spikes" and s not in problem.windowed))]

    monkeypatch.setattr(request_search, "with_bits", every)
    graph, loss = several_inputs(np.random.default_rng(3)), parse_loss("ce_mean_membrane")
    program = lower(graph, loss=loss, loss_output="y", optimizer=SGD(1e-2), steps=STEPS)
    plan = make_plan(program, machine(3), steps=STEPS, batch=BATCH, recompute=5, capacity=3, streaming="boundaries")
    assert {bus.form for bus in plan.buses if bus.kind == "events"} == {"bits"}
    whole = replace(plan, segment=0, streamed="off")
    assert_trains_alike(emitted(program, plan, tmp_path / "cut"), trained(emitted(program, whole, tmp_path / "whole")))


@pytest.mark.wide
@pytest.mark.parametrize("way", sampled(["boundaries", "history"], 2))
def test_initial_states_given_by_the_caller_are_forgotten_afterwards(tmp_path, way):
    case = project("recurrent")
    cut = emitted(case.program, replace(case.plan, segment=3, streamed=way), tmp_path)
    inputs, target = case.data()
    initial = {(case.program.populations[0].id, "s0"): np.random.default_rng(0).normal(size=(BATCH, 8)).astype(np.float32)}
    engine, wanted = cut.open(), case.open()
    records = wanted.forward(inputs, initial)
    assert_equal_to_the_bit(engine.forward(inputs, initial), records)
    assert any((records[name] != plain).any() for name, plain in wanted.forward(inputs, {}).items())
    engine.train_batch(inputs, target, 1e-2)
    wanted.train_batch(inputs, target, 1e-2)
    assert_equal_to_the_bit(engine.gradients(), wanted.gradients())


# ---- the prediction -----------------------------------------------------------------------------------------------------------


@pytest.mark.wide
@pytest.mark.usefixtures("plans_as_for_users")
@pytest.mark.parametrize("way", WAYS)
def test_the_prediction_agrees_with_the_emulator(tmp_path, way):
    random = np.random.default_rng(5)
    inputs, labels = {"x0": (random.random((LONG, BATCH, 40)) < 0.2).astype(np.float32)}, random.integers(0, 4, BATCH)
    activity = measure_activity(long_program(), inputs, "measured").mean
    plan = make_long_plan(machine(4), recompute=25, streaming=way, activity=activity, capacity=240)
    case = emitted(long_program(), plan, tmp_path)
    engine, reference = case.open(), case.reference()
    assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(reference.train_batch(inputs, labels, 1e-2), rel=1e-5)
    gradients = engine.gradients()
    for parameter, wanted in reference.gradients().items():
        assert np.linalg.norm(gradients[parameter] - wanted) <= 1e-5 * np.linalg.norm(wanted), parameter
    profile = engine.profile()["emulator"]
    assert profile["cycles"] == pytest.approx(plan.cycles, rel=0.05)
    assert sum(step["bytes_host"] for step in profile["steps"]) == plan.host_bytes
    assert profile["remote_memory"] == list(plan.streaming_bytes or (0,))
    far = [step for step in profile["steps"] if step["kind"] == "remote" and step["executions"]]
    rows = [phase for phase in plan.phases if phase.name.endswith("streaming memory")]
    assert len(rows) == 2 * (way != "inputs")
    assert sum(step["remote_cycles"] for step in far) == sum(phase.runs * phase.exchange for phase in rows)
    np.testing.assert_allclose(profile["per_tile"]["peak"]["total"], plan.tile_memory, rtol=0.05)
    emulated = read_profile(plan, profile)
    assert emulated is not None
    assert emulated.complete
    assert emulated.cycles == pytest.approx(profile["cycles"], rel=0.02)
    moved = [*rows, *(phase for phase in plan.phases if phase.name in ("forward: save", "recompute: restore"))]
    assert len(moved) == {"inputs": 2, "boundaries": 4, "history": 3}[way]
    for phase in moved:
        assert phase.runs * phase.cycles == pytest.approx(sum(emulated.phases[phase.name].values()), rel=0.01), phase.name
    again = {"recompute: neurons"} if way != "history" else set()
    assert {*(phase.name for phase in rows), *again} <= set(emulated.phases)


def test_each_way_holds_less_on_the_tiles_and_histories_run_nothing_twice():
    plans = {way: long_plan(machine(4), recompute=10, streaming=way) for way in ("off", *WAYS)}
    fullest = {way: max(plan.tile_memory) for way, plan in plans.items()}
    assert fullest["off"] > fullest["inputs"] > fullest["boundaries"]
    assert plans["history"].cycles < plans["boundaries"].cycles
    assert not any(phase.name == "recompute: neurons" for phase in plans["history"].phases)
    assert plans["off"].host_bytes < plans["history"].host_bytes < plans["inputs"].host_bytes
    assert [bool(plan.streaming_bytes) for plan in plans.values()] == [False, False, True, True]


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_with_streaming_memory_is_read_back_from_its_file(way):
    plan = long_plan(machine(4), recompute=10, streaming=way)
    assert plan_from_json(plan_to_json(plan)) == plan


# ---- the mapper -----------------------------------------------------------------------------------------------------------------


def test_streaming_memory_is_used_only_where_nothing_fits_without():
    assert long_plan(machine(4)).streamed == "off"
    assert long_plan(machine(4)) == long_plan(machine(4), streaming="off") == long_plan(machine(4), streaming="history")


@pytest.mark.wide
def test_what_fits_only_with_streaming_memory_is_planned_and_named_where_it_is_forbidden():
    room = max(long_plan(machine(4), recompute=3, streaming="boundaries").tile_memory)
    with pytest.raises(TooBigError) as error:
        long_plan(small(room), streaming="off")
    knob = error.value.knobs[0]
    assert (knob.options, knob.fits) == ((("--streaming", "auto"),), True)
    plan = long_plan(small(room))
    assert plan.streamed in ("boundaries", "history")
    assert max(plan.tile_memory) <= room
    forced = {way: long_plan(small(room), streaming=way) for way in ("boundaries", "history")}
    assert {way: found.streamed for way, found in forced.items()} == {way: way for way in forced}
    assert plan.cycles <= min(found.cycles for found in forced.values()) * 1.001


@pytest.mark.wide
def test_histories_need_no_recompute_and_slow_streaming_memory_makes_it_the_better_choice():
    room = max(long_plan(machine(4), recompute=30).tile_memory)
    assert long_plan(small(room), recompute="off").streamed == "history"
    assert long_plan(small(room)).streamed == "history"
    slow = replace(small(room), streaming=Streaming(2**36, 1e6))
    assert long_plan(slow).streamed in ("off", "inputs")


def test_too_little_streaming_memory_is_not_used():
    room = max(long_plan(machine(4), recompute=30).tile_memory)
    with patch.object(remedies, "SECONDS", 0.0), pytest.raises(TooBigError):
        long_plan(replace(small(room), streaming=Streaming(1000, 20e9)), recompute="off")
    assert long_plan(replace(small(room), streaming=None)).streamed in ("off", "inputs")


def test_ways_that_are_none_are_refused_and_so_is_memory_that_is_not_there():
    with pytest.raises(MappingOptionError, match="streaming is 'on'"):
        long_plan(machine(4), streaming="on")
    with pytest.raises(MappingOptionError, match=r"no streaming memory; add a section \[streaming\]"):
        long_plan(replace(machine(4), streaming=None), recompute=10, streaming="history")


@given(
    steps=st.integers(1, 30),
    interval=st.integers(1, 4),
    length=st.integers(1, 40),
    lags=st.lists(st.integers(1, 9), min_size=1, max_size=3),
)
def test_a_ring_of_an_input_has_a_slot_for_each_step_that_a_segment_shows(steps, interval, length, lags):
    iterations = interval * (steps - 1) + max(lags)
    cut = Segments(steps, interval, iterations, length, "inputs")
    slots = cut.steps_streamed(min(lags), max(lags))
    for s in range(cut.number):
        shown = {
            (k - lag + 1) // interval
            for k in range(s * length, min((s + 1) * length, iterations))
            for lag in lags
            if (k - lag + 1) % interval == 0 and 0 <= (k - lag + 1) // interval < steps
        }
        first = max(0, -(-(s * length - max(lags) + 1) // interval))
        assert not shown or (first <= min(shown) and max(shown) < first + slots)
