"""Pass that removes Adds whose values only populations or other Adds read, because these sum their inputs anyway."""

from __future__ import annotations

from snnc.compiler.ir.graph import Add, Graph, Input, Population
from snnc.compiler.ir.shapes import PortMap, compatible, port_map
from snnc.compiler.passes.edit import add_edge, has_initial_value, joined


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
