"""Mapping of a step program to the tiles of a machine: placement, schedule, memory and predicted cycles."""

from __future__ import annotations

from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.vertices.codelet_costs import codelet_costs
from snnc.compiler.tiles.vertices.cost import CodeletCost

__all__ = ["CodeletCost", "codelet_costs", "make_plan"]
