"""Populations with sparse connections in parts: which neurons belong together, the graph of the parts, and the way back."""

from __future__ import annotations

from snnc.compiler.parting.correspondence import Correspondence, correspond
from snnc.compiler.parting.prepare import Prepared, prepare
from snnc.compiler.parting.split import Parting, Piece, Split, split

__all__ = ["Correspondence", "Parting", "Piece", "Prepared", "Split", "correspond", "prepare", "split"]
