"""Sparse networks with views in parts: slices, concatenations, delays and two weights in a row give the same results."""

import cpu_projects
import numpy as np
import pytest

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.engine_of_parts import EngineOfParts
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.errors import UnreachedPartError
from snnc.compiler.tiles.partition import prepare

LOSS = {"loss": parse_loss("ce_mean_membrane"), "optimizer": None}


def network(seed):
    """Populations with connections of one or two sparse layers, some between views and groups, some with delays a weight."""
    random = np.random.default_rng(seed)
    net = snnc.Network(f"random {seed}", seed=seed)
    nodes = [net.population(int(n), snnc.LIF(beta=0.8, threshold=0.2), name=f"p{k}") for k, n in enumerate(random.integers(6, 14, 3))]
    given = net.input(8, name="x")
    for node in nodes:
        net.connect(given, node, snnc.Sparse(density=0.7))

    def some(node, share):
        if random.random() > share:
            return node
        start = int(random.integers(0, node.shape[0] - 3))
        return node[start : int(random.integers(start + 3, node.shape[0] + 1))]

    def pick():
        return nodes[int(random.integers(len(nodes)))]

    for _ in range(int(random.integers(4, 8))):
        source = net.group(some(pick(), 0.5), some(pick(), 0.5)) if random.random() < 0.1 else some(pick(), 0.15)
        target, late = some(pick(), 0.15), int(random.integers(1, 3))
        delays = snnc.UniformDelay(1, 3) if random.random() < 0.4 else None
        last = snnc.Sparse(density=0.7, bias=bool(random.random() < 0.3), delays=delays)
        first = [snnc.Sparse(density=0.7, outputs=int(random.integers(4, 9)))] if random.random() < 0.5 else []
        net.connect(source, target, [*first, last], delay=late)
    for number, node in enumerate(nodes):
        if random.random() < 0.7:
            net.output(some(node, 0.3), name=f"shown {number}")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    for node in nodes:
        net.connect(node, readout, snnc.Dense())
    net.output(readout, name="y")
    return net.graph()


def parts_of(graph, whole):
    """The network in one, two and three random parts, where each part is reached."""
    prepared, random = prepare(graph, LOSS["loss"], "y"), np.random.default_rng(1)
    if prepared.candidates is None:
        return
    for parts in (1, 2, 3):
        partition = prepared.candidates.partition(random.integers(0, parts, prepared.candidates.neurons))
        try:
            yield prepared.lower(whole, partition, **LOSS)
        except UnreachedPartError:
            assert parts > 1


@pytest.mark.representative("0", "1", "2", "3", "5", "9", "14", "15")
@pytest.mark.parametrize("seed", range(16))
def test_parts_of_networks_with_views_compute_the_same(seed):
    graph = network(seed)
    whole = lower(graph, loss_output="y", **LOSS)
    inputs, _ = cpu_projects.data(whole)
    wanted = ReferenceEngine(whole).forward(inputs, {})
    assert all(record.any() for record in wanted.values())
    for found in parts_of(graph, whole):
        cpu_projects.assert_same_records(EngineOfParts(ReferenceEngine(found.program_of_parts), found).forward(inputs, {}), wanted)


@pytest.mark.wide
def test_most_of_these_networks_have_parts_and_relays_among_them():
    found = [f for seed in range(16) for f in parts_of(network(seed), lower(network(seed), loss_output="y", **LOSS))]
    assert len(found) > 15
    assert sum(any(".relay" in p.label for p in f.program_of_parts.populations) for f in found) > 8


@pytest.mark.wide
def test_a_network_with_views_is_planned_in_parts_for_a_machine():
    graph = network(4)
    with snnc.compile(graph, target="reference", steps=6, batch=2) as reference:
        x = (np.random.default_rng(2).random((6, 2, 8)) < 0.5).astype(np.float32)
        wanted = reference.run({"x": x})
        with snnc.compile(graph, target="gc200", steps=6, batch=2) as session:
            found = session.run({"x": x})
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)
