"""Limits on spikes on machines: a static input with randomly selected spikes, and sparse weights stored densely."""

import numpy as np
import pytest
from option_cells import MACHINES

import snnc
from snnc.backends.registry import BACKENDS
from snnc.backends.runtime.errors import SpikeLimitError
from snnc.compiler.ir.graph import FileLayout, Graph, Input, Linear, Output, Population, Sparse
from snnc.compiler.neurons.library import LI, LIF
from snnc.options.compile_options import options

X = (np.random.default_rng(0).random((12, 24)) < 0.5).astype(np.float32)
Y = np.arange(12) % 3
LIMITED = {"loss": "ce_mean_membrane", "optimizer": "sgd:0.05", "steps": 6, "batch": 4, "mode": "drop", "capacity": 5, "seed": 3}


def network():
    random = np.random.default_rng(1)
    graph = Graph("static")
    graph.add("x", Input((24,), "spikes", FileLayout(None, 0)))
    graph.add("hidden", Population(LIF(0.9), (10,)))
    graph.add("readout", Population(LI(0.9), (3,)))
    for name, source, target, shape in (("in", "x", "hidden", (10, 24)), ("out", "hidden", "readout", (3, 10))):
        graph.add(name, Linear(random.normal(size=shape).astype(np.float32), None))
        graph.connect(source, name)
        graph.connect(name, target)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "one.toml").write_text(MACHINES["one.toml"])
    return str(tmp_path / "one.toml")


@pytest.mark.wide
def test_a_machine_trains_as_the_reference_and_drops_the_same_spikes(machine):
    found = {}
    for target in ("reference", machine):
        with snnc.compile(network(), target, drop="random", **LIMITED) as session:
            losses = session.fit(X, Y, epochs=2, batch=4, seed=2, capacity="linear:5,2,updates=4").batch_losses
            found[target] = np.ravel(losses), session.counters()["dropped_spikes"], session.state_dict()
    (losses, dropped, weights), (wanted, counted, right) = found[machine], found["reference"]
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    assert dropped == counted > 1000
    for name, value in weights.items():
        np.testing.assert_allclose(value, right[name], atol=1e-5, rtol=1e-5, err_msg=name)


def test_a_program_that_sends_the_input_once_refuses_the_choice_and_names_the_option(machine):
    run = {name: value for name, value in LIMITED.items() if name not in ("loss", "optimizer")}
    with snnc.compile(network(), machine, **run) as session:
        session.drop = "random"
        with pytest.raises(SpikeLimitError, match="compile with drop='random'"):
            session.run(X[:4])


@pytest.mark.parametrize("loss", [None, "ce_count"])
def test_weights_that_are_hardly_sparse_become_dense_unless_dropped_spikes_have_a_gradient(loss):
    graph = Graph("filled")
    graph.add("x", Input((4,), "spikes"))
    graph.add("cells", Population(LIF(0.9), (3,)))
    indices, indptr = np.tile(np.arange(4, dtype=np.int32), 3), np.arange(0, 13, 4, dtype=np.int32)
    graph.add("in", Sparse(np.ones(12, np.float32), indices, indptr, (3, 4), None, learnable=False))
    graph.add("y", Output())
    for source, target in (("x", "in"), ("in", "cells"), ("cells", "y")):
        graph.connect(source, target)
    machines = next(backend for backend in BACKENDS if backend.name == "machine")
    accepted = options("gc200", steps=5, mode="drop", capacity=2, loss=loss, **({"optimizer": "sgd"} if loss else {})).for_backend()
    assert [name for name, _ in machines.prepare(graph, accepted).of_type(Sparse)] == (["in"] if loss else [])
