"""Every neuron of snnTorch, with every option that affects its gradient, compared with its own autograd."""

import itertools
import zlib

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch
from wide import examples

import snnc
from snnc.compiler.ir.graph import Population
from snnc.frontends.onnx.errors import UnsupportedOperatorError
from snnc.frontends.onnx.writer.errors import TorchExportError
from snnc.torch import Module

snn = framework("snntorch")

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS, NEURONS = 3, 5
STEPS = examples(4, 6)
"""Steps of the exported example."""
WIDE = 120
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
    "Alpha": ([{"alpha": 0.9, "beta": 0.8}], [{}, {"learn_beta": True}, {"learn_alpha": True}], RESETS, LEARNS),
    "SLSTM": ([{"threshold": 0.2}, {"threshold": 0.1, "learn_threshold": True}], RESETS),
    "SConv2dLSTM": ([{"threshold": 0.2}, {"threshold": 0.1, "learn_threshold": True}], RESETS, [{}, {"max_pool": 2}, {"avg_pool": 2}]),
}
SHOWN = ("spikes", "membrane")
FIRST = [
    ("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 1.0}, "spikes"),
    ("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 0.5, "learn_threshold": True}, "membrane"),
    ("RSynaptic", {"alpha": 0.7, "beta": 0.9, "all_to_all": False, "V": 0.5}, "membrane"),
    ("RSynaptic", {"alpha": 0.7, "beta": 0.9, "all_to_all": False, "V": 0.5, "reset_mechanism": "zero"}, "spikes"),
    ("RSynaptic", {"alpha": 0.7, "learn_alpha": True, "beta": 0.9, "learn_beta": True, "all_to_all": False, "V": 1.0}, "spikes"),
    ("Leaky", {"beta": 1.0, "learn_beta": True, "learn_threshold": True}, "spikes"),
    ("Alpha", {"alpha": 0.9, "beta": 0.8, "learn_beta": True}, "spikes"),
    ("SLSTM", {"threshold": 0.1, "learn_threshold": True, "reset_mechanism": "subtract"}, "spikes"),
    ("SLSTM", {"threshold": 0.2}, "membrane"),
    ("SConv2dLSTM", {"threshold": 0.1, "learn_threshold": True, "reset_mechanism": "zero"}, "spikes"),
]
APART = {"alpha": 0.9, "beta": 0.8, "learn_beta": True, "reset_mechanism": "none"}
"""snnTorch's Alpha without a reset is three populations, two of which hold beta; so do the pools of SConv2dLSTM with its threshold."""


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
        sizes = {"SLSTM": (NEURONS, NEURONS), "SConv2dLSTM": (2, 3, 3)}.get(name, ())
        self.fc = torch.nn.Conv2d(2, 2, 1) if name == "SConv2dLSTM" else torch.nn.Linear(INPUTS, NEURONS)
        self.neuron, self.shown = getattr(snn, name)(*sizes, **arguments), shown
        with torch.no_grad():
            self.fc.weight.mul_(2)
            if name == "SConv2dLSTM":
                self.neuron.conv.weight.mul_(3)

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


def values(shape=(INPUTS,)):
    return np.random.default_rng(0).normal(0.4, 1.2, (9, 2, *shape)).astype(np.float32)


@pytest.mark.representative(
    "RLeaky-arguments1-*", "Leaky-*", "Alpha-arguments*", "SLSTM-arguments7-*", "SConv2dLSTM-arguments*", "Synaptic-106", "RSynaptic-0"
)
@pytest.mark.parametrize(("name", "arguments", "shown"), cases())
def test_a_neuron_has_the_gradients_of_its_own_autograd(name, arguments, shown):
    x = values((2, 4, 4)) if name == "SConv2dLSTM" else values()
    try:
        net = Net(name, {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}, shown)
        net(torch.from_numpy(x))
    except (RuntimeError, TypeError, ValueError) as error:
        pytest.skip(f"snnTorch itself does not run it: {error}")
    try:
        graph = snnc.from_torch(net, torch.zeros(STEPS, 1, *x.shape[2:]))
    except UnsupportedOperatorError as error:  # the neurons of a layer inhibit one another
        if not arguments.get("inhibition"):
            raise
        assert "SNNC-E210: ArgMax" in str(error)  # noqa: PT017 - it may also have no effect
        return
    held = {p for p in ("beta", "threshold") for text in graph.assumptions if text.startswith("SNNC-W277") and f"'neuron.{p}'" in text}
    pooled = {"max_pool", "avg_pool"} & set(arguments)
    assert held <= ({"beta"} if arguments.items() >= APART.items() else {"threshold"} if pooled else set())
    for parameter in held:
        getattr(net.neuron, parameter).requires_grad = False
    assert_same_gradients(net, graph, lambda module, x: module(x), x, "atan")


def test_a_parameter_that_several_populations_hold_is_a_constant_which_is_said():
    graph = snnc.from_torch(Net("Alpha", APART, "membrane"), torch.zeros(STEPS, 1, INPUTS))
    holding = [p for _, p in graph.of_type(Population) if "beta" in p.model.parameters]
    assert len(holding) > 1
    assert not any("beta" in p.learnable for p in holding)
    assert [text for text in graph.assumptions if "SNNC-W27" in text and "neuron.beta" in text and "separate copies" in text]


def test_a_module_that_fails_on_the_example_is_quoted():
    net = Net("RSynaptic", {"alpha": 0.7, "beta": 0.9, "all_to_all": False, "reset_delay": False}, "spikes")
    with pytest.raises(TorchExportError, match=r"SNNC-E240: Net does not run on the example: RuntimeError: The size of tensor"):
        snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS))


def test_the_program_for_the_processor_has_the_same_gradients():
    net = Net("RLeaky", {"beta": 0.9, "all_to_all": False, "V": 0.5, "learn_threshold": True}, "membrane")
    module = Module(snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS)), surrogate="atan", input_gradients=True)
    x, weights = values(), torch.from_numpy(np.random.default_rng(1).normal(size=(9, 2, NEURONS)).astype(np.float32))
    wanted, found = (torch.from_numpy(x).requires_grad_() for _ in range(2))
    (net(wanted) * weights).sum().backward()
    (module(found) * weights).sum().backward()
    torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-4, atol=1e-4)
    for name, theirs in net.named_parameters():
        (ours,) = [p for n, p in module.named_parameters() if n.rpartition(".")[2] == name.rpartition(".")[2]]
        torch.testing.assert_close(ours.grad.reshape(theirs.shape), theirs.grad, rtol=1e-4, atol=1e-4)
