"""The traffic stored with a plan: the report's counts for the placement, read from the plan's file."""

from dataclasses import replace

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from nets import recurrent
from poplar_projects import BATCH, STEPS, machine

from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan
from snnc.report import Subject, summarise


@pytest.mark.parametrize(("make", "tiles", "chips"), [(recurrent, 4, 1), (recurrent, 3, 2), (sparse_recurrent, 20, 1)])
def test_a_plan_keeps_the_traffic_of_its_placement(make, tiles: int, chips: int) -> None:
    graph = make(np.random.default_rng(3))
    several = len(lower(graph, steps=STEPS).outputs) > 1
    loss = {"loss": parse_loss("ce_count"), "loss_output": "y" if several else None}
    program = lower(graph, **loss, optimizer=Adam(), steps=STEPS)
    plan = make_plan(program, machine(tiles, chips), steps=STEPS, batch=BATCH, effort=0, chips=chips)
    read = plan_from_json(plan_to_json(plan))
    assert read == plan
    kept, counted = (Subject(p, summarise(program)).traffic for p in (read, replace(plan, traffic=None)))
    assert kept.nodes == counted.nodes
    assert kept.flows == counted.flows
    assert sum(flow.bytes for flow in kept.flows) > 0
    np.testing.assert_array_equal(kept.chips, counted.chips)
    assert {kind: dict(flows.bytes) for kind, flows in kept.links.items()} == {
        kind: dict(flows.bytes) for kind, flows in counted.links.items() if flows.bytes
    }
    assert bool(kept.links) == (chips > 1)
