"""Predict throughput and memory of one network for combinations of machines, batch sizes and activities."""

from __future__ import annotations

from snnc.exploring.points import ExplorationPoint, explore, explore_graph

__all__ = ["ExplorationPoint", "explore", "explore_graph"]
