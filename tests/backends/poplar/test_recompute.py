"""Segments that run forward a second time: the same gradients, fewer bytes, on the emulator and in the prediction."""

from dataclasses import replace
from functools import lru_cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets import dense
from poplar_projects import BATCH, CASES, STEPS, Project, machine, project, several_inputs, spiking_recurrent
from test_any_mapping import random_placement
from wide import sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.ir.segments import Segments
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI
from snnc.compiler.tiles import make_plan, remedies, request_search
from snnc.compiler.tiles.errors import MappingOptionError, TooBigError
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

LENGTHS = {
    "recurrent": (2, 12),
    "skip": (7,),
    "delayed": (1,),
    "feedback": (7,),
    "learnable": (2,),
    "replicas": (5,),
    "lstm": (5,),
    "exact": (1, 7),
    "exact several inputs": (2,),
    "drop": (7,),
}


def in_segments(case, length, folder):
    """The same placement, its iterations in segments of `length`."""
    plan = replace(case.plan, segment=length)
    return Project(case.program, plan, emit_poplar(case.program, plan, folder / "project"))


def trained(case, steps=2):
    """Loss, gradients, parameters and counters behind each of some training steps, and the records of another sequence."""
    engine, found = case.open(), []
    for step in range(steps):
        inputs, target = case.data(seed=step)
        loss = engine.train_batch(inputs, target, 1e-2)
        found.append((loss, engine.gradients(), engine.get_parameters(), engine.counters()))
    return found, engine.forward(case.data(seed=7)[0], {})


@lru_cache(maxsize=16)
def without(name):
    return trained(project(name))


def assert_equal_to_the_bit(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


EACH_LENGTH = [(name, length) for name, lengths in LENGTHS.items() for length in lengths]


@pytest.mark.representative("exact-7")
@pytest.mark.parametrize(("name", "length"), sampled(EACH_LENGTH, 3))
def test_segments_of_any_length_train_as_the_whole_sequence_does(tmp_path, name, length):
    case = in_segments(project(name), length, tmp_path)
    assert case.plan.segments.number > 1
    (found, records), (wanted, whole) = trained(case), without(name)
    for (loss, gradients, parameters, counters), (loss_, gradients_, parameters_, counters_) in zip(found, wanted, strict=True):
        assert loss == loss_
        assert_equal_to_the_bit(gradients, gradients_)
        assert_equal_to_the_bit(parameters, parameters_)
        assert counters == counters_, "the second run counts nothing"
    assert_equal_to_the_bit(records, whole)
    assert any(gradient.any() for gradient in wanted[0][1].values())


@pytest.mark.wide
def test_the_lengths_cover_every_kind_of_boundary():
    number = {name: [replace(project(name).plan, segment=n).segments for n in lengths] for name, lengths in LENGTHS.items()}
    assert set(LENGTHS) == {name for name in CASES if name != "hostile"}, "every case that trains"
    assert any(s.length == 1 for cuts in number.values() for s in cuts)
    assert any(s.last < s.length for cuts in number.values() for s in cuts)
    assert any(s.length % s.interval for s in number["feedback"]), "populations have different numbers of steps in a segment"


PLACED = [(1, 1, False, 4), (5, 5, False, 5), (2, 1, True, 3), (8, 5, True, 12)]


@pytest.mark.wide
@pytest.mark.parametrize(("seed", "copies", "windowed", "length"), sampled(PLACED, 3))
def test_replicas_and_windowed_gradients_run_in_segments(tmp_path, seed, copies, windowed, length):
    graph = spiking_recurrent(np.random.default_rng(3))
    window = (-0.5, 0.5) if windowed else None
    loss = parse_loss("ce_mean_membrane")
    program = lower(graph, loss=loss, loss_output="y", optimizer=Adam(1e-2), steps=STEPS, gradient_window=window)
    target = machine(110, 2) if copies == 1 else machine(40, copies)
    place = random_placement(np.random.default_rng(seed), copies)
    how = {"gradients": "windowed", "gradient_capacity": 6} if windowed else {}
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, placer=place, recompute=length, **how)
    assert plan.segment == length
    assert copies == 1 or plan.chips_used == copies
    assert windowed == any(bus.gradient is not None for bus in plan.buses)
    cut = Project(program, plan, emit_poplar(program, plan, tmp_path / "cut"))
    whole = Project(program, replace(plan, segment=0), emit_poplar(program, replace(plan, segment=0), tmp_path / "whole"))
    for (_, gradients, _, _), (_, wanted, _, _) in zip(trained(cut)[0], trained(whole)[0], strict=True):
        assert_equal_to_the_bit(gradients, wanted)


