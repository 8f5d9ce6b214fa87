"""NeuroBench's metrics in ``snnc check --json``: footprint, sparsities, effective and dense synaptic operations."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snnc
from snnc.checks.measure import measure
from snnc.cli import main as cli
from snnc.compiler.ir.graph import Conv, Graph, Input, Linear, OneToOne, Output, Population, Sparse
from snnc.compiler.neurons.library import LI, LIF
from snnc.understanding.neurobench import neurobench
from snnc.understanding.synops import effective_fan_out, fan_out


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2), st.sampled_from([0.0, 0.3, 0.9]))
def test_effective_fan_out_of_a_convolution_is_what_pytorch_reads_through_nonzero_weights(seed, dimensions, groups, stride, padding, zeros):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    kernel = tuple(rng.integers(1, 4, dimensions))
    weight = (rng.random((2 * groups, 2, *kernel)) >= zeros).astype(np.float32)
    conv = Conv(weight, None, (stride,) * dimensions, ((padding,) * 2,) * dimensions, (), groups)
    shape = (2 * groups, *rng.integers(3, 7, dimensions))
    x = torch.zeros((1, *map(int, shape)), requires_grad=True)
    run = torch.nn.functional.conv1d if dimensions == 1 else torch.nn.functional.conv2d
    run(x, torch.from_numpy(weight), None, stride, padding, 1, groups).sum().backward()
    assert (effective_fan_out("c", conv, shape) == x.grad[0].numpy()).all()
    assert (effective_fan_out("c", conv, shape) <= fan_out("c", conv, shape)).all()


def network():
    """Dense, sparse, recurrent and one-to-one connections; some of the stored weights are 0."""
    rng = np.random.default_rng(3)

    def weights(*shape):
        return (rng.normal(0.4, 1, shape) * (rng.random(shape) < 0.6)).astype(np.float32)

    graph = Graph("net")
    graph.add("x", Input((6,), "values"))
    graph.add("first", Linear(weights(5, 6), np.ones(5, np.float32)))
    graph.add("a", Population(LIF(0.8), (5,)))
    graph.add("loop", Linear(weights(5, 5)))
    graph.add("own", OneToOne(np.float32([0.1, 0.0, 0.3, 0.0, 0.2])))
    graph.add("sparse", Sparse(np.float32([0.5, 0.0, -1.5, 1.0]), np.int32([0, 4, 1, 4]), np.int32([0, 2, 3, 4]), (3, 5)))
    graph.add("b", Population(LI(0.9), (3,)))
    graph.add("out", Output())
    for source, target, delay in [
        ("x", "first", 0),
        ("first", "a", 0),
        ("a", "loop", 1),
        ("loop", "a", 0),
        ("a", "own", 1),
        ("own", "a", 0),
        ("a", "sparse", 0),
        ("sparse", "b", 0),
        ("b", "out", 0),
    ]:
        graph.connect(source, target, delay=delay)
    return graph


def test_metrics_are_those_of_their_definitions(tmp_path):
    graph, rng = network(), np.random.default_rng(9)
    steps, samples = 7, 4
    x = (rng.normal(size=(steps, samples, 6)) * (rng.random((steps, samples, 6)) < 0.5)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    probed = graph.copy()
    probed.add("spikes", Output())
    probed.connect("a", "spikes")
    with snnc.compile(probed) as session:
        found = session.run({"x": x})
    a, b = found["spikes"], found["out"]
    dense = np.zeros((3, 5))
    dense[[0, 0, 1, 2], [0, 4, 1, 4]] = graph.operation("sparse").weight
    matrices = {
        "first": graph.operation("first").weight,
        "loop": graph.operation("loop").weight,
        "own": np.diag(graph.operation("own").weight),
        "sparse": dense,
    }

    def effective(values, matrix):
        return int(((values != 0).astype(int) @ (matrix != 0).astype(int).T).sum()) / samples

    metrics = neurobench(graph, measure(graph, tmp_path / "x.npz"))
    zeros = sum((m == 0).sum() for name, m in matrices.items() if name != "own") + 2
    weights = 30 + 25 + 5 + 15
    stored = 35 + 25 + 5 + 4 + len(LIF().parameters) + len(LI().parameters)
    assert metrics["parameter_count"] == stored
    assert metrics["footprint"] == 4 * stored
    assert metrics["connection_sparsity"] == pytest.approx(zeros / weights, abs=1e-6)
    quiet = (a == 0).sum() + (b == 0).sum()
    assert 0 < a.mean() < 1
    assert metrics["activation_sparsity"] == pytest.approx(quiet / (a.size + b.size), abs=1e-6)
    operations = metrics["synaptic_operations"]
    assert operations["Effective_MACs"] == pytest.approx(effective(x, matrices["first"]))
    wanted = effective(a, dense) + effective(a[:-1], matrices["loop"]) + effective(a[:-1], matrices["own"])
    assert operations["Effective_ACs"] == pytest.approx(wanted)
    assert operations["Dense"] == steps * (30 + 25 + 5 + 15)


def test_without_data_only_static_metrics_have_numbers():
    found = neurobench(network())
    assert found["activation_sparsity"] is None
    assert found["synaptic_operations"] is None
    assert found["footprint"] > 0


def test_check_prints_the_metrics_as_json(tmp_path, capsys):
    folder = tmp_path / "net"
    snnc.compile(snnc.Sequential(4, snnc.Dense(3), snnc.LIF()), output=folder).close()
    x = (np.random.default_rng(0).random((6, 2, 4)) < 0.5).astype(np.float32)
    np.savez(tmp_path / "x.npz", input=x)
    assert cli.run_command(["check", str(folder), "--data", str(tmp_path / "x.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["neurobench"]
    assert found["synaptic_operations"]["Dense"] == 6 * 12
    assert 0 <= found["activation_sparsity"] <= 1


def drawn(weight):
    """An initialiser that gives these weights."""

    class Given:
        def draw(self, shape, fans, rng):
            return np.asarray(weight, np.float32).reshape(shape)

    return Given()


def metrics_of(net, x, tmp_path):
    """The metrics of a network on samples [T, B, ...]."""
    np.savez(tmp_path / "x.npz", x=np.asarray(x, np.float32))
    return neurobench(net.graph(), measure(net.graph(), tmp_path / "x.npz"))


def test_a_dense_network_worked_by_hand_has_what_the_package_neurobench_prints(tmp_path):
    """neurobench 2.3.0 on snnTorch's Leaky(beta=0): ConnectionSparsity 0.4, ActivationSparsity 0.625, 7 ACs, Dense 20."""
    net = snnc.Network("hand")
    x = net.input(3, "spikes", name="x")
    a = net.population(2, snnc.LIF(0.0), name="a")
    b = net.population(2, snnc.LIF(0.0), name="b")
    net.connect(x, a, snnc.Dense(bias=False, init=drawn([[1, 0, 2], [0, 0, -1]])))
    net.connect(a, b, snnc.Dense(bias=False, init=drawn([[2, 0], [2, 1]])))
    found = metrics_of(net, [[[1, 0, 1]], [[0, 1, 1]]], tmp_path)
    # Step 1: inputs 0 and 2 reach 1 and 2 weights that are not 0; a sends 1, 0, which reaches 2; b sends 1, 1.
    # Step 2: inputs 1 and 2 reach 0 and 2; a gets 2, less the reset 1, and sends nothing; neither does b.
    assert found["connection_sparsity"] == 4 / 10
    assert found["activation_sparsity"] == 1 - 3 / 8
    assert found["synaptic_operations"] == {"Effective_MACs": 0.0, "Effective_ACs": 1 + 2 + 2 + 0 + 2, "Dense": 2 * (6 + 4)}
    assert found["footprint"] == 4 * (10 + 2 * len(LIF(0.0).parameters))


