"""Groups of nodes and their slices, as sources, as targets and as outputs."""

import numpy as np
import pytest
import torch
from dsl_nets import delayed, relay, run, values

import snnc
from snnc.compiler.ir.graph import Linear, OneToOne, Pad, Slice


def test_a_group_gives_and_takes_as_its_nodes_behind_one_another():
    net = snnc.Network()
    left, right = net.input(3, "values", name="left"), net.input(2, "values", name="right")
    a, b = net.population(4, relay(), name="a"), net.population(2, relay(), name="b")
    weight = values(6, 5)
    net.connect(net.group(left, right, name="both"), net.group(a, b, name="ab"), snnc.Dense(init=weight, bias=False))
    net.output(net.group(a, b))
    net.output(b, name="alone")
    x, y = values(3, 2, 3), values(3, 2, 2, seed=1)
    with snnc.compile(net) as session:
        found = session.run({"left": x, "right": y})
    wanted = np.concatenate([x, y], axis=2) @ weight.T
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["alone"], wanted[..., 4:], rtol=1e-5, atol=1e-6)
    operations = {name: net.graph().operation(name) for name in ("both_to_ab_a", "both_to_ab_b")}
    assert [type(operation) for operation in operations.values()] == [Linear, Linear]


def test_a_part_is_cut_as_a_source_and_filled_up_as_a_target():
    net = snnc.Network()
    image, vector = net.input((2, 4, 5), "values", name="image"), net.input(4, "values", name="vector")
    corner, rows = net.population((1, 3, 4), relay(), name="corner"), net.population((1, 2, 5), relay(), name="rows")
    wide = net.population(9, relay(), name="wide")
    net.connect(image[0, :3, :4], corner, snnc.OneToOne())
    net.connect(image[1, 1:3], rows, snnc.OneToOne())
    net.connect(vector[-2:], wide[3:5], snnc.OneToOne(2.0))
    net.connect(vector, wide[5:], snnc.OneToOne())
    for node in (corner, rows, wide):
        net.output(node, name=f"{node.name}_out")
    net.output(net.group(wide[:4], wide[8]), name="some")
    x, v = values(2, 1, 2, 4, 5), values(2, 1, 4)
    with snnc.compile(net) as session:
        found = session.run({"image": x, "vector": v})
    wanted = np.concatenate([np.zeros((2, 1, 3), np.float32), 2 * v[..., -2:], v], axis=2)
    np.testing.assert_array_equal(found["wide_out"], wanted)
    np.testing.assert_array_equal(found["some"], wanted[..., [0, 1, 2, 3, 8]])
    np.testing.assert_array_equal(found["corner_out"], x[:, :, :1, :3, :4])
    np.testing.assert_array_equal(found["rows_out"], x[:, :, 1:, 1:3])


def test_groups_of_images_stand_behind_one_another_along_their_channels():
    net = snnc.Network(seed=1)
    one, two = net.input((1, 5, 5), "values", name="one"), net.input((2, 5, 5), "values", name="two")
    both = net.group(one, two)
    target = net.population(net.shape_after(both, snnc.Conv(2, 3)), relay())
    net.connect(both, target, snnc.Conv(2, 3), name="c")
    x, y, operation = values(2, 1, 1, 5, 5), values(2, 1, 2, 5, 5, seed=1), net.graph().operation("c")
    with snnc.compile(net) as session:
        found = session.run({"one": x, "two": y})["output"]
    joined = torch.tensor(np.concatenate([x, y], axis=2)).flatten(0, 1)
    wanted = torch.nn.functional.conv2d(joined, torch.tensor(operation.weight), torch.tensor(operation.bias))
    np.testing.assert_allclose(found, wanted.reshape(2, 1, 2, 3, 3), rtol=1e-4, atol=1e-5)


GAPS = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 0], [0, 0, 0], [4, 0, 0]])


@pytest.mark.parametrize(
    ("connection", "weight", "bias", "split"),
    [
        (snnc.Sparse(GAPS), GAPS, 0, False),  # one node gets nothing
        (snnc.Sparse(GAPS, bias=np.arange(5)), GAPS, np.arange(5), False),
        (snnc.Sparse(GAPS[[0, 2, 1, 3, 4]], bias=np.arange(5)), GAPS[[0, 2, 1, 3, 4]], np.arange(5), True),
        (snnc.Sparse(GAPS[[0, 2, 1, 3, 4]]), GAPS[[0, 2, 1, 3, 4]], 0, True),
        (snnc.Dense(init=GAPS, bias=np.arange(5)), GAPS, np.arange(5), True),
        ([snnc.OneToOne(2.0), snnc.Dense(init=GAPS, bias=False)], 2 * GAPS, 0, True),
        ([snnc.Dense(5, init=GAPS, bias=np.arange(5)), snnc.OneToOne(3.0)], 3 * GAPS, 3 * np.arange(5), False),
    ],
)
def test_each_node_of_a_group_gets_its_rows(connection, weight, bias, split):
    net = snnc.Network()
    nodes = [net.population(n, relay(), name=name) for n, name in ((2, "a"), (2, "b"), (1, "c"))]
    net.connect(net.input(3, "values"), net.group(*nodes), connection)
    net.output(net.group(*nodes))
    x = values(4, 2, 3)
    np.testing.assert_allclose(run(net, x), x @ weight.T + bias, rtol=1e-5, atol=1e-5)
    assert any(net.graph().of_type(Slice)) != split


