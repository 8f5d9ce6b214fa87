"""StepProgram x Target -> Plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final, TypeAlias

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Mode, Plan, Recompute, Streaming
from snnc.compiler.ir.segments import Streamed
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.baselines import SNNC, check_strategy
from snnc.compiler.tiles.cycles.predict import backward_cycles
from snnc.compiler.tiles.gradients.balanced_rows import may_deal
from snnc.compiler.tiles.gradients.packing import saves_room
from snnc.compiler.tiles.network import BusSource, describe
from snnc.compiler.tiles.placement.looks import HOPELESS, Look, Looks, Populations, Rival
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.placement.search import EFFORT, GLANCED, SETTLED, Search
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.stores import with_bits
from snnc.compiler.tiles.remedies import RemedyTrial
from snnc.compiler.tiles.request import Gradients, MappingRequest
from snnc.compiler.tiles.request_checks import check_dealt, check_length, check_options, check_streaming
from snnc.compiler.tiles.schedule.capacity import check_names
from snnc.compiler.tiles.schedule.schedule import fused_schedule, make_schedule
from snnc.compiler.tiles.too_big import baseline_too_big, bytes_at_least, too_big
from snnc.compiler.tiles.vertices.codelet_costs import network_costs
from snnc.compiler.tiles.write_down import host_bytes, write_look, write_plan

Placer: TypeAlias = Callable[[MappingProblem], Iterable[Placement]]
FAR: Final = 1.5
"""Ways whose best placement is slower by this factor are given up before local search."""
MANY: Final = 20_000
"""Populations, times tiles of the chips in use, up to which some are tried with dealt weight gradients; of more, all or none."""
CLOSE: Final = 1.05
"""Of two ways that share placements, the slower one goes to local search only when it is not slower by this factor."""
BEHIND: Final = 1.01
"""Local search is left out where another plan's placement is slower than that plan by this factor."""
TOLD_BY: Final = ("buses", "windowed", "bits", "segment", "streamed", "dealt", "packed")
"""What tells problems of one request apart."""
OF_PROGRAM: Final = ("network", "schedule", "looked")
"""What a request has of its program alone."""
MOST_FLIPS: Final = 8
"""With more sources than these, gradients come back to all of them in one way."""


