"""Sparse weights and zero padding in model files, and in the simulator that checks imports."""

import nir
import numpy as np
import pytest
import scipy.sparse

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.arrays.sparse import dense_weight
from snnc.compiler.lowering.lower import lower
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.nir.errors import NotInNirError
from snnc.frontends.nir.writing.write import write_nir

MATRIX = scipy.sparse.random_array((6, 8), density=0.4, random_state=np.random.default_rng(3))


def network(part=False):
    net = snnc.Network(seed=5)
    spikes, hidden = net.input(8, name="x"), net.population(6, snnc.LIF(beta=0.5, reset="zero"), name="hidden")
    readout = net.population(9 if part else 3, snnc.LI(beta=0.5), name="readout")
    net.connect(spikes, hidden, snnc.Sparse(MATRIX, bias=np.arange(6) / 4), name="first")
    net.connect(hidden, readout[2:5] if part else readout, snnc.Sparse(fan_in=2, init=snnc.Constant(0.5)), name="second")
    net.output(readout, name="y")
    return net.graph()


def spikes():
    return (np.random.default_rng(0).random((7, 2, 8)) < 0.5).astype(np.float64)


def test_nir_gets_a_sparse_connection_with_its_zeros(tmp_path):
    graph = network()
    write_nir(graph, tmp_path / "net.nir", dt=1e-3)
    nodes = nir.read(tmp_path / "net.nir").nodes
    np.testing.assert_array_equal(nodes["first"].weight, MATRIX.toarray().astype(np.float32))
    np.testing.assert_array_equal(nodes["first"].bias, np.arange(6, dtype=np.float32) / 4)
    assert isinstance(nodes["second"], nir.Linear)
    np.testing.assert_array_equal(nodes["second"].weight, dense_weight(graph.operation("second")))


def test_nir_has_no_padding(tmp_path):
    with pytest.raises(NotInNirError, match=r"'second_whole' is a Pad"):
        write_nir(network(part=True), tmp_path / "net.nir", dt=1e-3)


def test_the_simulator_of_imports_runs_sparse_connections_and_paddings():
    graph, x = network(part=True), spikes()
    wanted = ReferenceEngine(lower(graph), np.float64).forward({"x0": x}, {})["y0"]
    runner = GraphRunner(graph, 2, {})
    found = np.stack([runner.step({"x": step})["y"] for step in x])
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert wanted[..., 2:5].any()
    assert not wanted[..., [0, 1, 5]].any()


@pytest.mark.parametrize("part", [False, True])
def test_a_network_comes_back_from_its_onnx_file(tmp_path, part):
    graph, x = network(part), spikes()
    snnc.write_onnx(graph, tmp_path / "net.onnx")
    again = snnc.load(tmp_path / "net.onnx")
    results = [ReferenceEngine(lower(g), np.float64).forward({"x0": x}, {})["y0"] for g in (graph, again)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
