"""Trained parameters of imported neurons: gradients as in autograd, saved, and written back."""

import json
import shutil

import numpy as np
import pytest

import snnc
from snnc.cli import main as cli
from snnc.compiler.ir.graph import Population
from snnc.errors import SnncError

torch = pytest.importorskip("torch")
snn = pytest.importorskip("snntorch")

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 9, 5, 6, 7, 3


class Net(torch.nn.Module):
    def __init__(self, neuron, options, learn):
        super().__init__()
        gradient = snn.surrogate.atan(2.0)
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.first = neuron(**options, spike_grad=gradient, **({f"learn_{name}": True for name in learn}))
        self.last = snn.Leaky(beta=0.85, spike_grad=gradient, learn_beta="beta" in learn, learn_threshold="threshold" in learn)

    def forward(self, x):
        states, mem, found = self.first.reset_mem(), self.last.reset_mem(), []
        states = states if isinstance(states, tuple) else (states,)
        for step in x:
            s, *states = self.first(self.fc1(step), *states)
            _, mem = self.last(self.fc2(s), mem)
            found.append(mem)
        return torch.stack(found)


NEURONS = {
    "Leaky": (snn.Leaky, {"beta": 0.9}, ["beta", "threshold"]),
    "Leaky, another threshold": (snn.Leaky, {"beta": 0.9, "threshold": 0.7}, ["beta", "threshold"]),
    "Leaky, reset to zero": (snn.Leaky, {"beta": 0.8, "reset_mechanism": "zero"}, ["beta", "threshold"]),
    "Leaky, a beta each": (snn.Leaky, {"beta": torch.linspace(0.5, 0.95, HIDDEN)}, ["beta"]),
    "Synaptic": (snn.Synaptic, {"alpha": 0.7, "beta": 0.9}, ["alpha", "beta", "threshold"]),
}


def exported(path, neuron, options, learn):
    """A file that says nothing of what learns, and the module whose parameters learn."""
    torch.manual_seed(1)
    module = Net(neuron, options, ())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.5)
    same = Net(neuron, options, learn)
    same.load_state_dict(module.state_dict())
    torch.onnx.export(module, (torch.rand(STEPS, BATCH, INPUTS),), str(path), input_names=["x"], output_names=["y"], dynamo=False)
    return same


def samples(seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((BATCH, STEPS, INPUTS)) < 0.6).astype(np.float32), rng.integers(0, CLASSES, BATCH)


