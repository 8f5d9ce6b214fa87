"""Bytes between layers in a report, compared with the emulator's counts for the emitted program."""

import numpy as np
import pytest
from poplar_projects import STEPS, Project, machine, project, spiking_recurrent
from test_any_mapping import random_placement

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.report import Subject, summarise

MOVED = {"F1": "spikes to relays", "F2": "windows", "B1": "deltas", "B2": "windows, backward"}


def step_of(case):
    """Supersteps of the emulator's profile behind one training step, and what the report counts by kind."""
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    traffic = Subject(case.plan, summarise(case.program)).traffic
    counted = {}
    for flow in traffic.flows:
        counted[flow.kind] = counted.get(flow.kind, 0) + flow.bytes
    return engine.profile()["emulator"]["steps"], counted, traffic


def moved(step):
    return step["bytes_within_ipus"] + step["bytes_between_ipus"]


def check_iterations(case, steps, counted):
    for step in steps:
        kind = MOVED.get(step["name"].split(" ")[0])
        if kind is not None:
            # The number of the iteration goes to tiles that work, 4 bytes each time; nothing else is missing.
            rest, readers = moved(step) * case.plan.iterations / step["executions"] - counted[kind], case.plan.iterations * 4
            assert rest % readers == 0, (kind, moved(step), counted[kind])
            assert 0 <= rest // readers <= case.plan.target.tiles, (kind, moved(step), counted[kind])


@pytest.mark.wide
@pytest.mark.parametrize("name", ["recurrent", "feedback", "learnable"])
def test_bytes_between_layers_are_those_of_the_emitted_program(name):
    case = project(name)
    steps, counted, _ = step_of(case)
    assert {"F1", "F2", "B1", "B2"} <= {step["name"].split(" ")[0] for step in steps}
    check_iterations(case, steps, counted)


@pytest.mark.wide
@pytest.mark.parametrize(("seed", "copies"), [(1, 1), (5, 5)])
def test_bytes_of_replicas_are_those_of_the_emitted_program(tmp_path, seed, copies):
    graph = spiking_recurrent(np.random.default_rng(3))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2), steps=STEPS)
    machines = machine(60, 2) if copies == 1 else machine(20, copies)
    plan = make_plan(program, machines, steps=STEPS, batch=5, placer=random_placement(np.random.default_rng(seed), copies))
    assert any(p.replicas > 1 for p in plan.populations)
    case = Project(program, plan, emit_poplar(program, plan, tmp_path / "project"))
    steps, counted, _ = step_of(case)
    check_iterations(case, steps, counted)
    new = next(step for step in steps if step["name"] == "U2 replicas")
    assert moved(new) / new["executions"] == pytest.approx(counted["new weights"])


@pytest.mark.representative("recurrent")
@pytest.mark.parametrize("name", ["recurrent", "feedback"])
def test_bytes_of_new_weights_are_those_of_the_emitted_program(name):
    steps, counted, _ = step_of(project(name))
    copies = next(step for step in steps if step["name"] == "U2 weights to sources")
    assert moved(copies) / copies["executions"] == counted["weights to copies"] > 0


@pytest.mark.wide
def test_bytes_over_links_are_those_of_the_emitted_program():
    case = project("learnable")
    steps, _, traffic = step_of(case)
    chips = traffic.by_kind["windows"]
    step = next(s for s in steps if s["name"].startswith("F2"))
    rest = step["bytes_between_ipus"] - (chips.sum() - chips.trace())
    assert chips.sum() > chips.trace(), "windows cross from one chip to the other"
    assert rest % (4 * case.plan.iterations) == 0
    assert 0 <= rest <= 4 * case.plan.iterations * case.plan.target.tiles