def make_plan(
    program: StepProgram,
    target: Target,
    *,
    steps: int,
    batch: int,
    training: bool | None = None,
    activity: Mapping[str, float] | None = None,
    activity_source: str = "assumed",
    rates: Mapping[str, Array] | None = None,
    counts: Mapping[str, Array] | None = None,
    near_counts: Mapping[str, Array] | None = None,
    patterns: Mapping[str, Array] | None = None,
    capacity: Mapping[str, int] | int | None = None,
    mode: Mode = "exact",
    near: Mapping[str, float] | None = None,
    gradient_capacity: Mapping[str, int] | int | None = None,
    gradients: Gradients = "auto",
    recompute: Recompute = "auto",
    streaming: Streaming = "auto",
    fused: bool | None = None,
    dealt: Collection[str] | None = None,
    packed: bool | None = None,
    chips: int | None = None,
    strategy: str = "snnc",
    placer: Placer | None = None,
    effort: int | None = None,
    quick: bool = False,
    looks: Looks | None = None,
) -> Plan:
    """Map `program` onto `target`.

    Parameters
    ----------
    program, target
        What to map, and the machine.
    steps, batch
        T and the number of samples of one training step.
    training
        Whether backward and update are placed; None: when the program has a loss and an optimizer.
    activity
        Measured spikes a value and step, by StepProgram buffer; others are assumed.
    rates
        Measured spikes a step of each single value of a buffer: indexed connections are priced with those of the values that reach a tile.
    counts, near_counts
        Measured spikes, and neurons that take gradient, of a buffer, [steps, samples]: supersteps are priced step by step, each with its
        busiest tile. Where nothing was measured, values fire on their own.
    patterns
        Which values of a buffer spiked, as :attr:`snnc.compiler.tiles.planning.activity.Activity.patterns` has them: indexed connections
        are priced with the spikes that reach each tile.
    activity_source
        Where `activity` comes from, for reports.
    capacity
        Events a sample that a window holds: for all buses, or by StepProgram buffer. None: from measured activity, else the width.
    mode
        What happens to more events than that: "exact" sends further windows, "drop" keeps the lowest ids.
    near
        Measured neurons that take gradient (that spiked, or are inside the surrogate's support), a value and step, by buffer.
    gradient_capacity
        Entries a sample that a window of the backward pass holds, as `capacity`.
    gradients
        How gradients come back to sources of spikes whose surrogate has bounded support: "windowed", only for neurons inside it;
        "dense", for all; "auto", whichever is predicted to be faster.
    recompute
        Iterations of a segment whose forward pass runs again before its backward pass, so that only its history is kept; "off": never;
        "auto": where nothing fits without, the length with the least predicted time that does.
    streaming
        What of a sequence in segments may lie outside the tiles: "off", nothing; "inputs", which the host then sends segment after segment;
        "boundaries", also what segments begin with, in streaming memory; "history", their histories there, instead of recompute. "auto":
        the first three in this order until one fits, and the fourth where it is predicted to be faster.
    fused
        Whether relays look for the spikes of one iteration of the forward pass while neurons compute the next, where the network allows
        it; None: where that is predicted to be faster.
    dealt
        Populations whose weight gradients are dealt over the workers of a tile by the spikes of all its samples, behind their neurons;
        None: those for which that is predicted to be faster, or none where `placer` is given.
    packed
        Whether tiles of a target put rows of weights side by side before they go to the sources, which then read fewer pieces; None: only
        where nothing fits without.
    chips
        How many chips of the target to use; None: as many as make the predicted step fastest.
    strategy
        How tiles are chosen: "snnc", or one of the baselines of :mod:`snnc.compiler.tiles.baselines`.
    placer
        Where populations lie, instead of the search: the fastest of these placements is taken.
    effort
        Changes that local search tries around the best placement, in units of a network with one population on one tile: a
        network twice as large on as many tiles gets half as many. None: :data:`snnc.compiler.tiles.placement.search.EFFORT`.
    quick
        Only look how fast it could be: windows that hold everything, no local search, and no advice where nothing fits.
    looks
        What quick looks found; a full plan of the same goes on from there, so quick plans tell no more than how long they take. With a
        plan of the same populations, in another order of their values, local search is for those that are about as fast where that one
        lies.

    Raises
    ------
    MappingOptionError, CapacityError
        An option is outside its range.
    NoScheduleError
        A cycle of the network holds no delay.
    TooBigError
        A tile would have to hold more than its memory; a HopelessError where that is plain without a search.
    StrategyError, NoPartitionerError, BaselineTooBigError
        The strategy is not known, its partitioner is not installed, or no form of it fits.
    """
    check_strategy(strategy)
    check_options(target, steps=steps, batch=batch, chips=chips, mode=mode, gradients=gradients, recompute=recompute)
    check_streaming(target, streaming)
    network = describe(program, training)
    check_dealt(network, dealt or ())
    check_length(network, target, steps, batch)
    check_names(network, activity, capacity, near, gradient_capacity, counts, near_counts)
    schedule = make_schedule(network)
    measured = (rates or {}, counts or {}, near_counts or {}, patterns or {})
    asked = (network, schedule, target, steps, batch, mode, activity, capacity, chips, near, gradient_capacity, gradients)
    request = MappingRequest(*asked, *measured, recompute, streaming, fused=fused, dealt=dealt, packed=packed)
    effort = 0 if quick else EFFORT if effort is None else effort
    asked_for = {"program": program, "request": {f.name: getattr(request, f.name) for f in fields(request) if f.name not in OF_PROGRAM}}
    clocks = looks.clocks if looks is not None and placer is None else None
    alike = clocks and {**asked_for, "how": (strategy, effort, quick, activity_source), "bits": _bits(request)}
    known = clocks.plan(alike, target) if clocks and alike else None
    if known is not None:
        return known
    found, fastest = _found(request, asked_for, strategy, placer, looks, effort, quick=quick)
    if fastest.best is not None:
        brief = quick and looks is not None
        usable = chips or target.chips
        plan = (write_look if brief else partial(write_plan, usable=usable, strategy=strategy))(program.name, fastest.best, activity_source)
        if clocks and alike:
            clocks.keep(alike, plan)
        return plan
    if strategy != SNNC:
        raise baseline_too_big(found[0].problem, strategy, found[0].misfit)
    again = (request, partial(_attempt, effort=effort)) if placer is None and not quick else None
    nearest = _nearest(found)
    raise too_big(nearest.problem, nearest.misfit, again)


