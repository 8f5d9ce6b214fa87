"""Residual spiking blocks, one-to-one recurrence and convolutional LSTM cells, with training compared with PyTorch's autograd."""

import numpy as np
import pytest
from frameworks import torch
from torch_spikes import fast_sigmoid_spike

import snnc
from snnc.backends.cuda.errors import CHECK_ON_HOST
from snnc.compiler.errors import InvalidValueError
from snnc.frontends.dsl.errors import NetworkShapeError

STEPS, BATCH, INPUTS, HIDDEN, CLASSES, UPDATES = 6, 4, 5, 9, 3, 3
JOINS = {"add": lambda a, s: a + s, "and": lambda a, s: a * s, "iand": lambda a, s: (1 - a) * s}
SPIKE = fast_sigmoid_spike()
TARGETS = ["reference", "cpu", "cuda", "gc200"]


def descend(loss, weights):
    """Change the weights by their gradients, at a learning rate of 1."""
    loss.backward()
    with torch.no_grad():
        for p in weights.values():
            p.sub_(p.grad)
            p.grad = None


def data(shape=(INPUTS,), seed=0):
    generator = np.random.default_rng(seed)
    return (generator.random((BATCH, STEPS, *shape)) < 0.5).astype(np.float32), np.arange(BATCH) % CLASSES


def compiled(net, target, monkeypatch):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    training = {"loss": "ce_mean_membrane", "optimizer": "sgd:1.0", "surrogate": "fast_sigmoid"}
    return snnc.compile(net, target, steps=STEPS, batch=BATCH, **training)


def residual(how, one_to_one=True):
    net = snnc.Network(seed=3)
    spikes = net.input(INPUTS)
    first = net.population(HIDDEN, snnc.LIF(beta=0.8), name="first")
    block = net.population(HIDDEN, snnc.LIF(beta=0.7, threshold=0.5), name="block")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, first, snnc.Dense(init=snnc.Normal(std=0.8)))
    if one_to_one:
        net.connect(first, first, snnc.OneToOne(np.linspace(-0.5, 0.9, HIDDEN), learnable=True), delay=1)
    net.connect(first, block, snnc.Dense(init=snnc.Normal(std=0.8)))
    net.connect(net.join(block, first, how), readout)
    return net


def of_autograd(weights, how, x, y):
    """Weights after the updates."""
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items() if name.endswith(("weight", "bias"))}
    for _ in range(UPDATES):
        v, u, m = torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, CLASSES)
        s, total = torch.zeros(BATCH, HIDDEN), 0
        for t in range(STEPS):
            reset, below = (v > 1).float(), (u > 0.5).float() * 0.5
            current = torch.tensor(x[:, t]) @ w["input_to_first.weight"].T + w["input_to_first.bias"]
            v = 0.8 * v + current + w["first_to_first.weight"] * s - reset
            s = SPIKE(v - 1)
            u = 0.7 * u + s @ w["first_to_block.weight"].T + w["first_to_block.bias"] - below
            joined = JOINS[how](SPIKE(u - 0.5), s)
            m = 0.9 * m + joined @ w["join_to_readout.weight"].T + w["join_to_readout.bias"]
            total = total + m
        descend(torch.nn.functional.cross_entropy(total / STEPS, torch.tensor(y)), w)
    return {name: p.detach().numpy() for name, p in w.items()}


@pytest.mark.representative("*-reference", "add-cpu")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", JOINS)
def test_residual_blocks_with_one_to_one_recurrence_train_as_autograd(how, target, monkeypatch):
    x, y = data()
    with compiled(residual(how), target, monkeypatch) as session:
        before = session.state_dict()
        wanted = of_autograd(before, how, x, y)
        session.fit(x, y, epochs=UPDATES, batch=BATCH, shuffle=False)
        found = session.state_dict()
    for name, value in wanted.items():
        assert np.abs(value - before[name]).max() > 1e-3, name
        np.testing.assert_allclose(found[name], value, atol=1e-4, rtol=1e-4, err_msg=name)


