"""The reference backend compared with PyTorch and snnTorch."""

import sys

import numpy as np
import pytest
import snntorch
import snntorch.functional
import torch
from gradients import compare_gradients
from graph_oracle import TorchGraph
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import NETS, dense, join, learnable, linear, of_model, recurrent
from wide import examples

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import MemoryNeededError, NotTrainableError
from snnc.compiler.ir.graph import Add, Concat, Graph, Input, Output, Population, StateRef
from snnc.compiler.losses import LOSSES, parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIBRARY, LIF
from snnc.compiler.neurons.surrogates.library import fast_sigmoid


@pytest.mark.representative("float64-*", "float32-recurrent")
@pytest.mark.parametrize("net", NETS, ids=lambda net: net.__name__)
@pytest.mark.parametrize(("dtype", "limit"), [pytest.param(np.float32, 1e-4, id="float32"), pytest.param(np.float64, 1e-10, id="float64")])
def test_gradients_match_pytorch(net, dtype, limit):
    errors = compare_gradients(net(np.random.default_rng(1)), parse_loss("ce_max_membrane"), dtype, output="readout.v")
    assert max(errors.values()) < limit, errors


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
def test_gradients_of_every_loss_match_pytorch(kind):
    for net in (dense, recurrent):
        errors = compare_gradients(net(np.random.default_rng(2)), kind(), np.float64)
        assert max(errors.values()) < 1e-7, errors


@pytest.mark.parametrize("make", LIBRARY, ids=lambda make: make.__name__)
def test_every_neuron_of_the_library_trains_in_a_loop(make):
    errors = compare_gradients(of_model(np.random.default_rng(4), make()), parse_loss("mean membrane"), np.float64)
    assert max(errors.values()) < 1e-9, errors


def test_the_surrogate_reaches_the_gradient():
    errors = compare_gradients(dense(np.random.default_rng(3)), parse_loss("ce_count"), np.float64, surrogate=fast_sigmoid(25.0))
    assert max(errors.values()) < 1e-10


def test_a_linear_output_trains():
    errors = compare_gradients(NETS[-1](np.random.default_rng(1)), parse_loss("mean membrane"), np.float64, output="z")
    assert max(errors.values()) < 1e-10


# ---- training --------------------------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        grad = snntorch.surrogate.atan(2.0)
        self.fc1, self.fc2 = torch.nn.Linear(6, 8), torch.nn.Linear(8, 4)
        self.lif1 = snntorch.Leaky(beta=0.9, spike_grad=grad)
        self.lif2 = snntorch.Leaky(beta=0.8, spike_grad=grad)
        self.load_state_dict({k: torch.tensor(v) for k, v in weights.items() if k.startswith("fc")}, strict=False)

    def forward(self, x):
        m1, m2, out = self.lif1.init_leaky(), self.lif2.init_leaky(), []
        for step in x:
            s, m1 = self.lif1(self.fc1(step), m1)
            s, m2 = self.lif2(self.fc2(s), m2)
            out.append(s)
        return torch.stack(out)


OPTIMIZERS = {
    "adam": (Adam(1e-2), lambda p: torch.optim.Adam(p, 1e-2)),
    "momentum": (SGD(0.05, 0.9), lambda p: torch.optim.SGD(p, 0.05, 0.9)),
    "sgd": (SGD(0.05), lambda p: torch.optim.SGD(p, 0.05)),
}


@pytest.mark.representative("adam")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_loss_curve_is_that_of_snntorch(name):
    ours, theirs = OPTIMIZERS[name]
    random = np.random.default_rng(7)
    program = lower(dense(random), loss=parse_loss("ce_count"), optimizer=ours)
    engine = ReferenceEngine(program)
    net = Net({p.label: p.value for p in program.parameters.values()})
    optimizer = theirs(net.parameters())
    x, target = (random.random((15, 16, 6)) < 0.4).astype(np.float32), random.integers(0, 4, 16)
    curves = []
    for _ in range(examples(10, 20)):
        optimizer.zero_grad()
        loss = snntorch.functional.ce_count_loss()(net(torch.tensor(x)), torch.tensor(target))
        loss.backward()
        optimizer.step()
        curves.append((loss.item(), engine.train_batch({"x0": x}, target, ours.lr)))
    wanted, found = np.array(curves).T
    assert np.abs(found / wanted - 1).max() < 1e-3
    assert found[-1] < found[0]


