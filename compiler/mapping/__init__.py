"""StepProgram x Target -> Plan: placement, schedule, memory and predicted cycles."""

from __future__ import annotations

from snnc.compiler.mapping.cost import CodeletCost, codelet_costs, worker_cycles
from snnc.compiler.mapping.mapper import make_plan

__all__ = ["CodeletCost", "codelet_costs", "make_plan", "worker_cycles"]
