"""Every neuron of snnTorch with every option that touches its gradient, beside its own autograd."""

import itertools
import zlib

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch

import snnc
from snnc.frontends.onnx.errors import UnsupportedOperatorError
from snnc.torch import Module

snn = framework("snntorch")

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS, NEURONS = 3, 5
WIDE = 60
"""One in so many cases runs unless --wide is given; those below always do."""
RESETS = [{"reset_mechanism": r} for r in ("subtract", "zero", "none")]
DELAYS = [{}, {"reset_delay": False}]
LEARNS = [{}, {"learn_threshold": True, "threshold": 1.0}, {"threshold": 0.6}]
BETAS = [{"beta": 0.9}, {"beta": 0.9, "learn_beta": True}, {"beta": torch.linspace(0.5, 0.95, NEURONS), "learn_beta": True}]
GRADED = [{}, {"graded_spikes_factor": 0.7}, {"learn_graded_spikes_factor": True}]
FEEDBACK = [
    {"all_to_all": a, **(({"linear_features": NEURONS}) if a else {"V": 1.0}), "learn_recurrent": learn}
    for a in (True, False)
    for learn in (True, False)
]
OPTIONS = {
    "Leaky": (BETAS, RESETS, DELAYS, LEARNS, GRADED, [{}, {"inhibition": True}, {"state_quant": False}]),
    "Synaptic": ([{"alpha": 0.7}, {"alpha": 0.7, "learn_alpha": True}], BETAS, RESETS, DELAYS, LEARNS),
    "RLeaky": (BETAS, RESETS, DELAYS, LEARNS, FEEDBACK),
    "RSynaptic": ([{"alpha": 0.7}, {"alpha": 0.7, "learn_alpha": True}], BETAS, RESETS, LEARNS, FEEDBACK),
    "Lapicque": ([{"beta": 0.8}, {"R": 2.0, "C": 3.0}], RESETS, LEARNS),
    "Alpha": ([{"alpha": 0.9, "beta": 0.8}], RESETS, LEARNS),
    "SLSTM": ([{}], RESETS, LEARNS),
}
SHOWN = ("spikes", "membrane")
FIRST = [
    ("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 1.0}, "spikes"),
    ("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 0.5, "learn_threshold": True}, "membrane"),
    ("RSynaptic", {"alpha": 0.7, "beta": 0.9, "all_to_all": False, "V": 0.5}, "membrane"),
    ("RSynaptic", {"alpha": 0.7, "beta": 0.9, "all_to_all": False, "V": 0.5, "reset_mechanism": "zero"}, "spikes"),
    ("Leaky", {"beta": 1.0, "learn_beta": True, "learn_threshold": True}, "spikes"),
]


def cases():
    found = list(FIRST)
    for name, options in OPTIONS.items():
        for number, chosen in enumerate(itertools.product(*options, SHOWN)):
            arguments = {k: v for part in chosen[:-1] for k, v in part.items()}
            case = (name, arguments, chosen[-1])
            marks = [] if zlib.crc32(repr(case).encode()) % WIDE == 0 else [pytest.mark.wide]
            found.append(pytest.param(*case, marks=marks, id=f"{name}-{number}"))
    return found


class Net(torch.nn.Module):
    """A layer of weights and the neuron, step by step with its states as snnTorch hands them on."""

    def __init__(self, name, arguments, shown):
        super().__init__()
        torch.manual_seed(0)
        sizes = (NEURONS, NEURONS) if name == "SLSTM" else ()
        self.fc, self.neuron, self.shown = torch.nn.Linear(INPUTS, NEURONS), getattr(snn, name)(*sizes, **arguments), shown
        with torch.no_grad():
            self.fc.weight.mul_(2)

    def forward(self, x):
        state = self.neuron.reset_mem()
        state = list(state) if isinstance(state, tuple) else [state]
        found = []
        for step in x:
            spikes, *state = self.neuron(self.fc(step), *state)
            found.append(spikes if self.shown == "spikes" else state[-1])
            if isinstance(self.neuron, snn.RLeaky | snn.RSynaptic):
                state = [spikes, *state]
        return torch.stack(found)


def values():
    return np.random.default_rng(0).normal(0.4, 1.2, (9, 2, INPUTS)).astype(np.float32)


@pytest.mark.parametrize(("name", "arguments", "shown"), cases())
def test_a_neuron_has_the_gradients_of_its_own_autograd(name, arguments, shown):
    try:
        net = Net(name, {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}, shown)
        net(torch.from_numpy(values()))
    except (RuntimeError, TypeError, ValueError) as error:
        pytest.skip(f"snnTorch itself does not run it: {error}")
    try:
        graph = snnc.from_torch(net, torch.zeros(6, 1, INPUTS))
    except UnsupportedOperatorError as error:  # the neurons of a layer inhibit one another
        if not arguments.get("inhibition"):
            raise
        assert "SNNC-E210: ArgMax" in str(error)  # noqa: PT017 - it may also have no effect
        return
    assert_same_gradients(net, graph, lambda module, x: module(x), values(), "atan")


def test_the_program_for_the_processor_has_the_same_gradients():
    net = Net("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 0.5, "learn_threshold": True}, "membrane")
    module = Module(snnc.from_torch(net, torch.zeros(6, 1, INPUTS)), surrogate="atan", input_gradients=True)
    x, weights = values(), torch.from_numpy(np.random.default_rng(1).normal(size=(9, 2, NEURONS)).astype(np.float32))
    wanted, found = (torch.from_numpy(x).requires_grad_() for _ in range(2))
    (net(wanted) * weights).sum().backward()
    (module(found) * weights).sum().backward()
    torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-4, atol=1e-4)
    for name, theirs in net.named_parameters():
        (ours,) = [p for n, p in module.named_parameters() if n.rpartition(".")[2] == name.rpartition(".")[2]]
        torch.testing.assert_close(ours.grad.reshape(theirs.shape), theirs.grad, rtol=1e-4, atol=1e-4)