def test_each_node_of_a_group_gets_its_delays():
    weight, bias, delays = values(5, 4), values(5, seed=1), np.random.default_rng(2).integers(0, 4, (5, 4))
    net = snnc.Network()
    a, b = net.population(2, relay(), name="a"), net.population(6, relay(), name="b")
    net.connect(net.input(4, "values"), net.group(a, b[2:5]), snnc.Dense(init=weight, bias=bias, delays=delays), delay=1)
    net.output(net.group(a, b))
    x = values(8, 2, 4)
    wanted = np.insert(delayed(weight, bias, delays, 1, x), [2, 2, 5], 0, axis=2)
    np.testing.assert_allclose(run(net, x), wanted, rtol=1e-4, atol=1e-5)


def test_a_convolution_to_a_group_gives_each_node_its_channels():
    net = snnc.Network(seed=1)
    image, one, two = (
        net.input((2, 5, 5), "values"),
        net.population((1, 3, 3), relay(), name="one"),
        net.population((2, 3, 3), relay(), name="two"),
    )
    net.connect(image, net.group(one, two), snnc.Conv(3, 3), name="c")
    net.output(net.group(one, two))
    parts, x = [net.graph().operation(f"c_{name}") for name in ("one", "two")], values(2, 1, 2, 5, 5)
    weight, bias = (torch.tensor(np.concatenate([getattr(p, what) for p in parts])) for what in ("weight", "bias"))
    wanted = torch.nn.functional.conv2d(torch.tensor(x).flatten(0, 1), weight, bias).reshape(2, 1, 3, 3, 3)
    np.testing.assert_allclose(run(net, x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.wide
def test_a_machine_trains_connections_to_groups_and_to_parts():
    found = []
    for target in ("reference", "gc200"):
        net = snnc.Network(seed=1)
        spikes, readout = net.input(12), net.population(3, snnc.LI(beta=0.9), name="readout")
        a, b = net.population(8, snnc.LIF(beta=0.9), name="a"), net.population(4, snnc.LIF(beta=0.8), name="b")
        net.connect(spikes, net.group(a, b), snnc.Dense(init=snnc.Normal(0.7)))
        net.connect(spikes, a[2:6], snnc.Dense(init=snnc.Normal(1.0)), delay=1)
        net.connect(b, a[4:], snnc.OneToOne(0.5), delay=2)
        net.connect(net.group(a, b), readout, snnc.Dense())
        net.output(readout)
        random = np.random.default_rng(0)
        x, y = (random.random((4, 6, 12)) < 0.5).astype(np.uint8), random.integers(0, 3, 4)
        with snnc.compile(net, target=target, steps=6, batch=4, loss="mean membrane", optimizer="adam:1e-2") as session:
            losses = session.fit(x, y, epochs=3).losses
            found.append((losses, session.run(x.swapaxes(0, 1))["output"]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3, atol=1e-5)
    assert found[0][0][-1] < found[0][0][0]


def test_the_whole_as_a_part_adds_no_operation():
    net = snnc.Network()
    source, target = net.input(4), net.population(4, relay())
    net.connect(source[:], target[0:4], snnc.OneToOne())
    operations = [type(net.graph().operation(name)) for name in net.graph().names]
    assert OneToOne in operations
    assert not {Slice, Pad} & set(operations)


def test_parts_of_parts_and_groups_of_groups():
    net = snnc.Network()
    source = net.input(10, "values")
    inner = net.group(source[2:8][1:4], source[9])
    assert inner.shape == (4,)
    net.connect(net.group(inner, source[:1])[1:], net.population(4, relay()), snnc.OneToOne())
    x = values(2, 1, 10)
    np.testing.assert_array_equal(run(net, x), x[..., [4, 5, 9, 0]])


def test_a_state_of_all_nodes_of_a_group_can_be_read():
    net = snnc.Network(seed=1)
    spikes, a, b = net.input(3), net.population(2, snnc.LIF(), name="a"), net.population(2, snnc.LIF(), name="b")
    net.connect(spikes, net.group(a, b))
    net.output(net.group(a, b), "v", name="both")
    net.output(b, "v", name="alone")
    with snnc.compile(net) as session:
        found = session.run(np.ones((3, 1, 3), np.uint8))
    np.testing.assert_array_equal(found["both"][..., 2:], found["alone"])
    assert found["alone"].any()
