"""Weights in shared memory: the same bits as from global memory, whichever weights fit and however blocks share the work."""

import numpy as np
import pytest
from cpu_projects import data
from cuda_projects import opened
from wide import sampled

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.driver.loading import as_graph

STEPS, BATCH = 7, 11


def program():
    """Populations of three, of four and of one chunk of 32 neurons, which take turns between two barriers."""
    net = snnc.Network("net")
    spikes, values = net.input(40, name="spikes"), net.input(9, name="values", kind="values")
    first, second = (net.population(n, snnc.LIF(0.9), name=f"hidden{n}") for n in (70, 128))
    readout = net.population(5, snnc.LI(0.9), name="readout")
    for seed, (before, after, delay) in enumerate(
        ((spikes, first, 0), (values, second, 0), (first, first, 1), (first, second, 0), (second, second, 2), (second, readout, 0))
    ):
        net.connect(before, after, snnc.Dense(seed=seed), delay=delay)
    return lower(as_graph(net), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2))


def train(engine, net, near):
    # Recurrences run as feedbacks do where weights stay on no chip.
    engine._setting("clusters", 0)
    engine._setting("near", near)
    inputs, labels = data(net, STEPS, BATCH)
    losses = [engine.train_batch(inputs, labels, 1e-2) for _ in range(2)]
    return losses, engine.get_parameters(), engine.profile()["near_bytes"]


@pytest.mark.wide
def test_fragments_that_are_near_give_the_same_bits():
    net = program()
    found = []
    for near in (0, 1 << 20):
        with opened(net, 2, 8, precision="bfloat16") as engine:
            found.append(train(engine, net, near))
    # Of the recurrence of 70, the first: filled up to 80 and four pairs apart, three chunks.
    back = 32 * (40 + 4) * 3
    with opened(net, 2, 8) as engine:
        forward = train(engine, net, 1 << 20)[2] - 4 * 70 * 96
    assert (found[0][2], found[1][2]) == (0, 4 * back + forward)
    assert found[0][0] == found[1][0]
    for name, value in found[0][1].items():
        np.testing.assert_array_equal(found[1][1][name], value, err_msg=name)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("blocks", "tile", "order"), sampled([(4, 8, "forwards"), (1, 8, "forwards"), (2, 1, "backwards"), (4, 1, "forwards")], 4)
)
def test_weights_that_are_near_give_the_same_bits(blocks, tile, order, monkeypatch):
    monkeypatch.setenv("SNNC_HOST_ORDER", order)
    net = program()
    found = []
    for near in (0, 20, 1 << 20):
        with opened(net, blocks, tile) as engine:
            found.append(train(engine, net, near))
    (losses, wanted, none), *others = found
    # Columns of a block's own neurons of the first recurrence: of chunks as many as blocks and chunks divide; forward and back.
    assert others[1][2] == 2 * 4 * 70 * 32 * 3 // np.gcd(blocks, 3)
    assert none == 0 <= others[0][2] <= 2 * 20 * 1024 < others[1][2]
    for other_losses, other, _ in others:
        assert other_losses == losses
        for name, value in wanted.items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)
    inputs, labels = data(net, STEPS, BATCH)
    assert losses[0] == pytest.approx(ReferenceEngine(net).train_batch(inputs, labels, 0.0), rel=1e-5)
