"""Sparse weights of the reference backend compared with masked dense ones in PyTorch; refused weights."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
import torch
from gradients import compare_gradients
from graph_oracle import TorchGraph
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import join
from wide import examples

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.reference.scaling import inside
from snnc.backends.reference.sparse import sparse_input_gradient, sparse_product, sparse_weight_gradient
from snnc.compiler.errors import NotFiniteError, PadError, ParameterShapeError, ShapeMismatchError, SparsePatternError
from snnc.compiler.ir.arrays.sparse import dense_weight, nonzeros_of, pattern_of
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Pad, Population, Sparse
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.ir.verify import verify
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.passes.fill_sparse import fill_sparse


def sparse(outputs, inputs, seed=0, density=0.4, bias=True, **options):
    random = np.random.default_rng(seed)
    mask = random.random((outputs, inputs)) < density
    mask[0, 0] = True
    matrix = scipy.sparse.csr_array(np.where(mask, random.normal(size=mask.shape), 0))
    values = random.normal(size=outputs).astype(np.float32) if bias else None
    arrays = (matrix.data.astype(np.float32), matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return Sparse(*arrays, (outputs, inputs), values, **options)


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.floats(0, 1), st.integers(0, 999))
def test_products_and_gradients_are_those_of_a_masked_linear_layer(outputs, inputs, batch, density, seed):
    operation = sparse(outputs, inputs, seed, density)
    pattern, entries = pattern_of(operation), operation.weight.astype(np.float64)
    random = np.random.default_rng(seed)
    x, d_y = random.normal(size=(batch, inputs)), random.normal(size=(batch, outputs))
    weight = torch.tensor(dense_weight(operation).astype(np.float64), requires_grad=True)
    tensor = torch.tensor(x, requires_grad=True)
    wanted = torch.nn.functional.linear(tensor, weight)
    wanted.backward(torch.tensor(d_y))
    np.testing.assert_allclose(sparse_product(x, entries, pattern), wanted.detach(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sparse_input_gradient(d_y, entries, pattern), tensor.grad, rtol=1e-12, atol=1e-12)
    masked = nonzeros_of(weight.grad.numpy(), operation)
    np.testing.assert_allclose(sparse_weight_gradient(d_y, x, pattern), masked, rtol=1e-12, atol=1e-12)


def network(learnable=True, delay=0):
    graph = Graph("sparse")
    graph.add("x", Input((6,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (8,)))
    graph.add("readout", Population(LI(0.9), (4,)))
    join(graph, "in", sparse(8, 6, 1, learnable=learnable), "x", "hidden")
    join(graph, "loop", sparse(8, 8, 2, bias=False), "hidden", "hidden", delay=1)
    join(graph, "out", sparse(4, 8, 3, learnable=learnable), "hidden", "readout", delay=delay)
    graph.connect("readout", graph.add("y", Output()))
    return graph


@pytest.mark.parametrize("delay", [0, 3])
def test_gradients_of_a_sparse_network_match_pytorch(delay):
    errors = compare_gradients(network(delay=delay), parse_loss("mean membrane"), np.float64, steps=6)
    assert set(errors) >= {"in.weight", "in.bias", "loop.weight", "out.weight", "out.bias"}
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.representative("adam")
@pytest.mark.parametrize("optimizer", [SGD(0.1, 0.9), Adam(3e-2)], ids=["sgd", "adam"])
def test_the_loss_curve_is_that_of_dense_layers_with_masked_gradients(optimizer):
    graph, random = network(), np.random.default_rng(5)
    engine = ReferenceEngine(lower(graph, loss=parse_loss("mean membrane"), optimizer=optimizer), np.float64)
    oracle = TorchGraph(fill_sparse(graph, trains=False))
    masks = {f"{n}.weight": torch.tensor(entry_places(o)) for n, o in graph.of_type(Sparse)}
    kind = torch.optim.SGD if isinstance(optimizer, SGD) else torch.optim.Adam
    options = {"momentum": 0.9} if isinstance(optimizer, SGD) else {}
    steps = kind(oracle.learnable().values(), optimizer.lr, **options)
    x, target = (random.random((5, 3, 6)) < 0.5).astype(np.float64), random.integers(0, 4, 3)
    curve = []
    for _ in range(20):
        steps.zero_grad()
        loss = torch.nn.functional.cross_entropy(oracle({"x": torch.tensor(x)})["y"].mean(0), torch.tensor(target))
        loss.backward()
        for label, mask in masks.items():
            oracle.values[label].grad *= mask
        steps.step()
        curve.append((engine.train_batch({"x0": x}, target, optimizer.lr), loss.item()))
    found, wanted = np.array(curve).T
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found[-1] < 0.8 * found[0]


def entry_places(operation):
    return (np.abs(dense_weight(operation)) > 0).astype(float)


def change(**fields):
    return lambda operation: dataclasses.replace(operation, **{k: np.asarray(v) if k != "shape" else v for k, v in fields.items()})


BASE = Sparse(np.ones(3, np.float32), np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32), (2, 3))


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"indices": [0, 3, 1]}, SparsePatternError, "column 3 of 3"),
        ({"indices": [0, -1, 1]}, SparsePatternError, "column -1 of 3"),
        ({"indices": [2, 0, 1]}, SparsePatternError, "column 0 after column 2"),
        ({"indices": [2, 2, 1]}, SparsePatternError, "column 2 after column 2"),
        ({"indices": [0, 1]}, SparsePatternError, "3 entries and 2 indices"),
        ({"indices": [0.0, 2.0, 1.0]}, SparsePatternError, "float64"),
        ({"indptr": [0, 3]}, SparsePatternError, "2 outputs and indptr of 2"),
        ({"indptr": [0, 4, 3]}, SparsePatternError, "rise from 0"),
        ({"indptr": [0, 2, 9]}, SparsePatternError, "runs from 0 to 9"),
        ({"indptr": [1, 2, 3]}, SparsePatternError, "runs from 1 to 3"),
        ({"indptr": [[0, 2, 3]]}, ParameterShapeError, "(1, 3)"),
        ({"weight": np.ones((3, 1))}, ParameterShapeError, "(3, 1)"),
        ({"weight": [], "indices": np.zeros(0, np.int32), "indptr": [0, 0, 0]}, ParameterShapeError, "(0,)"),
        ({"weight": [1, np.nan, 1]}, NotFiniteError, "nan"),
        ({"bias": [1.0, 2.0, 3.0]}, ParameterShapeError, "(2,)"),
        ({"shape": (2, 4)}, ShapeMismatchError, "(4,)"),
    ],
)
def test_a_pattern_that_is_none_is_refused(fields, error, says):
    graph = Graph("bad")
    graph.add("x", Input((3,)))
    graph.connect("x", graph.add("w", change(**fields)(BASE)))
    graph.connect("w", graph.add("p", Population(LI(0.9), (2,))))
    graph.connect("p", graph.add("y", Output()))
    with pytest.raises(error) as caught:
        verify(graph)
    assert says in str(caught.value)
    assert "'w'" in str(caught.value)


# ---- machines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trains", [False, True])
def test_sparse_weights_that_do_not_learn_become_dense_ones(trains):
    graph = fill_sparse(network(learnable=False), trains=trains)
    assert [n for n, _ in graph.of_type(Sparse)] == (["loop"] if trains else [])
    np.testing.assert_array_equal(graph.operation("in").weight, dense_weight(network().operation("in")))
    assert isinstance(graph.operation("out"), Linear)
    assert not graph.operation("out").learnable
    sparser = fill_sparse(network(learnable=False), trains=trains, least=0.9)
    assert {n for n, _ in sparser.of_type(Sparse)} == {n for n, _ in network().of_type(Sparse)}
    x = (np.random.default_rng(0).random((6, 2, 6)) < 0.5).astype(np.float64)
    before, after = (ReferenceEngine(lower(g), np.float64).forward({"x0": x}, {})["y0"] for g in (network(), graph))
    np.testing.assert_allclose(before, after, rtol=1e-12)


@pytest.mark.wide
def test_the_emulator_runs_a_frozen_sparse_network_and_trains_around_it(tmp_path):
    net = snnc.Network(seed=1)
    spikes, hidden, readout = net.input(12), net.population(8, snnc.LIF(beta=0.9)), net.population(3, snnc.LI(beta=0.9))
    net.connect(spikes, hidden, snnc.Sparse(density=0.4, init=snnc.Normal(1.0), learnable=False), name="fixed")
    net.connect(hidden, readout, snnc.Dense(), name="out")
    random = np.random.default_rng(0)
    x, y = (random.random((4, 8, 12)) < 0.5).astype(np.uint8), random.integers(0, 3, 4)
    options = {"steps": 8, "batch": 4, "loss": "mean membrane", "optimizer": "adam:1e-2"}
    found = []
    for target in ("reference", "gc200"):
        with snnc.compile(net, target=target, **options) as session:
            losses = session.fit(x, y, epochs=2).losses
            found.append((losses, session.run(x.swapaxes(0, 1))["output"]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-3, atol=1e-4)
    assert np.abs(found[0][1]).max() > 0.1


# ---- zeros around values ---------------------------------------------------------------------------------------------


@settings(max_examples=examples(20, 60), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3))
def test_the_inside_of_a_padding_is_what_pytorch_padded(axes):
    shape, padding = tuple(n for n, _, _ in axes), tuple((a, b) for _, a, b in axes)
    x = np.random.default_rng(0).normal(size=(2, *shape))
    padded = torch.nn.functional.pad(torch.tensor(x), [n for pair in reversed(padding) for n in pair])
    np.testing.assert_array_equal(inside(padded.flatten(1).numpy(), shape, padding), x)


def padded(padding, kind="spikes"):
    graph = Graph("padded")
    graph.add("x", Input((2, 3), kind))
    graph.connect("x", graph.add("pad", Pad(padding)))
    graph.connect("pad", graph.add("y", Output()))
    return graph


def test_zeros_around_spikes_are_spikes():
    assert port_map(padded(((1, 0), (0, 2))))["pad", "out"].shape == (3, 5)
    assert port_map(padded(((1, 0), (0, 2))))["pad", "out"].kind == "spikes"


@pytest.mark.parametrize("padding", [(), ((1, 1),), ((0, 0), (-1, 0)), ((0, 0), (1,)), ((0, 0),) * 3])
def test_a_padding_that_does_not_fit_its_input_is_refused(padding):
    with pytest.raises(PadError, match=r"'pad' pads an input of shape \(2, 3\)"):
        verify(padded(padding))


@pytest.mark.parametrize("padding", [((1, 0), (0, 2)), ((0, 0), (2, 1)), ((0, 3), (0, 0)), ((2, 1), (0, 0))])
@pytest.mark.parametrize("delay", [0, 1])
def test_gradients_through_a_padding_match_pytorch(padding, delay):
    random, graph = np.random.default_rng(1), Graph("padded")
    shape = tuple(n + before + after for n, (before, after) in zip((2, 3), padding, strict=True))
    graph.add("x", Input((6,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (2, 3)))
    graph.add("wide", Population(LIF(0.8), shape))
    graph.add("readout", Population(LI(0.9), (4,)))
    join(graph, "in", Linear(random.normal(size=(6, 6)).astype(np.float32)), "x", "hidden")
    join(graph, "pad", Pad(padding), "hidden", "wide", delay=delay)
    join(graph, "more", Linear(random.normal(size=(shape[0] * shape[1], 6)).astype(np.float32)), "x", "wide")
    join(graph, "out", Linear(random.normal(size=(4, shape[0] * shape[1])).astype(np.float32)), "wide", "readout")
    graph.connect("readout", graph.add("y", Output()))
    errors = compare_gradients(graph, parse_loss("mean membrane"), np.float64, steps=6)
    assert errors["in.weight"] < 1e-9, errors
