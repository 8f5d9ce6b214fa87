"""A small network of one-to-one connections."""

import numpy as np
from nets import join, linear

from snnc.compiler.ir.graph import Graph, Input, OneToOne, Output, Population
from snnc.compiler.neurons.library import LI, LIF


def one_to_one(random, hidden=37):
    """One weight per neuron for an odd number of neurons: from spikes, from values, recurrent; and one weight for all."""
    graph = Graph("one_to_one")
    graph.add("x", Input((hidden,), "values"))
    graph.add("hidden", Population(LIF(0.9), (hidden,)))
    graph.add("second", Population(LIF(0.8), (hidden,)))
    graph.add("readout", Population(LI(0.9), (4,)))
    join(graph, "in", OneToOne(random.normal(size=hidden).astype(np.float32) + 2, learnable=True), "x", "hidden")
    join(graph, "next", OneToOne(random.normal(size=hidden).astype(np.float32) + 2, learnable=True), "hidden", "second")
    join(graph, "loop", OneToOne(random.normal(size=hidden).astype(np.float32), learnable=True), "second", "second", delay=1)
    join(graph, "all", OneToOne(np.full((), 0.3, np.float32), learnable=True), "hidden", "hidden", delay=1)
    join(graph, "out", linear(random, 4, hidden, gain=2), "second", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph
