"""Populations with sparse connections in parts: the grouping of neurons, the graph of the parts, and the way back."""

from __future__ import annotations

from snnc.compiler.tiles.partition.candidates import Prepared, prepare
from snnc.compiler.tiles.partition.correspondence import Correspondence, correspond
from snnc.compiler.tiles.partition.split import ArrayPiece, Parting, Split, split

__all__ = ["ArrayPiece", "Correspondence", "Parting", "Prepared", "Split", "correspond", "prepare", "split"]