@pytest.mark.parametrize(("second", "kind", "acs", "macs"), [(1.0, "spikes", 3, 0), (-0.5, "values", 0, 3)])
def test_a_convolution_worked_by_hand_has_what_the_package_neurobench_prints(second, kind, acs, macs, tmp_path):
    """neurobench 2.3.0: ConnectionSparsity 0.375, Dense 20, and these effective operations."""
    net = snnc.Network("hand")
    x = net.input((1, 3, 3), kind, name="x")
    a = net.population((1, 2, 2), snnc.LIF(0.0), name="a")
    b = net.population(1, snnc.LIF(0.0), name="b")
    net.connect(x, a, snnc.Conv(1, 2, bias=False, init=drawn([[[[1, 0], [2, 0]]]])))
    net.connect(a, b, [snnc.Flatten(), snnc.Dense(bias=False, init=drawn([[0.5, 0, 0.5, 0.5]]))])
    image = np.zeros((1, 1, 1, 3, 3), np.float32)
    image[0, 0, 0, 0, 0], image[0, 0, 0, 1, 1] = 1, second
    found = metrics_of(net, image, tmp_path)
    # The corner is read by one window through a weight of 1, the middle by two windows through 1 and 2: 3 operations. Currents of the
    # windows are 1, 2 s, 0 and s with s in the middle; at most the second fires, whose weight of the next layer is 0.
    assert found["connection_sparsity"] == 3 / 8
    operations = found["synaptic_operations"]
    assert operations["Dense"] == 4 * 4 + 4
    assert (operations["Effective_ACs"], operations["Effective_MACs"]) == (acs, macs)
