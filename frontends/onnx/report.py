"""What the front end took for granted, in sentences."""

from __future__ import annotations

from snnc.compiler.expression import Call, Expression
from snnc.compiler.graph import Graph, Population


def assumptions(graph: Graph) -> list[str]:
    """Return the sentences for a recovered graph."""
    said: list[str] = []
    populations = list(graph.of_type(Population))
    spiking = [(n, p) for n, p in populations if any(_holds(a.value, ("spike", "spike_ge")) for a in p.model.equations)]
    for name, p in spiking:
        if not p.model.states:
            said.append(
                f"SNNC-W201: the spiking population '{name}' carries no state from step to step; "
                "if its neurons have a membrane, the export lost it."
            )
    return said


def _holds(e: Expression, functions: tuple[str, ...]) -> bool:
    return isinstance(e, Call) and (e.function in functions or any(_holds(a, functions) for a in e.args))
