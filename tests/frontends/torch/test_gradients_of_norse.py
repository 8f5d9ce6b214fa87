"""Every neuron of Norse compared with its own autograd: feed-forward and recurrent, as cells and over time."""

import importlib

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch

import snnc
from snnc.compiler.ir.graph import Linear, Sparse
from snnc.frontends.onnx.errors import MalformedGraphError

norse = framework("norse.torch")

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS, NEURONS = 3, 5
FAST = {"tau_mem_inv": torch.tensor(300.0), "tau_syn_inv": torch.tensor(400.0), "v_th": torch.tensor(0.3)}
EACH = ("lif", "lif_box", "lsnn", "lif_refrac", "lif_adex", "lif_adex_refrac", "lif_ex", "iaf", "izhikevich", "lif_mc", "lif_mc_refrac")
FILTERS = ("leaky_integrator", "leaky_integrator_box")
ALWAYS = {"LSNNRecurrent", "LIFRefracRecurrentCell", "LIFBoxCell", "LICell", "IzhikevichCell"}
ELSEWHERE = {"LILinearCell"}
"""Layers of weights that take no current of the same size; below."""


def modules():
    found = []
    for part in (*EACH, *FILTERS):
        module = importlib.import_module(f"norse.torch.module.{part}")
        for name, kind in vars(module).items():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and name not in ELSEWHERE:
                found.append(pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.wide]))
    return found


def parameters(name):
    def of(part, kind, *given, **named):
        return getattr(importlib.import_module(f"norse.torch.functional.{part}"), kind)(*given, **named)

    lif = of("lif", "LIFParameters", **FAST)
    two = torch.tensor(2.0)
    if name.startswith(("LIFRefrac", "LIFMCRefrac")):
        return {"p": of("lif_refrac", "LIFRefracParameters", lif, rho_reset=two)}
    if name.startswith("LSNN"):
        return {"p": of("lsnn", "LSNNParameters", **FAST, tau_adapt_inv=torch.tensor(100.0), beta=torch.tensor(0.5))}
    if name.startswith("LIFAdExRefrac"):
        return {"p": of("lif_adex_refrac", "LIFAdExRefracParameters", of("lif_adex", "LIFAdExParameters", **FAST), rho_reset=two)}
    if name.startswith("LIFAdEx"):
        return {"p": of("lif_adex", "LIFAdExParameters", **FAST)}
    if name.startswith("LIFEx"):
        return {"p": of("lif_ex", "LIFExParameters", **FAST)}
    if name.startswith("LIFBox"):
        return {"p": of("lif_box", "LIFBoxParameters", tau_mem_inv=torch.tensor(300.0), v_th=torch.tensor(0.3))}
    if name.startswith(("LIFMC", "LIFCell", "LIFRecurrent")) or name == "LIF":
        return {"p": lif}
    if name.startswith("Izh"):
        return {"spiking_method": importlib.import_module("norse.torch.functional.izhikevich").tonic_spiking}
    return {}


class Net(torch.nn.Module):
    def __init__(self, name, **options):
        super().__init__()
        torch.manual_seed(0)
        kind = next(vars(m)[name] for part in (*EACH, *FILTERS) if name in vars(m := importlib.import_module(f"norse.torch.module.{part}")))
        sizes = (NEURONS, NEURONS) if "Recurrent" in name else ()
        self.fc, self.layer, self.cell = torch.nn.Linear(INPUTS, NEURONS), kind(*sizes, **parameters(name), **options), "Cell" in name
        with torch.no_grad():
            self.fc.weight.mul_(80 if name.startswith("Izh") else 4)
            self.fc.bias.add_(15 if name.startswith("Izh") else 0)

    def forward(self, x):
        current = self.fc(x)
        if not self.cell:
            return self.layer(current)[0]
        state, found = None, []
        for step in current:
            out, state = self.layer(step, state)
            found.append(out)
        return torch.stack(found)


def agrees(net, batch=2):
    x = np.random.default_rng(0).normal(0.4, 1.2, (9, batch, INPUTS)).astype(np.float32)
    graph = snnc.from_torch(net, torch.zeros(6, 1, INPUTS), steps=9)
    assert_same_gradients(net, graph, lambda module, x: module(x), x, "fast_sigmoid:1")
    return graph


@pytest.mark.parametrize("name", modules())
def test_a_neuron_has_the_gradients_of_its_own_autograd(name):
    agrees(Net(name))


class Steps(torch.nn.Module):
    """A cell with weights of its own, or given them, step by step."""

    def __init__(self, cell, *weights):
        super().__init__()
        self.cell, self.weights = cell, torch.nn.ParameterList(weights)

    def forward(self, x):
        state, found = None, []
        for step in x:
            out, state = self.cell(step, *self.weights, state)
            found.append(out)
        return torch.stack(found)


def test_a_leaky_integrator_with_weights_has_the_gradients_of_its_own_autograd():
    torch.manual_seed(0)
    agrees(Steps(importlib.import_module("norse.torch.module.leaky_integrator").LILinearCell(INPUTS, NEURONS)))


def test_neurons_with_correlation_traces_have_the_gradients_of_their_own_autograd():
    torch.manual_seed(0)
    layer = importlib.import_module("norse.torch.module.lif_correlation").LIFCorrelation(INPUTS, NEURONS)
    weights = torch.nn.Parameter(150 * torch.randn(NEURONS, INPUTS)), torch.nn.Parameter(torch.randn(NEURONS, NEURONS))
    agrees(Steps(layer, *weights), batch=1)  # it runs on no larger one


def test_conductance_based_neurons_of_norse_which_leave_out_their_input_are_refused():
    cell = importlib.import_module("norse.torch.module.coba_lif").CobaLIFCell(INPUTS, NEURONS)
    assert torch.equal(cell(torch.zeros(1, INPUTS))[1].g_e, cell(torch.ones(1, INPUTS))[1].g_e)
    with pytest.raises(MalformedGraphError, match="SNNC-E207: the graph has no input besides its weights"):
        snnc.from_torch(Steps(cell), torch.zeros(6, 1, INPUTS))


@pytest.mark.parametrize(("autapses", "kind"), [(True, Linear), (False, Sparse)])
def test_neurons_excite_themselves_only_where_norse_lets_them(autapses, kind):
    net = Net("LIFRecurrent", autapses=autapses)
    graph = agrees(net)
    recurrent = next(graph.operation(n) for n in graph.names if "recurrent" in n)
    assert isinstance(recurrent, kind)
    with snnc.compile(graph, loss="ce_count", optimizer="sgd:1.0", batch=4) as session:
        x = np.random.default_rng(1).normal(0.4, 1.2, (4, 9, INPUTS)).astype(np.float32)
        before = net.layer.recurrent_weights.detach().clone()
        session.fit(x, np.arange(4) % NEURONS, batch=4)
        snnc.to_torch(session, net)
    after = net.layer.recurrent_weights.detach()
    assert not torch.equal(before, after)
    assert bool(after.diagonal().any()) == autapses
