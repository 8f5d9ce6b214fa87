"""The derivatives of surrogates that the page on from_torch lists as equal in snnc and a framework."""

import re
from pathlib import Path

import numpy as np
import pytest
from frameworks import framework, torch

from snnc.compiler.neurons.expression import Assignment
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.surrogates.library import parse_surrogate

snn = framework("snntorch")
threshold = framework("norse.torch.functional.threshold").threshold
lif = framework("norse.torch.functional.lif")
jelly = framework("spikingjelly.activation_based.surrogate")
neuron = framework("spikingjelly.activation_based.neuron")

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "from-torch.md"
FUNCTIONS_OF = {
    ("snnTorch", "default: `atan(alpha=2.0)`"): lambda: snn.Leaky(beta=0.9).spike_grad,
    ("snnTorch", "`fast_sigmoid(slope=25)`"): lambda: snn.surrogate.fast_sigmoid(slope=25),
    ("snnTorch", "`sigmoid(slope=25)`"): lambda: snn.surrogate.sigmoid(slope=25),
    ("snnTorch", "`straight_through_estimator()`"): snn.surrogate.straight_through_estimator,
    ("Norse", 'default: `method="super"`, with any `alpha`'): lambda: norse(lif.LIFParameters().method, lif.LIFParameters().alpha),
    ("Norse", '`method="triangle"`, `alpha=0.3`'): lambda: norse("triangle", 0.3),
    ("SpikingJelly", "default: `Sigmoid(alpha=4.0)`"): lambda: neuron.LIFNode().surrogate_function,
    ("SpikingJelly", "`ATan(alpha=2.0)`"): lambda: jelly.ATan(alpha=2.0),
    ("SpikingJelly", "`PiecewiseQuadratic(alpha=1.0)`"): lambda: jelly.PiecewiseQuadratic(alpha=1.0),
    ("SpikingJelly", "`SuperSpike(alpha=1.0)`"): lambda: jelly.SuperSpike(alpha=1.0),
}


def norse(method, alpha):
    return lambda x: threshold(x, method, alpha)


def rows():
    found = re.findall(r"^\| (snnTorch|Norse|SpikingJelly) \| (.+?) \| `(.+?)` \|$", PAGE.read_text(), re.M)
    return [pytest.param(framework, name, ours, id=f"{framework}-{ours}") for framework, name, ours in found]


def ours(surrogate, x):
    found = evaluate([Assignment("h", surrogate.derivative)], {"x": x})["h"]
    return np.broadcast_to(found, x.shape)


def test_each_surrogate_of_the_page_is_compared():
    assert [(p.values[0], p.values[1]) for p in rows()] == list(FUNCTIONS_OF)


@pytest.mark.parametrize(("framework", "name", "surrogate"), rows())
def test_derivatives_are_the_same_curve(framework, name, surrogate):
    x = torch.linspace(-2.0, 2.0, 400, dtype=torch.float64).requires_grad_()
    FUNCTIONS_OF[framework, name]()(x).sum().backward()
    found = ours(parse_surrogate(surrogate), x.detach().numpy())
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-6, atol=1e-9)


def test_norse_ignores_the_slope_of_its_default():
    x = torch.linspace(-1.0, 1.0, 50)
    slopes = []
    for alpha in (1.0, 100.0):
        y = x.clone().requires_grad_()
        norse("super", torch.as_tensor(alpha))(y).sum().backward()
        slopes.append(y.grad)
    assert torch.equal(*slopes)
