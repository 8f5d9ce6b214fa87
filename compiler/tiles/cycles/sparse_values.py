"""Mostly zero values: sums and averages of spikes, which dense connections read in pairs, skipping pairs of zeros."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.tiles.network import Link
from snnc.compiler.tiles.problem import Problem

SMALLEST: Final = 1e-12
"""Below this a value's chance to be 0 counts as none."""


def loud_rows(problem: Problem, link: Link) -> float:
    """Rows of `link` in pairs that are not both 0, as part of all: values are 0 when none of the spikes that they sum up occurs.

    Spikes are taken to be independent, each at the rate of its value where that was measured.
    """
    return problem.kept.get(("loud rows", link.source.buffer), lambda: _loud_rows(problem, link))


def _loud_rows(problem: Problem, link: Link) -> float:
    quiet = np.zeros(link.inputs + link.inputs % 2)
    for feeding in problem.by_id[link.source.owner].incoming:
        assert feeding.indexed is not None
        entries, mean = feeding.indexed.map, problem.activity.get(feeding.source.buffer, 0.0)
        rate, relative = np.full(feeding.inputs, mean), problem.relative_rate(feeding.source.buffer)
        rate = rate if relative is None else rate * relative
        np.add.at(quiet, entries.target, np.log(np.maximum(1 - rate[entries.source], SMALLEST)))
    return float(1 - np.exp(quiet.reshape(-1, 2).sum(axis=1)).mean())
