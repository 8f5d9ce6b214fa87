"""A network that snnTorch exported, trained by snnc and by snnTorch from the same weights on the same batches."""

import numpy as np
import pytest
from wide import examples, sampled

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.losses.text import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.surrogates.library import atan
from snnc.frontends.onnx.load import load_onnx

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
snn = pytest.importorskip("snntorch", reason="snntorch is not installed: nothing to compare with")

pytestmark = pytest.mark.filterwarnings("ignore")  # the exporter's own

STEPS, BATCH, INPUTS, HIDDEN, CLASSES, UPDATES = 12, 16, 20, 24, 4, examples(10, 20)


class Feedforward(torch.nn.Module):
    def __init__(self, gradient):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.lif1 = snn.Leaky(beta=0.9, spike_grad=gradient)
        self.lif2 = snn.Leaky(beta=0.8, spike_grad=gradient)

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        spikes, membranes = [], []
        for t in range(STEPS):
            s, mem1 = self.lif1(self.fc1(x[t]), mem1)
            s, mem2 = self.lif2(self.fc2(s), mem2)
            spikes.append(s)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


class Recurrent(torch.nn.Module):
    def __init__(self, gradient):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.rlif = snn.RLeaky(beta=0.85, linear_features=HIDDEN, spike_grad=gradient)
        self.syn = snn.Synaptic(alpha=0.7, beta=0.9, spike_grad=gradient)

    def forward(self, x):
        s1, mem1 = self.rlif.init_rleaky()
        syn, mem2 = self.syn.init_synaptic()
        spikes, membranes = [], []
        for t in range(STEPS):
            s1, mem1 = self.rlif(self.fc1(x[t]), s1, mem1)
            s2, syn, mem2 = self.syn(self.fc2(s1), syn, mem2)
            spikes.append(s2)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


def cross_entropy_of_count(spikes, membranes, labels):
    return torch.nn.functional.cross_entropy(spikes.sum(0), labels)


def cross_entropy_of_largest_membrane(spikes, membranes, labels):
    return torch.nn.functional.cross_entropy(membranes.max(0).values, labels)


@pytest.mark.representative("*largest_membrane-*-Recurrent")
@pytest.mark.parametrize("network", [Feedforward, Recurrent])
@pytest.mark.parametrize(
    ("loss", "torch_loss", "port"),
    [("ce_count", cross_entropy_of_count, "spk"), ("ce_max_membrane", cross_entropy_of_largest_membrane, "mem")],
)
@pytest.mark.parametrize("algorithm", sampled(["adam", "sgd"], 2))
def test_updates_give_the_loss_curve_of_snntorch(tmp_path, network, loss, torch_loss, port, algorithm):
    torch.manual_seed(3)
    net = network(snn.surrogate.atan(2.0))
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(2.0)
    model = tmp_path / "net.onnx"
    example = (torch.rand(STEPS, BATCH, INPUTS) < 0.4).float()
    torch.onnx.export(net, (example,), str(model), input_names=["x"], output_names=["spk", "mem"], dynamo=False)
    program = lower(
        load_onnx(model),
        loss=parse_loss(loss),
        loss_output=port,
        optimizer=Adam(lr=2e-3) if algorithm == "adam" else SGD(lr=0.05, momentum=0.9),
        surrogate=atan(2.0),
        steps=STEPS,
    )
    engine = ReferenceEngine(program)
    if algorithm == "adam":
        optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    rate = 2e-3 if algorithm == "adam" else 0.05

    batches = np.random.default_rng(0).random((5, STEPS, BATCH, INPUTS)) < 0.4
    labels = np.random.default_rng(1).integers(0, CLASSES, (5, BATCH))
    ours, theirs = [], []
    for update in range(UPDATES):
        x, y = batches[update % 5].astype(np.float32), labels[update % 5]
        ours.append(engine.train_batch({program.inputs[0].id: x}, y, rate))
        optimizer.zero_grad()
        value = torch_loss(*net(torch.from_numpy(x)), torch.from_numpy(y))
        value.backward()
        optimizer.step()
        theirs.append(value.item())

    np.testing.assert_allclose(ours, theirs, atol=1e-3, rtol=0)
    assert np.mean(theirs[-5:]) < np.mean(theirs[:5])
