"""How relays report the number of further windows: every number is read once, by tiles of its chip, and the maximum arrives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snnc.compiler.machines import load_target
from snnc.compiler.tiles.schedule.window_test import ROOT, level_reads, window_test
from snnc.compiler.tiles.vertices.control_vertices import most
from snnc.compiler.tiles.vertices.cost import CodeletCost

TARGET = load_target("m2000")
LEVEL = most({"most": CodeletCost(start=20, element=3)})
PIECES = st.lists(st.tuples(st.integers(0, TARGET.tiles - 1), st.sampled_from([1, 1, 1, 6])), min_size=1, max_size=120)


@settings(max_examples=25)
@given(PIECES, st.sampled_from([1, 2]), st.randoms(use_true_random=False))
def test_the_most_of_all_numbers_arrives_and_only_the_last_level_crosses_chips(pieces, words, random):
    tiles, numbers = map(list, zip(*pieces, strict=True))
    test = window_test("forward", words, tiles, numbers, TARGET, LEVEL)
    said = [random.randrange(1000) for _ in pieces]
    values = [said[place] for place in test.order]
    for below, level in zip(test.below, test.levels, strict=True):
        assert level.first[0] == 0
        assert (level.first[1:] == level.last[:-1]).all()
        assert level.last[-1] == len(values)
        assert len(set(level.tile.tolist())) == len(level.tile)
        for tile, first, last in zip(level.tile, level.first, level.last, strict=True):
            assert (below.tile[first:last] // TARGET.tiles_per_chip == tile // TARGET.tiles_per_chip).all()
        values = [max(values[first:last]) for first, last in zip(level.first, level.last, strict=True)]
    assert max(values) == max(said)
    assert test.levels == () or len(values) < len(pieces)


@settings(max_examples=25)
@given(PIECES, st.sampled_from([1, 2]))
def test_what_is_received_was_sent_by_others(pieces, words):
    tiles, numbers = map(list, zip(*pieces, strict=True))
    test = window_test("forward", words, tiles, numbers, TARGET, LEVEL)
    *_, root = level_reads(test)
    assert root.tile.tolist() == [ROOT]
    for level in level_reads(test):
        assert level.received.sum() == level.sent.sum()
    if not test.levels:
        away = np.array(tiles) != ROOT
        assert root.fragments[0] == away.sum()
        assert root.received[0] == 4 * words * np.array(numbers)[away].sum()


def test_many_relays_are_asked_by_chip_first_and_few_at_once():
    random = np.random.default_rng(0)
    assert window_test("forward", 1, [3, 5, 9], [1, 1, 1], TARGET, LEVEL).levels == ()
    many = window_test("forward", 1, random.permutation(TARGET.tiles)[:680].tolist(), [1] * 680, TARGET, LEVEL)
    assert len(many.levels) >= 1
    assert sum(float(level.fragments.max()) for level in level_reads(many)) < 680 / 4
