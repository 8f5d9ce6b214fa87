"""Pass that adds relay populations, so that only inputs and populations are sources of connections."""

from __future__ import annotations

from dataclasses import replace

from snnc.compiler.ir.connections import LINK_OPERATIONS
from snnc.compiler.ir.graph import Add, Concat, Flatten, Graph, Input, OneToOne, Output, Population, Reshape
from snnc.compiler.ir.shapes import node_shapes, port_map
from snnc.compiler.neurons.library import Relay
from snnc.compiler.passes.edit import has_initial_value, insert_population, replace_operation


def materialise_relays(graph: Graph) -> Graph:
    """Add a relay population for each value that no population computes, unless a connection or an Output can read it directly.

    Afterwards, each operation of a connection (Linear, Conv, Pool, …) reads an Input or a Population, and one Population reads it; several
    may read a OneToOne without a weight. A Concat reads Inputs and Populations, and only Populations read it. A Flatten occurs only between
    an Input or a Population and Outputs; a Reshape may also be the operation of a connection. No other operations remain between inputs,
    populations and outputs.
    """
    graph = graph.copy()
    shapes = node_shapes(port_map(graph))
    sums = [name for name, _ in graph.of_type(Add)]
    # Adds first: a Flatten or a OneToOne without a weight may stay if the Adds next to it are relays.
    for name in sums + [name for name, o in graph.of_type(Flatten, OneToOne) if isinstance(o, Flatten) or o.weight is None]:
        if not _is_view(graph, name):
            replace_operation(graph, name, Population(Relay(), shapes[name]))
            _rename_ports(graph, name)
    for name, _ in list(graph.of_type(*LINK_OPERATIONS, Concat)):
        if not _is_view(graph, name) and not _can_be_connection(graph, name):
            insert_population(graph, name, f"{name}.relay", Population(Relay(), shapes[name]))
    return graph


def _is_view(graph: Graph, name: str) -> bool:
    """Return whether a node is a Flatten or Reshape between a population or input and the outputs, or an identity before populations."""
    operation = graph.operation(name)
    if not isinstance(operation, Flatten | Reshape | OneToOne) or (isinstance(operation, OneToOne) and operation.weight is not None):
        return False
    (before,), after = graph.incoming(name), graph.outgoing(name)
    if not isinstance(graph.operation(before.source), Input | Population):
        return False
    if any(e.delay for e in after) and has_initial_value(graph, before):
        return False
    kind = Population if isinstance(operation, OneToOne) else Output
    return all(isinstance(graph.operation(e.target), kind) for e in after)


def _can_be_connection(graph: Graph, name: str) -> bool:
    """Return whether an operation can be a connection to the nodes that read it.

    A delay after it moves before it. So there must be no initial value (:func:`has_initial_value`) or bias, which would act too early.
    """
    operation, before, after = graph.operation(name), graph.incoming(name), graph.outgoing(name)
    if not all(isinstance(graph.operation(e.target), Population) for e in after):
        return False
    delayed = any(e.delay for e in after)
    if delayed and any(has_initial_value(graph, e) for e in before):
        return False
    if isinstance(operation, Concat):
        return True
    return len(after) == 1 and not (delayed and getattr(operation, "bias", None) is not None)


def _rename_ports(graph: Graph, name: str) -> None:
    model = Relay()
    for _, _, data in graph.nx.out_edges(name, data=True):
        data["edge"] = replace(data["edge"], source_port=model.outputs[0])
    for _, _, data in graph.nx.in_edges(name, data=True):
        data["edge"] = replace(data["edge"], target_port=model.inputs[0])
