"""What training changes in another way than the module's framework is said when it starts, and not before."""

import warnings

import numpy as np
import pytest
from frameworks import framework, torch

import snnc
from snnc.backends.training_notes import TrainingDiffers
from snnc.cli import run_command

snn = framework("snntorch")
neuron, layer, functional = (framework(f"spikingjelly.activation_based.{part}") for part in ("neuron", "layer", "functional"))

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

INPUTS, NEURONS = 4, 5


def jelly(*units, shape=(INPUTS,)):
    torch.manual_seed(0)
    net = torch.nn.Sequential(layer.Linear(INPUTS, NEURONS), *units)
    functional.set_step_mode(net, "m")
    return snnc.from_torch(net, torch.zeros(5, 1, *shape), steps=6)


def said(graph):
    """Train one update and return the codes that were warned of."""
    x = np.random.default_rng(0).normal(0.5, 1.0, (4, 6, INPUTS)).astype(np.float32)
    with snnc.compile(graph, loss="ce_count", optimizer="sgd:0.1", batch=4) as session:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            session.run(x.swapaxes(0, 1))
        assert not [w for w in found if issubclass(w.category, TrainingDiffers)]
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            session.fit(x, np.arange(4) % NEURONS, batch=4)
    return [str(w.message) for w in found if issubclass(w.category, TrainingDiffers)]


def test_a_learned_time_constant_is_a_sigmoid_here():
    (text,) = said(jelly(neuron.ParametricLIFNode()))
    assert text.startswith("SNNC-W272: training changes 'sigmoid_w' of '1' itself, not the 'w'")


def test_batch_normalisation_is_folded():
    (text,) = said(jelly(layer.BatchNorm1d(NEURONS), neuron.LIFNode()))
    assert text.startswith("SNNC-W273: the batch normalisations '1'")


def test_dropout_does_nothing():
    (text,) = said(jelly(layer.Dropout(0.3), neuron.LIFNode()))
    assert text.startswith("SNNC-W274: the dropout of '1' does nothing")


def test_a_network_that_trains_alike_says_nothing():
    assert said(jelly(neuron.LIFNode(detach_reset=True))) == []


class Graded(torch.nn.Module):
    def __init__(self, unit):
        super().__init__()
        self.fc, self.unit = torch.nn.Linear(INPUTS, NEURONS), unit

    def forward(self, x):
        state, found = self.unit.reset_mem(), []
        for step in x:
            spikes, state = self.unit(self.fc(step), state)
            found.append(spikes)
        return torch.stack(found)


def test_a_learned_graded_factor_learns_here_too():
    graph = snnc.from_torch(Graded(snn.Leaky(beta=0.9, learn_graded_spikes_factor=True)), torch.zeros(5, 1, INPUTS), steps=6)
    assert said(graph) == []
    with snnc.compile(graph) as session:
        assert "unit.graded_spikes_factor" in session.state_dict()


@pytest.mark.filterwarnings("ignore")
def test_a_parameter_without_effect_is_named():
    graph = snnc.from_torch(Graded(snn.Lapicque(beta=0.8, learn_beta=True)), torch.zeros(5, 1, INPUTS), steps=6)
    (text,) = said(graph)
    assert text.startswith("SNNC-W275: 'unit.beta' of the module learn there")


def test_the_command_says_it_once(tmp_path, capsys):
    x = np.random.default_rng(0).normal(0.5, 1.0, (4, 6, INPUTS)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=np.arange(4) % NEURONS)
    graph = jelly(neuron.ParametricLIFNode())
    snnc.compile(graph, loss="ce_count", optimizer="sgd:0.1", batch=4, steps=6, output=tmp_path / "net").close()
    assert run_command(["train", str(tmp_path / "net"), "--data", str(tmp_path / "data.npz")]) == 0
    assert capsys.readouterr().err.count("SNNC-W272") == 1
