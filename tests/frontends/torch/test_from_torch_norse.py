"""Norse's modules become networks and get their weights back: cells, cells in a sequence, and modules for whole sequences."""

import numpy as np
import pytest
from frameworks import CLASSES, HIDDEN, INPUTS, framework, goes_there_and_back, louder, sequences

import snnc
from snnc.compiler.ir.graph import Population
from snnc.frontends.onnx.writer.errors import HiddenStateExampleError, StateLostError

torch = framework("torch")
norse = framework("norse.torch")


def stepwise(module, x):
    state, found = None, []
    with torch.no_grad():
        for step in torch.from_numpy(x):
            out, state = module(step, state)
            found.append(out.numpy())
    return np.stack(found)


def whole(module, x):
    with torch.no_grad():
        return module(torch.from_numpy(x))[0].numpy()


def cells(*hidden):
    torch.manual_seed(1)
    layers = hidden if len(hidden) > 1 else (torch.nn.Linear(INPUTS, HIDDEN), *hidden)
    return louder(norse.SequentialState(*layers, torch.nn.Linear(HIDDEN, CLASSES), norse.LICell()), 6.0)


@pytest.mark.representative("LIFCell", "IAFCell", "LSNNCell")
@pytest.mark.parametrize("kind", ["LIFCell", "LIFBoxCell", "IAFCell", "LIFAdExCell", "LIFExCell", "LIFRefracCell", "LSNNCell"])
def test_cells_in_a_row(kind):
    _, written = goes_there_and_back(cells(getattr(norse, kind)()), stepwise)
    assert sorted(written) == ["0.bias", "0.weight", "2.bias", "2.weight"]


@pytest.mark.representative("LIFRecurrentCell")
@pytest.mark.parametrize("kind", ["LIFRecurrentCell", "LSNNRecurrentCell"])
def test_recurrent_cells(kind):
    torch.manual_seed(1)
    net = louder(norse.SequentialState(getattr(norse, kind)(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES), norse.LICell()), 6.0)
    goes_there_and_back(net, stepwise, learns=("0.input_weights", "0.recurrent_weights"))


@pytest.mark.parametrize("kind", ["LIF", "LSNN"])
def test_modules_of_whole_sequences(kind):
    torch.manual_seed(1)
    layers = torch.nn.Linear(INPUTS, HIDDEN), getattr(norse, kind)(), torch.nn.Linear(HIDDEN, CLASSES), norse.LI()
    goes_there_and_back(louder(norse.SequentialState(*layers), 6.0), whole)


def test_lifted_cells():
    goes_there_and_back(norse.Lift(cells(norse.LIFCell())), whole, learns=("lifted_module.0.weight",))


def test_convolutions_of_one_step():
    torch.manual_seed(1)
    layers = (
        torch.nn.Conv2d(2, 4, 3),
        norse.LIFCell(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(16, CLASSES),
        norse.LICell(),
    )
    goes_there_and_back(louder(norse.SequentialState(*layers), 4.0), stepwise, (2, 6, 6), learns=("0.weight",))


class OwnStep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.lif = torch.nn.Linear(INPUTS, HIDDEN), norse.LIFCell()
        self.out, self.li = torch.nn.Linear(HIDDEN, CLASSES), norse.LICell()

    def forward(self, x, state=None):
        first, second = state or (None, None)
        spikes, first = self.lif(self.fc(x), first)
        out, second = self.li(self.out(spikes), second)
        return out, (first, second)


def test_a_module_of_the_users_own_with_a_state_argument():
    torch.manual_seed(1)
    graph, _ = goes_there_and_back(louder(OwnStep(), 6.0), stepwise, learns=("fc.weight", "out.bias"))
    assert {"fc", "out"} <= set(graph.names)


def test_a_cell_with_its_state_as_an_argument():
    cell = norse.LIFCell()
    state = type(cell.state_fallback(torch.zeros(1, INPUTS)))(v=torch.zeros(1, INPUTS), i=torch.zeros(1, INPUTS))
    graph = snnc.from_torch(cell, (torch.zeros(1, INPUTS), state))
    assert set(graph.state_inputs) == {"state_v", "state_i"}
    x = 4 * sequences()
    wanted = stepwise(cell, x)
    assert 0 < wanted.mean() < 1
    with snnc.compile(graph) as session:
        np.testing.assert_array_equal(session.run(x)["output1"], wanted)


def test_a_cell_runs_any_number_of_steps():
    graph = snnc.from_torch(norse.LIFCell(), torch.zeros(50, 1, INPUTS))
    assert graph.steps is None
    x = 4 * sequences(steps=31)
    with snnc.compile(graph) as session:
        np.testing.assert_array_equal(session.run(x)["output"], stepwise(norse.LIFCell(), x))


class Forgetful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.lif = torch.nn.Linear(INPUTS, HIDDEN), norse.LIFCell()

    def forward(self, x):
        return self.lif(self.fc(x))[0]


def test_a_step_that_forgets_its_state_is_refused():
    with pytest.raises(StateLostError, match=r"SNNC-E249: Forgetful calls its neurons \(LIFCell\) once.*accept the states as arguments"):
        snnc.from_torch(Forgetful(), torch.zeros(5, 1, INPUTS))


def test_an_example_of_one_step_without_states_is_refused():
    with pytest.raises(
        HiddenStateExampleError, match=r"SNNC-E248: SequentialState runs one step.*\[steps, batch, ...\], not of shape \[1, 6\]"
    ):
        snnc.from_torch(cells(norse.LIFCell()), torch.zeros(1, INPUTS))


def test_neurons_are_recognised():
    graph = snnc.from_torch(cells(norse.LIFCell()), torch.zeros(5, 1, INPUTS))
    assert [p.model.name for _, p in graph.of_type(Population)] == ["CubaLIF", "LI"]
