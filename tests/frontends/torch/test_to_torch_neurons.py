"""Weights trained by snnc are written into every neuron of snnTorch: the module then computes the same as the session."""

import numpy as np
import pytest
from wide import examples

import snnc
from snnc.compiler.ir.graph import Linear
from snnc.frontends.onnx.writer.errors import AmbiguousWeightError

torch = pytest.importorskip("torch")
snn = pytest.importorskip("snntorch")

STEPS, BATCH, N = examples(4, 5), 4, 5


class Around(torch.nn.Module):
    """A neuron between two dense layers, before a leaky one."""

    def __init__(self, neuron, width=N):
        super().__init__()
        self.before, self.neuron = torch.nn.Linear(N, width), neuron
        self.readout, self.out = torch.nn.Linear(N, 3), snn.Leaky(beta=0.9)

    def forward(self, x):
        states, mem, found = self.neuron.reset_mem(), self.out.reset_mem(), []
        states = states if isinstance(states, tuple) else (states,)
        for step in x:
            result = self.neuron(self.before(step), *states)
            states = result if len(result) == len(states) else result[1:]  # recurrent neurons take their spikes back
            _, mem = self.out(self.readout(result[0]), mem)
            found.append(mem)
        return torch.stack(found)


class Convolved(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.neuron, self.readout, self.out = (
            snn.SConv2dLSTM(1, 2, 3, threshold=0.1, **options),
            torch.nn.Linear(32, 3),
            snn.Leaky(beta=0.9),
        )

    def forward(self, x):
        (syn, mem), membrane, found = self.neuron.reset_mem(), self.out.reset_mem(), []
        for step in x:
            spikes, syn, mem = self.neuron(step, syn, mem)
            _, membrane = self.out(self.readout(spikes.flatten(1)), membrane)
            found.append(membrane)
        return torch.stack(found)


def slstm(**options):
    return snn.SLSTM(N, N, threshold=0.1, **options)


def without_biases(cell, parts=("bias_ih", "bias_hh")):
    with torch.no_grad():
        for part in parts:
            getattr(cell.lstm_cell, part).zero_()
    return cell


LEARN = {"learn_beta": True, "learn_threshold": True}
NEURONS = {
    "Leaky": lambda: snn.Leaky(0.8, **LEARN),
    "Leaky, a beta each": lambda: snn.Leaky(torch.rand(N), **LEARN),
    "Synaptic": lambda: snn.Synaptic(0.7, 0.8, learn_alpha=True, **LEARN),
    "Alpha": lambda: snn.Alpha(0.85, 0.8, learn_threshold=True),
    "Lapicque": lambda: snn.Lapicque(0.8, **LEARN),
    "RLeaky": lambda: snn.RLeaky(0.8, linear_features=N, **LEARN),
    "RSynaptic": lambda: snn.RSynaptic(0.7, 0.8, linear_features=N, learn_alpha=True, **LEARN),
    "SLSTM": slstm,
    "SLSTM without biases": lambda: slstm(bias=False),
    "SLSTM with biases of 0": lambda: without_biases(slstm()),
    "SLSTM, reset by subtraction": lambda: slstm(reset_mechanism="subtract"),
    "SLSTM, reset to zero": lambda: slstm(reset_mechanism="zero", learn_threshold=True),
}
LEARNED = {"SLSTM": ["lstm_cell.weight_ih", "lstm_cell.weight_hh", "lstm_cell.bias_ih", "lstm_cell.bias_hh"]}


def trained(module, x):
    graph = snnc.from_torch(module, x)
    session = snnc.compile(graph, loss="ce_mean_membrane", optimizer="sgd:0.05")
    session.fit(x.numpy().swapaxes(0, 1), np.arange(BATCH) % 3, epochs=2)
    return session


@pytest.mark.representative("Leaky, a beta each", "SLSTM without biases")
@pytest.mark.parametrize("name", NEURONS)
def test_a_module_computes_what_was_trained(name):
    torch.manual_seed(0)
    module, x = Around(NEURONS[name]()), torch.randn(STEPS, BATCH, N) * 2
    before = module(x).detach()
    with trained(module, x) as session:
        written = snnc.to_torch(session, module)
        found = session.run(x.numpy())["output"]
    assert not torch.allclose(module(x), before)
    torch.testing.assert_close(module(x).detach(), torch.from_numpy(found), rtol=1e-5, atol=1e-6)
    assert {f"neuron.{part}" for part in LEARNED.get(name, [])} <= set(written)
    frozen = {key for key, _ in module.named_buffers()}
    assert not frozen & set(written), "what the module does not learn stays"


def test_the_gates_of_a_convolutional_cell_go_back_and_their_membrane_is_no_lost_state():
    torch.manual_seed(0)
    module, x = Convolved(), torch.randn(STEPS, BATCH, 1, 4, 4)
    with trained(module, x) as session:
        assert "W201" not in " ".join(session.graph.assumptions)
        written = snnc.to_torch(session, module)
        found = session.run(x.numpy())["output"]
    assert {"neuron.conv.weight", "neuron.conv.bias"} <= set(written)
    torch.testing.assert_close(module(x).detach(), torch.from_numpy(found), rtol=1e-5, atol=1e-6)


def test_gates_that_the_module_freezes_are_not_trained():
    torch.manual_seed(0)
    module, x = Around(slstm()), torch.randn(STEPS, BATCH, N)
    module.neuron.requires_grad_(False)
    graph = snnc.from_torch(module, x)
    frozen = [name for name, op in graph.of_type(Linear) if not op.learnable]
    assert len(frozen) == 8


def test_gates_with_equal_weights_cannot_be_told_apart_and_nothing_changes():
    torch.manual_seed(0)
    module, x = Around(slstm(bias=False)), torch.randn(STEPS, BATCH, N)
    with torch.no_grad():
        weight = module.neuron.lstm_cell.weight_ih
        weight[:N] = weight[N : 2 * N]
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with trained(module, x) as session, pytest.raises(AmbiguousWeightError, match=r"rows 0 to 4 of 'neuron\.lstm_cell\.weight_ih'"):
        snnc.to_torch(session, module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_membrane_that_the_cell_forgets_is_warned_of_by_the_modules_own_name():
    """snnTorch's SLSTM begins anew at every step where it has another number of inputs than of neurons."""
    graph = snnc.from_torch(Around(snn.SLSTM(4, N, threshold=0.1), width=4), torch.rand(STEPS, BATCH, N))
    (said,) = [text for text in graph.assumptions if "W201" in text]
    assert "'neuron'" in said
    assert "neuron" in graph.names
