"""Small networks for tests."""

import numpy as np

from snnc.compiler.ir.graph import Add, Concat, Graph, Input, Linear, OneToOne, Output, Population
from snnc.compiler.neurons.library import LI, LIF, CubaLIF


def linear(random, outputs, inputs, bias=False, gain=1.0, **options):
    weight = (random.normal(size=(outputs, inputs)) * gain / np.sqrt(inputs)).astype(np.float32)
    return Linear(weight, random.normal(size=outputs).astype(np.float32) * 0.1 if bias else None, **options)


def join(graph, name, operation, source, target, delay=0, **ports):
    """Put `operation` between two nodes, with the delay before it."""
    graph.add(name, operation)
    graph.connect(source, name, delay=delay, **{k: v for k, v in ports.items() if k == "source_port"})
    graph.connect(name, target, **{k: v for k, v in ports.items() if k == "target_port"})


def dense(random, inputs=6, hidden=8, classes=4, readout=None, kind="values"):
    graph = Graph("dense")
    graph.add("x", Input((inputs,), kind))
    graph.add("hidden", Population(LIF(0.9), (hidden,)))
    graph.add("readout", Population(readout or LIF(0.8), (classes,)))
    join(graph, "fc1", linear(random, hidden, inputs, bias=True, gain=3), "x", "hidden")
    join(graph, "fc2", linear(random, classes, hidden, bias=True, gain=3), "hidden", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def recurrent(random):
    graph = dense(random, readout=LI(0.9))
    graph.name = "recurrent"
    join(graph, "rec", linear(random, 8, 8, bias=True), "hidden", "hidden", delay=1)
    return graph


def skip(random):
    graph = dense(random)
    graph.name = "skip"
    join(graph, "skip", linear(random, 4, 6), "x", "readout")
    graph.add("both", Concat())
    graph.connect("x", "both")
    graph.connect("hidden", "both")
    join(graph, "wide", linear(random, 4, 14), "both", "readout")
    graph.add("sum", Add())
    graph.add("twice", OneToOne(np.float32(2.0) * np.ones((), np.float32), learnable=True))
    graph.connect("hidden", "sum")
    graph.connect("hidden", "twice")
    graph.connect("twice", "sum")
    join(graph, "summed", linear(random, 4, 8), "sum", "readout")
    return graph


def delayed(random):
    graph = dense(random)
    graph.name = "delayed"
    join(graph, "late", linear(random, 4, 8), "hidden", "readout", delay=2)
    graph.add("later", linear(random, 4, 8, bias=True))
    graph.connect("hidden", "later", source_port="v")
    graph.connect("later", "readout", delay=3)
    return graph


def feedback(random):
    graph = dense(random)
    graph.name = "feedback"
    join(graph, "back", linear(random, 8, 4), "readout", "hidden", delay=1)
    join(graph, "slow", linear(random, 8, 4), "readout", "hidden", delay=2, source_port="v")
    return graph


def learnable(random):
    graph = Graph("learnable")
    graph.add("x", Input((6,)))
    hidden = {"beta": random.uniform(0.7, 0.95, 8).astype(np.float32), "threshold": np.asarray(0.8, np.float32)}
    graph.add("hidden", Population(LIF(0.9), (8,), hidden, frozenset(hidden)))
    names = frozenset(CubaLIF().parameters)
    graph.add("second", Population(CubaLIF(), (5,), {}, names))
    graph.add("readout", Population(LI(0.9), (4,), {}, frozenset({"beta"})))
    join(graph, "fc1", linear(random, 8, 6, bias=True, gain=3), "x", "hidden")
    join(graph, "fc2", linear(random, 5, 8, gain=3, learnable=False), "hidden", "second")
    join(graph, "gain", OneToOne(random.normal(size=5).astype(np.float32), learnable=True), "second", "second", delay=1)
    join(graph, "fc3", linear(random, 4, 5), "second", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def behind_linear(random):
    """Return a network whose output is that of a Linear, not followed by a population."""
    graph = dense(random)
    graph.name = "behind_linear"
    graph.add("fc3", linear(random, 3, 4, bias=True))
    graph.add("z", Output())
    graph.connect("readout", "fc3")
    graph.connect("fc3", "z")
    return graph


def of_model(random, model):
    """Return a hidden population of any model: all its parameters are learnable, and it feeds back to all its ports."""
    graph = Graph(model.name)
    graph.add("x", Input((6,)))
    graph.add("hidden", Population(model, (8,), {}, frozenset(model.parameters)))
    graph.add("readout", Population(LI(0.9), (4,)))
    for port in model.inputs:
        join(graph, f"in_{port}", linear(random, 8, 6, bias=True, gain=3), "x", "hidden", target_port=port)
        join(graph, f"rec_{port}", linear(random, 8, 8), "hidden", "hidden", delay=1, target_port=port)
    join(graph, "out", linear(random, 4, 8), "hidden", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


NETS = (dense, recurrent, skip, delayed, feedback, learnable, behind_linear)
