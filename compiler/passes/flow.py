"""The sequence of passes that run on every graph before it is lowered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from snnc.compiler.errors import UnknownPassError
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.verify import verify
from snnc.compiler.passes.dissolve_add import DissolveAdd
from snnc.compiler.passes.divide_averages import DivideAverages
from snnc.compiler.passes.drop_flatten import DropFlatten
from snnc.compiler.passes.materialise_relays import MaterialiseRelays
from snnc.compiler.passes.merge_linear import MergeLinear


class Pass(Protocol):
    """A function from graph to graph that does not change its argument."""

    @property
    def name(self) -> str:
        """Name of the pass in ``--dump-after``."""

    def __call__(self, graph: Graph) -> Graph:
        """Return the changed graph."""


DEFAULT_FLOW: Final[tuple[Pass, ...]] = (DropFlatten(), MergeLinear(), DissolveAdd(), DivideAverages(), MaterialiseRelays())


def run_flow(graph: Graph, dump_after: str | None = None, flow: Iterable[Pass] = DEFAULT_FLOW) -> Graph:
    """Verify `graph`, run the passes of `flow`, up to the one called `dump_after` if given, and verify after each that changed something.

    `graph` itself does not change. Raises an UnknownPassError if no pass is called `dump_after`, and a GraphError if
    :func:`~snnc.compiler.ir.verify.verify` finds a fault.
    """
    passes = tuple(flow)
    if dump_after is not None and dump_after not in {p.name for p in passes}:
        raise UnknownPassError(f"the pass {dump_after!r} does not exist; the flow is {', '.join(p.name for p in passes)}.")
    verify(graph)
    for step in passes:
        before, graph = graph, step(graph)
        if not _is_unchanged(before, graph):
            verify(graph)
        if step.name == dump_after:
            break
    return graph


def _is_unchanged(before: Graph, after: Graph) -> bool:
    """Return whether a pass returned a graph with the same operations, edges and inputs."""
    return (
        before.steps == after.steps
        and before.edges == after.edges
        and _same_objects(before.state_inputs, after.state_inputs)
        and _same_objects(before.idle_inputs, after.idle_inputs)
        and _same_objects(*({name: graph.operation(name) for name in graph.nx} for graph in (before, after)))
    )


def _same_objects(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return list(one) == list(other) and all(value is other[name] for name, value in one.items())
