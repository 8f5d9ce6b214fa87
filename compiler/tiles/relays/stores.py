"""Sources for which relays keep a bit for each value and step instead of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from snnc.compiler.tiles.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.buses import sequence_bytes
from snnc.compiler.tiles.relays.relay_cycles import windows_work

PART: Final = 0.5
"""Fraction of a tile that ids of one sample may fill."""


def with_bits(problem: MappingProblem) -> Iterator[MappingProblem]:
    """The problem with the profitable stores, then with bits wherever they are smaller, for networks that do not fit otherwise.

    Sources whose gradients come back in windows keep ids, as relays need those of neurons near the threshold too.
    """
    able = frozenset(source for source in problem.network.sources if _bytes(problem, source, bits=True) < _bytes(problem, source))
    able = frozenset(source for source in able if source.kind == "spikes" and source not in problem.windowed)
    chosen = frozenset(source for source in able if _must(problem, source) or (source.external and _pays(problem, source)))
    yield replace(problem, bits=chosen)
    if chosen != able:
        yield replace(problem, bits=able)


def _bytes(problem: MappingProblem, source: BusSource, *, bits: bool = False) -> int:
    some = {source} if bits else set[BusSource]()
    return sequence_bytes(source, problem.buses, problem.steps_stored(source), problem.mode, problem.windowed_buses, some)


def _must(problem: MappingProblem, source: BusSource) -> bool:
    return _bytes(problem, source) > PART * problem.target.tile_bytes


def _pays(problem: MappingProblem, source: BusSource) -> bool:
    """Whether the host saves more time by sending bits than relays with one sample each need to list them."""
    if problem.target.host is None:
        return False
    turns = problem.segments.input_turns
    saved = turns * problem.batch * (_bytes(problem, source) - _bytes(problem, source, bits=True)) / problem.target.host.bytes_per_second
    cycles = []
    for other in (replace(problem, bits=frozenset({source})), problem):
        works = [windows_work(other, source, None, np.ones(1), forward=way) for way in ((True, False) if problem.training else (True,))]
        cycles.append(sum(float(work.cycles[0]) for work in works))
    runs = problem.schedule.iterations(problem.steps)
    return saved * problem.target.clock_hz > runs * problem.target.workers * (cycles[0] - cycles[1])
