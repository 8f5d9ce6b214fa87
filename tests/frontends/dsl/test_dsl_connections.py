"""Every kind of connection of the DSL: shapes, weights and delays."""

import numpy as np
import pytest
import scipy.sparse
import torch
from dsl_nets import delayed, relay, run, values

import snnc
from snnc.backends.folders.manifest import TRAINED
from snnc.compiler.errors import CycleWithoutDelayError, TooLargeError
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.arrays.sparse import dense_weight
from snnc.compiler.ir.graph import Conv, Linear, OneToOne, Pool, Sparse
from snnc.compiler.ir.verify import verify
from snnc.project.trained import read_trained

# ---- convolutions and pooling ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(
    ("shape", "options", "torch_options"),
    [
        ((2, 9, 8), {"kernel": 3}, {}),
        ((2, 9, 8), {"kernel": (3, 2), "stride": (2, 1), "padding": 1}, {"stride": (2, 1), "padding": 1}),
        ((4, 9, 8), {"kernel": 3, "dilation": 2, "groups": 2, "padding": (2, 0)}, {"dilation": 2, "groups": 2, "padding": (2, 0)}),
        ((2, 9, 8), {"kernel": (4, 3), "padding": "same"}, {"padding": "same"}),
        ((2, 9, 8), {"kernel": 3, "padding": "valid", "bias": False}, {}),
        ((3, 20), {"kernel": 5, "stride": 2, "padding": 2}, {"stride": 2, "padding": 2}),
        ((3, 20), {"kernel": 4, "padding": "same", "dilation": 3, "groups": 3}, {"padding": "same", "dilation": 3, "groups": 3}),
    ],
)
def test_convolutions_are_those_of_pytorch(shape, options, torch_options):
    net = snnc.Network(seed=2)
    source, connection = net.input(shape, "values"), snnc.Conv(6, **options)
    target = net.population(net.shape_after(source, connection), relay())
    net.connect(source, target, connection, name="conv")
    operation, x = net.graph().operation("conv"), values(2, 3, *shape)
    assert isinstance(operation, Conv)
    convolve = torch.nn.functional.conv1d if len(shape) == 2 else torch.nn.functional.conv2d
    bias = None if operation.bias is None else torch.tensor(operation.bias)
    wanted = convolve(torch.tensor(x).flatten(0, 1), torch.tensor(operation.weight), bias, **torch_options)
    assert wanted.shape[1:] == target.shape
    np.testing.assert_allclose(run(net, x), wanted.reshape(2, 3, *target.shape), rtol=1e-4, atol=1e-5)


def test_padding_may_differ_before_and_behind():
    net = snnc.Network()
    source, connection = net.input((1, 5), "values"), snnc.Conv(1, 2, padding=[(1, 3)], init=[[[1.0, 10.0]]], bias=False)
    net.connect(source, net.population(net.shape_after(source, connection), relay()), connection)
    assert run(net, np.arange(1, 6).reshape(1, 1, 1, 5)).ravel().tolist() == [10, 21, 32, 43, 54, 5, 0, 0]


@pytest.mark.parametrize(
    ("connection", "wanted"),
    [
        (snnc.MaxPool(2), lambda x: torch.nn.functional.max_pool2d(x, 2)),
        (snnc.MaxPool((3, 2), 1, 1), lambda x: torch.nn.functional.max_pool2d(x, (3, 2), 1, 1)),
        (snnc.MaxPool(2, 2, dilation=2), lambda x: torch.nn.functional.max_pool2d(x, 2, 2, dilation=2)),
        (snnc.MaxPool(2, 3, ceil=True), lambda x: torch.nn.functional.max_pool2d(x, 2, 3, ceil_mode=True)),
        (snnc.AvgPool(3, 2, 1), lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1)),
        (snnc.AvgPool(3, 2, 1, count_padding=False), lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
        (snnc.SumPool(2), lambda x: torch.nn.functional.avg_pool2d(x, 2) * 4),
    ],
)
def test_pooling_is_that_of_pytorch(connection, wanted):
    net = snnc.Network()
    source = net.input((2, 7, 8), "values")
    target = net.population(net.shape_after(source, connection), relay())
    net.connect(source, target, connection)
    x = values(2, 3, 2, 7, 8)
    expected = wanted(torch.tensor(x).flatten(0, 1))
    assert expected.shape[1:] == target.shape
    np.testing.assert_allclose(run(net, x), expected.reshape(2, 3, *target.shape), rtol=1e-5, atol=1e-6)


def test_the_maximum_of_spikes_is_spikes():
    net = snnc.Network()
    image = net.input((1, 4, 4))
    net.connect(image, net.population((1, 2, 2), relay()), snnc.MaxPool(2))
    ports = verify(net.graph())
    assert ports["input_to_relay", "out"].kind == "spikes"


