"""A network of three equal layers and choices of float16 numbers that differ between them."""

import numpy as np
from nets import join, linear

from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.lowering.half_numbers import parse_half
from snnc.compiler.lowering.halves import halves_of
from snnc.compiler.neurons.library import LIF

CHOICES = {
    "states of one": "second=states",
    "history of one": "history; second=float32",
    "mixed": "history,weights; first=states; second=states,history; fc2=float32",
    "deltas and weights of one": "second=deltas,weights:nearest",
}


def chain(random, inputs=24, hidden=(21, 18), classes=4, port="s"):
    """Three populations of one neuron, so that they share a kernel unless their numbers differ."""
    graph, source, fan_in = Graph("chain"), "x", inputs
    graph.add("x", Input((inputs,), "spikes"))
    for number, (name, width) in enumerate(zip(("first", "second", "readout"), (*hidden, classes), strict=True), 1):
        graph.add(name, Population(LIF(0.9), (width,)))
        join(graph, f"fc{number}", linear(random, width, fan_in, bias=True, gain=3), source, name)
        source, fan_in = name, width
    graph.add("y", Output())
    graph.connect("readout", "y", source_port=port)
    return graph


def chosen(name, trains=True):
    """The choice of that name, as kinds by layer."""
    return halves_of("float16", parse_half(CHOICES[name]), trains=trains)


def spikes_of(program, steps, batch, density=0.4):
    random = np.random.default_rng(1)
    inputs = {i.id: (random.random((steps, batch, *i.shape)) < density).astype(np.float32) for i in program.inputs}
    return inputs, random.integers(0, 4, batch)
