"""Neurons dealt to tiles at random, the same number to each."""

from __future__ import annotations

import numpy as np

from snnc.compiler.tiles.baselines.deal import Deal, cut
from snnc.compiler.tiles.baselines.linear import in_order


def one_by_one(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Deal:
    """Shuffle all neurons, then fill tile after tile; tiles that stay empty are random too."""
    return cut(rng.permutation(rng.permutation(tiles)[in_order(sum(sizes), tiles)]), sizes)


def in_runs(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Deal:
    """Cut the row of all neurons into equal runs and put each on its own random tile."""
    return cut(rng.permutation(tiles)[in_order(sum(sizes), tiles)], sizes)
