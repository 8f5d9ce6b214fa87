"""A plan's predictions compared with the emulator's counts, with the activity of the same inputs on the reference."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.ir.plan import Plan
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import CODES, read_profile

STEPS, BATCH, CLASSES = 20, 16, 10


def recurrent(net: snnc.Network) -> None:
    spikes = net.input(120, kind="spikes")
    hidden = net.population(96, snnc.LIF(beta=0.9, reset="zero"), name="hidden")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense(seed=0))
    net.connect(hidden, hidden, snnc.Dense(bias=False, seed=1), delay=1)
    net.connect(hidden, readout, snnc.Dense(seed=2))


def deep(net: snnc.Network) -> None:
    last = net.input(90, kind="values")
    for width in (60, 45, 33):
        hidden = net.population(width, snnc.LIF(beta=0.8), name=f"hidden{width}")
        net.connect(last, hidden, snnc.Dense(seed=width))
        last = hidden
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(last, readout, snnc.Dense(seed=1))


def sparse(net: snnc.Network) -> None:
    random = np.random.default_rng(0)

    def weights(targets: int, sources: int) -> np.ndarray:
        return np.where(random.random((targets, sources)) < 0.05, random.normal(size=(targets, sources)), 0)

    spikes = net.input(150, kind="spikes")
    pool = net.population(240, snnc.LIF(beta=0.9), name="pool")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, pool, snnc.Sparse(weights(240, 150)))
    net.connect(pool, pool, snnc.Sparse(weights(240, 240)), delay=1)
    net.connect(pool, readout, snnc.Dense(seed=2))


@cache
def predicted_and_emulated(make: object, tiles: int, chips: int, capacity: int | None = None) -> tuple[Plan, dict[str, object]]:
    net = snnc.Network("net")
    make(net)  # type: ignore[operator]
    program = lower(net.graph(), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-3), steps=STEPS)
    random = np.random.default_rng(0)
    x = {i.id: (random.random((STEPS, BATCH, *i.shape)) < 0.1).astype(np.float32) for i in program.inputs}
    target = replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips)
    seen = measure_activity(program, x, "the test's inputs")
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, activity=seen.mean, counts=seen.counts, capacity=capacity)
    with TemporaryDirectory() as folder:
        engine = open_engine(emit_poplar(program, plan, Path(folder) / "project"))
        engine.train_batch(x, random.integers(0, CLASSES, BATCH), 0.0)
        return plan, engine.profile()["emulator"]


@pytest.mark.representative("recurrent-24-1")
@pytest.mark.parametrize(
    ("make", "tiles", "chips"),
    [(recurrent, 24, 1), (deep, 40, 2), (deep, 4, 1), (sparse, 60, 1), (sparse, 8, 2)],
)
def test_predicted_cycles_and_variables_are_within_five_per_cent_of_the_emulated_ones(make, tiles, chips):
    plan, emulated = predicted_and_emulated(make, tiles, chips)
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    held = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")], axis=0)
    assert held.sum() == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.05)


@pytest.mark.representative("recurrent-24-1")
@pytest.mark.parametrize(("make", "tiles", "chips"), [(recurrent, 24, 1), (deep, 40, 2), (deep, 4, 1), (sparse, 60, 1), (sparse, 8, 2)])
def test_each_superstep_is_predicted_within_five_per_cent(make, tiles, chips):
    plan, emulated = predicted_and_emulated(make, tiles, chips)
    found = read_profile(plan, emulated)
    compared = [p for p in plan.phases if p.name in found.phases and p.part in ("forward", "loss", "backward")]
    assert {p.name for p in compared} >= {"forward: relays", "forward: neurons", "loss: adjoints", "backward: neurons"}
    for phase in compared:
        cycles = sum(found.phases[phase.name].values())
        assert phase.runs * phase.cycles == pytest.approx(cycles, rel=0.05, abs=0.001 * plan.cycles), phase.name


def test_further_windows_are_predicted_within_five_per_cent():
    plan, emulated = predicted_and_emulated(recurrent, 24, 1, 8)
    assert {bus.form for bus in plan.buses} == {"bits", "ids"}
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    found = read_profile(plan, emulated)
    for part in ("forward", "backward"):
        for name in ("further windows", "next windows", "decisions", *(["test for further windows"] if part == "forward" else [])):
            phase = next(phase for phase in plan.phases if phase.name == f"{part}: {name}")
            assert phase.runs > 0
            assert phase.runs * phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    assert not any(phase.name == "backward: test for further windows" for phase in plan.phases), "the forward pass has found it"


@pytest.mark.wide
def test_exchange_buffers_of_sparse_populations_are_predicted_in_each_superstep():
    plan, emulated = predicted_and_emulated(sparse, 60, 1)
    points = emulated["memory_over_time"]
    step = {point["name"]: point for point in points if point["program"] == points[-1]["program"] - 1}
    for name, code in (("relays", "F1 relay"), ("neurons", "F2 neurons")):
        moment = next(m for m in plan.memory_over_time if m.name == f"forward: {name}")
        assert moment.all_tiles["exchange"] == step[code]["exchange_buffers_of_all"] > 0


@pytest.mark.representative("recurrent-24-1")
@pytest.mark.parametrize(("make", "tiles", "chips"), [(recurrent, 24, 1), (deep, 40, 2), (deep, 4, 1), (sparse, 60, 1)])
def test_the_predicted_fullest_tile_is_within_five_per_cent_of_the_emulated_one(make, tiles, chips):
    plan, emulated = predicted_and_emulated(make, tiles, chips)
    memory = {name: np.array(bytes_) for name, bytes_ in emulated["per_tile"]["memory"].items()}
    assert max(plan.tile_memory) == pytest.approx(max(emulated["per_tile"]["peak"]["total"]), rel=0.05)
    code = sum(memory[name] for name in ("code", "control_code", "stack", "exchange_code"))
    planned = np.array(plan.memory["code"])
    assert planned.sum() == pytest.approx(code[planned > 0].sum(), rel=0.02)
    assert planned[code.argmax()] == pytest.approx(code.max(), rel=0.05)
    fields = sum(memory[name] for name in ("vertex_state", "edge_lists", "constants"))
    of_vertices = np.array(plan.memory["vertices"]) + plan.memory["tables"]
    assert of_vertices.sum() == pytest.approx(fields.sum(), rel=0.1)


@pytest.mark.representative("recurrent-24-1")
@pytest.mark.parametrize(("make", "tiles", "chips"), [(recurrent, 24, 1), (deep, 40, 2), (deep, 4, 1), (sparse, 60, 1)])
def test_what_is_live_in_each_superstep_is_predicted_within_five_per_cent(make, tiles, chips):
    plan, emulated = predicted_and_emulated(make, tiles, chips)
    points = emulated["memory_over_time"]
    step = {point["name"]: point for point in points if point["program"] == points[-1]["program"] - 1}
    compared = 0
    codes = {**CODES, "update: optimiser": r"U1 update\b"}
    for moment in plan.memory_over_time:
        found = [point for name, point in step.items() if re.match(codes.get(moment.name, "$never"), name)]
        if found:
            live = sum(size for name, size in moment.all_tiles.items() if name not in ("exchange", "vertices", "tables", "code"))
            assert live == pytest.approx(found[0]["variables_of_all"], rel=0.05), moment.name
            assert moment.all_tiles["exchange"] == pytest.approx(found[0]["exchange_buffers_of_all"], rel=0.05), moment.name
            compared += 1
    assert compared >= 8
    totals = [sum(m.tile.values()) for m in plan.memory_over_time]
    assert max(totals) == max(plan.tile_memory)
    assert min(totals) < max(totals) < plan.unshared_bytes
