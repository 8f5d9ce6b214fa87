"""Host streams beside computing: the same results to the bit, whatever is offered ahead, and transfers that the step hides."""

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from poplar_projects import BATCH, CASES, STEPS, Project, project
from test_recompute import assert_equal_to_the_bit

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.mapping import make_plan
from snnc.compiler.mapping.host_overlap import Wanted, plan_overlap


@lru_cache(maxsize=1)
def workplace():
    return tempfile.TemporaryDirectory(prefix="snnc-overlap-")


@lru_cache(maxsize=8)
def overlapped(name, tiles):
    """A case of the shared projects whose chips have `tiles` more tiles, set aside."""
    case, (*_, target, given) = project(name), CASES[name]
    options = {key: value for key, value in given.items() if key != "loss_output"}

    def planned(machine):
        return make_plan(case.program, machine, steps=STEPS, batch=BATCH, **options)

    larger = replace(target, tiles_per_chip=target.tiles_per_chip + tiles)
    plan = plan_overlap(planned, case.program, larger, Wanted("on", tiles))
    return Project(case.program, plan, emit_poplar(case.program, plan, Path(workplace().name) / f"{name}-{tiles}"))


@pytest.mark.parametrize(("name", "tiles"), [("recurrent", 1), ("learnable", 2), ("exact several inputs", 3)])
def test_steps_whose_inputs_were_sent_ahead_are_those_of_a_program_without_to_the_bit(name, tiles):
    case, ahead = project(name), overlapped(name, tiles)
    assert len(ahead.plan.io_tiles) == tiles * ahead.plan.target.chips
    assert not set(ahead.plan.io_tiles) & {tile for p in ahead.plan.populations for tile in p.all_tiles}
    plain, engine = case.open(), ahead.open()
    batches = [case.data(seed) for seed in range(5)]
    for index, (inputs, target) in enumerate(batches):
        if index + 1 < len(batches):
            engine.offer(*batches[index + 1])
        assert engine.train_batch(inputs, target, 1e-2) == plain.train_batch(inputs, target, 1e-2)
    assert_equal_to_the_bit(engine.get_parameters(), plain.get_parameters())
    profile = engine.profile()["emulator"]
    assert profile["host_cycles_last_run"] == profile["host_cycles_beside_last_run"] == ahead.plan.overlap.cycles
    handed = [phase for phase in ahead.plan.phases if phase.name.endswith("I/O tiles")]
    steps = [step for step in profile["steps"] if step["name"].endswith("I/O tiles")]
    assert sum(step["cycles"] for step in steps) == len(batches) * sum(phase.cycles for phase in handed) > 0
    np.testing.assert_allclose(profile["per_tile"]["peak"]["total"], ahead.plan.tile_memory, atol=500, rtol=0.02)
