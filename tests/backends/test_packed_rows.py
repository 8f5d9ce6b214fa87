"""Rows of weights that tiles pack before sending them: the emulated program compared with the reference and the prediction."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking_recurrent
from test_code_bytes import adaptive
from wide import sampled
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.gradients import packing
from snnc.compiler.tiles.gradients.packing import Packing
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

STEPS_OF = {"update: weight rows packed": "U2 rows packed", "update: weight copies": "U2 weights to sources"}
VARIABLES = ("weights", "optimiser", "gradients", "history", "relays", "records")
COUNTED = ("compute_cycles_busiest",), ("exchange_cycles", "link_cycles")


def wide_placement(random, replicas):
    """Populations on many tiles each; a die tells how many replicas, tiles and column groups."""

    def place(problem):
        ranges, first = [], 0
        for layer in problem.network.layers:
            number, width = int(random.choice(replicas)), int(random.integers(1, min(layer.neurons, 13) + 1))
            starts = tuple(first + r * width for r in range(number))
            columns = int(random.choice([1, 2, 3, 6]))
            ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, width), tuple(split(problem.batch, number)), columns))
            first += number * width
        assert first <= problem.target.tiles
        yield Placement(tuple(ranges), problem.target.chips)

    return place


def packed(tmp_path, monkeypatch, make, optimizer, seed, chips, replicas):
    """A project whose rows are packed wherever they can be, in a number of bundles that a die tells."""
    random = np.random.default_rng(seed)
    chosen = {}

    def any_bundles(_, source, target):
        key = source.width, target.width
        return chosen.setdefault(key, int(random.integers(-(-target.width // min(source.width, target.width)), target.width + 1)))

    monkeypatch.setattr(packing, "bundles_of", any_bundles)
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=optimizer, steps=STEPS)
    options = {"gradients": "dense", "packed": True, "placer": wide_placement(random, replicas)}
    plan = make_plan(program, machine(240 // chips, chips), steps=STEPS, batch=BATCH, **options)
    assert any(connection.packed for connection in plan.connections)
    return Project(program, plan, emit_poplar(program, plan, tmp_path / "project"))


CASES = [
    (spiking_recurrent, Adam(1e-2), 1, 1, (1,)),
    (spiking_recurrent, SGD(1e-2, 0.9), 2, 3, (1, 2)),
    (several_inputs, Adam(1e-2), 3, 2, (1, 2, 3)),
    (deep, SGD(1e-2), 4, 1, (1, 3)),
    (deep, Adam(1e-2), 5, 4, (1, 2, 5)),
]


@pytest.mark.representative("deep-*")
@pytest.mark.parametrize(("make", "optimizer", "seed", "chips", "replicas"), sampled(CASES, 2))
def test_training_with_packed_rows_equals_the_reference(tmp_path, monkeypatch, make, optimizer, seed, chips, replicas):
    case = packed(tmp_path, monkeypatch, make, optimizer, seed, chips, replicas)
    engine, reference = case.open(), case.reference()
    for step in range(3):
        inputs, target = case.data(seed=step)
        assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-5)
        found, gradients = engine.get_parameters(), engine.gradients()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))
        for parameter, gradient in reference.gradients().items():
            error = np.linalg.norm(gradients[parameter] - gradient)
            assert error <= 1e-5 * max(np.linalg.norm(gradient), 0.05 * whole), parameter
        for parameter, value in reference.get_parameters().items():
            np.testing.assert_allclose(found[parameter], value, atol=1e-5, err_msg=parameter)


@pytest.mark.wide
@pytest.mark.parametrize(("make", "optimizer", "seed", "chips", "replicas"), CASES)
def test_cycles_and_bytes_of_packing_are_those_of_the_emitted_program(tmp_path, monkeypatch, make, optimizer, seed, chips, replicas):
    case = packed(tmp_path, monkeypatch, make, optimizer, seed, chips, replicas)
    emulated = trained_once(case)
    steps = {step["name"]: step for step in emulated["steps"]}
    for phase in case.plan.phases:
        if phase.name in STEPS_OF:
            step = steps[STEPS_OF[phase.name]]
            compute, exchange = (sum(step.get(n, 0) for n in names) / step["executions"] for names in COUNTED)
            assert phase.compute == pytest.approx(compute, rel=0.02), phase.name
            assert phase.exchange == pytest.approx(exchange, rel=0.001), phase.name
    check_bytes(case.plan, emulated)


def trained_once(case):
    """What the emulator counts of a training step."""
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 1e-2)
    return engine.profile()["emulator"]


def check_bytes(plan, emulated):
    """What packed rows add to what was live before, their exchange buffers, and all code."""
    points = emulated["memory_over_time"]
    step = {point["name"]: point for point in points if point["program"] == points[-1]["program"] - 1}
    moments = {moment.name: moment for moment in plan.memory_over_time}
    live = {name: sum(size for kind, size in moment.all_tiles.items() if kind in VARIABLES) for name, moment in moments.items()}
    packed, before = "update: weight rows packed", "update: shared numbers"
    held = step[STEPS_OF[packed]]["variables_of_all"] - step["U2 shared numbers"]["variables_of_all"]
    assert live[packed] - live[before] == held > 0
    for name, title in STEPS_OF.items():
        assert moments[name].all_tiles["exchange"] == step[title]["exchange_buffers_of_all"], name
    code = sum(np.array(emulated["per_tile"]["memory"][name]) for name in ("code", "control_code", "stack", "exchange_code"))
    planned = np.array(plan.memory["code"])
    assert planned.sum() == pytest.approx(code[planned > 0].sum(), rel=0.01)


@cache
def wide():
    """Two recurrent layers of 120 neurons, whose tiles would read hundreds of pieces."""
    return lower(adaptive(2, hidden=120), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2), steps=STEPS)


def mapped(tile_bytes, **options):
    return make_plan(wide(), replace(machine(120, 2), tile_bytes=tile_bytes), steps=STEPS, batch=BATCH, **options)


@pytest.mark.wide
def test_rows_are_packed_only_where_nothing_fits_without():
    roomy, tight = mapped(60_000), mapped(40_000)
    assert not any(connection.packed for connection in roomy.connections)
    assert any(connection.packed for connection in tight.connections)
    assert max(tight.tile_memory) <= 40_000
    with pytest.raises(TooBigError):
        mapped(40_000, packed=False)
    assert plan_from_json(plan_to_json(tight)) == tight


@pytest.mark.wide
def test_a_network_that_fits_packed_is_predicted_as_emulated(tmp_path):
    inputs, _ = Project(wide(), None, tmp_path).data()
    seen = measure_activity(wide(), inputs, "the data")
    plan = mapped(40_000, activity=seen.mean, counts=seen.counts)
    assert any(connection.packed for connection in plan.connections)
    emulated = trained_once(Project(wide(), plan, emit_poplar(wide(), plan, tmp_path / "project")))
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    assert max(plan.tile_memory) == pytest.approx(max(emulated["per_tile"]["peak"]["total"]), rel=0.01)
    found = read_profile(plan, emulated)
    for phase in plan.phases:
        if phase.name in STEPS_OF:
            assert phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    check_bytes(plan, emulated)


def test_bundles_make_tiles_of_either_side_read_about_the_square_root_of_the_pieces():
    random, problem = np.random.default_rng(1), SimpleNamespace(target=machine(4000))
    for _ in range(20):
        neurons, sources, targets = (int(n) for n in random.integers(1, 3000, 3))
        source, target = (
            TileRange((0,), neurons_per_tile(max(neurons, width), width), ((0, 4),), int(random.choice([1, 2, 3, 6])))
            for width in (sources, targets)
        )
        bundles = packing.bundles_of(problem, source, target)
        pieces = packing.row_pieces(target)
        if bundles == 0:
            continue
        found = Packing(sum(source.neurons), source, target, bundles)
        assert found.elements.sum() == source.neurons.sum() * target.neurons.sum(), "every weight is packed once"
        assert bundles + np.add.reduceat(pieces, found.edges[:-1]).max() <= pieces.sum() / 2 + pieces.max() + 1
