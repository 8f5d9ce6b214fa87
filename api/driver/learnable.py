"""Select neuron parameters for training by name: ``learnable=`` and ``--learnable``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from snnc.compiler.ir.graph import Graph, Population
from snnc.compiler.passes.edit import replace_operation
from snnc.errors import UnknownLearnableError

MAX_LISTED: Final = 6
"""Maximum number of populations that a message lists."""


def with_learnable(graph: Graph, learnable: str | Iterable[str] | None) -> Graph:
    """Return a copy of `graph` with the named neuron parameters made learnable; `graph` itself if `learnable` is None or an empty list.

    `learnable` contains names, or is a text of names separated by commas: ``beta`` selects the parameter of every population that has it,
    ``hidden.beta`` that of one population.
    """
    names = [name.strip() for name in (learnable.split(",") if isinstance(learnable, str) else learnable or ())]
    if not names:
        return graph
    changed = graph.copy()
    for name in dict.fromkeys(names):
        places = _places(graph, name)
        for node, parameter in places:
            population = changed.operation(node)
            assert isinstance(population, Population), "_places returns populations"
            replace_operation(changed, node, replace(population, learnable=population.learnable | {parameter}))
        chosen = ", ".join(f"{node}.{parameter}" for node, parameter in places)
        changed.assumptions.append(f"Training changes {chosen}, as requested (learnable).")
    return changed


def _places(graph: Graph, name: str) -> list[tuple[str, str]]:
    populations = {node: operation.model.parameters for node, operation in graph.of_type(Population)}
    node, _, parameter = name.rpartition(".")
    if node:
        places = [(node, parameter)] if parameter in populations.get(node, ()) else []
    else:
        places = [(node, name) for node, parameters in populations.items() if name in parameters]
    if not places:
        known = [f"{node} has {', '.join(parameters)}" for node, parameters in populations.items() if parameters]
        more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
        raise UnknownLearnableError(
            f"learnable (--learnable) contains {name!r}, which no neuron here has; "
            f"{'; '.join(known[:MAX_LISTED]) or 'no neuron has parameters'}{more}. "
            "Write beta for every population that has one, or population.beta."
        )
    return places