def _bits(request: MappingRequest) -> tuple[frozenset[BusSource], ...]:
    """Sources of which relays keep bits, which depends on how much the host sends in a cycle."""
    return tuple(next(with_bits(problem)).bits for problem in request.problems())


def _found(
    request: MappingRequest,
    asked_for: Mapping[str, Any],
    strategy: str,
    placer: Placer | None,
    looks: Looks | None,
    effort: int,
    *,
    quick: bool,
) -> tuple[list[Search], Search]:
    """All searches, and the fastest after local search; on from a quick look at the same where `looks` has one."""
    look = None if looks is None or quick else looks.take(asked_for)
    alike = look is not None and _looks_alike(request)
    if look is not None:
        request = replace(request, looked=tuple(look.found))
    found = look.found if look is not None and alike else _fitting(request, strategy, placer, quick=quick)
    if strategy != SNNC or placer is not None:
        return found, _given(found, request).settle(GLANCED if quick else SETTLED)
    several = look.several if look is not None and alike else _several(found, request)
    fastest = _settled(several, request, looks, effort, quick=quick)
    if looks is not None and quick:
        looks.saw(_populations(request), fastest.cycles())
        looks.keep(Look(asked_for, found, several))
    return found, fastest


def _fitting(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool = False) -> list[Search]:
    """Search without packed rows of weights and, where nothing fits, with them."""
    found = _in_some_way(request, strategy, placer, quick=quick)
    if _fits(found) or strategy != SNNC or not _may_pack(request):
        return found
    packed = _in_some_way(replace(request, packed=True), strategy, placer, quick=quick)
    return packed if _fits(packed) or _needed(packed) < _needed(found) else found


def _may_pack(request: MappingRequest) -> bool:
    """Whether the request leaves open that rows of weights are packed, and code for them may take room that matters."""
    return request.packed is None and any(saves_room(problem) for problem in request.problems())


def _needed(found: Sequence[Search]) -> int:
    """Bytes that tiles would have to have for what misses by least."""
    nearest = _nearest(found)
    return bytes_at_least(nearest.problem) if nearest.misfit is None else nearest.misfit[0]


def _in_some_way(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool) -> list[Search]:
    """Search without segments and, where nothing fits, with some: what lies outside the tiles is as little as will do, or histories."""
    found = _searches(request, strategy, placer, quick=quick)
    if _fits(found) or strategy != SNNC:
        return found
    rerun: list[Search] = []
    for way in request.ways():
        if _histories_pay(rerun) if way == "history" else not _fits(rerun):
            rerun += _in_segments(replace(request, streamed=way), way, placer, quick=quick)
    return _fastest(rerun) or rerun or found


