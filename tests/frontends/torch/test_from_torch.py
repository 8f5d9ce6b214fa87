"""PyTorch modules become networks, and trained weights go back into the modules."""

import sys

import numpy as np
import pytest

import snnc
from snnc.compiler.errors import ToolMissingError
from snnc.compiler.ir.graph import Linear, Population
from snnc.frontends.onnx.writer.errors import AmbiguousWeightError, TorchExportError, TorchModuleError, UnmatchedWeightError

torch = pytest.importorskip("torch")
snn = pytest.importorskip("snntorch")

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 8, 4, 6, 10, 3


class Net(torch.nn.Module):
    def __init__(self, learn_beta=False, bias=True):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN, bias=bias), torch.nn.Linear(HIDDEN, CLASSES, bias=bias)
        self.lif1, self.lif2 = snn.Leaky(beta=0.9, learn_beta=learn_beta), snn.Leaky(beta=0.8)

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        spikes, membranes = [], []
        for step in x:
            s, mem1 = self.lif1(self.fc1(step), mem1)
            s, mem2 = self.lif2(self.fc2(s), mem2)
            spikes.append(s)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


class OneStep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.lif = torch.nn.Linear(INPUTS, CLASSES), snn.Leaky(beta=0.9)

    def forward(self, x, mem):
        return self.lif(self.fc(x), mem)


@pytest.fixture
def net():
    torch.manual_seed(0)
    made = Net()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3.0)
    return made


def sequences(steps=STEPS, batch=BATCH, seed=0):
    return (np.random.default_rng(seed).random((steps, batch, INPUTS)) < 0.5).astype(np.float32)


def outputs(module, x):
    with torch.no_grad():
        return [a.numpy() for a in module(torch.from_numpy(x))]


def agree(session, module, x):
    found = session.run(x)
    spikes, membranes = outputs(module, x)
    assert spikes.any()
    np.testing.assert_array_equal(found["output1"], spikes)
    np.testing.assert_allclose(found["output2"], membranes, atol=1e-4)


def train(session, updates=3):
    x = sequences(batch=BATCH * updates, seed=1).swapaxes(0, 1)
    return session.fit(x, np.arange(BATCH * updates) % CLASSES, batch=BATCH)


def test_a_module_gives_the_same_values_before_and_after_training_in_snnc(net):
    graph = snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS))
    assert [p.model.name for _, p in graph.of_type(Population)] == ["LIF", "LIF"]
    before = {name: t.clone() for name, t in net.state_dict().items()}
    with snnc.compile(graph, loss=snnc.CrossEntropy("mean membrane"), optimizer="adam:0.01", batch=BATCH) as session:
        agree(session, net, sequences())
        train(session)
        written = snnc.to_torch(session, net)
        assert sorted(written) == ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"]
        assert all((net.state_dict()[name] != before[name]).any() for name in written)
        agree(session, net, sequences())
        assert net.fc1.weight.requires_grad


def test_what_the_module_learns_is_learnable_and_what_it_freezes_is_not():
    torch.manual_seed(0)
    net = Net(learn_beta=True)
    net.fc2.requires_grad_(False)
    with torch.no_grad():
        net.fc1.weight.mul_(4.0)
    graph = snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS))
    assert [p.learnable for _, p in graph.of_type(Population)] == [{"beta"}, frozenset()]
    assert [layer.learnable for _, layer in graph.of_type(Linear)] == [True, False]
    with snnc.compile(graph, loss=snnc.CrossEntropy("mean membrane"), optimizer="adam:0.01", batch=BATCH) as session:
        train(session)
        assert sorted(snnc.to_torch(session, net)) == ["fc1.bias", "fc1.weight", "lif1.beta"]
        assert net.lif1.beta.item() != pytest.approx(0.9)
        np.testing.assert_allclose(session.run(sequences())["output2"], outputs(net, sequences())[1], atol=1e-4)


