"""The assumptions of the front end, in sentences."""

from __future__ import annotations

from typing import Final

from snnc.compiler.ir.graph import Conv, Graph, Linear, Pool, Population, Reduce, Sparse
from snnc.compiler.neurons.expression import Call, Expression

MIXING: Final = (Linear, Sparse, Conv, Pool, Reduce)
"""Operations that mix neurons: values before them belong to another layer."""


def assumptions(graph: Graph) -> list[str]:
    """Return the sentences for a recovered graph."""
    said: list[str] = []
    populations = list(graph.of_type(Population))
    spiking = [(n, p) for n, p in populations if any(_holds(a.value, ("spike", "spike_ge")) for a in p.model.equations)]
    for name, p in spiking:
        if not p.model.states and not _reads_a_state(graph, name):
            said.append(
                f"SNNC-W201: the spiking population '{name}' carries no state from step to step; "
                "if its neurons have a membrane, the export lost it."
            )
    return said


def _reads_a_state(graph: Graph, name: str) -> bool:
    """Return whether a value of an earlier step reaches a population without passing weights or spikes: that is its membrane."""
    seen, open_ = {name}, [name]
    while open_:
        for edge in graph.incoming(open_.pop()):
            source = graph.operation(edge.source)
            if isinstance(source, MIXING) or (isinstance(source, Population) and _fires(source, edge.source_port)):
                continue
            if edge.delay or (isinstance(source, Population) and source.model.states):
                return True
            if edge.source not in seen:
                seen.add(edge.source)
                open_.append(edge.source)
    return False


def _fires(population: Population, port: str) -> bool:
    return any(a.target == port and _holds(a.value, ("spike", "spike_ge")) for a in population.model.equations)


def _holds(e: Expression, functions: tuple[str, ...]) -> bool:
    return isinstance(e, Call) and (e.function in functions or any(_holds(a, functions) for a in e.args))
