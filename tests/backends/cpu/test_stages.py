"""Layers that run a block of steps ahead: the numbers of the reference, for any sizes, delays and loops."""

import numpy as np
import pytest
from bfloat16 import rounded
from cpu_projects import assert_same_records, assert_same_training, data, opened
from nets import join, linear

from snnc.backends.cpu.collapse import collapsed
from snnc.backends.cpu.network import network_context
from snnc.backends.cpu.stages import HEAVY, stages_of
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF

WIDE = 520
"""Neurons of a layer whose weights to another are heavy."""


def layers(*further, sizes=(WIDE, WIDE), delay=0):
    """Layers in a row, an input and a readout, with `further` connections (source, target, delay)."""
    random = np.random.default_rng(5)
    graph = Graph("layers")
    graph.add("x", Input((30,), "spikes"))
    names = [f"h{i}" for i in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        graph.add(name, Population(LIF(0.9), (size,)))
    graph.add("readout", Population(LI(0.9), (4,)))
    count = {"x": 30, "readout": 4, **dict(zip(names, sizes, strict=True))}
    row = list(zip(["x", *names], [*names, "readout"], strict=True))
    for source, target, late in [*((s, t, delay if s == "h0" else 0) for s, t in row), *further]:
        weights = linear(random, count[target], count[source], bias=source == "x", gain=0.2 if target == "readout" else 2)
        join(graph, f"{source} to {target} {late}", weights, source, target, delay=late)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def lowered(graph, **options):
    return lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), **options)


def stages(program):
    storage = SequenceStorage(program)
    readout = collapsed(storage)
    return stages_of(storage, lambda op: readout is not None and readout.contains(op))


def levels(program):
    found = stages(program)
    return {p.label: found.level[p.id] for p in program.populations}


def test_layers_run_ahead_of_those_behind_heavy_weights_and_loops_run_together():
    assert 4 * WIDE * WIDE > HEAVY > 4 * 40 * WIDE
    assert levels(lowered(layers())) == {"h0": 0, "h1": 1, "readout": 1}
    assert levels(lowered(layers(("h1", "h0", 1)))) == {"h0": 0, "h1": 0, "readout": 0}
    assert levels(lowered(layers(sizes=(WIDE, 40)))) == {"h0": 0, "h1": 0, "readout": 0}
    assert levels(lowered(layers(sizes=(WIDE, WIDE, WIDE)))) == {"h0": 0, "h1": 1, "h2": 2, "readout": 2}
    assert levels(lowered(layers(), truncate=5)) == {"h0": 0, "h1": 0, "readout": 0}


def test_a_connection_in_a_loop_is_never_one_that_runs_ahead():
    program = lowered(layers(("h0", "h0", 1), ("h1", "h1", 2)))
    found = stages(program)
    crossing = {(c.id) for c in program.connections if c.id in found.backward}
    assert len(crossing) == 1
    assert found.forward == found.backward
    context, *_ = network_context(SequenceStorage(program), {}, {"steps": 1, "batch": 1})
    assert [len(block.before) > 0 for block in context["stages"]] == [False, True]
    assert [len(block.after) > 0 for block in context["stages"]] == [False, True]


@pytest.fixture(scope="module")
def late():
    """A loop in each layer, a delay between them, a light skip over both."""
    return lowered(layers(("h0", "h0", 1), ("h1", "h1", 2), ("x", "h1", 1), ("h0", "readout", 3), delay=2))


@pytest.fixture(scope="module")
def built(late):
    with opened(late, threads=1) as engine:
        yield engine


@pytest.fixture
def engine(built, late):
    start = ReferenceEngine(late)
    built.set_parameters(start.get_parameters())
    built.set_optimizer(start.get_optimizer())
    return built


@pytest.mark.parametrize(("steps", "batch"), [(18, 40), (30, 1), (3, 3)])
def test_training_steps_are_those_of_the_reference(late, engine, steps, batch):
    assert_same_training(engine, late, updates=1, steps=steps, batch=batch)


def test_sequences_and_single_steps_are_those_of_the_reference(late, engine):
    inputs, _ = data(late, 18, 40)
    wanted = ReferenceEngine(late).forward(inputs, {})
    assert_same_records(engine.forward(inputs, {}), wanted)
    engine.reset(40, {})
    for t in range(4):
        found = engine.step({id_: array[t] for id_, array in inputs.items()})
        assert_same_records(found, {id_: record[t] for id_, record in wanted.items()})


def test_segments_between_checkpoints_find_the_same_gradients(late, engine):
    inputs, labels = data(late, 18, 40)
    found = []
    for segment in (0, 7):
        engine.segment = segment
        loss = engine.train_batch(inputs, labels, 0.0)
        found.append((loss, engine.gradients()))
    engine.segment = None
    assert found[0][0] == found[1][0]
    for name, gradient in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name], gradient, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("precision", ["float32", pytest.param("bfloat16", marks=pytest.mark.wide)])
def test_gradients_of_a_window_are_those_of_the_reference(precision):
    program = lowered(layers(("h1", "h1", 1), delay=1), gradient_window=(-0.3, float("inf")))
    inputs, labels = data(program, 14, 40)
    reference = ReferenceEngine(program)
    if precision == "bfloat16":  # the weights that the program reads
        reference.set_parameters({n: rounded(v) if v.ndim == 2 else v for n, v in reference.get_parameters().items()})
    with opened(program, threads=1, precision=precision) as engine:
        loss = reference.train_batch(inputs, labels, 0.0)
        assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
        for name, gradient in reference.gradients().items():
            error = np.linalg.norm(engine.gradients()[name] - gradient) / np.linalg.norm(gradient)
            assert error < (1e-4 if precision == "float32" else 2.0**-7), name
