"""Modules imported in training mode: dropout and batch normalisation, compared with the framework and written back."""

import numpy as np
import pytest
from frameworks import framework, torch

import snnc
from snnc.backends.training.updates.masks import masks_of
from snnc.compiler.ir.graph import Population
from snnc.compiler.neurons.library.batch_norm import is_batch_norm
from snnc.frontends.onnx.writer.errors import TorchTrainingError

snn = framework("snntorch")
neuron, layer, functional, surrogate = (
    framework(f"spikingjelly.activation_based.{part}") for part in ("neuron", "layer", "functional", "surrogate")
)

pytestmark = pytest.mark.filterwarnings("ignore")

STEPS, BATCH, CLASSES, UPDATES = 5, 4, 3, 4
TRAINING = {"loss": "ce_count", "optimizer": "sgd:0.5", "surrogate": "atan", "batch": BATCH}


def data():
    generator = np.random.default_rng(0)
    return (generator.random((BATCH, STEPS, 2, 6, 6)) < 0.4).astype(np.float32), np.arange(BATCH) % CLASSES


def jelly(*after, normed=layer.BatchNorm2d):
    torch.manual_seed(0)
    unit = {"v_threshold": 0.3, "surrogate_function": surrogate.ATan(), "detach_reset": True}
    net = torch.nn.Sequential(
        layer.Conv2d(2, 3, 3, bias=False),
        normed(3),
        neuron.LIFNode(**unit),
        layer.MaxPool2d(2),
        layer.Flatten(),
        layer.Linear(12, 7, bias=False),
        layer.BatchNorm1d(7, momentum=0.3),
        neuron.LIFNode(**unit),
        *after,
        layer.Linear(7, CLASSES),
        neuron.LIFNode(**unit),
    )
    functional.set_step_mode(net, "m")
    return net


def trained_by_pytorch(net, x, y, masked=lambda net, update: None):
    """Train a module with multi-step layers by its own autograd."""
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    for update in range(UPDATES):
        functional.reset_net(net)
        masked(net, update)
        optimizer.zero_grad()
        counts = net(torch.tensor(x.swapaxes(0, 1).copy())).sum(0)
        torch.nn.functional.cross_entropy(counts, torch.tensor(y)).backward()
        optimizer.step()
    functional.reset_net(net)
    return {name: t.detach().numpy() for name, t in net.state_dict().items()}


def trained_by_snnc(net, x, y, target="reference"):
    """Train the imported module, and write its weights back."""
    graph = snnc.from_torch(net, torch.zeros(4, 1, 2, 6, 6), steps=STEPS, train=True)
    with snnc.compile(graph, target, **TRAINING) as session:
        session.fit(x, y, epochs=UPDATES, batch=BATCH, shuffle=False)
        snnc.to_torch(session, net)
        outputs = next(iter(session.run(x.swapaxes(0, 1)).values()))
    return graph, outputs, {name: t.detach().numpy() for name, t in net.state_dict().items()}


def assert_same(ours, theirs, before):
    for name, wanted in theirs.items():
        if name.endswith("num_batches_tracked"):
            continue
        assert np.abs(wanted - before[name]).max() > 1e-4, name
        np.testing.assert_allclose(ours[name], wanted, atol=1e-4, rtol=1e-4, err_msg=name)


def tdbn(channels):
    return layer.ThresholdDependentBatchNorm2d(1.0, 0.3, channels)


@pytest.mark.representative("reference-bn")
@pytest.mark.parametrize("normed", [layer.BatchNorm2d, tdbn], ids=["bn", "tdbn"])
@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_batch_normalisation_of_spikingjelly_trains_as_in_the_module(target, normed):
    x, y = data()
    before = {name: t.clone().numpy() for name, t in jelly(normed=normed).state_dict().items()}
    theirs = trained_by_pytorch(jelly(normed=normed), x, y)
    net = jelly(normed=normed)
    graph, outputs, ours = trained_by_snnc(net, x, y, target)
    assert [name for name, p in graph.of_type(Population) if is_batch_norm(p.model)] == ["1.statistics", "6.statistics"]
    assert not [text for text in graph.assumptions if "W27" in text]
    assert_same(ours, theirs, before)
    net.eval()
    functional.reset_net(net)
    with torch.no_grad():
        np.testing.assert_allclose(outputs, net(torch.tensor(x.swapaxes(0, 1).copy())).numpy(), atol=1e-4)


@pytest.mark.wide
def test_dropout_of_spikingjelly_trains_as_in_the_module_with_the_same_masks():
    x, y = data()
    before = {name: t.clone().numpy() for name, t in jelly(layer.Dropout(0.4)).state_dict().items()}
    graph = snnc.from_torch(jelly(layer.Dropout(0.4)), torch.zeros(4, 1, 2, 6, 6), steps=STEPS, train=True)
    with snnc.compile(graph, **TRAINING) as session:
        values, masks = session.engine.get_parameters(), masks_of(session.program)

    def masked(net, update):
        (found,) = masks.of(values.__getitem__, update, 0, BATCH).values()
        net[8].mask = torch.tensor(found)

    theirs = trained_by_pytorch(jelly(layer.Dropout(0.4)), x, y, masked)
    _, _, ours = trained_by_snnc(jelly(layer.Dropout(0.4)), x, y)
    assert_same(ours, theirs, before)