def test_a_list_of_connections_is_applied_in_order():
    net = snnc.Network(seed=4)
    image = net.input((1, 8, 8), "values")
    chain = [snnc.Conv(3, 3), snnc.AvgPool(2), snnc.Dense(5), snnc.OneToOne(2.0)]
    assert net.shape_after(image, chain) == (5,)
    assert net.shape_after(image, chain[:2]) == (3, 3, 3)
    net.connect(image, net.population(5, relay(), name="p"), chain, delay=1, name="c")
    graph, x = net.graph(), values(3, 2, 1, 8, 8)
    assert [type(graph.operation(f"c_{part}")) for part in ("conv", "avgpool", "dense", "onetoone")] == [Conv, Pool, Linear, OneToOne]
    conv, dense = graph.operation("c_conv"), graph.operation("c_dense")
    y = torch.nn.functional.conv2d(torch.tensor(x).flatten(0, 1), torch.tensor(conv.weight), torch.tensor(conv.bias))
    y = torch.nn.functional.avg_pool2d(y, 2).flatten(1)
    y = 2 * torch.nn.functional.linear(y, torch.tensor(dense.weight), torch.tensor(dense.bias)).reshape(3, 2, 5)
    found = run(net, x)
    np.testing.assert_allclose(found[1:], y[:-1], rtol=1e-4, atol=1e-5)


def test_parts_of_a_chain_draw_different_weights_and_have_names_of_their_own():
    net = snnc.Network()
    net.connect(net.input(4), net.population(4, relay()), [snnc.Dense(4), snnc.Dense(4), snnc.Dense()])
    graph = net.graph()
    first, second, third = (graph.operation(f"input_to_relay_{name}").weight for name in ("dense", "dense2", "dense3"))
    assert (first != second).any()
    assert (second != third).any()


def test_a_sequence_of_all_kinds_of_layers():
    net = snnc.Sequential(
        (2, 12, 12),
        snnc.Conv(4, 3, padding="same"),
        snnc.Recurrent(snnc.LIF(beta=0.9), snnc.Conv(4, 3, padding="same", bias=False)),
        snnc.MaxPool(2),
        snnc.Conv(3, 3),
        snnc.LIF(beta=0.8),
        snnc.Flatten(),
        snnc.Sparse(density=0.3, outputs=20),
        snnc.LIF(beta=0.8),
        snnc.Dense(5),
        snnc.LI(beta=0.9),
    )
    graph = net.graph()
    verify(graph)
    assert [graph.operation(n).shape for n in ("lif", "lif2", "lif3", "li")] == [(4, 12, 12), (3, 4, 4), (20,), (5,)]
    assert run(net, np.ones((3, 2, 2, 12, 12))).shape == (3, 2, 5)


# ---- sparse ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_matrix", "lil_array", "dense"])
def test_a_matrix_of_scipy_in_any_form_is_the_weight(form):
    dense = np.where(np.random.default_rng(0).random((5, 7)) < 0.4, values(5, 7), 0)
    net = snnc.Network()
    source = net.input(7, "values")
    net.connect(source, net.population(5, relay()), snnc.Sparse(dense if form == "dense" else getattr(scipy.sparse, form)(dense)), name="w")
    operation, x = net.graph().operation("w"), values(3, 2, 7)
    assert isinstance(operation, Sparse)
    assert len(operation.weight) == (dense != 0).sum()
    assert operation.bias is None
    np.testing.assert_array_equal(dense_weight(operation), dense)
    np.testing.assert_allclose(run(net, x), x @ dense.T, rtol=1e-5, atol=1e-6)


def test_stored_zeros_are_connections_and_repeated_entries_are_summed():
    net = snnc.Network()
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 2])), shape=(2, 3))
    net.connect(net.input(3), net.population(2, relay()), snnc.Sparse(matrix), name="w")
    operation = net.graph().operation("w")
    assert operation.weight.tolist() == [3, 0]
    assert operation.indices.tolist() == [1, 2]


def test_density_and_fan_in_draw_connections():
    net = snnc.Network(seed=6)
    source, target = net.input(1000), net.population(300, relay())
    net.connect(source, target, snnc.Sparse(density=0.1, init=snnc.Constant(1.0)), name="density")
    net.connect(source, target, snnc.Sparse(fan_in=40), delay=1, name="fan")
    density, fan = (net.graph().operation(name) for name in ("density", "fan"))
    assert abs(len(density.weight) / 3e5 - 0.1) < 5 * (0.09 / 3e5) ** 0.5
    assert np.diff(density.indptr).std() == pytest.approx((1000 * 0.09) ** 0.5, rel=0.2)
    assert (np.diff(fan.indptr) == 40).all()
    assert abs(fan.indices.mean() - 499.5) < 5 * 289 / 12000**0.5
    assert np.abs(fan.weight).max() <= 40**-0.5
    assert np.abs(fan.weight).max() > 0.99 * 40**-0.5
    verify(net.graph())


def test_a_sparse_connection_may_join_more_neurons_than_a_dense_one_could():
    net = snnc.Network()
    net.connect(net.input(500_000), net.population(5_000, relay()), snnc.Sparse(fan_in=3, init=snnc.Constant(1.0)), name="w")
    operation = net.graph().operation("w")
    found = run(net, np.ones((1, 1, 500_000)))
    assert (found == 3).all()
    with pytest.raises(TooLargeError, match="sparse weight with its zeros"):
        dense_weight(operation)


