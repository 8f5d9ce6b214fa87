"""Random assignments of neurons to tiles, with the same number on each tile."""

from __future__ import annotations

import numpy as np

from snnc.compiler.tiles.baselines.assignment import Assignment, split_layers
from snnc.compiler.tiles.baselines.linear import in_order


def one_by_one(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Assignment:
    """Shuffle all neurons and fill tile after tile; which tiles stay empty is random too."""
    return split_layers(rng.permutation(rng.permutation(tiles)[in_order(sum(sizes), tiles)]), sizes)


def in_runs(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Assignment:
    """Cut the list of all neurons into equal runs and put each on a separate random tile."""
    return split_layers(rng.permutation(tiles)[in_order(sum(sizes), tiles)], sizes)