@pytest.mark.wide
@pytest.mark.parametrize(("make", "tiles", "length"), sampled([(spiking_recurrent, 3, 4), (several_inputs, 3, 5)], 2))
def test_relays_that_keep_bits_run_in_segments(tmp_path, monkeypatch, make, tiles, length):
    def every(problem):
        return [replace(problem, bits=frozenset(s for s in problem.network.sources if s.kind == "spikes" and s not in problem.windowed))]

    monkeypatch.setattr(request_search, "with_bits", every)
    loss = parse_loss("ce_mean_membrane")
    program = lower(make(np.random.default_rng(3)), loss=loss, loss_output="y", optimizer=SGD(1e-2), steps=STEPS)
    plan = make_plan(program, machine(tiles), steps=STEPS, batch=BATCH, recompute=length, capacity=3)
    assert {bus.form for bus in plan.buses if bus.kind == "events"} == {"bits"}
    assert plan.segment == length
    assert max(bus.lag for bus in plan.buses if bus.source != "x0") > 1, "relays keep something at boundaries"
    cut = Project(program, plan, emit_poplar(program, plan, tmp_path / "cut"))
    whole = Project(program, replace(plan, segment=0), emit_poplar(program, replace(plan, segment=0), tmp_path / "whole"))
    for (_, gradients, _, counters), (_, wanted, _, counted) in zip(trained(cut)[0], trained(whole)[0], strict=True):
        assert_equal_to_the_bit(gradients, wanted)
        assert counters == counted


@pytest.mark.wide
def test_initial_states_given_by_the_caller_are_the_first_boundary_and_are_forgotten_afterwards(tmp_path):
    case = project("recurrent")
    cut = in_segments(case, 3, tmp_path)
    inputs, target = case.data()
    state = np.random.default_rng(0).normal(size=(BATCH, 8)).astype(np.float32)
    initial = {(case.program.populations[0].id, "s0"): state}
    engine, wanted = cut.open(), case.open()
    records = wanted.forward(inputs, initial)
    assert_equal_to_the_bit(engine.forward(inputs, initial), records)
    assert any((records[name] != plain).any() for name, plain in wanted.forward(inputs, {}).items())
    engine.train_batch(inputs, target, 1e-2)
    wanted.train_batch(inputs, target, 1e-2)
    assert_equal_to_the_bit(engine.gradients(), wanted.gradients())


# ---- the mapper ------------------------------------------------------------------------------------------------------------

LONG = 120


@lru_cache(maxsize=1)
def long_program():
    graph = dense(np.random.default_rng(3), inputs=40, hidden=240, kind="spikes", readout=LI(0.9))
    return lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=SGD(1e-2), steps=LONG)


def small(tile_bytes):
    return replace(machine(4), name="small", tile_bytes=tile_bytes)


def make_long_plan(target, **options):
    return make_plan(long_program(), target, steps=LONG, batch=BATCH, **options)


long_plan = lru_cache(maxsize=64, typed=True)(make_long_plan)


def plan_on_tiles(target, **options):
    return long_plan(target, streaming="off", **options)


def test_a_plan_that_fits_is_never_cut():
    plan = plan_on_tiles(machine(4))
    assert plan.segment == 0
    assert plan == plan_on_tiles(machine(4), recompute="off")
    assert not any(phase.part == "recompute" for phase in plan.phases)


