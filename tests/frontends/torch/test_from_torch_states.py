"""snnTorch's modules with internal states, and weights that look alike."""

import numpy as np
import pytest
from frameworks import CLASSES, HIDDEN, INPUTS, framework, goes_there_and_back, louder, sequences

import snnc
from snnc.frontends.onnx.writer.errors import HiddenStateExampleError, StateLostError, TorchExportError

torch = framework("torch")
snn = framework("snntorch")
reset = framework("snntorch.utils").reset


def run(module, x):
    reset(module)
    with torch.no_grad():
        found = [module(step) for step in torch.from_numpy(x)]
    reset(module)
    return torch.stack([out[0] if isinstance(out, tuple) else out for out in found]).numpy()


def hidden(first, second):
    torch.manual_seed(1)
    return louder(torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), first, torch.nn.Linear(HIDDEN, CLASSES), second), 3.0)


NEURONS = {
    "leaky": lambda: snn.Leaky(beta=0.9, init_hidden=True),
    "synaptic": lambda: snn.Synaptic(alpha=0.7, beta=0.9, init_hidden=True),
    "alpha": lambda: snn.Alpha(alpha=0.9, beta=0.8, init_hidden=True),
    "lapicque": lambda: snn.Lapicque(beta=0.9, init_hidden=True),
    "recurrent": lambda: snn.RLeaky(beta=0.9, linear_features=HIDDEN, init_hidden=True),
}


@pytest.mark.representative("leaky", "alpha")
@pytest.mark.parametrize("name", NEURONS)
def test_hidden_states_are_carried_on(name):
    goes_there_and_back(hidden(NEURONS[name](), snn.Leaky(beta=0.8, init_hidden=True, output=True)), run, learns=("0.weight", "2.weight"))


def test_learned_parameters_of_one_value_are_told_apart():
    net = hidden(
        snn.Leaky(beta=0.9, learn_beta=True, learn_threshold=True, init_hidden=True), snn.Leaky(beta=0.9, learn_beta=True, init_hidden=True)
    )
    with torch.no_grad():
        net[0].bias.zero_()
        net[2].bias.zero_()
    graph, _ = goes_there_and_back(net, run, learns=("1.beta", "1.threshold", "3.beta", "0.bias", "2.bias"))
    assert {"0", "1", "2", "3"} <= set(graph.names)


def test_convolutions_of_one_step():
    torch.manual_seed(1)
    layers = torch.nn.Conv2d(2, 4, 3), NEURONS["leaky"](), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, CLASSES)
    goes_there_and_back(louder(torch.nn.Sequential(*layers, NEURONS["leaky"]()), 3.0), run, (2, 6, 6), learns=("0.weight",))


def normalised(**options):
    torch.manual_seed(1)
    layers = torch.nn.Linear(INPUTS, HIDDEN, bias=options.pop("bias")), torch.nn.BatchNorm1d(HIDDEN, **options)
    net = torch.nn.Sequential(*layers, NEURONS["leaky"](), torch.nn.Linear(HIDDEN, CLASSES), NEURONS["leaky"]())
    with torch.no_grad():
        net[1].running_mean.uniform_(-0.3, 0.3)
        net[1].running_var.uniform_(0.2, 1.5)
    return louder(net, 5.0)


@pytest.mark.representative("False")
@pytest.mark.parametrize("bias", [True, False])
def test_a_folded_normalisation_is_taken_out_of_the_weights_again(bias):
    goes_there_and_back(normalised(bias=bias), run, learns=("0.weight", "1.bias"))


def test_a_normalisation_without_parameters_leaves_the_shift_to_the_layer():
    _, written = goes_there_and_back(normalised(bias=True, affine=False), run)
    assert sorted(written) == ["0.bias", "0.weight", "3.bias", "3.weight"]


class Forgetful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.lif = torch.nn.Linear(INPUTS, HIDDEN), snn.Leaky(beta=0.9)

    def forward(self, x):
        return self.lif(self.fc(x), torch.zeros(len(x), HIDDEN))[0]


def test_a_step_that_forgets_its_state_is_refused():
    with pytest.raises(StateLostError, match=r"SNNC-E249: Forgetful calls its neurons \(Leaky\) once"):
        snnc.from_torch(Forgetful(), torch.zeros(2, INPUTS))


def test_hidden_states_need_a_sequence_as_an_example():
    net = hidden(NEURONS["leaky"](), NEURONS["leaky"]())
    with pytest.raises(HiddenStateExampleError, match=r"SNNC-E248: Sequential runs one step.*not of shape \[1, 6\]"):
        snnc.from_torch(net, torch.zeros(1, INPUTS))


def test_an_example_that_fits_neither_as_a_sequence_nor_as_a_step_is_refused():
    net = hidden(NEURONS["leaky"](), NEURONS["leaky"]())
    with pytest.raises(TorchExportError, match="SNNC-E240: Sequential does not run on the example"):
        snnc.from_torch(net, torch.zeros(5, 1, INPUTS + 1))


def test_the_state_in_a_module_is_not_that_of_the_network():
    net = hidden(NEURONS["leaky"](), NEURONS["leaky"]())
    net(torch.from_numpy(sequences()[0]))
    membrane = net[1].mem.clone()
    graph = snnc.from_torch(net, torch.zeros(5, 1, INPUTS))
    assert torch.equal(net[1].mem, membrane)
    with snnc.compile(graph) as session:
        np.testing.assert_array_equal(session.run(sequences())["output"], run(net, sequences()))
