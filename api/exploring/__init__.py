"""Predict throughput and memory of one network on several machines, for several batch sizes and activities."""

from __future__ import annotations

from snnc.exploring.points import ExplorationPoint, explore, explore_graph

__all__ = ["ExplorationPoint", "explore", "explore_graph"]