def _histories_pay(rerun: Sequence[Search]) -> bool:
    """Whether histories may be copied to streaming memory and back sooner than segments run again; relays and barriers are not counted."""
    best = min((search.best for search in rerun if search.best is not None), key=lambda priced: priced.cycles, default=None)
    if best is None:
        return True
    problem, chips = best.layout.problem, best.layout.placement.chips
    floats = sum(
        layer.neurons * (len(layer.kernel.history) + len(layer.kernel.saved)) for layer in problem.network.layers if layer.gradient
    )
    moved = 2 * FLOAT * floats * problem.batch * problem.steps * problem.segments.again / problem.segments.iterations
    again = sum(p.runs * (p.compute + p.sync + p.exchange) for p in best.phases if p.part == "recompute")
    return (
        problem.target.streaming is not None and moved * problem.target.clock_hz < again * chips * problem.target.streaming.bytes_per_second
    )


def _fastest(found: Sequence[Search]) -> list[Search]:
    """The searches of the way with the least predicted time, that of transfers from the host included."""
    best = min((search for search in found if search.best is not None), key=_time, default=None)
    return [] if best is None else [search for search in found if search.problem.streamed == best.problem.streamed]


def _time(search: Search) -> float:
    """Cycles of a training step and of the transfers from the host before or in it."""
    problem = search.problem
    rate = problem.target.host.bytes_per_second / problem.target.clock_hz if problem.target.host is not None else math.inf
    return search.cycles() + host_bytes(problem) / rate


def _in_segments(request: MappingRequest, way: Streamed, placer: Placer | None, *, quick: bool) -> list[Search]:
    """Search with segments of some lengths: about the longest with which something fits."""
    lengths, strategy = request.lengths(way), SNNC
    if not lengths:
        return []
    tried = _searches(replace(request, segment=lengths[-1]), strategy, placer, quick=quick)
    low, high = 0, len(lengths) - 1
    while low < high and _fits(tried):
        middle = (low + high) // 2
        shorter = replace(request, segment=lengths[middle])
        fits = _fits(_searches(shorter, strategy, placer)) if placer else _fits(_each_quickly(shorter))
        low, high = (low, middle) if fits else (middle + 1, high)
    for length in lengths[max(0, low - 1) : low + 1] if _fits(tried) else ():
        tried += _searches(replace(request, segment=length), strategy, placer, quick=quick)
    return tried


def _fits(found: Iterable[Search]) -> bool:
    return any(search.best is not None for search in found)


def _each_quickly(request: MappingRequest) -> Iterator[Search]:
    return (Search(problem).run_quickly(request.chips) for some in request.problems() for problem in with_bits(some))


def _searches(request: MappingRequest, strategy: str, placer: Placer | None, *, quick: bool = False) -> list[Search]:
    """Search once for each way to size the windows (`quick`: for windows that hold everything); where nothing fits, again with relays that
    keep bits wherever these are fewer.
    """
    problems = list(request.problems())
    if quick:
        problems = list({problem.windowed: problem for problem in problems}.values())
    ways = [list(with_bits(problem)) for problem in problems]
    found = _searched(request, [some[0] for some in ways], strategy, placer)
    if all(search.best is None for search in found):
        found += _searched(request, [problem for some in ways for problem in some[1:]], strategy, placer)
    return found


def _searched(request: MappingRequest, problems: Sequence[MappingProblem], strategy: str, placer: Placer | None) -> list[Search]:
    """Search for each problem, the later times on as many chips as the first; anew for the other way of gradients.

    The way of gradients with less work goes first: what is far behind its placements is not looked at.
    """
    found = [_looked(request, problem) or Search(problem) for problem in problems]
    first: dict[frozenset[BusSource], Search] = {}
    for search in found:
        first.setdefault(search.problem.windowed, search)
    if placer is None and strategy == SNNC and len(first) > 1:
        order = sorted(found, key=lambda search: first[search.problem.windowed].work())
    else:
        order = found
    for search in (search for search in order if search not in request.looked):
        known = first[search.problem.windowed].best
        if placer is not None:
            search.run_given(placer(search.problem))
        elif strategy != SNNC:
            search.run_baseline(strategy, request.chips)
        else:
            search.limit = FAR * min(other.cycles() for other in found)
            search.run(request.chips) if known is None else search.run_as(known.layout.placement)
    return found