class Residual(torch.nn.Module):
    """A spike-element-wise block (SEW) in SpikingJelly's layers, as its models write it."""

    def __init__(self, join):
        super().__init__()
        torch.manual_seed(2)

        def block(channels):
            unit = neuron.IFNode(v_threshold=0.4, surrogate_function=surrogate.ATan(), detach_reset=True)
            return torch.nn.Sequential(layer.Conv2d(channels, 3, 3, padding=1, bias=False), layer.BatchNorm2d(3), unit)

        self.stem, self.block, self.join = block(2), torch.nn.Sequential(block(3), block(3)), join
        self.head = torch.nn.Sequential(layer.AvgPool2d(2), layer.Flatten(), layer.Linear(27, CLASSES))
        self.out = neuron.IFNode(v_threshold=0.4, surrogate_function=surrogate.ATan(), detach_reset=True)
        functional.set_step_mode(self, "m")

    def forward(self, x):
        shortcut = self.stem(x)
        return self.out(self.head(self.join(self.block(shortcut), shortcut)))


@pytest.mark.representative("iand-reference")
@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("join", [lambda a, s: a + s, lambda a, s: a * s, lambda a, s: (1.0 - a) * s], ids=["add", "and", "iand"])
def test_residual_blocks_of_spikingjelly_train_as_in_the_module(join, target):
    x, y = data()
    before = {name: t.clone().numpy() for name, t in Residual(join).state_dict().items()}
    theirs = trained_by_pytorch(Residual(join), x, y)
    _, _, ours = trained_by_snnc(Residual(join), x, y, target)
    assert_same(ours, theirs, before)


class Looping(torch.nn.Module):
    """A module of snnTorch that loops over time, with its normalisation before the loop or in it."""

    def __init__(self, outside=True):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.bn, self.drop = torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Dropout(0.3)
        self.lif1, self.lif2 = (snn.Leaky(beta=b, threshold=0.3, spike_grad=snn.surrogate.atan()) for b in (0.8, 0.9))
        self.fc, self.outside = torch.nn.Linear(48, CLASSES), outside

    def forward(self, x):
        m1, m2, found = self.lif1.init_leaky(), self.lif2.init_leaky(), []
        normed = self.bn(self.conv(x.flatten(0, 1))).unflatten(0, x.shape[:2]) if self.outside else [None] * len(x)
        for t, step in enumerate(x):
            s, m1 = self.lif1(normed[t] if self.outside else self.bn(self.conv(step)), m1)
            s, m2 = self.lif2(self.fc(self.drop(s.flatten(1))), m2)
            found.append(s)
        return torch.stack(found)


@pytest.mark.representative("each step")
@pytest.mark.parametrize("outside", [True, False], ids=["all steps", "each step"])
def test_a_module_of_snntorch_trains_with_dropout_and_batch_normalisation(outside):
    x, y = data()
    net = Looping(outside)
    graph = snnc.from_torch(net, torch.zeros(4, 2, 2, 6, 6), steps=STEPS, train=True)
    (text,) = [text for text in graph.assumptions if "W278" in text]
    assert "the dropout of 'drop' draws a mask at every step" in text
    with snnc.compile(graph, **TRAINING) as session:
        values = session.engine.get_parameters()
        (mask,) = masks_of(session.program).of(values.__getitem__, 0, 0, BATCH).values()
        session.fit(x, y, batch=BATCH, shuffle=False)
        written = snnc.to_torch(session, net)
        ours = {name: t.detach().numpy() for name, t in net.state_dict().items()}
    assert {"bn.running_mean", "bn.running_var", "bn.weight", "bn.bias", "conv.weight", "fc.weight"} <= set(written)
    other = Looping(outside)
    other.drop = torch.nn.Identity()
    other.drop.forward = lambda s: s * torch.tensor(mask)
    optimizer = torch.optim.SGD(other.parameters(), 0.5)
    torch.nn.functional.cross_entropy(other(torch.tensor(x.swapaxes(0, 1).copy())).sum(0), torch.tensor(y)).backward()
    optimizer.step()
    for name, wanted in other.state_dict().items():
        if not name.endswith("tracked"):
            np.testing.assert_allclose(ours[name], wanted.detach().numpy(), atol=1e-4, rtol=1e-4, err_msg=name)


@pytest.mark.wide
def test_without_train_the_module_is_that_after_eval():
    graph = snnc.from_torch(jelly(layer.Dropout(0.4)), torch.zeros(4, 1, 2, 6, 6), steps=STEPS)
    assert not [name for name, p in graph.of_type(Population) if is_batch_norm(p.model)]
    assert {text[:9] for text in graph.assumptions} == {"SNNC-W273", "SNNC-W274"}


def without_bias(norm):
    norm.bias = None  # as snnTorch's BatchNormTT
    return norm


REFUSED = {
    "no running statistics": lambda: jelly(normed=lambda n: layer.BatchNorm2d(n, track_running_stats=False)),
    "do not learn": lambda: jelly(normed=lambda n: layer.BatchNorm2d(n, affine=False)),
    "weight and bias do not learn": lambda: jelly(normed=lambda n: without_bias(layer.BatchNorm2d(n))),
    "drops single values": lambda: jelly(layer.Dropout2d(0.3)),
}


@pytest.mark.parametrize("why", REFUSED)
def test_layers_without_a_counterpart_are_refused(why):
    with pytest.raises(TorchTrainingError, match=f"SNNC-E277: .* {why}"):
        snnc.from_torch(REFUSED[why](), torch.zeros(4, 2, 2, 6, 6), steps=STEPS, train=True)
