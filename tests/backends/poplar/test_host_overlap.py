"""Host streams beside computing: the same results to the bit, whatever is offered ahead, and transfers that the step hides."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poplar_projects import BATCH, STEPS, machine, overlapped, project
from test_recompute import assert_equal_to_the_bit
from wide import sampled

from snnc.backends.native.library import NativeError
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.session import BackendSession
from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Host
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.errors import HostOverlapError, MappingOptionError
from snnc.compiler.tiles.host_io.host_overlap import OverlapRequest, free_tiles, plan_overlap, widened, with_overlap
from snnc.compiler.tiles.host_io.host_streams import HostStream, Staging, chunk_of, host_streams
from snnc.compiler.tiles.replan import as_planned
from snnc.report.pictures.timeline import whole_step
from snnc.report.profile import read_profile


@pytest.mark.parametrize(
    ("name", "tiles", "rate", "beside", "whole"),
    [
        ("recurrent", 1, 8e9, "forward", True),
        ("learnable", 2, 1e8, "forward", False),  # two chips that wait for each other soon
        ("replicas", 1, 1e8, "forward", True),  # five chips that wait for each other only behind the loss
        ("exact several inputs", 3, 1e8, "update", False),  # decisions in every iteration
    ],
)
def test_steps_whose_inputs_were_sent_ahead_are_those_of_a_program_without_to_the_bit(name, tiles, rate, beside, whole):
    case, ahead = project(name), overlapped(name, tiles, rate)
    plan = ahead.plan
    assert (len(plan.io_tiles), plan.overlap.beside) == (tiles * plan.target.chips, beside)
    assert not set(plan.io_tiles) & {tile for p in plan.populations for tile in p.all_tiles}
    plain, engine = case.open(), ahead.open()
    batches = [case.data(seed) for seed in range(4)]
    for index, (inputs, target) in enumerate(batches):
        if index + 1 < len(batches):
            engine.offer(*batches[index + 1])
        assert engine.train_batch(inputs, target, 1e-2) == plain.train_batch(inputs, target, 1e-2)
    assert_equal_to_the_bit(engine.get_parameters(), plain.get_parameters())
    profile = engine.profile()["emulator"]
    sent = sum(step["executions"] for step in profile["steps"] if step["kind"] == "stream")
    assert sent == (1 + len(batches)) * len(host_streams(plan, case.program)), "a step before the first, and in each"
    assert profile["host_cycles_last_run"] == pytest.approx(plan.host_seconds * plan.target.clock_hz, rel=0.05)
    assert profile["host_cycles_beside_last_run"] == pytest.approx(plan.overlap.cycles, rel=0.05)
    assert (profile["host_cycles_beside_last_run"] == profile["host_cycles_last_run"]) == whole
    handed = [phase for phase in plan.phases if phase.name.endswith("I/O tiles")]
    steps = [step for step in profile["steps"] if step["name"].endswith("IO tiles")]
    assert sum(step["cycles"] for step in steps) == len(batches) * sum(phase.cycles for phase in handed) > 0
    aside = list(plan.io_tiles)
    np.testing.assert_array_equal(np.array(profile["per_tile"]["peak"]["total"])[aside], np.array(plan.tile_memory)[aside])


IN_SEGMENTS = [("inputs", 5, 8e9, True), ("history", 3, 2e7, False), ("boundaries", 7, 2e7, False)]


@pytest.mark.parametrize(("way", "length", "rate", "whole"), sampled(IN_SEGMENTS, 3))
def test_segments_come_while_the_one_before_runs_and_the_first_over_the_end_of_a_step(tmp_path, way, length, rate, whole):
    case = project("recurrent")
    target = replace(case.plan.target, tiles_per_chip=6, host=Host(rate))

    def planned(machine):
        placed = as_planned(case.plan)
        return make_plan(case.program, machine, steps=STEPS, batch=BATCH, placer=placed, recompute=length, streaming=way)

    plan = plan_overlap(planned, case.program, target, OverlapRequest("on", 2))
    assert (plan.streamed, plan.overlap.beside) == (way, "forward")
    assert plan.populations == case.plan.populations
    assert sum(stream.turns * stream.bytes for stream in host_streams(plan, case.program)) == plan.host_bytes
    plain, engine = case.open(), open_engine(emit_poplar(case.program, plan, tmp_path / "project"))
    batches = [case.data(seed) for seed in range(4)]
    for index, (inputs, labels) in enumerate(batches):
        if index != 1:
            engine.offer(*batches[(index + 1) % len(batches)])  # the last one never comes
        assert engine.train_batch(inputs, labels, 1e-2) == plain.train_batch(inputs, labels, 1e-2)
    profile = engine.profile()["emulator"]
    engine.offer(batches[2][0])
    for index in (1, 2, 2):
        assert_equal_to_the_bit(engine.forward(batches[index][0], {}), plain.forward(batches[index][0], {}))
    assert engine.train_batch(*batches[0], 1e-2) == plain.train_batch(*batches[0], 1e-2)
    assert_equal_to_the_bit(engine.get_parameters(), plain.get_parameters())
    assert profile["host_cycles_last_run"] == pytest.approx(plan.host_seconds * plan.target.clock_hz, rel=0.05)
    assert profile["host_cycles_beside_last_run"] == pytest.approx(plan.overlap.cycles, rel=0.05)
    assert (profile["host_cycles_beside_last_run"] == profile["host_cycles_last_run"]) == whole
    emulated = read_profile(plan, profile)
    assert emulated.complete
    handed = [phase for phase in plan.phases if phase.name.endswith("segment from I/O tiles")]
    assert [phase.runs for phase in handed] == [plan.segments.number, plan.segments.number - 1][: 1 + plan.segments.reruns]
    for phase in handed:
        assert sum(emulated.phases[phase.name].values()) == phase.runs * phase.cycles
    aside = list(plan.io_tiles)
    np.testing.assert_array_equal(np.array(profile["per_tile"]["peak"]["total"])[aside], np.array(plan.tile_memory)[aside])
    spans = whole_step(plan).host
    assert [span.runs for span in spans] == [phase.runs for phase in handed]
    assert sum(span.cycles for span in spans) == pytest.approx(plan.host_seconds * plan.target.clock_hz)
    assert [m.name for m in plan.memory_over_time] == [p.name for p in plan.phases]


def test_what_was_offered_may_come_later_or_never_and_inputs_may_be_set_again():
    case, ahead = project("recurrent"), overlapped("recurrent", 1)
    plain, engine = case.open(), ahead.open()
    batches = [case.data(seed) for seed in range(6)]

    def both(index):
        assert engine.train_batch(*batches[index], 1e-2) == plain.train_batch(*batches[index], 1e-2)

    both(0)
    both(0)  # nothing offered, the same again
    engine.offer(*batches[1])
    both(2)
    both(3)  # in place of what was offered
    engine.offer(*batches[4])
    inputs = batches[5][0]
    assert_equal_to_the_bit(engine.forward(inputs, {}), plain.forward(inputs, {}))
    both(4)
    engine.offer(batches[1][0])
    assert_equal_to_the_bit(engine.forward(inputs, {}), plain.forward(inputs, {}))
    assert_equal_to_the_bit(engine.forward(batches[1][0], {}), plain.forward(batches[1][0], {}))
    both(1)  # its inputs are there, its labels are not
    assert_equal_to_the_bit(engine.get_parameters(), plain.get_parameters())


def test_a_wrong_next_input_is_refused_and_the_present_one_stays():
    case, engine = project("recurrent"), overlapped("recurrent", 1).open()
    inputs, target = case.data()
    engine.session.set("x0", inputs["x0"])
    engine.session.set("labels", target)
    with pytest.raises(NativeError, match="label 99 is not one of"):
        engine.session.set("labels_next", np.full(BATCH, 99))
    with pytest.raises(NativeError, match="cannot be read back"):
        engine.session.get("x0_next")
    assert (engine.session.get("labels") == target).all()
    engine.session.set("lr", np.array([1e-2]))
    assert engine.session.train_step() == case.open().train_batch(inputs, target, 1e-2)


class Enough(Exception):
    pass


def test_a_session_offers_batches_by_itself_and_may_be_stopped_at_any():
    case = project("recurrent")
    random = np.random.default_rng(0)
    x = random.random((4 * BATCH + 2, STEPS, *case.program.inputs[0].shape)).astype(np.float32)
    y = random.integers(0, 3, len(x))
    found = []
    for engine in (case.open(), overlapped("recurrent", 1).open()):
        session, seen = BackendSession(engine, case.program), []

        def stop(progress, seen=seen):
            seen.append(progress.loss)
            if len(seen) == 2:
                raise Enough

        with pytest.raises(Enough):
            session.fit(x, y, callback=stop)
        history = session.fit(x[::-1], y[::-1], epochs=2, seed=3)
        records = session.run(x[:7].swapaxes(0, 1))
        found.append((seen, history.batch_losses, session.predict(x), records, session.state_dict()))
    (losses, history, predicted, records, state), ahead = found
    assert (losses, history) == ahead[:2]
    assert (predicted == ahead[2]).all()
    assert_equal_to_the_bit(records, ahead[3])
    assert_equal_to_the_bit(state, ahead[4])


# ---- the plan -----------------------------------------------------------------------------------------------------------------


def planner(name):
    case = project(name)
    return case.program, lambda target: make_plan(case.program, target, steps=STEPS, batch=BATCH, effort=0)


def test_transfers_overlap_only_where_they_matter_and_the_step_gets_shorter():
    program, planned = planner("recurrent")
    target = replace(machine(40), host=Host(8e9, 2, 8))
    assert plan_overlap(planned, program, target, OverlapRequest()) == planned(target), "243 of 120,000 cycles"
    slow = replace(target, host=Host(2e7, 2, 8))
    plan, off = plan_overlap(planned, program, slow, OverlapRequest()), planned(slow)
    assert plan.overlap is not None
    assert plan.overlap.tiles in range(2, 9)
    assert plan.seconds_with_host < off.seconds_with_host
    assert off.seconds_with_host == off.seconds + off.host_seconds
    assert plan.seconds_with_host == pytest.approx(max(plan.seconds, plan.seconds + plan.host_seconds - plan.hidden_host_seconds))
    assert plan_overlap(planned, program, slow, OverlapRequest("off")).overlap is None
    assert plan_overlap(planned, program, slow, OverlapRequest("auto", 3)).overlap.tiles == 3
    assert Plan.from_json(plan.to_json()) == plan


def test_tiles_that_hold_nothing_are_set_aside_for_free():
    program, planned = planner("recurrent")
    target, asked = load_target("gc200"), []
    plan = plan_overlap(lambda machine: (asked.append(machine), planned(machine))[1], program, target, OverlapRequest("on"))
    assert asked == [target]
    off = planned(target)
    assert free_tiles(off) >= 32
    assert plan.overlap.tiles in range(32, 193)
    assert plan.populations == off.populations
    handed = [phase for phase in plan.phases if phase.name.endswith("I/O tiles")]
    assert plan.phases == (*handed, *off.phases)
    assert plan.tile_memory[: 1472 - plan.overlap.tiles] >= off.tile_memory[: 1472 - plan.overlap.tiles]
    assert all(plan.tile_memory[tile] >= target.fixed_tile_bytes for tile in plan.io_tiles)
    assert plan.bound_cycles > off.bound_cycles
    assert [m.name for m in plan.memory_over_time] == [p.name for p in plan.phases]


def test_what_cannot_overlap_says_why():
    program, planned = planner("recurrent")
    target = machine(6)
    for number in (6, 7):
        with pytest.raises(MappingOptionError, match=rf"{number} tiles are to be set aside .* has 6: give 1 to 5"):
            plan_overlap(planned, program, target, OverlapRequest("on", number))
    with pytest.raises(HostOverlapError, match=r"does not tell the host's rate; add a section \[host\]"):
        plan_overlap(planned, program, replace(target, host=None), OverlapRequest("on", 1))
    full = max(planned(machine(5)).tile_memory)
    with pytest.raises(HostOverlapError, match="no longer hold the network"):
        plan_overlap(
            lambda some: planned(replace(some, tile_bytes=10**6)), program, replace(target, tile_bytes=full), OverlapRequest("on", 1)
        )
    assert plan_overlap(planned, program, replace(target, host=None), OverlapRequest()).overlap is None


def test_a_layer_that_lies_over_chips_cannot_leave_a_gap():
    plan = project("learnable").plan
    wide = replace(plan, populations=tuple(replace(p, starts=(1,), width=2) for p in plan.populations))
    with pytest.raises(HostOverlapError, match="lies on several chips"):
        widened(wide, replace(plan.target, tiles_per_chip=3))


def test_a_plan_of_fewer_tiles_keeps_its_place_on_each_chip():
    plan = project("learnable").plan
    target = replace(plan.target, tiles_per_chip=5)
    wide = widened(plan, target)
    assert [p.starts for p in wide.populations] == [tuple(s // 2 * 5 + s % 2 for s in p.starts) for p in plan.populations]
    assert np.reshape(wide.tile_memory, (2, 5))[:, :2].ravel().tolist() == list(plan.tile_memory)
    assert not np.reshape(wide.tile_memory, (2, 5))[:, 2:].any()
    assert (wide.cycles, wide.chips_used, wide.host_bytes) == (plan.cycles, plan.chips_used, plan.host_bytes)
    assert wide.bound_cycles < plan.bound_cycles


def test_the_window_ends_where_all_tiles_wait():
    case = project("recurrent")
    plan = project("recurrent").plan
    slow = replace(plan, target=replace(plan.target, tiles_per_chip=5, host=Host(1e3)))
    free = widened(plan, slow.target)
    whole = with_overlap(free, case.program, 1).overlap
    assert (whole.beside, whole.cycles) == ("forward", pytest.approx(plan.cycles))
    waits = replace(free, phases=tuple(replace(p, waits=p.part == "forward") for p in free.phases))
    later = with_overlap(waits, case.program, 1).overlap
    assert later.beside == "backward"
    assert later.cycles == pytest.approx(sum(p.runs * p.cycles for p in plan.phases if p.part in ("backward", "update")))


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), min_size=1, max_size=12),
    tiles=st.integers(1, 4),
    size=st.sampled_from([2, 4]),
)
def test_every_element_is_dealt_to_one_tile_of_its_chip_and_handed_on(pieces, tiles, size):
    target = replace(machine(10, 2), tiles_per_chip=5 + tiles)
    placed = tuple((tile // 5 * target.tiles_per_chip + tile % 5, elements) for tile, elements in pieces)
    stream = HostStream("inputs", size, placed)
    (copy,) = Staging(target, tiles, (stream,)).hand_overs()
    # By hand, element by element.
    received, sent, fragments, before = np.zeros(target.tiles), np.zeros(target.tiles), np.zeros(target.tiles), None
    total = [sum(n for tile, n in placed if tile // target.tiles_per_chip == chip) for chip in range(2)]
    at = [0, 0]
    for tile, elements in placed:
        chip = tile // target.tiles_per_chip
        for _ in range(elements):
            source = target.tiles_per_chip * (chip + 1) - tiles + at[chip] // chunk_of(total[chip], tiles)
            at[chip] += 1
            received[tile] += size
            sent[source] += size
            fragments[tile] += (source, tile) != before
            before = (source, tile)
    np.testing.assert_array_equal(copy.received, received)
    np.testing.assert_array_equal(copy.sent, sent)
    np.testing.assert_array_equal(copy.fragments, fragments)
    np.testing.assert_array_equal(Staging(target, tiles, (stream,)).held(), sent)
    assert max(sent) <= size * max(chunk_of(n, tiles) for n in total)