@pytest.mark.wide
@pytest.mark.usefixtures("plans_as_for_users")
def test_a_plan_that_fits_only_in_segments_trains_as_the_reference_does(tmp_path):
    target = small(178_000)
    # With all the time that it takes, so that a slow machine plans what helps as exactly.
    with patch.object(remedies, "SECONDS", 1e6), pytest.raises(TooBigError) as error:
        plan_on_tiles(target, recompute="off")
    assert error.value.knobs[0].options == (("--recompute", "auto"),)
    random = np.random.default_rng(5)
    inputs, labels = {"x0": (random.random((LONG, BATCH, 40)) < 0.2).astype(np.float32)}, random.integers(0, 4, BATCH)
    assert error.value.knobs[0].bytes == max(plan_on_tiles(target).tile_memory) <= 178_000 < error.value.needed
    activity = measure_activity(long_program(), inputs, "measured").mean
    plan = make_long_plan(target, streaming="off", activity=activity, capacity=240)
    assert plan.segment > 0
    case = Project(long_program(), plan, emit_poplar(long_program(), plan, tmp_path / "project"))
    engine, reference = case.open(), case.reference()
    assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(reference.train_batch(inputs, labels, 1e-2), rel=1e-5)
    gradients = engine.gradients()
    for parameter, wanted in reference.gradients().items():
        assert np.linalg.norm(gradients[parameter] - wanted) <= 1e-5 * np.linalg.norm(wanted), parameter
    profile = engine.profile()["emulator"]
    check_runs(plan, profile)
    held = profile["per_tile"]["peak"]
    planned = np.sum([tiles for name, tiles in plan.memory.items() if name not in ("code", "exchange", "vertices")], axis=0)
    np.testing.assert_allclose(held["variables"], planned, rtol=0.03)
    assert max(held["total"]) <= 178_000


def check_runs(plan, profile):
    """The emulator ran every phase of the plan as often as planned, and what is exact in the prediction is exact."""
    ran = {step["name"].split(" ")[0]: step for step in profile["steps"]}
    runs = {phase.name: phase.runs for phase in plan.phases}
    assert runs["recompute: neurons"] == plan.segments.rerun_iterations
    for code, name in (("F1", "relays"), ("F1b", "windows"), ("F2", "neurons")):
        assert ran[code]["executions"] == runs[f"forward: {name}"] + runs[f"recompute: {name}"]
    for code, name in (("FS", "forward: save"), ("FR", "recompute: restore")):
        phase = next(p for p in plan.phases if p.name == name)
        assert ran[code]["executions"] == phase.runs
        assert ran[code]["exchange_cycles"] == phase.runs * phase.exchange
    assert profile["cycles"] == pytest.approx(plan.cycles, rel=0.05)
    emulated = read_profile(plan, profile)
    assert emulated is not None
    assert emulated.complete
    assert {"recompute: neurons", "recompute: relays", "forward: save"} <= set(emulated.phases)
    assert emulated.cycles == pytest.approx(profile["cycles"], rel=0.02)


def test_segments_are_as_long_as_memory_allows():
    chosen = plan_on_tiles(small(178_000))
    assert 0 < chosen.cycles < plan_on_tiles(small(178_000), recompute=8).cycles
    with patch.object(remedies, "SECONDS", 0.0), pytest.raises(TooBigError):
        plan_on_tiles(small(178_000), recompute=2 * chosen.segment)


def test_shorter_segments_hold_less_until_boundaries_hold_more():
    held = {n: max(plan_on_tiles(machine(4), recompute=n).memory["history"]) for n in (2, 10, 60)}
    assert held[10] < held[2] < max(plan_on_tiles(machine(4)).memory["history"])
    assert held[10] < held[60]


@pytest.mark.parametrize("wrong", [0, -3, True, "on", 2.5])
def test_lengths_that_are_none_are_refused(wrong):
    with pytest.raises(MappingOptionError, match="recompute"):
        plan_on_tiles(machine(4), recompute=wrong)


def test_one_segment_and_inference_need_no_recompute():
    assert plan_on_tiles(machine(4), recompute=LONG + 5).segment == 0
    assert plan_on_tiles(machine(4), recompute=10, training=False).segment == 0


@given(steps=st.integers(1, 40), interval=st.integers(1, 4), stage=st.integers(0, 5), length=st.integers(1, 60))
def test_segments_cover_every_iteration_once_and_hold_no_more_steps_than_are_kept(steps, interval, stage, length):
    iterations = interval * (steps - 1) + 6
    cut = Segments(steps, interval, iterations, length)
    parts = [range(s * length, min((s + 1) * length, iterations)) for s in range(cut.number)]
    assert [k for part in parts for k in part] == list(range(iterations))
    assert len(parts[-1]) == cut.last >= 1
    assert cut.rerun_iterations == sum(len(part) for part in parts[:-1])
    ran = [[t for t in range(steps) if interval * t + stage in part] for part in parts]
    assert max(map(len, ran)) <= cut.steps_in_history
