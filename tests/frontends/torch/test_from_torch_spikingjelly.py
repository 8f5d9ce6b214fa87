"""SpikingJelly's modules become networks and get their weights back, in both step modes."""

import numpy as np
import pytest
from frameworks import CLASSES, HIDDEN, INPUTS, framework, goes_there_and_back, louder, sequences

import snnc
from snnc.compiler.ir.graph import Population
from snnc.frontends.onnx.writer.errors import UnmatchedWeightError
from snnc.frontends.torch.forms import FUNCTIONS

torch = framework("torch")
framework("onnxscript")
sj = framework("spikingjelly.activation_based")
neuron, layer, functional = (framework(f"spikingjelly.activation_based.{part}") for part in ("neuron", "layer", "functional"))


def run(module, x):
    """Run a module in either step mode from rest, and leave it at rest."""
    functional.reset_net(module)
    single = any(getattr(part, "step_mode", "m") == "s" for part in module.modules())
    with torch.no_grad():
        x = torch.from_numpy(x)
        found = torch.stack([module(step) for step in x]) if single else module(x)
    functional.reset_net(module)
    return found.numpy()


def dense(hidden, last=None, mode="s"):
    torch.manual_seed(1)
    net = torch.nn.Sequential(layer.Linear(INPUTS, HIDDEN), hidden, layer.Linear(HIDDEN, CLASSES), last or neuron.IFNode())
    functional.set_step_mode(net, mode)
    return louder(net, 3.0)


def test_single_steps_carry_their_states_on():
    goes_there_and_back(dense(neuron.LIFNode(v_reset=-0.2, v_threshold=0.8), neuron.QIFNode()), run, learns=("0.weight", "2.weight"))


def test_the_multi_step_mode():
    goes_there_and_back(
        dense(neuron.IFNode(), neuron.LIFNode(v_reset=None, decay_input=False), mode="m"), run, learns=("0.weight", "2.weight")
    )


def test_learned_time_constants_go_back_through_their_sigmoid():
    net = dense(neuron.ParametricLIFNode(init_tau=2.0), neuron.ParametricLIFNode(init_tau=2.0, decay_input=False, v_reset=None), mode="m")
    graph, _ = goes_there_and_back(net, run, learns=("1.w", "3.w"))
    assert all(any("sigmoid_w" in n for n in p.learnable) for _, p in graph.of_type(Population))
    assert net[1].w.item() != net[3].w.item() != 0


@pytest.mark.representative("s")
@pytest.mark.parametrize("mode", ["s", "m"])
def test_convolutions_with_normalisation_pooling_and_dropout(mode):
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        layer.Conv2d(2, 4, 3, padding=1, bias=False),
        layer.BatchNorm2d(4),
        neuron.LIFNode(),
        layer.MaxPool2d(2, 2),
        layer.Dropout(0.3),
        layer.Flatten(),
        layer.Linear(4 * 3 * 3, CLASSES),
        neuron.IFNode(),
    )
    functional.set_step_mode(net, mode)
    with torch.no_grad():
        for tensor, low, high in (
            (net[1].running_mean, -0.1, 0.3),
            (net[1].running_var, 0.3, 1.5),
            (net[1].weight, 0.5, 1.5),
            (net[1].bias, -0.2, 0.4),
        ):
            tensor.uniform_(low, high)
    before = {n: t.clone() for n, t in net.state_dict().items()}
    _, written = goes_there_and_back(louder(net, 2.0), run, (2, 6, 6))
    assert sorted(written) == ["0.weight", "1.bias", "6.bias", "6.weight"]
    for kept in ("1.running_mean", "1.running_var", "1.weight"):
        assert torch.equal(net.state_dict()[kept], before[kept])


@pytest.mark.wide
def test_normalisations_with_different_numbers_of_channels():
    torch.manual_seed(2)
    net = torch.nn.Sequential(
        layer.Linear(INPUTS, HIDDEN),
        layer.BatchNorm1d(HIDDEN),
        neuron.LIFNode(),
        layer.Linear(HIDDEN, CLASSES),
        layer.BatchNorm1d(CLASSES),
        neuron.IFNode(),
    )
    with torch.no_grad():
        for norm in (net[1], net[4]):
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.uniform_(0.0, 0.4)
    _, written = goes_there_and_back(louder(net, 2.0), run)
    assert sorted(written) == ["0.weight", "1.bias", "3.weight", "4.bias"]


class OwnLoop(torch.nn.Module):
    """The everyday form: steps in a loop, the mean of the spikes over them."""

    def __init__(self):
        super().__init__()
        self.net = dense(neuron.LIFNode())

    def forward(self, x):
        return functional.multi_step_forward(x, self.net)


def test_a_loop_in_forward():
    def loops(module, x):
        functional.reset_net(module)
        with torch.no_grad():
            found = module(torch.from_numpy(x)).numpy()
        functional.reset_net(module)
        return found

    goes_there_and_back(OwnLoop(), loops, learns=("net.0.weight",))


def test_a_recurrent_container():
    torch.manual_seed(1)
    recurrent = layer.LinearRecurrentContainer(neuron.LIFNode(), HIDDEN, HIDDEN)
    net = louder(torch.nn.Sequential(layer.Linear(INPUTS, HIDDEN), recurrent, layer.Linear(HIDDEN, CLASSES)), 2.0)
    goes_there_and_back(net, run, learns=("1.rc.weight",))


def test_states_inside_a_module_stay_as_they_are():
    net = dense(neuron.LIFNode())
    held = net(torch.from_numpy(sequences()[0]))  # with gradients, in the middle of a sequence
    membrane = net[1].v.clone()
    graph = snnc.from_torch(net, torch.zeros(5, 1, INPUTS))
    assert held.requires_grad
    assert torch.equal(net[1].v, membrane)
    assert net.training
    with snnc.compile(graph) as session:
        np.testing.assert_array_equal(session.run(sequences())["output"], run(net.eval(), sequences()))


def test_a_time_constant_out_of_range_is_refused():
    net = dense(neuron.ParametricLIFNode(init_tau=3.0))
    graph = snnc.from_torch(net, torch.zeros(5, 1, INPUTS))
    with snnc.compile(graph) as session:
        values = {**session.state_dict(), "1.sigmoid_w": np.float32(1.2)}
    with pytest.raises(UnmatchedWeightError, match=r"SNNC-E242: training changed '1.sigmoid_w' to 1.2.*between 0 and 1"):
        snnc.to_torch(values, net, graph=graph)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_parameters_have_their_inverse(name):
    forward, back = FUNCTIONS[name]
    x = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(back(forward(x)), x, atol=1e-9)


@pytest.mark.representative("IFNode-m", "ParametricLIFNode-s")
@pytest.mark.parametrize("mode", ["s", "m"])
@pytest.mark.parametrize("made", [neuron.IFNode, neuron.LIFNode, neuron.ParametricLIFNode, neuron.QIFNode, neuron.EIFNode])
def test_neurons_are_exported_by_the_fast_exporter(made, mode, monkeypatch):
    from snnc.frontends.torch import exporting

    tried, call = [], exporting._call_exporter

    def record(torch, module, arguments, file, names, dynamo, opset):
        tried.append("dynamo" if dynamo else "TorchScript")
        call(torch, module, arguments, file, names, dynamo, opset)

    monkeypatch.setattr(exporting, "_call_exporter", record)
    graph = snnc.from_torch(dense(made(), made(), mode), torch.zeros(4, 2, INPUTS))
    assert len(list(graph.of_type(Population))) == 2
    assert set(tried) == {"TorchScript"}