def _looked(request: MappingRequest, problem: MappingProblem) -> Search | None:
    """The search that a quick look has made for the same problem, back at its estimates."""
    for search in request.looked:
        if all(getattr(search.problem, name) == getattr(problem, name) for name in TOLD_BY):
            return search.estimated()
    return None


def _nearest(found: Sequence[Search]) -> Search:
    """The search that misses by least."""
    return min(found, key=lambda search: math.inf if search.misfit is None else search.misfit[0])


def _populations(request: MappingRequest) -> Populations:
    """What placements of one request and of another have in common, if these are equal."""
    target = request.target
    sizes = target.chips, target.tiles_per_chip, target.tile_bytes, request.steps, request.batch
    return sizes, tuple((layer.id, layer.neurons) for layer in request.network.layers)


def _looks_alike(request: MappingRequest) -> bool:
    """Whether quick looks try the same windows as full plans."""
    problems = list(request.problems())
    return len(problems) == len({problem.windowed for problem in problems})


def _settled(several: list[Search], request: MappingRequest, looks: Looks | None, effort: int, *, quick: bool) -> Search:
    """The fastest search after local search, which is left out where another plan in its place is certainly faster."""
    populations = _populations(request)
    if looks is not None and quick:
        found = _refined(several, request, effort)
        if found.cycles() <= HOPELESS * looks.fastest(populations):
            found.settle(GLANCED)
        return found
    if looks is None:
        refined = _refined(several, request, effort)
        return refined.settle(GLANCED if quick else refined.settled())
    rival = looks.rival(populations)
    if rival is not None:
        alike = min((search.estimated().run_given([rival.placement]) for search in several), key=Search.cycles).settle(GLANCED)
        if alike.cycles() > BEHIND * rival.cycles:
            return alike
    found = _refined([search.estimated() for search in several], request, effort)
    found.settle(found.settled())
    if found.best is not None:
        looks.rivals.append(Rival(populations, found.best.layout.placement, found.best.cycles))
    return found


def _several(found: list[Search], request: MappingRequest) -> list[Search]:
    """Searches of several ways to bring gradients back, to take turns and to deal gradients, those that are worth local search."""
    others = [*found, *_other_ways(min(found, key=Search.cycles), request.gradients)]
    both = _both_ways(_promising(others), request)
    # Estimates of tables are settled among many placements of one search, which those that are dealt do not have.
    free = request.dealt is None and request.network.training and not request.network.indexed
    close = CLOSE * min(search.cycles() for search in both)
    both += [dealt for search in _promising(both) if free and search.cycles() <= close for dealt in _dealt(search)]
    return _promising(both)


def _refined(several: Sequence[Search], request: MappingRequest, effort: int) -> Search:
    """The fastest search after local search."""
    free = request.dealt is None and request.network.training and not request.network.indexed
    fastest = min((search.refine(effort) for search in several), key=Search.cycles)
    last: list[Search] = [fastest, *(_dealt(fastest) if free else ())]
    return min(last, key=Search.cycles)


def _dealt(search: Search) -> Iterator[Search]:
    """Lay out the best placement of a search with weight gradients dealt over workers: those of the population whose neurons and weights
    take longest, of the two that do, of twice as many, and so on to all.
    """
    if search.best is None:
        return
    problem, layout = replace(search.problem, dealt=frozenset()), search.best.layout
    able = [layer for layer in problem.network.layers if may_deal(problem, layer, layout.range_of(layer))]
    if not able:
        return
    spans = {layer.id: backward_cycles(replace(layout, problem=problem), layer) for layer in able}
    able.sort(key=lambda layer: -spans[layer.id])
    small = layout.placement.chips * problem.target.tiles_per_chip * len(problem.network.layers) <= MANY
    for number in sorted({0, *(1 << k for k in range(len(able).bit_length())), len(able)}) if small else (0, len(able)):
        dealt = [layer.id for layer in able[:number]]
        if set(dealt) != search.problem.dealt:
            costs = network_costs(problem.network, dealt)
            yield Search(replace(problem, dealt=frozenset(dealt), costs=costs)).run_given([layout.placement])


