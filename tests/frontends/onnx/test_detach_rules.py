"""Where gradients stop, which files do not specify: --detach reset, none, all."""

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch

import snnc
from snnc.compiler.ir.graph import Population
from snnc.frontends.onnx.errors import DetachError

snn = framework("snntorch")

INPUTS, NEURONS = 3, 4


class Spiking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (1 + (torch.pi * x) ** 2)


class Fed(torch.nn.Module):
    """A neuron with a soft reset, adaptation and one-to-one feedback of its spike; `cut` is what is detached of the three."""

    def __init__(self, cut):
        super().__init__()
        torch.manual_seed(0)
        self.fc, self.cut = torch.nn.Linear(INPUTS, NEURONS), cut

    def forward(self, x):
        v = b = s = torch.zeros(x.shape[1], NEURONS)
        spikes = []
        for step in x:
            reset = s.detach() if "reset" in self.cut else s
            fed = s.detach() if "feedback" in self.cut else s
            b = 0.8 * b + 0.3 * fed
            v = 0.9 * v + self.fc(step) + 0.4 * fed - 0.7 * reset - 0.1 * b
            s = Spiking.apply(v - 0.7)
            spikes.append(s)
        return torch.stack(spikes)


class Gated(torch.nn.Module):
    """A hard reset in the step of the spike, to a value."""

    def __init__(self, cut):
        super().__init__()
        torch.manual_seed(0)
        self.fc, self.cut = torch.nn.Linear(INPUTS, NEURONS), cut

    def forward(self, x):
        v = torch.zeros(x.shape[1], NEURONS)
        spikes = []
        for step in x:
            h = v + 0.5 * (self.fc(step) - v)
            s = Spiking.apply(h - 0.2)
            r = s.detach() if "reset" in self.cut else s
            v = (1 - r) * h - 0.2 * r
            spikes.append(s)
        return torch.stack(spikes)


CUTS = {"reset": ("reset",), "none": (), "all": ("reset", "feedback")}


def exported(module, path):
    torch.onnx.export(module.eval(), (torch.zeros(6, 1, INPUTS),), str(path), input_names=["x"], output_names=["s"], dynamo=False)
    return path


def values(seed=0):
    return np.random.default_rng(seed).normal(0.4, 1.2, (9, 2, INPUTS)).astype(np.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.representative("reset-Fed", "none-Fed", "all-Gated")
@pytest.mark.parametrize("neuron", [Fed, Gated])
@pytest.mark.parametrize("rule", CUTS)
def test_a_rule_gives_the_gradient_of_a_module_that_detaches_so(tmp_path, neuron, rule):
    path = exported(neuron(()), tmp_path / "net.onnx")
    graph = snnc.load(path, detach=rule)
    assert_same_gradients(neuron(CUTS[rule]), graph, lambda module, x: module(x), values(), "atan")
    assert any(f"detach '{rule}'" in text for text in graph.assumptions)


@pytest.mark.filterwarnings("ignore")
def test_resets_are_detached_unless_asked_otherwise(tmp_path):
    path = exported(Fed(()), tmp_path / "net.onnx")
    ours, other = snnc.load(path), snnc.load(path, detach="reset")
    texts = [[p.model.text for _, p in graph.of_type(Population)] for graph in (ours, other)]
    assert texts[0] == texts[1]
    assert ours.assumptions == other.assumptions


@pytest.mark.filterwarnings("ignore")
@pytest.mark.representative("reset", "all")
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_module_says_itself_what_it_detaches(cut):
    module = Fed(cut)
    graph = snnc.from_torch(module, torch.zeros(6, 1, INPUTS))
    assert_same_gradients(module, graph, lambda module, x: module(x), values(), "atan")
    assert not any("detach" in text for text in graph.assumptions)


@pytest.mark.filterwarnings("ignore")
def test_rules_that_do_not_fit_are_refused(tmp_path):
    path = exported(Fed(()), tmp_path / "net.onnx")
    with pytest.raises(DetachError, match=r"SNNC-E270: detach='some' is unknown; choose one of 'reset', 'none', 'all'"):
        snnc.load(path, detach="some")
    network = snnc.Sequential(4, snnc.Dense(3), snnc.LIF())
    with pytest.raises(DetachError, match=r"SNNC-E270: detach is 'none' \(--detach\), but the network"):
        snnc.compile(network, detach="none")


@pytest.mark.parametrize("rule", CUTS)
def test_nir_files_follow_the_rule(tmp_path, rule):
    nir = pytest.importorskip("nir")
    weight = np.random.default_rng(0).normal(size=(NEURONS, INPUTS)).astype(np.float32)
    ones = np.ones(NEURONS, np.float32)
    neurons = nir.LIF(tau=2e-4 * ones, r=ones, v_leak=0 * ones, v_threshold=0.4 * ones, v_reset=0 * ones)
    nodes = {"in": nir.Input(np.array([INPUTS])), "fc": nir.Linear(weight), "lif": neurons, "out": nir.Output(np.array([NEURONS]))}
    nir.write(tmp_path / "net.nir", nir.NIRGraph(nodes, [("in", "fc"), ("fc", "lif"), ("lif", "out")]))
    graph = snnc.load(tmp_path / "net.nir", detach=rule, dt=1e-4)
    (text,) = [p.model.text for _, p in graph.of_type(Population)]
    assert ("detach" in text) == (rule != "none")
    assert any(f"detach '{rule}'" in note for note in graph.assumptions)
