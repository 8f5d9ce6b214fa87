"""Search for placements of a request: with or without segments, with ids or bits on relays, with or without packed rows of weights.

With segments, tiles store the history of a few iterations at a time. Relays, the tiles that distribute spikes, store the ids of a
step's spikes, or one bit for each neuron. Packed rows need less exchange code, because a source tile then receives them in few pieces.
Which of these are tried, and in which order, is decided here; :mod:`snnc.compiler.tiles.search.search` searches for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.ir.segments import Streamed
from snnc.compiler.tiles.baselines import SNNC
from snnc.compiler.tiles.gradients.packing import saves_room
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.misfit_errors import bytes_at_least
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.plan_writer import host_bytes
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import windows_work
from snnc.compiler.tiles.request import MappingRequest
from snnc.compiler.tiles.search.search import Search

Placer: TypeAlias = Callable[[MappingProblem], Iterable[Placement]]
"""Function that returns the placements to price, instead of a search."""
FAR: Final = 1.5
"""Searches whose best placement is slower than the fastest by this factor are dropped before local search."""
PROBLEM_KEY: Final = ("buses", "windowed", "bits", "segment", "streamed", "packed")
"""Fields in which problems of one request differ."""
MAX_IDS_SHARE: Final = 0.5
"""Maximum fraction of a tile's memory for the ids of one sample; beyond it, relays store bits."""


def fitting_searches(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool = False) -> list[Search]:
    """Search without packed rows of weights and, if nothing fits, with packed rows."""
    return _packed_if_needed(request, partial(_without_packing, strategy=strategy, placer=placer, quick=quick), allowed=strategy == SNNC)


def quick_searches(request: MappingRequest) -> list[Search]:
    """Search for the first placements that fit, with packed rows of weights if none fits without."""
    return _packed_if_needed(request, _quick_without_packing)


def _packed_if_needed(request: MappingRequest, search: Callable[[MappingRequest], list[Search]], *, allowed: bool = True) -> list[Search]:
    """Search without packed rows of weights and, if nothing fits, with packed rows; return what comes closer to fitting."""
    unpacked = search(request)
    may_pack = allowed and request.packed is None and not any_fits(unpacked)
    if not (may_pack and any(saves_room(problem) for problem in request.problems())):
        return unpacked
    packed = search(replace(request, packed=True))
    return packed if any_fits(packed) or bytes_needed(packed) < bytes_needed(unpacked) else unpacked


def any_fits(searches: Iterable[Search]) -> bool:
    """Return whether any search has a placement that fits."""
    return any(search.best is not None for search in searches)


def smallest_misfit(searches: Sequence[Search]) -> Search:
    """Return the search whose smallest misfit needs the fewest bytes."""
    return min(searches, key=lambda search: math.inf if search.misfit is None else search.misfit[0])


def bytes_needed(searches: Sequence[Search]) -> int:
    """Return the bytes of tile memory with which the search that comes closest to fitting would fit."""
    nearest = smallest_misfit(searches)
    return bytes_at_least(nearest.problem) if nearest.misfit is None else nearest.misfit[0]


def bit_sources(request: MappingRequest) -> tuple[frozenset[BusSource], ...]:
    """Return the sources for which relays store bits, for each problem."""
    return tuple(next(with_bits(problem)).bits for problem in request.problems())


def _without_packing(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool) -> list[Search]:
    """Search without segments and, if nothing fits, with segments.

    Sets of data that may be stored outside the tiles (:meth:`MappingRequest.streaming_choices`) are tried in order until something fits.
    The last set, the histories of segments, is also tried if copying them may be faster than recomputing them; the fastest set is used.
    """
    unsegmented = _searches(request, strategy, placer, quick=quick)
    if any_fits(unsegmented) or strategy != SNNC:
        return unsegmented
    segmented: list[Search] = []
    for streamed in request.streaming_choices():
        if all(search.too_big_after_sequence for search in segmented or unsegmented):
            break
        if _histories_pay(segmented) if streamed == "history" else not any_fits(segmented):
            segmented += _in_segments(replace(request, streamed=streamed), streamed, placer, quick=quick)
    return _fastest_streaming(segmented) or segmented or unsegmented


def _quick_without_packing(request: MappingRequest) -> list[Search]:
    """Search for the first placements that fit, with the shortest segments if none fits without segments."""
    searches = list(_each_quickly(request))
    for streamed in request.streaming_choices():
        lengths = () if any_fits(searches) else request.lengths(streamed)
        if lengths:
            searches = list(_each_quickly(replace(request, segment=lengths[-1], streamed=streamed)))
    return searches


def _histories_pay(segmented: Sequence[Search]) -> bool:
    """Return whether copying histories to streaming memory and back may be faster than recomputing segments.

    The estimate of the copies ignores relays and barriers.
    """
    best = min((search.best for search in segmented if search.best is not None), key=lambda priced: priced.cycles, default=None)
    if best is None:
        return True
    problem, chips = best.layout.problem, best.layout.placement.chips
    histories = [(layer.neurons, layer.past) for layer in problem.network.layers]
    values = sum(n * (FLOAT * (p.states + p.others) + HALF * (p.half_states + p.half_others)) for n, p in histories)
    moved = 2 * values * problem.batch * problem.steps * problem.segments.rerun_iterations / problem.segments.iterations
    recomputing = sum(p.runs * (p.compute + p.sync + p.exchange) for p in best.phases if p.part == "recompute")
    streaming = problem.target.streaming
    return streaming is not None and moved * problem.target.clock_hz < recomputing * chips * streaming.bytes_per_second


