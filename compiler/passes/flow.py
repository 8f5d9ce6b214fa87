"""The sequence of passes that run on every graph before it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from snnc.compiler.errors import UnknownPassError
from snnc.compiler.ir.graph import Add, Flatten, Graph, Input, OneToOne, Population, Reshape
from snnc.compiler.ir.shapes import PortMap, compatible, port_map
from snnc.compiler.ir.verify import verify
from snnc.compiler.passes.divide_averages import divide_averages
from snnc.compiler.passes.edit import add_edge, has_initial_value, joined, without
from snnc.compiler.passes.materialise_relays import materialise_relays

Pass: TypeAlias = Callable[[Graph], Graph]
"""A function that returns a changed copy of a graph."""


def dissolve_add(graph: Graph) -> Graph:
    """Connect the sources of each Add directly to the nodes that read it, if all of these are populations or other Adds of a fitting shape.

    If several nodes read an Add, it is dissolved only if every source is an input or a population, because a Linear, for example, can feed
    several populations only through a relay population. An Add that is read with a delay is kept if a source may be nonzero before the
    first step.
    """
    graph = graph.copy()
    for name in [name for name, _ in graph.of_type(Add)]:
        if _can_dissolve(graph, name, port_map(graph)):
            for after in graph.outgoing(name):
                for before in graph.incoming(name):
                    add_edge(graph, joined(before, after))
            graph.nx.remove_node(name)
    return graph


def _can_dissolve(graph: Graph, name: str, ports: PortMap) -> bool:
    """Return whether the sources of an Add can be connected directly to its targets without changing results."""
    before, after = graph.incoming(name), graph.outgoing(name)
    if not all(isinstance(graph.operation(e.target), Population | Add) and e.target != name for e in after):
        return False
    if len(after) > 1 and not all(isinstance(graph.operation(e.source), Input | Population) for e in before):
        return False
    if any(e.delay for e in after) and any(has_initial_value(graph, e) for e in before):
        return False
    for edge in after:
        target = graph.operation(edge.target)
        target_shape = target.shape if isinstance(target, Population) else ports[edge.target, "out"].shape
        if not all(compatible(ports[e.source, e.source_port].shape, target_shape) for e in before):
            return False
    return True


def drop_flatten(graph: Graph) -> Graph:
    """Remove each Flatten or Reshape that is read only by nodes that can read its source directly; these operations change no values.

    A Flatten or Reshape that changes the shape is kept before an Output, because it defines the shape of the result.
    """
    return without(graph, [name for name, _ in graph.of_type(Flatten, Reshape)])


def merge_linear(graph: Graph) -> Graph:
    """Remove each OneToOne without a weight (that is, of weight 1), and join the edges around it, adding their delays.

    It stays if the nodes that read it cannot read its source (:func:`~snnc.compiler.passes.edit.can_bypass`). Operations with
    weights, such as two Linear, are not merged: rounding would differ, and learnable weights would be lost.
    """
    return without(graph, [name for name, operation in graph.of_type(OneToOne) if operation.weight is None])


DEFAULT_FLOW: Final[Mapping[str, Pass]] = {
    "drop-flatten": drop_flatten,
    "merge-linear": merge_linear,
    "dissolve-add": dissolve_add,
    "divide-averages": divide_averages,
    "materialise-relays": materialise_relays,
}
"""Passes in the order in which they run, by their names in ``--dump-after``."""


def run_flow(graph: Graph, dump_after: str | None = None) -> Graph:
    """Verify `graph`, run the default flow, up to the pass called `dump_after` if given, and verify after each that changed something.

    `graph` itself does not change. Raises an UnknownPassError if no pass is called `dump_after`, and a GraphError if
    :func:`~snnc.compiler.ir.verify.verify` finds a fault.
    """
    if dump_after is not None and dump_after not in DEFAULT_FLOW:
        raise UnknownPassError(f"the pass {dump_after!r} does not exist; the flow is {', '.join(DEFAULT_FLOW)}.")
    verify(graph)
    for name, change in DEFAULT_FLOW.items():
        before, graph = graph, change(graph)
        if not _is_unchanged(before, graph):
            verify(graph)
        if name == dump_after:
            break
    return graph


def _is_unchanged(before: Graph, after: Graph) -> bool:
    return (
        before.steps == after.steps
        and before.edges == after.edges
        and _same_objects(before.state_inputs, after.state_inputs)
        and _same_objects(before.idle_inputs, after.idle_inputs)
        and _same_objects(*({name: graph.operation(name) for name in graph.nx} for graph in (before, after)))
    )


def _same_objects(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return list(one) == list(other) and all(value is other[name] for name, value in one.items())
