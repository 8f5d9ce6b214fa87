"""Networks written in Python, and errors that name the line that caused them."""

import numpy as np
import pytest

import snnc
from snnc.compiler.errors import CycleWithoutDelayError, DuplicateNodeError, InvalidValueError
from snnc.compiler.ir.graph import Edge, Flatten, Linear, Population
from snnc.compiler.ir.verify import verify
from snnc.frontends.dsl import errors


@pytest.fixture
def net():
    return snnc.Network("test")


def two_layers(net):
    spikes = net.input(6)
    hidden = net.population(4, snnc.LIF(beta=0.8), name="hidden")
    net.connect(spikes, hidden, snnc.Dense())
    return spikes, hidden


def test_the_example_of_the_readme_is_a_sound_graph(net):
    spikes = net.input(700)
    hidden = net.population(256, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(20, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense())
    net.connect(hidden, hidden, snnc.Dense(), delay=1)
    net.connect(hidden, readout, snnc.Dense())
    graph = net.graph()
    verify(graph)
    assert Edge("readout", "output", "v", "in") in graph.edges
    assert Edge("hidden", "hidden_to_hidden", "s", "in", 1) in graph.edges


def test_default_weights_are_those_of_torch_linear_and_repeat_with_the_seed():
    nets = [snnc.Network(seed=seed) for seed in (1, 1, 2)]
    for net in nets:
        two_layers(net)
    a, b, c = (net.graph().operation("input_to_hidden") for net in nets)
    assert isinstance(a, Linear)
    bound = 6**-0.5
    assert a.weight.shape == (4, 6)
    assert a.weight.dtype == np.float32
    assert np.abs(a.weight).max() <= bound
    assert np.abs(a.bias).max() <= bound
    assert (a.weight == b.weight).all()
    assert (a.weight != c.weight).any()


def test_two_connections_of_a_network_draw_different_weights(net):
    spikes, hidden = two_layers(net)
    net.connect(spikes, hidden, snnc.Dense(bias=False), delay=1)
    graph = net.graph()
    first, second = (operation for _, operation in graph.of_type(Linear))
    assert (first.weight != second.weight).any()
    assert second.bias is None


def test_weights_can_be_given_or_drawn_otherwise(net):
    spikes, hidden = net.input(3), net.population(2, snnc.LIF())
    given = np.arange(6.0).reshape(2, 3)
    net.connect(spikes, hidden, snnc.Dense(init=given, bias=[1.0, 2.0]), name="given")
    net.connect(spikes, hidden, snnc.Dense(init=snnc.Constant(0.5)), delay=1, name="constant")
    graph = net.graph()
    assert (graph.operation("given").weight == given).all()
    assert (graph.operation("given").bias == [1, 2]).all()
    assert (graph.operation("constant").weight == 0.5).all()
    assert (graph.operation("constant").bias == 0.5).all()


def test_parameters_initial_states_and_learnable_names_reach_the_population(net):
    net.population(3, snnc.LIF(), name="p", parameters={"beta": [0.1, 0.2, 0.3]}, initial={"v": 0.5}, learnable=["beta"])
    operation = net._graph.operation("p")
    assert isinstance(operation, Population)
    assert operation.parameters["beta"].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert operation.initial["v"] == 0.5
    assert operation.learnable == {"beta"}


def test_a_source_with_several_axes_is_flattened_before_dense_weights(net):
    image = net.input((2, 3), kind="values")
    hidden = net.population(4, snnc.LIF())
    net.connect(image, hidden, snnc.Dense(), delay=2)
    graph = net.graph()
    verify(graph)
    (flat,) = graph.of_type(Flatten)
    assert graph.incoming(flat[0])[0].delay == 2


def test_populations_that_nobody_else_reads_become_outputs(net):
    spikes, hidden = two_layers(net)
    other = net.population(2, snnc.LI(), name="other")
    net.connect(spikes, other)
    net.connect(hidden, hidden, snnc.Dense(), delay=1)
    assert net.graph().names[-2:] == ("hidden_output", "other_output")


def test_outputs_can_be_named_and_read_a_state(net):
    _, hidden = two_layers(net)
    assert net.output(hidden, "v", "last", name="membrane") == "membrane"
    (edge,) = net.graph().incoming("membrane")
    assert edge.source_port == "v"


def test_a_network_keeps_its_graph_when_a_connection_is_refused(net):
    spikes, hidden = two_layers(net)
    before = net.graph().names
    with pytest.raises(errors.ConnectionShapeError):
        net.connect(spikes, hidden, snnc.Dense(7))
    assert net.graph().names == before


def test_a_chain_of_layers_in_one_call():
    net = snnc.Sequential(700, snnc.Dense(256), snnc.Recurrent(snnc.LIF(beta=0.9)), snnc.Dense(20), snnc.LI(beta=0.9), readout="last")
    graph = net.graph()
    verify(graph)
    assert graph.names[-1] == "output"
    assert graph.operation("output").readout == "last"
    assert graph.operation("lif_to_lif").weight.shape == (256, 256)


def test_user_equations_make_a_neuron():
    adaptive = snnc.Neuron(
        "adaptive",
        inputs="i",
        states={"v": 0, "b": 0},
        params={"beta": 0.9, "rho": 0.97, "kappa": 1.8},
        equations="""
            z = spike(v - 1 - kappa*b)          # the spike of the step before resets
            b = rho*b + (1 - rho)*z
            v = beta*v + i - detach(z)
            s = spike(v - 1 - kappa*b)
        """,
        output="s",
    )
    verify(snnc.Sequential(4, snnc.Dense(3), adaptive).graph())


@pytest.mark.parametrize(
    ("write", "error", "says"),
    [
        (lambda net, s, h: net.connect(h, h), CycleWithoutDelayError, "delay=1"),
        (lambda net, s, h: net.connect(s, h, snnc.OneToOne()), errors.ConnectionShapeError, "(6,) and (4,)"),
        (lambda net, s, h: net.connect(s, h, snnc.Dense(init=[[1.0]])), errors.ConnectionShapeError, "(1, 1)"),
        (lambda net, s, h: net.connect(s, h, snnc.Dense(init=np.full((4, 6), np.nan))), errors.InitialiserError, "24 of 24"),
        (lambda net, s, h: net.connect(s, h, snnc.Dense(init="xavier")), errors.InitialiserError, "xavier"),
        (lambda net, s, h: net.connect(s, h, "dense"), errors.ConnectionKindError, "dense"),
        (lambda net, s, h: net.connect(s, "hidden"), errors.ForeignNodeError, "hidden"),
        (lambda net, s, h: net.connect(s, snnc.Network().population(4, snnc.LIF())), errors.ForeignNodeError, "test"),
        (lambda net, s, h: net.connect(s, h, delay=-1), InvalidValueError, "-1"),
        (lambda net, s, h: net.connect(s, h, delay=0.5), InvalidValueError, "0.5"),
        (lambda net, s, h: net.connect(h, h, delay=1, source_port="w"), errors.PopulationOptionError, "'w'"),
        (lambda net, s, h: net.population(3, snnc.LIF(), parameters={"gamma": 1}), errors.PopulationOptionError, "gamma"),
        (lambda net, s, h: net.population(3, snnc.LIF(), parameters={"beta": [1, 2]}), errors.PopulationOptionError, "(2,)"),
        (lambda net, s, h: net.population(3, snnc.LIF(), initial={"u": 1}), errors.PopulationOptionError, "state u"),
        (lambda net, s, h: net.population(3, "LIF"), errors.PopulationOptionError, "LIF"),
        (lambda net, s, h: net.population(0, snnc.LIF()), errors.NetworkShapeError, "0"),
        (lambda net, s, h: net.population(3, snnc.LIF(), name="hidden"), DuplicateNodeError, "hidden"),
        (lambda net, s, h: net.input(3, kind="events"), InvalidValueError, "events"),
        (lambda net, s, h: net.output(h, readout="median"), InvalidValueError, "median"),
        (lambda net, s, h: snnc.Network().graph(), errors.EmptyNetworkError, "input"),
        (lambda net, s, h: snnc.Sequential(3, snnc.Dense(4), snnc.Dense(3)), errors.SequenceError, "layer 2"),
        (lambda net, s, h: snnc.Sequential(3, snnc.Dense(4)), errors.SequenceError, "last layer"),
        (lambda net, s, h: snnc.Sequential(3, snnc.Dense(), snnc.LIF()), errors.SequenceError, "Dense(n)"),
    ],
)
def test_faults_are_refused_where_they_are_written(net, write, error, says):
    spikes, hidden = two_layers(net)
    with pytest.raises(error) as caught:
        write(net, spikes, hidden)
    assert says in str(caught.value)


def test_a_cycle_over_two_populations_needs_a_delay(net):
    _, a = two_layers(net)
    b = net.population(4, snnc.LIF(), name="b")
    net.connect(a, b)
    with pytest.raises(CycleWithoutDelayError):
        net.connect(b, a)
    net.connect(b, a, delay=1)
    net.output(b)
    verify(net.graph())
