"""Refusals of verify: one test per error, with the required content of its message."""

import numpy as np
import pytest

from snnc.compiler import errors
from snnc.compiler.ir.graph import Add, Concat, Edge, Graph, Input, Linear, OneToOne, Output, Population, StateRef
from snnc.compiler.ir.verify import verify
from snnc.compiler.neurons.library import LIF


def net():
    graph = Graph("net")
    graph.add("x", Input((3,)))
    graph.add("fc", Linear(np.ones((4, 3), np.float32), np.zeros(4, np.float32)))
    graph.add("n", Population(LIF(0.9), (4,)))
    graph.add("y", Output())
    graph.connect("x", "fc")
    graph.connect("fc", "n")
    graph.connect("n", "y")
    return graph


def put(name, operation):
    def change(graph):
        graph.nx.nodes[name]["operation"] = operation

    return change


def weights(value=1.0, at=(2, 1), shape=(4, 3), bias=None):
    weight = np.ones(shape, np.float32)
    if value != 1:
        weight[at] = weight[3, 2] = value
    return Linear(weight, bias)


def edge(*args, **options):
    return lambda graph: graph.nx.add_edge(args[0], args[1], edge=Edge(*args, **options))


def second_input(graph):
    graph.connect(graph.add("z", Input((3,))), "fc")


def loop(graph):
    graph.add("back", Linear(np.ones((4, 4), np.float32)))
    graph.connect("n", "back")
    graph.connect("back", "n")


def concat(*shapes, axis=0):
    def change(graph):
        graph.add("both", Concat(axis))
        for number, shape in enumerate(shapes):
            graph.connect(graph.add(f"i{number}", Input(shape)), "both")
        graph.connect("both", graph.add("out", Output()))

    return change


def state(node, name):
    return lambda graph: graph.state_inputs.update(s=StateRef(node, name))


def drop(*names):
    return lambda graph: graph.nx.remove_nodes_from(names)


def test_a_sound_graph_passes_and_its_ports_come_back():
    assert verify(net(), steps=1)["y", "in"].shape == (4,)


def test_a_cycle_with_delay_passes():
    graph = net()
    graph.add("back", Linear(np.ones((4, 4), np.float32)))
    graph.connect("n", "back", delay=1)
    graph.connect("back", "n")
    verify(graph)


HUGE = np.broadcast_to(np.float32(1), (2**20, 2**20))

CASES = [
    (edge("n", "y", "nope", "in"), errors.UnknownNodeError, "port 'nope'; it has s, v"),
    (edge("fc", "n", "out", "nope"), errors.UnknownNodeError, "port 'nope'; it has i"),
    (edge("n", "x", "s", "in"), errors.UnknownNodeError, "no input port"),
    (edge("fc", "n", "out", "i", -1), errors.InvalidValueError, "delay -1"),
    (put("fc", weights(shape=(4, 5))), errors.ShapeMismatchError, r"'x' has shape \(3,\) .* 'fc' expects \(5,\)"),
    (put("n", Population(LIF(0.9), (5,))), errors.ShapeMismatchError, r"'fc' has shape \(4,\) .* 'n' expects \(5,\)"),
    (concat((2, 3), (3, 2)), errors.ShapeMismatchError, r"'i1' has shape \(3, 2\).*axis 0"),
    (concat((2, 3), (2, 3), axis=1), errors.ConcatAxisError, "contiguous"),
    (loop, errors.CycleWithoutDelayError, "n -> back -> n|back -> n -> back"),
    (put("fc", weights(np.nan)), errors.NotFiniteError, r"the weight of 'fc' is nan at index \[2, 1\] \(2 of 12"),
    (put("fc", weights(bias=np.array([0, 0, np.inf, 0]))), errors.NotFiniteError, r"the bias of 'fc' is inf at index \[2\] \(1 of 4"),
    (put("n", Population(LIF(0.9), (4,), {"beta": np.array(np.nan)})), errors.NotFiniteError, "parameter 'beta' of 'n'"),
    (put("n", Population(LIF(0.9), (4,), initial={"v": np.array(-np.inf)})), errors.NotFiniteError, "initial state 'v' of 'n'"),
    (drop("x"), errors.UnconnectedError, "no input"),
    (drop("y"), errors.UnconnectedError, "no output"),
    (lambda g: g.add("lost", Population(LIF(0.9), (4,))), errors.UnconnectedError, "port 'i' of 'lost' has no source"),
    (lambda g: g.add("lost", Add()), errors.UnconnectedError, "port 'in' of 'lost' has no source"),
    (lambda g: g.add("lost", Input((3,))), errors.UnconnectedError, "'lost' .Input. has no target"),
    (second_input, errors.SeveralSourcesError, "2 edges .*'x', 'z'"),
    (put("x", Input((3, 0))), errors.EmptyShapeError, r"'x' has shape \(3, 0\)"),
    (put("n", Population(LIF(0.9), (10**6, 10**6))), errors.TooLargeError, r"'n' has shape .* 1000000000000 elements"),
    (put("fc", Linear(HUGE)), errors.TooLargeError, "weight of 'fc'"),
    (put("fc", Linear(np.ones(3))), errors.ParameterShapeError, r"weight of 'fc' has shape \(3,\)"),
    (put("fc", weights(bias=np.zeros(3))), errors.ParameterShapeError, r"bias of 'fc' has shape \(3,\).*\(4,\)"),
    (put("n", Population(LIF(0.9), (4,), {"beta": np.ones(3)})), errors.ParameterShapeError, r"'beta' of 'n' has shape \(3,\).*\(4,\)"),
    (put("n", Population(LIF(0.9), (4,), {"tau": np.ones(())})), errors.ParameterShapeError, "'tau'.*beta"),
    (put("n", Population(LIF(0.9), (4,), initial={"w": np.ones(())})), errors.ParameterShapeError, "the state 'w'"),
    (put("n", Population(LIF(0.9), (4,), learnable=frozenset({"tau"}))), errors.ParameterShapeError, "learn tau"),
    (put("fc", OneToOne(np.ones(5))), errors.ShapeMismatchError, r"'x' has shape \(3,\)"),
    (state("fc", "v"), errors.StateInputError, "'fc', which is not a population"),
    (state("nobody", "v"), errors.StateInputError, "'nobody'"),
    (state("n", "w"), errors.StateInputError, "'w' of 'n', which has s, v"),
    (lambda g: setattr(g, "steps", 0), errors.InvalidValueError, "steps is 0"),
]


@pytest.mark.parametrize(("change", "error", "text"), CASES, ids=lambda v: v.code if isinstance(v, type) else "")
def test_a_graph_at_fault_is_refused(change, error, text):
    graph = net()
    change(graph)
    with pytest.raises(error, match=text):
        verify(graph)


def test_a_number_of_steps_below_one_is_refused():
    with pytest.raises(errors.InvalidValueError, match="steps is 0"):
        verify(net(), steps=0)
