"""The distinct neurons of a graph: populations with the same equations and numbers are one entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from snnc.compiler.ir.graph import Graph, Population
from snnc.understanding.equations import parameter_values, readable
from snnc.understanding.resets import FiringDescription


def distinct_neurons(graph: Graph, firings: Mapping[str, FiringDescription]) -> list[dict[str, Any]]:
    """Return name, populations, readable equations, parameters, firing and reset of each, as JSON types."""
    found: dict[Any, dict[str, Any]] = {}
    for name, population in graph.of_type(Population):
        about = firings[name]
        entry: dict[str, Any] = {
            "neuron": population.model.name,
            "populations": [],
            "equations": readable(population),
            "with": _parameters(population),
            "fires": about.fires,
            "reset": about.reset,
            "reset_gradient": about.gradient,
        }
        key = repr({k: v for k, v in entry.items() if k != "populations"})
        found.setdefault(key, entry)["populations"].append(name)
    return list(found.values())


def _parameters(population: Population) -> list[str]:
    said = []
    for name, value in parameter_values(population).items():
        learned = " (learned)" if name in population.learnable else ""
        if isinstance(value, float):
            said.append(f"{name} = {value:g}{learned}")
        else:
            said.append(f"{name} = {float(np.min(value)):g} … {float(np.max(value)):g}, one a neuron{learned}")
    return said
