"""Mostly zero values: sums and averages of spikes, which dense connections read in pairs to skip pairs of zeros."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.problem import MappingProblem

SMALLEST: Final = 1e-12
"""Lower bound on the probability that a spike does not occur, so that its logarithm is finite."""


def nonzero_rows(problem: MappingProblem, link: Link) -> float:
    """Return the fraction of pairs of input values that are not both 0; a value is 0 if none of its summed spikes occurs.

    Spikes are assumed to be independent, each with the rate of its value if that was measured.
    """
    return problem.memo.get(("nonzero rows", link.source.buffer), lambda: _nonzero_rows(problem, link))


def _nonzero_rows(problem: MappingProblem, link: Link) -> float:
    all_zero = np.zeros(link.inputs + link.inputs % 2)
    for feeding in problem.by_id[link.source.owner].incoming:
        assert feeding.indexed is not None
        entries, mean = feeding.indexed.map, problem.activity.get(feeding.source.buffer, 0.0)
        rate, relative = np.full(feeding.inputs, mean), problem.relative_rate(feeding.source.buffer)
        rate = rate if relative is None else rate * relative
        np.add.at(all_zero, entries.target, np.log(np.maximum(1 - rate[entries.source], SMALLEST)))
    return float(1 - np.exp(all_zero.reshape(-1, 2).sum(axis=1)).mean())
