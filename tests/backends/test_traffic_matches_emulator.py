"""The bytes that a report counts between layers against those that the emulator moves for the emitted program."""

import pytest
from poplar_projects import project

from snnc.inspect import Subject, summarise

MOVED = {"F1": "spikes to relays", "F2": "windows", "B1": "deltas", "B2": "windows, backward"}


@pytest.mark.parametrize("name", ["recurrent", "feedback", "learnable"])
def test_bytes_between_layers_are_those_of_the_emitted_program(name):
    case = project(name)
    engine = case.open()
    inputs, target = case.data()
    before = {s["name"]: s["bytes_within_ipus"] + s["bytes_between_ipus"] for s in engine.profile()["emulator"]["steps"]}
    engine.train_batch(inputs, target, 0.01)
    subject = Subject(case.plan, summarise(case.program))
    for step in engine.profile()["emulator"]["steps"]:
        kind = MOVED.get(step["name"].split(" ")[0])
        if kind is None:
            continue
        emulated = step["bytes_within_ipus"] + step["bytes_between_ipus"] - before.get(step["name"], 0)
        counted = sum(flow.bytes for flow in subject.traffic.flows if flow.kind == kind)
        assert counted > 0, kind
        # The number of the iteration goes to tiles that work, 4 bytes each time; nothing else is missing.
        rest, readers = emulated - counted, case.plan.iterations * 4
        assert rest % readers == 0, (kind, emulated, counted)
        assert 0 <= rest // readers <= case.plan.target.tiles, (kind, emulated, counted)


@pytest.mark.parametrize("name", ["recurrent", "feedback"])
def test_bytes_of_new_weights_are_those_of_the_emitted_program(name):
    case = project(name)
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    moved = Subject(case.plan, summarise(case.program)).traffic.flows
    copies = [s for s in engine.profile()["emulator"]["steps"] if s["name"].startswith("copy") and s["name"].endswith("_rows")]
    emulated = sum((s["bytes_within_ipus"] + s["bytes_between_ipus"]) / s["executions"] for s in copies)
    assert sum(flow.bytes for flow in moved if flow.kind == "weights to copies") == emulated > 0


def test_bytes_over_links_are_those_of_the_emitted_program():
    case = project("learnable")
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    chips = Subject(case.plan, summarise(case.program)).traffic.by_kind["windows"]
    step = next(s for s in engine.profile()["emulator"]["steps"] if s["name"].startswith("F2"))
    rest = step["bytes_between_ipus"] - (chips.sum() - chips.trace())
    assert chips.sum() > chips.trace(), "windows cross from one chip to the other"
    assert rest % (4 * case.plan.iterations) == 0
    assert 0 <= rest <= 4 * case.plan.iterations * case.plan.target.tiles
