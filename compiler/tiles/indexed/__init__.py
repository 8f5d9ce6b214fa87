"""Connections that are not dense, as runs of weights between sources and targets, and as tables for the blocks of a plan."""

from __future__ import annotations

from snnc.compiler.tiles.indexed.maps import IndexedMap, IndexedOp, indexed_map

__all__ = ["IndexedMap", "IndexedOp", "indexed_map"]