def test_seeds_decide_what_is_drawn():
    def drawn(seed, own=None):
        net = snnc.Network(seed=seed)
        net.connect(net.input(30), net.population(9, relay()), snnc.Sparse(density=0.3, seed=own, delays=snnc.UniformDelay(0, 3)), name="w")
        operations = [operation for _, operation in net.graph().of_type(Sparse)]
        return np.concatenate([np.concatenate([o.indices, o.weight]) for o in operations])

    np.testing.assert_array_equal(drawn(1), drawn(1))
    np.testing.assert_array_equal(drawn(1, own=5), drawn(2, own=5))
    assert not np.array_equal(drawn(1), drawn(2))
    assert not np.array_equal(drawn(1, own=5), drawn(1, own=6))


@pytest.mark.parametrize("target", ["reference", "gc200"])
def test_trained_weights_of_a_project_reach_its_sparse_connections(tmp_path, target):
    net = snnc.Network(seed=2)
    spikes, hidden, readout = net.input(6), net.population(5, snnc.LIF(beta=0.9)), net.population(3, snnc.LI(beta=0.9))
    learns = target == "reference"
    net.connect(spikes, hidden, snnc.Sparse(fan_in=3, init=snnc.Uniform(0, 2), learnable=learns), name="sparse")
    net.connect(hidden, readout, snnc.Dense(), name="dense")
    random = np.random.default_rng(0)
    x, y = (random.random((8, 5, 6)) < 0.6).astype(np.uint8), random.integers(0, 3, 8)
    options = {"steps": 5, "batch": 8, "loss": "mean membrane", "optimizer": "adam:0.05"}
    with snnc.compile(net, target=target, output=tmp_path / "p", **options) as session:
        session.fit(x, y, epochs=3)
        session.save(tmp_path / "p" / TRAINED)
        wanted = session.run(x.swapaxes(0, 1))["output"]
    graph = read_trained(net.graph(), tmp_path / "p")
    first, trained = (g.operation("sparse") for g in (net.graph(), graph))
    assert trained.weight.shape == first.weight.shape
    assert (trained.weight != first.weight).any() == learns
    assert (graph.operation("dense").weight != net.graph().operation("dense").weight).any()
    with snnc.compile(graph) as session:
        np.testing.assert_allclose(session.run(x.swapaxes(0, 1))["output"], wanted, rtol=1e-4, atol=1e-5)


# ---- delays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse", "sparse delays", "drawn"])
@pytest.mark.parametrize("extra", [0, 2])
def test_each_weight_may_have_a_delay(kind, extra):
    random = np.random.default_rng(3)
    weight, bias, delays = values(4, 5), values(4, seed=1), random.integers(0, 4, (4, 5))
    mask = np.ones_like(weight) if kind == "dense" else random.random((4, 5)) < 0.5
    weight = weight * mask
    match kind:
        case "dense":
            connection = snnc.Dense(init=weight, bias=bias, delays=delays)
        case "sparse":
            connection = snnc.Sparse(weight, bias=bias, delays=delays)
        case "sparse delays":
            stored = scipy.sparse.csr_array(weight)
            places = scipy.sparse.csr_array((delays[weight != 0], stored.indices, stored.indptr), shape=(4, 5))
            connection = snnc.Sparse(scipy.sparse.csc_array(weight), bias=bias, delays=places)
        case _:
            connection = snnc.Sparse(weight, bias=bias, delays=snnc.UniformDelay(1, 3, seed=9))
            delays = np.zeros((4, 5), int)
            delays[weight != 0] = Stream(9).integers(1, 3, (weight != 0).sum(), endpoint=True)
    net = snnc.Network()
    net.connect(net.input(5, "values"), net.population(4, relay()), connection, delay=extra)
    x = values(8, 2, 5)
    np.testing.assert_allclose(run(net, x), delayed(weight, bias, delays, extra, x), rtol=1e-4, atol=1e-5)


def test_uniform_delays_take_every_value_of_their_range_alike():
    drawn = snnc.UniformDelay(2, 5).draw_delays((40_000,), np.random.default_rng(0))
    assert np.bincount(drawn).tolist()[:2] == [0, 0]
    assert np.abs(np.bincount(drawn)[2:] - 10_000).max() < 500


def test_delays_of_every_weight_close_a_cycle_only_if_none_is_zero():
    net = snnc.Network()
    hidden = net.population(3, snnc.LIF(), name="hidden")
    net.connect(net.input(2), hidden)
    net.connect(hidden, hidden, snnc.Dense(delays=snnc.UniformDelay(1, 4)))
    with pytest.raises(CycleWithoutDelayError):
        net.connect(hidden, hidden, snnc.Dense(delays=np.eye(3)))
    verify(net.graph())


def test_equal_delays_of_a_dense_connection_leave_it_dense():
    net = snnc.Network()
    net.connect(net.input(2), net.population(2, snnc.LIF()), snnc.Dense(delays=[[3, 3], [3, 3]]), name="w")
    assert isinstance(net.graph().operation("w"), Linear)
    assert net.graph().incoming("w")[0].delay == 3