def test_the_gradients_of_the_last_batch_are_shown():
    engine = ReferenceEngine(lower(dense(np.random.default_rng(0)), loss=parse_loss("ce_rate"), optimizer=SGD(0.5)))
    before = engine.get_parameters()
    engine.train_batch({"x0": np.ones((5, 2, 6), np.float32)}, np.array([0, 1]), 0.5)
    after = engine.get_parameters()
    for name, gradient in engine.gradients().items():
        np.testing.assert_allclose(after[name], before[name] - 0.5 * gradient, rtol=1e-6)


def test_training_without_a_loss_is_refused():
    engine = ReferenceEngine(lower(dense(np.random.default_rng(0))))
    with pytest.raises(NotTrainableError, match=r"E510.*loss"):
        engine.train_batch({"x0": np.ones((5, 2, 6), np.float32)}, np.array([0, 1]), 0.1)


def test_a_sequence_that_memory_cannot_hold_is_refused():
    engine = ReferenceEngine(lower(dense(np.random.default_rng(0))))
    with pytest.raises(MemoryNeededError, match="GiB"):
        engine.forward({"x0": np.broadcast_to(np.float32(0), (1_000_000, 1_000_000, 6))}, {})


def test_a_training_step_computes_all_samples_at_once():
    """As many calls for 64 samples as for 4: a loop over them would take minutes."""
    random, calls = np.random.default_rng(0), []
    graph = dense(random, 70, 32, 20, LI(0.9), "spikes")
    join(graph, "rec", linear(random, 32, 32), "hidden", "hidden", delay=1)
    engine = ReferenceEngine(lower(graph, loss=parse_loss("mean membrane"), optimizer=Adam()))
    for batch in (4, 64):
        x = (random.random((20, batch, 70)) < 0.03).astype(np.float32)
        calls.append(0)
        sys.setprofile(lambda frame, event, argument: calls.__setitem__(-1, calls[-1] + (event in ("call", "c_call"))))
        try:
            engine.train_batch({"x0": x}, random.integers(0, 20, batch), 1e-3)
        finally:
            sys.setprofile(None)
    assert calls[0] > 1000
    assert calls[1] < 1.1 * calls[0]


# ---- any graph -------------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Layers in a row, connected forward at once or late, backward late, through Linear, Add and Concat."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graph = Graph("random")
    sizes = {"x": draw(st.integers(1, 4))}
    graph.add("x", Input((sizes["x"],)))
    for n in range(draw(st.integers(1, 4))):
        sizes[f"n{n}"] = draw(st.integers(1, 4))
        graph.add(f"n{n}", Population(draw(st.sampled_from([LIF(0.9, 0.5), LI(0.7)])), (sizes[f"n{n}"],)))
    names = list(sizes)
    for number, target in enumerate(names[1:], 1):
        for edge in range(draw(st.integers(1, 3))):
            source = names[number - 1] if edge == 0 else draw(st.sampled_from(names))
            forward = names.index(source) < number
            delays = draw(st.integers(0 if forward else 1, 3)), draw(st.integers(0, 2))
            way = draw(st.sampled_from(["linear", "add", "concat", "chain"]))
            _connect(graph, random, source, target, sizes, f"{target}_{edge}", way, delays)
        graph.add(f"y{number}", Output())
        graph.connect(target, f"y{number}", delay=draw(st.integers(0, 2)))
    return graph


