"""The loops that a plan lists for a superstep: those of the slowest vertex of its busiest tile."""

import math

import numpy as np
import pytest
from mapping_nets import w1

from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import codelet_costs, make_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """With the same number of spikes in each step and sample, so that means are what every vertex meets."""
    made = w1()
    widths = {c.source_buffer: math.prod(made.buffers[c.source_buffer].shape) for c in made.connections}
    counts = {buffer: np.full((100, 48), width // 20) for buffer, width in widths.items()}
    mean = {buffer: (width // 20) / width for buffer, width in widths.items()}
    return make_plan(made, load_target("gc200"), steps=100, batch=48, effort=0, fused=False, activity=mean, counts=counts)


def test_loops_and_start_are_the_cycles_of_the_slowest_vertex(plan: Plan) -> None:
    """The busiest tile has a worker for each block, so the longest block decides, but in the iteration in which it is idle."""
    phase = next(p for p in plan.phases if p.name == "forward: neurons")
    owner = next(p for p in plan.populations if any(b.tile == phase.busiest_tile for b in p.blocks))
    assert {loop.vertex for loop in phase.loops} == {f"forward of {owner.label}"}
    start = plan.target.vertex_start_cycles + codelet_costs(w1())[f"forward.{owner.id}"].start
    cycles = plan.target.workers * (start + sum(loop.total for loop in phase.loops))
    assert cycles == pytest.approx(phase.compute, rel=0.02)
    assert [loop.total for loop in phase.loops] == sorted((loop.total for loop in phase.loops), reverse=True)


def test_loops_of_connections_name_the_other_end(plan: Plan) -> None:
    phase = next(p for p in plan.phases if p.name == "forward: neurons")
    assert any(loop.name.startswith("weights of a spike, from ") for loop in phase.loops)


def test_loops_are_read_back(plan: Plan) -> None:
    assert plan_from_json(plan_to_json(plan)).phases == plan.phases
