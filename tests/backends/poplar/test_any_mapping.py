"""Any mapping gives the same numbers: random placements, emitted and emulated, compared with the reference."""

import numpy as np
import pytest
from indexed_nets import choosing, convolutional, shaping, sparse_recurrent
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking_recurrent
from resuming import assert_same_optimizer
from test_poplar_matches_reference import assert_same_records
from wide import sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement


def random_placement(random, copies):
    """Each population in as many replicas and tiles as a die says, one after the other on the tiles of one copy."""

    def place(problem):
        ranges, first = [], 0
        for layer in problem.network.layers:
            replicas = int(random.integers(1, BATCH + 1)) if copies == 1 else 1
            width = int(random.integers(1, min(layer.neurons, 5) + 1))
            starts = tuple(first + r * width for r in range(replicas))
            samples = tuple(split(BATCH // copies, replicas))
            columns = int(random.choice([1, 2, 3, 6]))
            ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, width), samples, columns))
            first += replicas * width
        tiles = problem.target.tiles // copies
        assert first <= tiles
        yield Placement(tuple(r.repeated(copies, tiles, BATCH // copies) for r in ranges), problem.target.chips, copies)

    return place


@pytest.mark.representative("choosing-*")
@pytest.mark.parametrize(
    ("make", "optimizer", "seed", "copies", "options"),
    sampled(
        [
            (spiking_recurrent, Adam(1e-2), 1, 1, {}),
            (spiking_recurrent, SGD(1e-2, 0.9), 2, 1, {"capacity": 4}),
            (several_inputs, Adam(1e-2), 3, 1, {}),
            (several_inputs, SGD(1e-2), 4, 5, {"capacity": 2}),
            (spiking_recurrent, Adam(1e-2), 5, 5, {}),
            (sparse_recurrent, Adam(1e-2), 6, 1, {}),
            (sparse_recurrent, SGD(1e-2, 0.9), 7, 1, {"capacity": 4}),
            (sparse_recurrent, SGD(1e-2), 8, 5, {}),
            (convolutional, Adam(1e-2), 9, 1, {}),
            (convolutional, SGD(1e-2), 10, 1, {"capacity": 9}),
            (convolutional, SGD(1e-2, 0.9), 11, 5, {}),
            (shaping, Adam(1e-2), 12, 1, {}),
            (shaping, SGD(1e-2), 13, 5, {}),
            (choosing, Adam(1e-2), 14, 1, {}),
            (choosing, SGD(1e-2), 15, 1, {"capacity": 3}),
            (choosing, SGD(1e-2), 16, 5, {}),
        ],
        5,
    ),
)
def test_random_placements_train_as_the_reference_does(tmp_path, make, optimizer, seed, copies, options):
    graph = make(np.random.default_rng(3))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=optimizer, steps=STEPS)
    machines = machine(110, 2) if copies == 1 else machine(40, copies)
    place = random_placement(np.random.default_rng(seed), copies)
    plan = make_plan(program, machines, steps=STEPS, batch=BATCH, placer=place, **options)
    assert copies == 1 or plan.chips_used == copies
    case = Project(program, plan, emit_poplar(program, plan, tmp_path / "project"))
    engine, reference = case.open(), case.reference()
    for step in range(3):
        inputs, target = case.data(seed=step)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-5)
        found, parameters = engine.get_parameters(), reference.get_parameters()
        gradients = engine.gradients()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))
        for parameter, gradient in reference.gradients().items():
            error = np.linalg.norm(gradients[parameter] - gradient)
            assert error <= 1e-5 * max(np.linalg.norm(gradient), 0.05 * whole), parameter
        for parameter, value in parameters.items():
            np.testing.assert_allclose(found[parameter], value, atol=1e-5, err_msg=parameter)
        engine.set_parameters(parameters)
    assert_same_optimizer(engine, reference)