def _connect(graph, random, source, target, sizes, name, way, delays):
    first, second = delays
    graph.add(name, linear(random, sizes[target], sizes[source] * (2 if way == "concat" else 1), bias=bool(random.integers(2)), gain=2))
    if way == "linear":
        graph.connect(source, name, delay=first)
    elif way == "chain":
        graph.add(f"{name}_before", linear(random, sizes[source], sizes[source], bias=True))
        graph.connect(source, f"{name}_before", delay=first)
        graph.connect(f"{name}_before", name, delay=second)
    else:
        graph.add(f"{name}_join", Add() if way == "add" else Concat())
        graph.connect(source, f"{name}_join", delay=first)
        graph.connect(source, f"{name}_join", delay=first + 1)
        graph.connect(f"{name}_join", name)
    graph.connect(name, target, delay=second)


@settings(max_examples=examples(12, 40), deadline=None)
@given(graphs())
def test_any_graph_gives_what_a_step_by_step_simulation_gives(graph):
    program = lower(graph)
    x = np.random.default_rng(0).normal(size=(6, 2, *graph.operation("x").shape))
    found = ReferenceEngine(program, np.float64).forward({"x0": x}, {})
    wanted = TorchGraph(graph)({"x": torch.tensor(x)})
    for output in program.outputs:
        np.testing.assert_allclose(found[output.id], wanted[output.label].detach().numpy(), rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(8, 25), deadline=None)
@given(graphs())
def test_steps_one_by_one_give_the_whole_sequence(graph):
    engine = ReferenceEngine(lower(graph))
    x = np.random.default_rng(0).normal(size=(7, 2, *graph.operation("x").shape)).astype(np.float32)
    whole = engine.forward({"x0": x}, {})
    for t in range(7):
        for name, value in engine.step({"x0": x[t]}).items():
            np.testing.assert_array_equal(value, whole[name][t])


@settings(max_examples=examples(8, 25), deadline=None)
@given(graphs(), st.integers(0, 99))
def test_given_states_reach_every_delayed_connection(graph, seed):
    random, initial, ours = np.random.default_rng(seed), {}, {}
    for name, population in graph.of_type(Population):
        graph.state_inputs[f"{name}_v"] = StateRef(name, "v")
        graph.state_inputs[f"{name}_out"] = StateRef(name, population.model.outputs[0])
    program = lower(graph)
    for info in program.populations:
        if info.label in graph.nx and info.label in dict(graph.of_type(Population)):
            port = info.model.outputs[0]
            value = (random.random((2, *info.shape)) < 0.5).astype(float)
            initial |= {(info.label, "v"): torch.tensor(value), (info.label, port, "port"): torch.tensor(value)}
            ours |= {(info.id, "s0"): value}
            ours |= {(info.id, info.output_buffers[port]): value} if port in info.output_buffers else {}
    x = random.normal(size=(6, 2, *graph.operation("x").shape))
    found = ReferenceEngine(program, np.float64).forward({"x0": x}, ours)
    wanted = TorchGraph(graph)({"x": torch.tensor(x)}, initial)
    for output in program.outputs:
        np.testing.assert_allclose(found[output.id], wanted[output.label].detach().numpy(), rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(6, 15), deadline=None)
@given(graphs())
def test_gradients_of_any_graph_match_pytorch(graph):
    last = max(name for name, _ in graph.of_type(Population))
    errors = compare_gradients(graph, parse_loss("mean membrane"), np.float64, output=f"{last}.v", steps=6)
    assert max(errors.values(), default=0) < 1e-8, errors


def test_learnable_scalars_have_scalar_gradients():
    engine = ReferenceEngine(lower(learnable(np.random.default_rng(1)), loss=parse_loss("mean membrane"), optimizer=Adam()))
    engine.train_batch({"x0": np.ones((5, 2, 6), np.float32)}, np.array([0, 1]), 0.1)
    shapes = {engine.program.parameters[n].label: g.shape for n, g in engine.gradients().items()}
    assert shapes["hidden.beta"] == (8,)
    assert shapes["hidden.threshold"] == shapes["readout.beta"] == ()
    assert "fc2.weight" not in shapes
