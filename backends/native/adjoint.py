"""Prepares a graph for a loss that the caller computes: joins outputs, and adds populations whose adjoints are the gradients of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from snnc.compiler.ir.graph import Concat, Flatten, Graph, Input, OneToOne, Output, Population
from snnc.compiler.neurons.library.stateless import Relay
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import straight_through
from snnc.compiler.passes.edit import fresh_name


def with_input_gradients(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Return `graph` with a relay population (its output is its input) after each input, and a mapping from inputs to these populations.

    The adjoint of a relay population's current is the gradient of the input. The connection from the input has weight 1. It is learnable,
    because only populations after learnable connections are differentiated. After a spike input, the relay population fires at each spike,
    with a derivative of 1, so that its readers still receive events.
    """
    copy = Graph(graph.name, graph.steps)
    copy.state_inputs, copy.idle_inputs, copy.assumptions = dict(graph.state_inputs), dict(graph.idle_inputs), list(graph.assumptions)
    for name in graph.names:
        copy.add(name, graph.operation(name))
    relays: dict[str, str] = {}
    for name, operation in graph.of_type(Input):
        link = copy.add(fresh_name(copy, f"{name} gradient"), OneToOne(np.ones((), np.float32), learnable=True))
        relay = copy.add(fresh_name(copy, f"{name} relay"), _relay(operation))
        copy.connect(name, link)
        copy.connect(link, relay)
        relays[name] = relay
    for edge in graph.edges:
        source, port = (relays[edge.source], "") if edge.source in relays else (edge.source, edge.source_port)
        copy.connect(source, edge.target, source_port=port, target_port=edge.target_port, delay=edge.delay)
    return copy, relays


def input_relays(graph: Graph) -> dict[str, str]:
    """Return the relay population of each input of a graph from :func:`with_input_gradients`."""
    relays: dict[str, str] = {}
    for name, _ in graph.of_type(Input):
        (link,) = graph.outgoing(name)
        (edge,) = graph.outgoing(link.target)
        relays[name] = edge.target
    return relays


def _relay(source: Input) -> Population:
    if source.kind == "values":
        return Population(Relay(), source.shape)
    identity = replace(straight_through(), everywhere=True)
    return Population(neuron("SpikeRelay", equations="s = spike(i)", output="s"), source.shape, surrogate=identity)


def with_joined_outputs(graph: Graph, names: Sequence[str]) -> tuple[Graph, str]:
    """Return `graph` with one output instead of the outputs `names`: their values at each step, flattened and concatenated."""
    copy = graph.copy()
    concat = copy.add(fresh_name(copy, "outputs"), Concat())
    for number, name in enumerate(names):
        (edge,) = graph.incoming(name)
        flat = copy.add(fresh_name(copy, f"{name} as a vector"), Flatten())
        copy.connect(edge.source, flat, source_port=edge.source_port, delay=edge.delay)
        copy.connect(flat, concat, target_port=str(number))
    for name in dict.fromkeys(names):
        copy.nx.remove_node(name)
    joined = copy.add(fresh_name(copy, "joined outputs"), Output())
    copy.connect(concat, joined)
    return copy, joined
