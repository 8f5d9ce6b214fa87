"""Training that differs from the module's framework is reported when it starts, and not before."""

import warnings

import numpy as np
import pytest
from frameworks import framework, torch

import snnc
from snnc.backends.training.notices import TrainingDiffers
from snnc.cli.main import run_command
from snnc.compiler.ir.graph import Population

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
    assert text.startswith("SNNC-W274: the dropout of '1' has no effect")


def test_a_network_that_trains_alike_says_nothing():
    assert said(jelly(neuron.LIFNode(detach_reset=True))) == []


class Twice(torch.nn.Module):
    """Two layers of weights in front of neurons of one decay."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, NEURONS), torch.nn.Linear(NEURONS, NEURONS)
        self.unit = snn.Leaky(beta=0.9, learn_beta=True)

    def forward(self, x):
        one, two, found = torch.zeros(1), torch.zeros(1), []
        for step in x:
            spikes, one = self.unit(self.fc1(step), one)
            spikes, two = self.unit(self.fc2(spikes), two)
            found.append(spikes)
        return torch.stack(found)


def test_a_neuron_that_is_called_in_two_places_keeps_its_parameters_as_they_are():
    graph = snnc.from_torch(Twice(), torch.zeros(5, 1, INPUTS), steps=6)
    assert [text for text in said(graph) if text.startswith("SNNC-W277: 'unit.beta' learn in the module")]
    assert not any("beta" in population.learnable for _, population in graph.of_type(Population))


def test_the_biases_of_the_gates_of_a_cell_learn():
    unit = snn.SLSTM(NEURONS, NEURONS, threshold=0.1)
    with torch.no_grad():
        unit.lstm_cell.bias_ih.uniform_(-0.5, 0.5)
    assert said(snnc.from_torch(Cell(unit), torch.zeros(5, 1, INPUTS), steps=6)) == []


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


class Cell(Graded):
    def forward(self, x):
        state, found = self.unit.reset_mem(), []
        for step in x:
            spikes, *state = self.unit(self.fc(step), *state)
            found.append(spikes)
        return torch.stack(found)


@pytest.mark.parametrize(("beta", "count"), [(0.9, 1), (1.0, 0)])
def test_a_decay_that_may_leave_the_range_it_is_clamped_to_is_named(beta, count):
    """At its bound the clamp stays in the equations."""
    graph = snnc.from_torch(Graded(snn.Leaky(beta=beta, learn_beta=True)), torch.zeros(5, 1, INPUTS), steps=6)
    found = said(graph)
    assert len(found) == count
    assert all(text.startswith("SNNC-W276: the module clamps 'unit.beta' to the range 0 to 1") for text in found)


@pytest.mark.filterwarnings("ignore")
def test_a_parameter_without_effect_is_named():
    graph = snnc.from_torch(Graded(snn.Lapicque(beta=0.8, learn_beta=True)), torch.zeros(5, 1, INPUTS), steps=6)
    (text,) = said(graph)
    assert text.startswith("SNNC-W275: 'unit.beta' learn in the module")


def test_the_command_says_it_once(tmp_path, capsys):
    x = np.random.default_rng(0).normal(0.5, 1.0, (4, 6, INPUTS)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=np.arange(4) % NEURONS)
    graph = jelly(neuron.ParametricLIFNode())
    snnc.compile(graph, loss="ce_count", optimizer="sgd:0.1", batch=4, steps=6, output=tmp_path / "net").close()
    assert run_command(["train", str(tmp_path / "net"), "--data", str(tmp_path / "data.npz")]) == 0
    assert capsys.readouterr().err.count("SNNC-W272") == 1
