"""Deltas sent as float16, two samples per word: the reference's gradients, with a scaled loss, and half the exchange."""

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from nets import join, linear, recurrent
from poplar_projects import STEPS, Project, machine, spiking_recurrent
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.errors import HalfDeltasError, NothingRoundedError
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.losses.weight_rounding import WeightRounding
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

BATCH = 16
SCALED = SGD(0.05, loss_scale=LossScale(2.0**16, dynamic=False))
CASES = {
    "float weights": (spiking_recurrent, SGD(0.05), machine(4), ("deltas",), {}),
    "everything": (recurrent, SCALED, machine(4), ("history", "weights", "deltas"), {}),
    "two samples a worker": (recurrent, SCALED, machine(12), ("deltas",), {"batch": 4}),
    "windowed": (deep, SGD(0.05), machine(4), ("deltas", "weights"), {"gradients": "windowed"}),
    "dense": (deep, SCALED, machine(2, 2), ("deltas",), {"gradients": "dense"}),
}


def lowered(make, optimizer, half, steps=STEPS):
    options = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "y", "optimizer": optimizer, "steps": steps}
    return lower(make(np.random.default_rng(3)), half=half, rounding=WeightRounding("stochastic"), **options)


def data(program, steps=STEPS, density=0.4, batch=BATCH):
    random = np.random.default_rng(1)
    inputs = {i.id: (random.random((steps, batch, *i.shape)) < density).astype(np.float32) for i in program.inputs}
    return inputs, random.integers(0, 2, batch)


@pytest.mark.representative("everything")
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_equal_those_of_the_reference_that_rounds_too(tmp_path, name):
    make, optimizer, target, half, options = CASES[name]
    program = lowered(make, optimizer, half)
    plan = make_plan(program, target, **{"steps": STEPS, "batch": BATCH, "effort": 0, **options})
    case = Project(program, plan, emit_poplar(program, plan, tmp_path / "project"))
    engine, reference = case.open(), case.reference()
    batch = data(program, batch=plan.batch)
    assert engine.train_batch(*batch, 0.01) == pytest.approx(reference.train_batch(*batch, 0.01), rel=1e-6)
    whole = lowered(make, SGD(0.05), tuple(h for h in half if h != "deltas"))
    exact = Project(whole, plan, tmp_path).reference()
    exact.train_batch(*batch, 0.01)
    changed = 0.0
    for parameter, gradient in reference.gradients().items():
        # A delta between two float16 numbers may go to either where sums are added in another order.
        near = 2e-4 * max(1e-3, float(np.abs(gradient).max()))
        np.testing.assert_allclose(engine.gradients()[parameter], gradient, atol=near, err_msg=parameter)
        changed = max(changed, float(np.abs(exact.gradients()[parameter] - gradient).max() / np.abs(gradient).max()))
    assert 1e-5 < changed < 1e-2


def planned(folder, half):
    program = lowered(lambda random: deep(random, (60, 60)), SGD(0.05), half, steps=20)
    inputs, labels = data(program, 20, 0.1)
    seen = measure_activity(program, inputs, "the test's inputs")
    more = {"activity": seen.mean, "counts": seen.counts, "gradients": "dense"}
    plan = make_plan(program, machine(6), steps=20, batch=BATCH, effort=0, **more)
    engine = open_engine(emit_poplar(program, plan, folder / "-".join(("project", *half))))
    engine.train_batch(inputs, labels, 0.0)
    return plan, engine.profile()["emulator"]


@pytest.mark.wide
def test_memory_and_cycles_are_predicted_within_five_per_cent(tmp_path):
    plan, emulated = planned(tmp_path, ("deltas",))
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    found = read_profile(plan, emulated)
    for phase in plan.phases:
        if phase.part == "backward" and phase.runs > 1:
            predicted = phase.runs * (phase.compute + phase.sync + phase.exchange)
            assert predicted == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    variables = [plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")]
    assert np.sum(variables) == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.05)


def two_samples_a_tile(problem):
    """Twelve neurons and two samples on each tile, in three column groups, so that two workers share one without float16 deltas."""
    ranges, first = [], 0
    for layer in problem.network.layers:
        width, replicas = -(-layer.neurons // 12), problem.batch // 2
        starts = tuple(first + width * replica for replica in range(replicas))
        ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, width), tuple((2 * r, 2) for r in range(replicas)), 3))
        first += width * replicas
    yield Placement(tuple(ranges), 1)


@pytest.mark.wide
@pytest.mark.parametrize("half", [(), ("deltas",)], ids=["float32", "float16"])
def test_gradients_of_shared_weights_are_sent_in_as_many_pieces_as_predicted(tmp_path, half):
    """Blocks with pairs of samples leave no private sums between the gradients of a tile's groups, which are then sent as one piece."""
    options = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "y", "optimizer": SGD(0.05), "steps": STEPS}
    program = lower(sparse_recurrent(np.random.default_rng(3)), half=half, **options)
    plan = make_plan(program, machine(20), steps=STEPS, batch=4, placer=two_samples_a_tile)
    engine = open_engine(emit_poplar(program, plan, tmp_path / "project"))
    engine.train_batch(*data(program, batch=4), 0.01)
    (step,) = (s for s in engine.profile()["emulator"]["steps"] if s["name"] == "U1 shared gradients")
    (phase,) = (p for p in plan.phases if p.name == "update: shared gradients")
    assert phase.exchange == step["exchange_cycles"] / step["executions"] > 0


def one_layer(random):
    graph = Graph("one layer")
    graph.add("x", Input((6,)))
    graph.add("readout", Population(LI(0.9), (3,)))
    join(graph, "first", linear(random, 3, 6), "x", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def test_odd_batches_and_networks_without_such_deltas_are_refused():
    program = lowered(spiking_recurrent, SGD(0.05), ("deltas",))
    with pytest.raises(HalfDeltasError, match="batch of 15"):
        make_plan(program, machine(4), steps=STEPS, batch=15, effort=0)
    with pytest.raises(NothingRoundedError, match="returns a gradient only over dense connections"):
        lowered(one_layer, SGD(0.05), ("deltas",))
