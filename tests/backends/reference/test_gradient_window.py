"""The gradient window: the reference backend compared with snnTorch with the same window, and the effect on accuracy."""

import math

import numpy as np
import pytest
import snntorch
import snntorch.functional
import torch
from nets import dense, recurrent
from torch_spikes import fast_sigmoid_spike

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import LIBRARY, fast_sigmoid
from snnc.errors import OptionValueError

STEPS, BATCH = 15, 4


def gradients_of(graph, surrogate=None, window=None, seed=5):
    random = np.random.default_rng(seed)
    program = lower(graph, loss=parse_loss("ce_count"), optimizer=Adam(), surrogate=surrogate, gradient_window=window)
    x = (random.random((STEPS, BATCH, 6)) < 0.4).astype(np.float32)
    target = random.integers(0, 4, BATCH)
    loss, gradients = ReferenceEngine(program).loss_and_gradients({"x0": x}, target)
    return program, x, target, loss, {program.parameters[name].label: value for name, value in gradients.items()}


@pytest.mark.parametrize(("low", "high"), [(-0.3, math.inf), (-0.5, 0.2), (-100.0, math.inf)])
def test_gradients_are_those_of_snntorch_with_the_same_window(low, high):
    graph = dense(np.random.default_rng(3))
    program, x, target, loss, found = gradients_of(graph, fast_sigmoid(25.0), (low, high))
    spike = fast_sigmoid_spike(low, high)
    fc1, fc2 = torch.nn.Linear(6, 8), torch.nn.Linear(8, 4)
    lif1, lif2 = snntorch.Leaky(beta=0.9, spike_grad=spike), snntorch.Leaky(beta=0.8, spike_grad=spike)
    values = {p.label: torch.tensor(p.value) for p in program.parameters.values()}
    for name, layer in (("fc1", fc1), ("fc2", fc2)):
        layer.load_state_dict({part: values[f"{name}.{part}"] for part in ("weight", "bias")})
    m1, m2, out = lif1.init_leaky(), lif2.init_leaky(), []
    for step in torch.tensor(x):
        s, m1 = lif1(fc1(step), m1)
        s, m2 = lif2(fc2(s), m2)
        out.append(s)
    wanted = snntorch.functional.ce_count_loss()(torch.stack(out), torch.tensor(target))
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    for name, layer in (("fc1", fc1), ("fc2", fc2)):
        for part in ("weight", "bias"):
            gradient = getattr(layer, part).grad.numpy()
            assert np.linalg.norm(found[f"{name}.{part}"] - gradient) <= 1e-5 * np.linalg.norm(gradient)


@pytest.mark.parametrize("net", [dense, recurrent])
def test_the_smaller_the_window_the_larger_the_error_of_the_gradient(net):
    graph = net(np.random.default_rng(3))
    *_, wanted = gradients_of(graph)
    errors = []
    for low in (-100.0, -1.0, -0.5, -0.1):
        *_, found = gradients_of(graph, window=(low, math.inf))
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in wanted.values()))
        errors.append(np.sqrt(sum(float(np.square(found[n] - g).sum()) for n, g in wanted.items())) / whole)
    assert errors[0] < 1e-6, "nobody is 100 below the threshold; what is left is rounding"
    assert errors == sorted(errors)
    assert 0 < errors[1] < errors[-1] < 1


def test_the_window_of_a_compiled_network_is_kept_with_its_project(tmp_path):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    with snnc.compile(net, loss="mean membrane", steps=4, gradient_window="-0.2", output=tmp_path / "p") as session:
        assert session.program.populations[0].surrogate.support == (-0.2, math.inf)
    with snnc.open(tmp_path / "p") as session:
        assert session.program.populations[0].surrogate.support == (-0.2, math.inf)
    with snnc.compile(net, loss="mean membrane", steps=4) as session:
        assert session.program.populations[0].surrogate.support is None


def test_a_window_holds_for_populations_with_their_own_surrogate():
    net = snnc.Network("own")
    hidden = net.population(3, snnc.LIF(), surrogate=LIBRARY["boxcar"](1.0))
    net.connect(net.input(4), hidden, snnc.Dense())
    program = lower(net.graph(), gradient_window=(-0.25, math.inf))
    assert program.populations[0].surrogate.support == (-0.25, 0.5)


@pytest.mark.parametrize("window", ["", "a", "0.1,0.1", "1,0", "nan", "-1,0,1", "-inf,1", (1.0, 0.5), (math.nan, 1.0)])
def test_windows_that_cannot_be_read_are_refused(window):
    with pytest.raises(OptionValueError, match="the gradient window is"):
        snnc.compile(snnc.Sequential(2, snnc.Dense(2), snnc.LIF()), gradient_window=window)