def test_joined_spikes_are_spikes_where_the_join_can_only_give_0_or_1():
    from snnc.compiler.ir.shapes import port_map

    kinds = {how: port_map(residual(how).graph())["join", "y" if how == "add" else "s"].kind for how in JOINS}
    assert kinds == {"add": "values", "and": "spikes", "iand": "spikes"}


def test_joins_of_unknown_kind_or_of_other_shapes_are_refused():
    net = snnc.Network()
    spikes, block = net.input(4), net.population(5, snnc.LIF(), name="block")
    with pytest.raises(InvalidValueError, match="how is 'or'; it must be one of add, and, iand"):
        net.join(block, block, "or")
    with pytest.raises(NetworkShapeError, match=r"'block' of shape \(5,\) cannot join 'input' of shape \(4,\)"):
        net.join(block, spikes)


def cells(model, port):
    """Cells of 2 channels over 4x4 places, whose gates get convolutions of the frames and of their own hidden state."""
    net = snnc.Network(seed=4)
    frames = net.input((1, 4, 4), "values")
    layer = net.population((2, 4, 4), model, name="cells")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect_ports(frames, layer, snnc.Conv(2, 3, padding=1, init=snnc.Normal(std=0.6)))
    net.connect_ports(layer, layer, snnc.Conv(2, 3, padding=1, bias=False, init=snnc.Normal(std=0.5)), delay=1, source_port=port)
    net.connect(layer, readout, snnc.Dense(init=snnc.Normal(std=0.5)))
    return net


def cells_by_autograd(weights, spiking, x, y):
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items() if name.endswith(("weight", "bias"))}
    convolve = torch.nn.functional.conv2d
    for _ in range(UPDATES):
        c, h, v, total = torch.zeros(BATCH, 2, 4, 4), torch.zeros(BATCH, 2, 4, 4), torch.zeros(BATCH, CLASSES), 0
        for t in range(STEPS):
            gate = {}
            for port in "ifgo":
                to = f"input_to_cells_{port}"
                entering = convolve(torch.tensor(x[:, t]), w[f"{to}.weight"], w[f"{to}.bias"], padding=1)
                gate[port] = entering + convolve(h, w[f"cells_to_cells_{port}.weight"], padding=1)
            c = torch.sigmoid(gate["f"]) * c + torch.sigmoid(gate["i"]) * torch.tanh(gate["g"])
            h = torch.sigmoid(gate["o"]) * torch.tanh(c)
            shown = SPIKE(h - 0.1) if spiking else h
            v = 0.9 * v + shown.flatten(1) @ w["cells_to_readout.weight"].T + w["cells_to_readout.bias"]
            total = total + v
        descend(torch.nn.functional.cross_entropy(total / STEPS, torch.tensor(y)), w)
    return {name: p.detach().numpy() for name, p in w.items()}


@pytest.mark.representative("*-reference")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spiking", [False, True], ids=["ConvLSTM", "SConv2dLSTM"])
def test_lstm_cells_with_convolutions_train_as_autograd(spiking, target, monkeypatch):
    x, y = np.random.default_rng(0).normal(0, 1, (BATCH, STEPS, 1, 4, 4)).astype(np.float32), np.arange(BATCH) % CLASSES
    net = cells(snnc.SLSTM(threshold=0.1), "mem") if spiking else cells(snnc.LSTM(), "h")
    with compiled(net, target, monkeypatch) as session:
        before = session.state_dict()
        wanted = cells_by_autograd(before, spiking, x, y)
        session.fit(x, y, epochs=UPDATES, batch=BATCH, shuffle=False)
        found = session.state_dict()
    for name, value in wanted.items():
        assert np.abs(value - before[name]).max() > 1e-3, name
        np.testing.assert_allclose(found[name], value, atol=1e-4, rtol=1e-4, err_msg=name)