class Recurrent(torch.nn.Module):
    """Recurrent weights, and synapses with a state of their own."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(INPUTS, HIDDEN)
        self.cells = snn.RLeaky(beta=0.85, linear_features=HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, CLASSES)
        self.syn = snn.Synaptic(alpha=0.7, beta=0.9)

    def forward(self, x):
        s, mem = self.cells.init_rleaky()
        syn, last = self.syn.init_synaptic()
        spikes, membranes = [], []
        for step in x:
            s, mem = self.cells(self.fc(step), s, mem)
            out, syn, last = self.syn(self.out(s), syn, last)
            spikes.append(out)
            membranes.append(last)
        return torch.stack(spikes), torch.stack(membranes)


def test_recurrent_weights_go_there_and_back():
    torch.manual_seed(2)
    net = Recurrent()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3.0)
    graph = snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS))
    with snnc.compile(graph, loss=snnc.CrossEntropy("mean membrane"), optimizer="adam:0.005", batch=BATCH) as session:
        agree(session, net, sequences())
        train(session)
        assert "cells.recurrent.weight" in snnc.to_torch(session, net)
        np.testing.assert_allclose(session.run(sequences())["output2"], outputs(net, sequences())[1], atol=1e-3)


def test_a_plain_state_dictionary_goes_back_by_value_with_the_graph_and_by_shape_without(net):
    graph = snnc.from_torch(net, torch.zeros(4, 1, INPUTS), steps=STEPS)
    with snnc.compile(graph, loss="ce_count", optimizer="sgd:0.1", batch=BATCH) as session:
        train(session)
        trained = session.state_dict()
        snnc.to_torch(trained, net, graph=graph)
        agree(session, net, sequences())
        weights = {name: value for name, value in trained.items() if value.ndim}
        other = Net()
        assert len(snnc.to_torch(weights, other)) == 4
        np.testing.assert_array_equal(other.fc2.weight.detach().numpy(), net.fc2.weight.detach().numpy())


def test_the_number_of_steps_is_the_callers(net):
    graph = snnc.from_torch(net, torch.zeros(5, 1, INPUTS), steps=30)
    assert graph.steps == 30
    with snnc.compile(graph) as session:
        agree(session, net, sequences(30))


def test_a_single_step_with_its_state_runs_any_number_of_steps():
    torch.manual_seed(1)
    module = OneStep()
    graph = snnc.from_torch(module, (np.zeros((1, INPUTS), np.float32), torch.zeros(1, CLASSES)))
    assert set(graph.state_inputs) == {"mem"}
    x, mem, wanted = sequences(12), torch.zeros(BATCH, CLASSES), []
    for step in x:
        with torch.no_grad():
            _, mem = module(torch.from_numpy(step), mem)
        wanted.append(mem.numpy())
    with snnc.compile(graph) as session:
        np.testing.assert_allclose(session.run(x)["output2"], np.stack(wanted), atol=1e-5)


def test_the_module_stays_as_it_is(net):
    before = {name: t.clone() for name, t in net.state_dict().items()}
    snnc.from_torch(net, torch.zeros(4, 1, INPUTS))
    assert net.training
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())


def test_what_cannot_be_exported_is_refused_with_the_first_line_of_each_exporter():
    class Data(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x).imag

    with pytest.raises(TorchExportError, match=r"SNNC-E240.*TorchScript: .*dynamo: "):
        snnc.from_torch(Data(), torch.eye(3))


def test_what_torchscript_refuses_is_exported_by_dynamo(monkeypatch):
    from snnc.frontends.torch import exporting

    pytest.importorskip("onnxscript")
    tried, call = [], exporting._call_exporter

    def refuse_torchscript(torch, module, arguments, file, names, dynamo, opset):
        tried.append(dynamo)
        if not dynamo:
            raise RuntimeError("not today")
        call(torch, module, arguments, file, names, dynamo, opset)

    monkeypatch.setattr(exporting, "_call_exporter", refuse_torchscript)
    torch.manual_seed(1)
    module = OneStep()
    graph = snnc.from_torch(module, (torch.zeros(1, INPUTS), torch.zeros(1, CLASSES)))
    assert tried == [False, True]
    x, mem, wanted = sequences(), torch.zeros(BATCH, CLASSES), []
    for step in x:
        with torch.no_grad():
            _, mem = module(torch.from_numpy(step), mem)
        wanted.append(mem.numpy())
    with snnc.compile(graph) as session:
        np.testing.assert_allclose(session.run(x)["output2"], np.stack(wanted), atol=1e-5)


class Hidden(torch.nn.Module):
    """snnTorch's modules that keep their states to themselves."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(INPUTS, CLASSES)
        self.lif = snn.Leaky(beta=0.9, init_hidden=True)

    def forward(self, x):
        self.lif.reset_mem()
        return torch.stack([self.lif(self.fc(step)) for step in x])


