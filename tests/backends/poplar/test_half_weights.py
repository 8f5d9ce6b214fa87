"""Float16 weights in programs without training: the reference's records, half the memory, rounding of weights that are set."""

import numpy as np
import pytest
from nets import join, of_model, recurrent
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking, spiking_recurrent
from windowed_nets import deep

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.errors import HalfRangeError, NothingRoundedError
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import ALIF, LIF
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity

CASES = {
    "values": (recurrent, machine(4), {}),
    "events": (lambda random: spiking(random, hidden=37), machine(1), {}),
    "further windows": (spiking_recurrent, machine(4), {"capacity": 3}),
    "several inputs": (several_inputs, machine(3), {}),
}


def made(folder, name, half=("weights",)):
    make, target, options = CASES[name]
    program = lower(make(np.random.default_rng(3)), steps=STEPS, half=half)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, **options)
    return Project(program, plan, emit_poplar(program, plan, folder / ("half" if half else "float")))


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_records_equal_those_of_the_reference_and_weights_those_that_were_rounded(tmp_path, name):
    case = made(tmp_path, name)
    engine, reference = case.open(), case.reference()
    inputs, _ = case.data()
    for again in (False, True):
        if again:
            random = np.random.default_rng(8)
            given = {n: (v + random.normal(size=v.shape) * 0.01).astype(np.float32) for n, v in reference.get_parameters().items()}
            engine.set_parameters(given)
            reference.set_parameters(given)
        found, wanted = engine.get_parameters(), reference.get_parameters()
        for parameter in case.program.parameters.values():
            np.testing.assert_array_equal(found[parameter.name], wanted[parameter.name])
            if parameter.half:
                np.testing.assert_array_equal(found[parameter.name], found[parameter.name].astype(np.float16).astype(np.float32))
        records = engine.forward(inputs, {})
        for record, values in reference.forward(inputs, {}).items():
            np.testing.assert_allclose(records[record], values, atol=1e-6 * max(1.0, float(np.abs(values).max())), rtol=1e-5)
    assert {p.half for p in case.program.parameters.values()} == {False, True}


@pytest.mark.wide
def test_memory_and_cycles_are_predicted_within_five_per_cent(tmp_path):
    held = {}
    for half in ((), ("weights",)):
        program = lower(deep(np.random.default_rng(3), (200, 200)), steps=30, half=half)
        x = {"x0": (np.random.default_rng(1).random((30, BATCH, 30)) < 0.2).astype(np.float32)}
        seen = measure_activity(program, x, "the test's inputs")
        plan = make_plan(program, machine(6), steps=30, batch=BATCH, effort=0, activity=seen.mean, counts=seen.counts)
        engine = open_engine(emit_poplar(program, plan, tmp_path / "-".join(("project", *half))))
        engine.forward(x, {})
        emulated = engine.profile()["emulator"]
        assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
        planned = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")], axis=0)
        assert planned.sum() == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.05)
        held[half] = sum(plan.memory["weights"])
    assert held["weights",] < 0.52 * held[()]


def test_a_session_keeps_weights_as_half_numbers_and_a_weight_beyond_them_is_refused():
    graph = spiking(np.random.default_rng(3))
    options = {"target": "reference", "steps": STEPS, "precision": "float16"}
    weights = snnc.compile(graph, **options).state_dict()
    assert all((w == w.astype(np.float16)).all() for name, w in weights.items() if name.endswith("weight"))
    large = of_model(np.random.default_rng(3), LIF(0.9))
    join(large, "huge", Linear(np.full((8, 6), 1e5, np.float32)), "x", "hidden")
    with pytest.raises(HalfRangeError, match="65504"):
        snnc.compile(large, **options)


def test_a_network_in_which_nothing_is_rounded_is_refused():
    moving = of_model(np.random.default_rng(3), ALIF(0.9, 0.8))
    with pytest.raises(NothingRoundedError, match="no population"):
        lower(moving, loss=parse_loss("ce_count"), loss_output="hidden", half=("history",))
    direct = Graph("direct")
    direct.add("x", Input((6,)))
    direct.add("cells", Population(LIF(0.9), (6,)))
    direct.add("y", Output())
    direct.connect("x", "cells")
    direct.connect("cells", "y")
    with pytest.raises(NothingRoundedError, match="no dense, sparse"):
        lower(direct, half=("weights",))