def places(graph):
    """Population -> its name in the module, in the order of values."""
    return dict(zip((name for name, _ in graph.of_type(Population)), ("first", "last"), strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.representative("Leaky", "Leaky, a beta each", "Synaptic")
@pytest.mark.parametrize("name", NEURONS)
def test_parameters_of_an_imported_file_take_the_gradient_of_autograd(name, tmp_path):
    neuron, options, learn = NEURONS[name]
    module = exported(tmp_path / "m.onnx", neuron, options, learn)
    x, y = samples()
    with snnc.compile(tmp_path / "m.onnx", loss="ce_mean_membrane", optimizer="sgd:1", learnable=learn, surrogate="atan:2") as session:
        before = session.state_dict()
        session.fit(x, y, batch=BATCH, shuffle=False)
        after, names = session.state_dict(), places(session.graph)
    torch.nn.functional.cross_entropy(module(torch.from_numpy(x).transpose(0, 1)).mean(0), torch.from_numpy(y)).backward()
    wanted = {n: p.grad.numpy() for n, p in module.named_parameters()}
    seen = 0
    for label, value in after.items():
        layer, _, parameter = label.rpartition(".")
        if layer in names and parameter in learn:
            gradient = wanted[f"{names[layer]}.{parameter}"]
            assert np.abs(gradient).max() > 1e-4
            np.testing.assert_allclose(before[label] - value, gradient.reshape(value.shape), rtol=1e-4, atol=1e-6, err_msg=label)
            seen += 1
    assert seen == len(learn) + len({"beta", "threshold"} & set(learn))


@pytest.fixture(scope="module")
def leaky(tmp_path_factory):
    file = tmp_path_factory.mktemp("leaky") / "m.onnx"
    with pytest.warns():
        exported(file, snn.Leaky, {"beta": 0.9}, ["beta"])
    return file


@pytest.fixture
def model(leaky, tmp_path):
    shutil.copy(leaky, tmp_path / "m.onnx")
    x, y = samples()
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.savez(tmp_path / "x.npz", x=x.swapaxes(0, 1))
    return tmp_path / "m.onnx"


def run(*arguments):
    return cli.run_command([str(a) for a in arguments])


def test_what_learns_is_said_kept_and_written_back(model, tmp_path, capsys):
    build = tmp_path / "build"
    options = ("--target", "reference", "--loss", "ce_mean_membrane", "--optimizer", "sgd:0.5", "--learnable", "beta, threshold")
    assert run("compile", model, *options, "-o", build) == 0
    said = capsys.readouterr()
    assert "Training changes neurons_1.beta, neurons_2.beta, as requested" in said.out + said.err
    assert run("check", build) == 0
    assert "beta = 0.9 (learned)" in " ".join(capsys.readouterr().out.split())
    assert run("check", build, "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert [sorted(layer["learnable"]) for layer in described["layers"]] == [["beta", "threshold"]] * 2
    assert any("Training changes" in text for text in described["assumptions"])
    assert run("train", build, "--data", tmp_path / "d.npz", "--epochs", 3) == 0
    with snnc.open(build) as session:
        weights = session.state_dict()
        wanted = session.run(np.load(tmp_path / "x.npz")["x"])["y"]
    assert weights["neurons_1.beta"] != np.float32(0.9)
    for suffix in ("onnx", "nir"):
        if run("convert", build, tmp_path / f"out.{suffix}") != 0:
            assert suffix == "nir"  # what NIR cannot hold is refused
            continue
        inputs = dict.fromkeys(("x",), tmp_path / "x.npz")
        assert run("run", tmp_path / f"out.{suffix}", "--inputs", inputs["x"], "--outputs", tmp_path / "y.npz") == 0
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], wanted, rtol=1e-5, atol=1e-6)
    again = snnc.load(tmp_path / "out.onnx")
    np.testing.assert_array_equal(again.operation("neurons_1").parameters["beta"], weights["neurons_1.beta"])
    assert again.operation("neurons_1").learnable == {"beta", "threshold"}


def test_one_population_is_chosen_by_its_name_and_the_others_stay(model):
    x, y = samples()
    with snnc.compile(model, loss="ce_mean_membrane", optimizer="sgd:1", learnable="neurons_1.beta") as session:
        before = session.state_dict()
        session.fit(x, y)
        after = session.state_dict()
    changed = {name for name in before if not np.array_equal(before[name], after[name]) and "neurons" in name}
    assert changed == {"neurons_1.beta"}


def test_what_no_neuron_has_is_refused_with_what_there_is(model, tmp_path, capsys):
    for wrong in ("tau", "neurons_1.tau", "nobody.beta", "", ["beta", "tau"]):
        with pytest.raises(SnncError, match=r"SNNC-E573: .*neurons_1 has .*beta"):
            snnc.compile(model, loss="ce_mean_membrane", learnable=wrong)
    with pytest.raises(SnncError, match="SNNC-E553"):
        snnc.compile(model, learnable="beta")
    assert run("compile", model, "--target", "reference", "--loss", "ce_mean_membrane", "--learnable", "tau", "-o", tmp_path / "b") == 2
    assert "SNNC-E573" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_module_of_pytorch_learns_them_too(model):
    from snnc.torch import Module

    layer = Module(model, learnable="beta")
    layer(torch.ones(STEPS, 2, INPUTS)).sum().backward()
    learned = {name for name, p in layer.named_parameters() if name.endswith("beta") and p.grad is not None}
    assert learned == {"neurons_1.beta", "neurons_2.beta"}