def _given(found: Sequence[Search], request: MappingRequest) -> Search:
    """The fastest search where placements are given; relays and neurons take turns unless they are asked not to."""
    return min(_both_ways(found, request) if request.fused else found, key=Search.cycles)


def _both_ways(found: Iterable[Search], request: MappingRequest) -> list[Search]:
    """Searches with relays and neurons taking turns, and in one superstep; only one of them where the request says which."""
    both: list[Search] = []
    for search in found:
        fused = list(_fused(search)) if request.fused is not False else []
        both += [search, *fused] if request.fused is None or not _fits(fused) else fused
    return both


def _fused(search: Search) -> Iterator[Search]:
    """Lay out the best placement of a search with relays and neurons of the forward pass in one superstep, where that is possible."""
    problem = search.problem
    inner = [source for source in problem.network.sources if not source.external]
    able = all(source.kind == "spikes" and source not in problem.bits for source in inner)
    if not (inner and able) or search.best is None or problem.segment or problem.limited():
        return
    schedule = fused_schedule(problem.network, problem.schedule)
    if schedule is not None:
        placement = search.best.layout.placement
        found = search.again(replace(problem, fused=schedule)).run_given([placement])
        yield found if found.best is not None else found.run_as(placement)


def _promising(found: Iterable[Search]) -> list[Search]:
    """The fastest search of each way of gradients, but for ways that are far behind: local search may change their order.

    Of searches that differ only in whether relays and neurons take turns, the slower one as well when it is close.
    """
    best: dict[frozenset[BusSource], list[Search]] = {}
    for search in sorted(found, key=Search.cycles):
        same = best.setdefault(search.problem.windowed, [search])
        fused = {(other.problem.fused is not None) for other in same}
        if (search.problem.fused is not None) not in fused and search.cycles() <= CLOSE * same[0].cycles():
            same.append(search)
    fastest = min(same[0].cycles() for same in best.values())
    return [search for same in best.values() for search in same if search.cycles() <= FAR * fastest]


def _other_ways(fastest: Search, gradients: Gradients) -> Iterator[Search]:
    """Lay out the fastest placement with the gradients of each of several sources the other way."""
    able = sorted(fastest.problem.network.windowed, key=lambda source: source.buffer)
    if gradients != "auto" or fastest.best is None or not 1 < len(able) <= MOST_FLIPS:
        return
    for source in able:
        windowed = fastest.problem.windowed ^ {source}
        other = replace(fastest.problem, windowed=windowed, bits=fastest.problem.bits - windowed)
        yield Search(other).run_given([fastest.best.layout.placement])


def _attempt(request: MappingRequest, *, quick: bool, effort: int) -> RemedyTrial:
    """Plan a changed request: bytes of the fullest tile of the fastest plan (quick: of any), or of the one that misses by least."""
    found = _quickly(request) if quick else _fitting(request, SNNC, None)
    best = (min(found, key=Search.cycles) if quick else _refined(_several(found, request), request, effort).settle()).best
    if best is not None:
        return RemedyTrial(best.memory.largest, best.layout.placement.chips)
    return RemedyTrial(_needed(found), 0)


def _quickly(request: MappingRequest) -> list[Search]:
    """The first placements that fit, with packed rows of weights where there are none without."""
    found = _quickly_in_some_way(request)
    if not _fits(found) and _may_pack(request):
        packed = _quickly_in_some_way(replace(request, packed=True))
        return packed if _fits(packed) or _needed(packed) < _needed(found) else found
    return found


def _quickly_in_some_way(request: MappingRequest) -> list[Search]:
    """The first placements that fit, with the shortest segments where there are none without recompute."""
    found = list(_each_quickly(request))
    for way in request.ways():
        lengths = () if _fits(found) else request.lengths(way)
        if lengths:
            found = list(_each_quickly(replace(request, segment=lengths[-1], streamed=way)))
    return found
