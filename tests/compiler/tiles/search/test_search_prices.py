"""Wrong estimates indicate which others are wrong: a few exact prices find the fastest plan."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.search.search import Search


@dataclass(frozen=True)
class Layout:
    placement: Placement
    estimate: float
    wrong: float
    exact: bool = False


class Prices(Search):
    """Estimates of placements that are wrong by a factor each."""

    def __init__(self, given: list[tuple[int, int, float, float]]) -> None:
        super().__init__(SimpleNamespace(kept=None))  # type: ignore[arg-type]
        self.asked = 0
        for columns, width, estimate, wrong in given:
            ranges = tuple(TileRange((0,), np.ones(tiles, dtype=np.int64), ((0, 4),), columns) for tiles in (width, 3))
            self._estimates.append(self._costs(Layout(Placement(ranges, 1), estimate, wrong), estimate))

    def _costs(self, layout: Any, cycles: float) -> Any:
        return SimpleNamespace(layout=layout, cycles=cycles)

    def _priced(self, layout: Any) -> Any:
        self.asked += 1
        found = self._costs(layout, layout.estimate * layout.wrong)
        if self.best is None or found.cycles < self.best.cycles:
            self.best = found
        return found


SIMILAR = [(6, width, 100.0 + width, 1.2) for width in range(1, 10)]


@pytest.mark.parametrize("most", [2, 3, 5])
def test_a_placement_of_another_form_is_found_behind_many_similar_ones_whose_estimates_were_too_low(most: int) -> None:
    found = Prices([*SIMILAR, (2, 20, 112.0, 1.0)]).price_exactly(most)
    assert found.asked <= most + most // 2
    assert found.cycles() == 112.0


def test_estimates_that_hold_are_priced_from_the_fastest_on() -> None:
    found = Prices([(columns, width, cycles, 1.0) for columns, width, cycles, _ in reversed(SIMILAR)]).price_exactly(1)
    assert found.cycles() == 101.0


def test_the_fastest_of_all_is_found_where_all_are_priced() -> None:
    random = np.random.default_rng(0)
    given = [(int(random.integers(1, 4)), int(random.integers(1, 9)), *random.uniform((50, 0.8), (150, 1.3))) for _ in range(30)]
    assert Prices(given).price_exactly(30).cycles() == pytest.approx(min(estimate * wrong for _, _, estimate, wrong in given))
