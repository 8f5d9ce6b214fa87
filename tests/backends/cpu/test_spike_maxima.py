"""Max pooling over spikes, computed from lists: compared with the reference, with maxima of rows, and with PyTorch."""

import numpy as np
import pytest
import torch
from cpu_projects import assert_same_training, data, opened
from indexed_nets import choosing, conv, read_out
from nets import join
from torch_spikes import fast_sigmoid_spike

from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.ir.graph import Graph, Input, Pool, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.neurons.surrogates.library import parse_surrogate


def maxima(random):
    """Windows that touch, overlap, leave neurons out and have padding on one side; delays; a loop; an input that nothing else reads."""
    graph = Graph("maxima")
    graph.add("x", Input((2, 7, 8), "spikes"))
    graph.add("a", Population(LIF(0.9, 0.6), (3, 3, 4)))
    graph.connect("x", graph.add("of inputs", Pool("max", (2, 2))))
    join(graph, "conv", conv(random, 3, 2, 3, 3, bias=True, padding=((1, 1), (1, 1))), "of inputs", "a")
    graph.connect("a", graph.add("near", Pool("max", (3, 2), (1, 1), ((1, 1), (0, 1)))), delay=1)
    join(graph, "loop", conv(random, 3, 3, 1, 1), "near", "a")
    graph.add("b", Population(LI(0.8), (3, 1, 2)))
    join(graph, "strided", Pool("max", (1, 2), (3, 2)), "a", "b", delay=2)
    return read_out(graph, random, ("a", 36), ("b", 6))


def program_of(make, surrogate="fast_sigmoid:25"):
    given = parse_surrogate(surrogate)
    return lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y", surrogate=given)


@pytest.mark.representative("maxima")
@pytest.mark.parametrize("make", [maxima, choosing])
def test_training_steps_equal_those_of_the_reference(make):
    program = program_of(make)
    for density in (0.1, 0.8):
        with opened(program) as engine:
            assert_same_training(engine, program, updates=2, density=density)
    if make is maxima:
        # No one reads rows of the input: none are kept.
        assert not SequenceStorage(program).stored("x0_in").rows


def test_maxima_of_lists_are_those_of_rows_to_the_bit(monkeypatch):
    program, found = program_of(maxima), []
    inputs, labels = data(program, 11, 5, density=0.2)
    for usual in (True, False):
        if not usual:
            monkeypatch.setattr(SequenceStorage, "reads_lists", lambda storage, op: False)
        with opened(program) as engine:
            engine.segment = 4 if usual else 0
            found.append((engine.train_batch(inputs, labels, 0.0), engine.gradients(), engine.forward(inputs, {})))
    assert found[0][0] == found[1][0]
    for part in (1, 2):
        for name, value in found[0][part].items():
            np.testing.assert_array_equal(value, found[1][part][name], err_msg=name)


def test_adjoints_go_where_those_of_pytorch_go():
    """Conv, LIF, maximum, readout that counts: of windows in which none or several fired, the first takes the gradient."""
    random = np.random.default_rng(0)
    graph = Graph("torch")
    graph.add("x", Input((2, 8, 8), "spikes"))
    graph.add("a", Population(LIF(0.9), (4, 8, 8)))
    join(graph, "conv", conv(random, 4, 2, 3, 3, padding=((1, 1), (1, 1))), "x", "a")
    graph.connect("a", graph.add("maxima", Pool("max", (3, 3), (2, 2), ((1, 1), (1, 1)))))
    graph.add("b", Population(LIF(0.9), (3, 4, 4)))
    join(graph, "second", conv(random, 3, 4, 1, 1), "maxima", "b")
    read_out(graph, random, ("b", 48))
    given = parse_surrogate("fast_sigmoid:25")
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y", surrogate=given)
    inputs, labels = data(program, 12, 6, density=0.3)
    with opened(program) as engine:
        loss, gradients = engine.train_batch(inputs, labels, 0.0), engine.gradients()
        shares = engine.profile()["listed"]
    assert 0.02 < shares["p0_o0"] < 0.5
    values = {p.label: torch.tensor(p.value, requires_grad=True) for p in program.parameters.values() if p.name in gradients}
    first, second, last = (values[f"{name}.weight"] for name in ("conv", "second", "out b"))
    spike = fast_sigmoid_spike()
    x = torch.tensor(inputs["x0"]).reshape(12, 6, 2, 8, 8)
    v, u, m, total = (torch.zeros(6, 4, 8, 8), torch.zeros(6, 3, 4, 4), torch.zeros(6, 4), torch.zeros(6, 4))
    s, z = torch.zeros_like(v), torch.zeros_like(u)
    for t in range(12):
        v = 0.9 * v + torch.conv2d(x[t], first, padding=1) - s.detach()
        s = spike(v - 1)
        u = 0.9 * u + torch.conv2d(torch.max_pool2d(s, 3, 2, 1), second) - z.detach()
        z = spike(u - 1)
        m = 0.9 * m + z.flatten(1) @ last.T
        total = total + m / 12
    wanted = torch.nn.functional.cross_entropy(total, torch.tensor(labels))
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    for p in program.parameters.values():
        if p.name in gradients:
            gradient = values[p.label].grad.numpy()
            np.testing.assert_allclose(gradients[p.name], gradient, atol=1e-5 * np.abs(gradient).max(), err_msg=p.label)
