"""Neurons are dealt to tiles in pairs of columns where that makes no tile larger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snnc.compiler.tiles.placement.grouping import neurons_by_pairs, neurons_per_tile, split


@given(tiles=st.integers(1, 60), each=st.integers(1, 40), more=st.integers(0, 59), columns=st.sampled_from((1, 2, 3, 6)))
def test_all_neurons_are_dealt_the_largest_tile_holds_no_more_and_columns_stand_alone_on_one_tile_at_most(
    tiles: int, each: int, more: int, columns: int
) -> None:
    neurons = tiles * each + more % tiles
    found, even = neurons_by_pairs(neurons, tiles, columns), neurons_per_tile(neurons, tiles)
    assert found.sum() == neurons
    assert found.min() >= 1
    assert found.max() == even.max()
    if even.max() % (2 * columns) == 0 and neurons >= 2 * columns * tiles:
        odd = [n for n in found.tolist() if any(count % 2 for _, count in split(n, columns))]
        assert len(odd) <= 1