def test_states_that_are_reset_in_forward_may_be_hidden():
    torch.manual_seed(3)
    module = Hidden()
    with torch.no_grad():
        module.fc.weight.mul_(4.0)
        wanted = module(torch.from_numpy(sequences()))
    with snnc.compile(snnc.from_torch(module, torch.zeros(STEPS, 1, INPUTS))) as session:
        np.testing.assert_array_equal(session.run(sequences())["output"], wanted.numpy())


def test_an_example_that_does_not_fit_is_refused(net):
    with pytest.raises(TorchExportError, match=r"SNNC-E240: Net does not run on the example: RuntimeError: mat1 and mat2"):
        snnc.from_torch(net, torch.zeros(4, 1, INPUTS + 1))


def test_what_is_no_module_is_refused(net):
    with pytest.raises(TorchModuleError, match=r"SNNC-E241.*not a torch.nn.Module"):
        snnc.from_torch(lambda x: x, torch.zeros(3))
    with pytest.raises(TorchModuleError, match="SNNC-E241"):
        snnc.to_torch({}, 3)
    with pytest.raises(TorchModuleError, match="SNNC-E241: int contains no weights"):
        snnc.to_torch(3, net)


def test_long_examples_are_advised_against(monkeypatch):
    monkeypatch.setattr("snnc.frontends.torch.importing.LONG", 6)
    with pytest.warns(UserWarning, match=r"up to 6 steps.*an example of 8 steps"):
        snnc.from_torch(Net(), torch.zeros(6, 1, INPUTS))


def test_slow_exports_say_how_slow(monkeypatch):
    monkeypatch.setattr("snnc.frontends.torch.importing.SLOW", -1.0)
    with pytest.warns(UserWarning, match=r"took \d+ s.*single-step"):
        snnc.from_torch(Net(), torch.zeros(4, 1, INPUTS))


def test_weights_of_another_module_are_refused_and_nothing_changes(net):
    graph = snnc.from_torch(net, torch.zeros(4, 1, INPUTS), steps=STEPS)
    other = Net()
    before = {name: t.clone() for name, t in other.state_dict().items()}
    with snnc.compile(graph, loss="ce_count", optimizer="sgd:0.1", batch=BATCH) as session:
        train(session)
        with pytest.raises(UnmatchedWeightError, match=r"SNNC-E242.*as it was at the import"):
            snnc.to_torch(session, other)
    assert all(torch.equal(t, before[name]) for name, t in other.state_dict().items())


class Twins(torch.nn.Module):
    """Two layers of one shape."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)


def test_weights_that_could_go_to_two_places_are_refused():
    with pytest.raises(AmbiguousWeightError, match=r"SNNC-E243.*'a.weight', 'b.weight'.*graph="):
        snnc.to_torch({"linear_1.weight": np.eye(3, dtype=np.float32)}, Twins())


def test_names_that_are_the_modules_own_tell_twins_apart():
    twins = Twins()
    assert snnc.to_torch({"b.weight": np.eye(3, dtype=np.float32)}, twins) == ["b.weight"]
    np.testing.assert_array_equal(twins.b.weight.detach().numpy(), np.eye(3))


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ToolMissingError, match=r"SNNC-E400.*pip install torch"):
        snnc.from_torch(None, None)
