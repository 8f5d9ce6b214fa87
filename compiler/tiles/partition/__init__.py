"""Partition of sparsely connected populations: grouping of neurons, graph of the parts, and mapping back to the original graph."""

from __future__ import annotations

from snnc.compiler.tiles.partition.candidates import Prepared, prepare
from snnc.compiler.tiles.partition.correspondence import Correspondence, correspond
from snnc.compiler.tiles.partition.split import ArrayPiece, Partition, Split, split

__all__ = ["ArrayPiece", "Correspondence", "Partition", "Prepared", "Split", "correspond", "prepare", "split"]
