"""Neuron parameters to be trained, chosen by name: ``learnable=`` and ``--learnable``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from snnc.compiler.ir.graph import Graph, Population
from snnc.errors import UnknownLearnableError

MOST: Final = 6
"""Maximum number of populations that a message lists."""


def with_learnable(graph: Graph, wanted: str | Iterable[str] | None) -> Graph:
    """Return `graph` with parameters of its neurons learnable.

    Parameters
    ----------
    graph
        The network; not modified.
    wanted
        Names, or a text of names between commas: ``beta`` of all populations that have one, ``hidden.beta`` of one population.

    Raises
    ------
    UnknownLearnableError
        No population has such a parameter.
    """
    names = [name.strip() for name in (wanted.split(",") if isinstance(wanted, str) else wanted or ())]
    if not names:
        return graph
    found = graph.copy()
    for name in dict.fromkeys(names):
        places = _places(graph, name)
        for node, parameter in places:
            population = found.operation(node)
            assert isinstance(population, Population), "_places"
            found.nx.nodes[node]["operation"] = replace(population, learnable=population.learnable | {parameter})
        chosen = ", ".join(f"{node}.{parameter}" for node, parameter in places)
        found.assumptions.append(f"Training changes {chosen}, as requested (learnable).")
    return found


def _places(graph: Graph, name: str) -> list[tuple[str, str]]:
    """Population and parameter of each match of a name."""
    populations = {node: operation.model.parameters for node, operation in graph.of_type(Population)}
    node, _, parameter = name.rpartition(".")
    if node:
        found = [(node, parameter)] if parameter in populations.get(node, ()) else []
    else:
        found = [(node, name) for node, parameters in populations.items() if name in parameters]
    if not found:
        known = [f"{node} has {', '.join(parameters)}" for node, parameters in populations.items() if parameters]
        more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
        raise UnknownLearnableError(
            f"learnable (--learnable) names {name!r}, not a parameter of a neuron here; {'; '.join(known[:MOST]) or 'none has any'}"
            f"{more}. Write beta for all that have one, or population.beta."
        )
    return found
