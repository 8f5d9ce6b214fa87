"""Baselines for snnc's placement: other ways to assign neurons to tiles, priced by the same cost model.

========  ==============================================================================================================
linear    neurons spread evenly and in order over all tiles: either layer by layer, as Poplar's ``mapTensorLinearly`` does,
          or all layers in sequence
random    neurons assigned to tiles at random (seeded), the same number to each: one by one, or in runs
metis     the graph partitioner METIS alone: nodes are runs of neurons weighted by work, edges are bytes per step, parts are tiles
greedy    the nodes of ``metis``, assigned greedily to the least loaded tiles, without regard to edges; needs no pymetis
========  ==============================================================================================================

No baseline replicates a layer, and each may use all tiles. If a baseline has two forms, both are priced and the faster one counts.
"""

from __future__ import annotations

from snnc.compiler.tiles.baselines.baselines import BASELINES, SNNC, assignments, check_strategy, place
from snnc.compiler.tiles.baselines.partition import Assignment, LayerShare

__all__ = ["BASELINES", "SNNC", "Assignment", "LayerShare", "assignments", "check_strategy", "place"]
