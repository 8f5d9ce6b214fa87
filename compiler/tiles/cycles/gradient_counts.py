"""Amounts of work that returned gradients add to blocks."""

from __future__ import annotations

from typing import Any

from snnc.compiler.tiles.indexed.halvings import expected_halvings
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.problem import MappingProblem


def returned_amounts(problem: MappingProblem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    """Expected amounts of a block's own neurons in all windows that return to it."""
    found: dict[str, Any] = {"windows": 0, "searches": 0.0, "own": 0.0}
    for bus in problem.returned_buses(layer):
        support = problem.support_events(bus)
        spikes = min(problem.events(bus.source), bus.capacity, support)
        found["windows"] = found["windows"] + samples
        found["searches"] = found["searches"] + samples * (expected_halvings(spikes) + expected_halvings(support - spikes))
        found["own"] = found["own"] + samples * columns * support / bus.source.width
    return found
