"""Spikes that a CUDA program drops, on the CPU: the same as on the reference, for any placement of populations."""

import cuda_projects
import numpy as np
import pytest
from cpu_projects import data, parts_of
from limited_nets import BATCH, NETS, STEPS, program_of, same_training

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.lowering.spike_limits import SpikeLimit, limited_sources
from snnc.driver.loading import as_graph

WINDOW = (-0.4, np.inf)


@pytest.mark.representative("sparse_recurrent-lowest")
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("name", NETS)
def test_a_program_drops_the_spikes_that_the_reference_drops(name, policy):
    program = program_of(NETS[name], SpikeLimit(2, policy, seed=3))
    with cuda_projects.opened(program) as engine:
        assert same_training(engine, program) > 50


@pytest.mark.representative("recurrent-1")
@pytest.mark.parametrize("clusters", [0, 1])
@pytest.mark.parametrize("name", ["recurrent", "feedback"])
def test_dropped_spikes_of_a_window_take_no_gradient(name, clusters):
    program = program_of(NETS[name], SpikeLimit(2, "random", seed=3), WINDOW)
    with cuda_projects.opened(program) as engine:
        engine._setting("clusters", clusters)
        assert same_training(engine, program) > 50


def wide(random, inputs=1500, hidden=150):
    """Rows of several rounds of a warp, and a recurrence that a cluster of blocks shares."""
    net = snnc.Network("wide", seed=int(random.integers(100)))
    x, hidden_, y = net.input(inputs), net.population(hidden, snnc.LIF(beta=0.9), name="h"), net.population(3, snnc.LI(beta=0.9), name="y")
    net.connect(x, hidden_, snnc.Dense(init=snnc.Normal(std=0.3)))
    net.connect(hidden_, hidden_, snnc.Dense(init=snnc.Normal(std=0.3)), delay=1)
    net.connect(hidden_, y)
    return as_graph(net)


@pytest.mark.wide
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("clusters", [0, 1])
def test_wide_rows_and_clusters_of_blocks_drop_the_same_spikes(policy, clusters):
    program = program_of(wide, SpikeLimit(40, policy, seed=5), WINDOW)
    with cuda_projects.opened(program) as engine:
        engine._setting("clusters", clusters)
        assert same_training(engine, program, updates=2, steps=4, batch=2) > 50
        assert ("clusters of 8 blocks" in str(engine.profile())) == (clusters == 1)


def test_teams_parts_and_segments_drop_and_count_the_same_spikes():
    program = program_of(NETS["feedback"], SpikeLimit(2, "random", seed=3), WINDOW)
    inputs, labels = data(program, 15, 8, density=0.6)
    wanted = ReferenceEngine(program)
    loss = wanted.train_batch(inputs, labels, 1e-2)
    for sharing in ({}, {"team_blocks": 3, "tile": 1}, {"team_blocks": 2, "tile": 8}):
        with cuda_projects.opened(program, **sharing) as engine:
            engine._setting("segment", 0 if sharing else 7)
            assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(loss, rel=1e-5)
            assert engine.counters() == wanted.counters()
    with cuda_projects.opened(program) as engine:
        assert engine.train_parts(parts_of(inputs, labels, 3), 8, 1e-2) == pytest.approx(loss, rel=1e-5)
        assert engine.counters() == wanted.counters()


def test_capacity_and_key_are_values_of_a_run_and_initial_spikes_are_all_sent():
    program = program_of(NETS["recurrent"], SpikeLimit(2, "random", seed=3), WINDOW)
    inputs, labels = data(program, STEPS, BATCH, density=0.6)
    reference = ReferenceEngine(program)
    output = next(p for p in program.populations if p.output_buffers)
    buffer = next(iter(output.output_buffers.values()))
    initial = {(output.id, buffer): np.ones((BATCH, program.buffers[buffer].shape[0]), np.float32)}
    with cuda_projects.opened(program) as engine:
        for capacity, key in ((4, -1.0), (1, -1.0), (2, 77.0)):
            names = limited_sources(program).values()
            values = {n.capacity: np.float32(capacity) for n in names} | {n.key: np.float32(key) for n in names}
            for one in (engine, reference):
                one.set_parameters(values)
            assert engine.train_batch(inputs, labels, 1e-2) == pytest.approx(reference.train_batch(inputs, labels, 1e-2), rel=1e-5)
            found, right = engine.forward(inputs, initial), reference.forward(inputs, initial)
            for name, record in right.items():
                np.testing.assert_allclose(found[name], record, atol=1e-4)
            assert engine.counters() == reference.counters()
        assert engine.counters()["dropped_spikes"] > 0
