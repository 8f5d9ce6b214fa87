"""Populations in parts compute the same as whole ones: any assignment of neurons to parts, forward, gradients and updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_nets import read_out, sparse, sparse_recurrent
from nets import join
from poplar_projects import BATCH, STEPS, Project, machine
from same_training import assert_same_training
from test_poplar_matches_reference import assert_same_records
from wide import examples, sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.engine_of_parts import EngineOfParts
from snnc.compiler.ir.graph import Graph, Input, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.partition import Partition, prepare


def feed_forward(random):
    """Two layers of sparse weights, with a learned parameter of each neuron, initial states and a shape of two axes."""
    graph = Graph("feed_forward")
    graph.add("x", Input((24,), "spikes"))
    beta = random.uniform(0.5, 0.95, (5, 8)).astype(np.float32)
    initial = {"v": random.uniform(0, 1, (5, 8)).astype(np.float32)}
    graph.add("first", Population(LIF(0.9), (5, 8), {"beta": beta}, frozenset({"beta"}), initial))
    graph.add("second", Population(LIF(0.8), (30,)))
    join(graph, "in", sparse(random, 40, 24, 0.5, bias=True), "x", "first")
    join(graph, "on", sparse(random, 30, 40, 0.4, bias=True), "first", "second")
    return read_out(graph, random, ("first", 40), ("second", 30))


LOSS = parse_loss("ce_mean_membrane")


def parted(graph, sizes, parts, seed, optimizer, **options):
    """A network, whole, and with its neurons in random parts."""
    random = np.random.default_rng(seed)
    whole = lower(graph, loss=LOSS, loss_output="y", optimizer=optimizer, steps=STEPS, **options)
    number = {name: random.permutation(np.arange(n) % parts) for name, n in sizes.items()}
    partition = Partition(number, {name: random.permutation(n) for name, n in sizes.items()})
    found = prepare(graph, LOSS, "y").lower(whole, partition, loss=LOSS, optimizer=optimizer, steps=STEPS, **options)
    return Project(whole, None, None), found


def assert_trains_alike(case, engine):
    reference = case.reference()

    def batches():
        for step in range(3):
            inputs, target = case.data(seed=step)
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
            yield inputs, target

    assert_same_training(engine, reference, batches(), tolerance=(0, 1e-5, 1e-5, 1e-7))


@settings(max_examples=examples(3, 8), deadline=None)
@given(parts=st.integers(1, 6), seed=st.integers(0, 1000), make=st.sampled_from([sparse_recurrent, feed_forward]))
def test_parts_compute_what_the_whole_does(parts, seed, make):
    graph = make(np.random.default_rng(3))
    sizes = {"hidden": 40, "second": 15} if make is sparse_recurrent else {"first": 40, "second": 30}
    case, found = parted(graph, sizes, parts, seed, Adam(1e-2))
    assert_trains_alike(case, EngineOfParts(ReferenceEngine(found.program_of_parts), found))


@pytest.mark.wide
@pytest.mark.parametrize(
    ("make", "chips", "parts", "optimizer", "options"),
    sampled(
        [
            (sparse_recurrent, 1, 3, Adam(1e-2), {}),
            (sparse_recurrent, 2, 2, SGD(1e-2, 0.9), {}),
            (feed_forward, 1, 4, SGD(1e-2), {}),
            (feed_forward, 2, 3, Adam(1e-2), {"surrogate": "boxcar"}),
        ],
        2,
    ),
)
def test_parts_on_the_emulator_train_as_the_reference_does(tmp_path, make, chips, parts, optimizer, options):
    graph = make(np.random.default_rng(3))
    sizes = {"hidden": 40, "second": 15} if make is sparse_recurrent else {"first": 40, "second": 30}
    surrogate = {name: parse_surrogate(text) for name, text in options.items()}
    case, found = parted(graph, sizes, parts, 5, optimizer, **surrogate)
    plan = make_plan(found.program_of_parts, machine(60 // chips, chips), steps=STEPS, batch=BATCH, chips=chips)
    engine = EngineOfParts(open_engine(emit_poplar(found.program_of_parts, plan, tmp_path / "project")), found)
    assert plan.chips_used == chips
    assert_trains_alike(case, engine)
    engine.close()
