"""Shapes and kinds of ports."""

import numpy as np
import pytest

from snnc.compiler.errors import ConcatAxisError, UnconnectedError
from snnc.compiler.ir.graph import Add, Concat, Flatten, Graph, Input, Linear, OneToOne, Output, Population
from snnc.compiler.ir.shapes import Port, compatible, port_map
from snnc.compiler.neurons.library import LI, LIF, Relay
from snnc.compiler.neurons.neuron import neuron


def graph_of(*chain, kind="spikes", shape=(2, 3)):
    """x -> chain[0] -> … -> y; nodes n0, n1, …"""
    graph = Graph()
    graph.add("x", Input(shape, kind))
    before = "x"
    for number, operation in enumerate(chain):
        graph.connect(before, graph.add(f"n{number}", operation))
        before = f"n{number}"
    graph.connect(before, graph.add("y", Output()), delay=1)
    return graph


@pytest.mark.parametrize(
    ("operation", "port"),
    [
        (Flatten(), Port((6,), "spikes")),
        (Concat(), Port((2, 3), "spikes")),
        (OneToOne(), Port((2, 3), "spikes")),
        (OneToOne(np.ones((2, 3))), Port((2, 3), "values")),
        (Linear(np.ones((4, 6))), Port((4,), "values")),
        (Population(LIF(0.9), (6,)), Port((6,), "spikes")),
        (Population(LI(0.9), (6,)), Port((6,), "values")),
        (Population(Relay(), (6,)), Port((6,), "spikes")),
    ],
    ids=lambda v: type(v).__name__,
)
def test_an_output_has_the_shape_and_kind_of_what_it_records(operation, port):
    assert port_map(graph_of(operation))["y", "in"] == port


def test_a_sum_of_several_holds_values():
    graph = graph_of(Add())
    assert port_map(graph)["n0", "out"].kind == "spikes"
    graph.connect("x", "n0")
    assert port_map(graph)["n0", "out"] == Port((2, 3), "values")


def test_a_relay_of_several_holds_values():
    graph = graph_of(Population(Relay(), (2, 3)))
    graph.connect("x", "n0")
    assert port_map(graph)["n0", "y"].kind == "values"


def test_a_concatenation_is_as_long_as_its_parts():
    graph = graph_of(Concat(axis=1))
    graph.add("z", Input((2, 4), "values"))
    graph.connect("z", "n0")
    assert port_map(graph)["n0", "out"] == Port((2, 7), "values")


def test_every_port_of_a_population_has_its_own_kind():
    model = neuron("m", equations="s = spike(i)\nt = 1 - s\nu = s * t\nw = 2 * s\ns2 = s + t", output="s")
    ports = port_map(graph_of(Population(model, (6,))))
    assert {p: ports["n0", p].kind for p in ("s", "t", "u", "w", "s2")} == {
        "s": "spikes",
        "t": "spikes",
        "u": "spikes",
        "w": "values",
        "s2": "values",
    }


def test_a_name_assigned_twice_has_the_kind_of_its_last_value():
    model = neuron("m", equations="s = spike(i)\ns = s + i", output="s")
    assert port_map(graph_of(Population(model, (6,))))["n0", "s"].kind == "values"


def test_a_loop_through_a_sum_has_a_shape():
    graph = graph_of(Add())
    graph.connect("n0", "n0", delay=1)
    assert port_map(graph)["n0", "out"] == Port((2, 3), "values")


def test_a_loop_without_a_source_has_none():
    graph = Graph()
    graph.connect(graph.add("a", Add()), graph.add("b", Add()))
    graph.connect("b", "a", delay=1)
    with pytest.raises(UnconnectedError, match="'a', 'b'"):
        port_map(graph)


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(ConcatAxisError, match=r"axis 2.*\(2, 3\)"):
        port_map(graph_of(Concat(axis=2)))


@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [((6,), (2, 3), True), ((1, 2, 3), (2, 3), True), ((2, 3), (3, 2), False), ((6,), (7,), False), ((), (1,), True)],
)
def test_vectors_and_axes_of_size_one_fit(one, other, fits):
    assert compatible(one, other) is compatible(other, one) is fits