def _fastest_streaming(searches: Sequence[Search]) -> list[Search]:
    best = min((search for search in searches if search.best is not None), key=_time, default=None)
    return [] if best is None else [search for search in searches if search.problem.streamed == best.problem.streamed]


def _time(search: Search) -> float:
    """Return the cycles of a training step and of the host transfers before or in it."""
    problem = search.problem
    rate = problem.target.host.bytes_per_second / problem.target.clock_hz if problem.target.host is not None else math.inf
    return search.cycles() + host_bytes(problem) / rate


def _in_segments(request: MappingRequest, streamed: Streamed, placer: Placer | None, *, quick: bool) -> list[Search]:
    lengths, search = request.lengths(streamed), partial(_searches, strategy=SNNC, placer=placer)
    if not lengths:
        return []
    tried = search(replace(request, segment=lengths[-1]), quick=quick)
    low, high = 0, len(lengths) - 1
    while low < high and any_fits(tried):
        middle = (low + high) // 2
        shorter = replace(request, segment=lengths[middle])
        low, high = (low, middle) if any_fits(search(shorter) if placer else _each_quickly(shorter)) else (middle + 1, high)
    for length in lengths[max(0, low - 1) : low + 1] if any_fits(tried) else ():
        tried += search(replace(request, segment=length), quick=quick)
    return tried


def _each_quickly(request: MappingRequest) -> Iterator[Search]:
    """Yield, for each problem of the request and each choice of bits, a search that stops at the first placement that fits."""
    return (Search(problem).run_quickly(request.chips) for some in request.problems() for problem in with_bits(some))


def _searches(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool = False) -> list[Search]:
    """Search for each way to size the windows and each way to return gradients, with `quick` only for the largest windows.

    If nothing fits, search again with relays that store bits wherever bits are smaller.
    """
    problems = list(request.problems())
    if quick:
        problems = list({problem.windowed: problem for problem in problems}.values())
    variants = [list(with_bits(problem)) for problem in problems]
    searches = _run_searches(request, [of_problem[0] for of_problem in variants], strategy, placer)
    if all(search.best is None for search in searches):
        searches += _run_searches(request, [problem for of_problem in variants for problem in of_problem[1:]], strategy, placer)
    return searches


def _run_searches(request: MappingRequest, problems: Sequence[MappingProblem], strategy: str, placer: Placer | None) -> list[Search]:
    """Search for each problem, beginning with the way to return gradients that takes less work.

    Problems that return gradients in the same way use as many chips as the first of these problems. Placements that are much slower than
    the best are skipped.
    """
    searches = [_cached_search(request, problem) or Search(problem) for problem in problems]
    first: dict[frozenset[BusSource], Search] = {}
    for search in searches:
        first.setdefault(search.problem.windowed, search)
    if placer is None and strategy == SNNC and len(first) > 1:
        order = sorted(searches, key=lambda search: first[search.problem.windowed].work())
    else:
        order = searches
    for search in (search for search in order if search not in request.estimated):
        reference = first[search.problem.windowed].best
        like = None if reference is None else reference.layout.placement
        if placer is not None:
            search.run_placements(placer(search.problem))
        elif strategy != SNNC:
            search.run_baseline(strategy, request.chips)
        else:
            search.limit = FAR * min(other.cycles() for other in searches)
            search.run(request.chips) if like is None else search.run_copies(like.chips, like.copies)
    return searches


def _cached_search(request: MappingRequest, problem: MappingProblem) -> Search | None:
    """Return the search of a quick estimate for the same problem, reset to its estimates."""
    key = attrgetter(*PROBLEM_KEY)
    return next((search.use_estimates() for search in request.estimated if key(search.problem) == key(problem)), None)


def with_bits(problem: MappingProblem) -> Iterator[MappingProblem]:
    """Yield the problem with bits where they save time or ids need too much memory, then, if that differs, with bits wherever possible.

    Bits are possible for sources of spikes for which they need fewer bytes than ids.

    Sources whose gradients return in windows keep ids, because relays also need the ids of neurons near the threshold. Populations in mode
    "drop" keep ids, because each run chooses which of their spikes to drop.
    """
    possible = frozenset(
        source
        for source in problem.network.sources
        if source.kind == "spikes" and source not in problem.windowed and (source.external or problem.mode == "exact")
        if _bytes(problem, source, bits=True) < _bytes(problem, source)
    )
    room = MAX_IDS_SHARE * problem.target.tile_bytes
    chosen = frozenset(s for s in possible if _bytes(problem, s) > room or (s.external and _bits_pay(problem, s)))
    yield replace(problem, bits=chosen)
    if chosen != possible:
        yield replace(problem, bits=possible)


def _bytes(problem: MappingProblem, source: BusSource, *, bits: bool = False) -> int:
    return problem.sequence_bytes(source, problem.steps_stored(source), bits=bits)


def _bits_pay(problem: MappingProblem, source: BusSource) -> bool:
    """Return whether the host saves more time by sending bits than relays with one sample each need to convert the bits to ids."""
    if problem.target.host is None:
        return False
    turns = problem.segments.input_transfers
    saved = turns * problem.batch * (_bytes(problem, source) - _bytes(problem, source, bits=True)) / problem.target.host.bytes_per_second
    cycles = []
    for other in (replace(problem, bits=frozenset({source})), problem):
        works = [windows_work(other, source, None, np.ones(1), forward=one) for one in ((True, False) if problem.training else (True,))]
        cycles.append(sum(float(work.cycles[0]) for work in works))
    runs = problem.schedule.iterations(problem.steps)
    return saved * problem.target.clock_hz > runs * problem.target.workers * (cycles[0] - cycles[1])
