"""Entry point of the mapper: check a request, search for layouts, and write the plan of the fastest one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Mode, Plan, Recompute, Streaming
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.baselines import SNNC, check_strategy
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.mapped.network import BusSource, describe
from snnc.compiler.tiles.misfit_errors import baseline_misfit_error, misfit_error
from snnc.compiler.tiles.placement.choices import check_pairs
from snnc.compiler.tiles.plan_writer import write_estimate, write_plan
from snnc.compiler.tiles.request import Gradients, MappingRequest, check_length, check_options
from snnc.compiler.tiles.request_search import (
    FAR,
    Placer,
    any_fits,
    bit_sources,
    bytes_needed,
    fitting_searches,
    quick_searches,
    smallest_misfit,
)
from snnc.compiler.tiles.schedule.buses import check_names
from snnc.compiler.tiles.schedule.schedule import fused_schedule, make_schedule
from snnc.compiler.tiles.search.quick_estimates import MAX_SLOWDOWN, Populations, QuickEstimate, QuickEstimates, Rival
from snnc.compiler.tiles.search.search import EFFORT, EXACT_PRICES, QUICK_EXACT_PRICES, Search

CLOSE: Final = 1.05
"""If two searches differ only in whether relays and neurons share a superstep, local search refines both if the ratio of their cycles is at
most this factor, otherwise only the faster one."""
RIVAL_MARGIN: Final = 1.01
"""A rival is an earlier plan of the same populations with another order of neurons. Local search is skipped if the request, with the
placement of the rival, is slower than the rival by more than this factor."""
PROGRAM_FIELDS: Final = ("network", "schedule", "activity", "estimated")
"""Fields of a request that are not compared with other requests: the program determines them, or they contain results. Fields of the
activity are compared one by one."""


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
    support_counts: Mapping[str, Array] | None = None,
    patterns: Mapping[str, Array] | None = None,
    capacity: Mapping[str, int] | int | None = None,
    mode: Mode = "exact",
    support: Mapping[str, float] | None = None,
    gradient_capacity: Mapping[str, int] | int | None = None,
    gradients: Gradients = "auto",
    recompute: Recompute = "auto",
    streaming: Streaming = "auto",
    fused: bool | None = None,
    packed: bool | None = None,
    chips: int | None = None,
    strategy: str = "snnc",
    placer: Placer | None = None,
    effort: int | None = None,
    quick: bool = False,
    estimates: QuickEstimates | None = None,
    operation: bool = False,
) -> Plan:
    """Map `program` onto `target`.

    Parameters
    ----------
    program, target, steps, batch
        The program to map, the machine, and the numbers of time steps and of samples of one training step.
    training
        Whether the backward pass and the update are placed; None: if the program has a loss and an optimiser.
    activity, support
        Measured fractions, by buffer of the step program, of values that spike in a step, and of neurons that receive a gradient (that
        spiked, or are inside the surrogate's support); assumed for other buffers.
    activity_source
        Where `activity` comes from, for reports.
    rates
        Measured mean number of spikes per step of each value, by buffer, for the costs of indexed connections.
    counts, support_counts
        Measured numbers of spikes, and of neurons that receive a gradient, by buffer, [steps, samples]. Values without measurements are
        assumed to fire independently.
    patterns
        The values that spiked, by buffer, as in :attr:`snnc.compiler.tiles.activity.Activity.patterns`, for the costs of indexed
        connections.
    capacity, gradient_capacity
        Maximum numbers of events per sample in a window, and of entries in a window of the backward pass: for all buses, or by buffer.
        None: derived from measured activity, or the full width without measurements.
    mode, recompute, streaming
        As for :func:`snnc.compile`. With "auto", segments are tried only if nothing fits without them; histories in streaming memory are
        tried if no segments fit otherwise, or if copying them may be faster than recomputing them.
    gradients
        How gradients return to sources of spikes whose surrogate has bounded support: "windowed", only for neurons in the support;
        "dense", for all neurons; "auto", whichever is predicted to be faster.
    fused
        Whether relays search for the spikes of one iteration of the forward pass while neurons compute the next iteration, if the network
        allows it; None: if that is predicted to be faster.
    packed
        Whether target tiles pack the rows of weights for one source tile before they send them, so that source tiles receive fewer
        fragments; None: only if nothing fits otherwise.
    chips
        Number of chips of the target to use; None: the number with the fastest predicted step.
    strategy
        How tiles are chosen: "snnc", or one of the baselines of :mod:`snnc.compiler.tiles.baselines`.
    placer
        Function that returns the placements to price instead of a search; the fastest one is chosen.
    effort
        Maximum product of three numbers: the changes of the best placement that local search tries, the populations, and the tiles of the
        chips in use. 0: no local search; None: :data:`snnc.compiler.tiles.search.search.EFFORT`.
    quick
        Make only a quick estimate: full windows (unless `capacity` limits them), no local search, and no advice if nothing fits.
    estimates
        Results of quick estimates. A full plan of the same request continues from them; a quick plan then contains only its cycles. Local
        search is skipped if a rival in `estimates` is faster (:data:`RIVAL_MARGIN`).
    operation
        Whether forward and backward pass are two operations in the graph of another framework. The second one runs forward again.

    Raises
    ------
    MappingOptionError, CapacityError
        An option is outside its range.
    NoScheduleError
        A cycle of the network contains no delay.
    TooBigError
        A tile would need more memory than it has; an OutputsTooBigError if that is clear without a search.
    StrategyError, NoPartitionerError, BaselineTooBigError
        The strategy is unknown, its partitioner is not installed, or none of its placements fits.
    """
    check_strategy(strategy)
    check_options(target, steps=steps, batch=batch, chips=chips, mode=mode, gradients=gradients, recompute=recompute, streaming=streaming)
    network = describe(program, training)
    network = replace(network, operation=operation and network.training)
    check_length(network, target, steps, batch)
    check_pairs(network, batch)
    check_names(network, activity, capacity, support, gradient_capacity, counts, support_counts)
    schedule = make_schedule(network)
    counted: dict[str, Any] = {"counts": counts or {}, "support_counts": support_counts or {}, "patterns": patterns or {}}
    expected = Activity(activity or {}, source=activity_source, support=support or {}, rates=rates or {}, **counted)
    sizes = (network, schedule, target, steps, batch, mode, expected, capacity, chips, gradient_capacity, gradients)
    request = MappingRequest(*sizes, recompute, streaming, fused=fused, packed=packed)
    effort = 0 if quick else EFFORT if effort is None else effort
    asked = {f.name: getattr(request, f.name) for f in fields(request) if f.name not in PROGRAM_FIELDS}
    arguments = {"program": program, "operation": operation, "request": asked, "activity": vars(expected)}
    clocks = estimates.clocks if estimates is not None and placer is None else None  # plans for other clock frequencies
    known_arguments = clocks and {**arguments, "how": (strategy, effort, quick), "bits": bit_sources(request)}
    known_plan = clocks.plan(known_arguments, target) if clocks and known_arguments else None
    if known_plan is not None:
        return known_plan
    searches, fastest = _run_searches(request, arguments, strategy, placer, estimates, effort, quick=quick)
    if fastest.best is None:
        raise _misfit(searches, request, strategy, effort, advises=placer is None and not quick)
    brief = quick and estimates is not None
    write = write_estimate if brief else partial(write_plan, usable=chips or target.chips, strategy=strategy)
    plan = write(program.name, fastest.best)
    if clocks and known_arguments:
        clocks.add(known_arguments, plan)
    return plan


def _run_searches(
    request: MappingRequest,
    arguments: Mapping[str, Any],
    strategy: str,
    placer: Placer | None,
    estimates: QuickEstimates | None,
    effort: int,
    *,
    quick: bool,
) -> tuple[list[Search], Search]:
    """Return all searches, and the fastest of them after local search; continue from a quick estimate of the same request if one exists."""
    estimate = None if estimates is None or quick else estimates.pop(arguments)
    # A quick estimate tries only full windows: its searches suffice if the request has one problem for each way to return gradients.
    resumed = estimate is not None and len(problems := list(request.problems())) == len({problem.windowed for problem in problems})
    if estimate is not None:
        request = replace(request, estimated=tuple(estimate.searches))
    searches = estimate.searches if estimate is not None and resumed else fitting_searches(request, strategy, placer, quick=quick)
    if strategy != SNNC or placer is not None:
        fastest = min(_with_fused(searches, request) if request.fused else searches, key=Search.cycles)
        return searches, fastest.price_exactly(QUICK_EXACT_PRICES if quick else EXACT_PRICES)
    candidates = estimate.candidates if estimate is not None and resumed else _candidates(searches, request)
    fastest = _fastest_refined(candidates, request, estimates, effort, quick=quick)
    if estimates is not None and quick:
        estimates.record(_populations(request), fastest.cycles())
        estimates.add(QuickEstimate(arguments, searches, candidates))
    return searches, fastest


def _misfit(searches: Sequence[Search], request: MappingRequest, strategy: str, effort: int, *, advises: bool) -> TooBigError:
    if strategy != SNNC:
        return baseline_misfit_error(searches[0].problem, strategy, searches[0].misfit)
    nearest = smallest_misfit(searches)
    return misfit_error(nearest.problem, nearest.misfit, (request, partial(_plan_bytes, effort=effort)) if advises else None)


def _populations(request: MappingRequest) -> Populations:
    """Return a key that is equal for two requests only if a placement for one is valid for the other."""
    target = request.target
    sizes = target.chips, target.tiles_per_chip, target.tile_bytes, request.steps, request.batch
    return sizes, tuple((layer.id, layer.neurons) for layer in request.network.layers)


def _fastest_refined(
    candidates: list[Search], request: MappingRequest, estimates: QuickEstimates | None, effort: int, *, quick: bool
) -> Search:
    """Return the fastest search after local search; local search is skipped if a rival is faster."""
    populations = _populations(request)
    if estimates is not None and quick:
        fastest = _refine_all(candidates, effort)
        if fastest.cycles() <= MAX_SLOWDOWN * estimates.fastest(populations):
            fastest.price_exactly(QUICK_EXACT_PRICES)
        return fastest
    if estimates is None:
        refined = _refine_all(candidates, effort)
        return refined.price_exactly(QUICK_EXACT_PRICES if quick else refined.exact_price_count())
    rival = estimates.rival(populations)
    if rival is not None:
        with_rival_placement = min(
            (search.use_estimates().run_placements([rival.placement]) for search in candidates), key=Search.cycles
        ).price_exactly(QUICK_EXACT_PRICES)
        if with_rival_placement.cycles() > RIVAL_MARGIN * rival.cycles:
            return with_rival_placement
    fastest = _refine_all([search.use_estimates() for search in candidates], effort)
    fastest.price_exactly(fastest.exact_price_count())
    if fastest.best is not None:
        estimates.rivals.append(Rival(populations, fastest.best.layout.placement, fastest.best.cycles))
    return fastest


def _candidates(searches: list[Search], request: MappingRequest) -> list[Search]:
    return _promising(_with_fused(_promising(searches), request))


def _refine_all(candidates: Sequence[Search], effort: int) -> Search:
    return min((search.refine(effort) for search in candidates), key=Search.cycles)


def _with_fused(searches: Iterable[Search], request: MappingRequest) -> list[Search]:
    """Return the searches and, unless the request forbids it, variants in which relays and neurons share a superstep.

    If the request demands such variants, each replaces its search, unless it does not fit.
    """
    variants: list[Search] = []
    for search in searches:
        fused = list(_fused(search)) if request.fused is not False else []
        variants += [search, *fused] if request.fused is None or not any_fits(fused) else fused
    return variants


def _fused(search: Search) -> Iterator[Search]:
    """Lay out the best placement of a search with relays and neurons of the forward pass in one superstep, if possible."""
    problem = search.problem
    inner = [source for source in problem.network.sources if not source.external]
    all_listed = all(source.kind == "spikes" and source not in problem.bits for source in inner)
    if not (inner and all_listed) or search.best is None or problem.segment or problem.limited():
        return
    schedule = fused_schedule(problem.network, problem.schedule)
    if schedule is not None:
        placement = search.best.layout.placement
        variant = search.with_schedule(replace(problem, fused=schedule)).run_placements([placement])
        yield variant if variant.best is not None else variant.run_copies(placement.chips, placement.copies)


def _promising(searches: Iterable[Search]) -> list[Search]:
    """Return the fastest search for each way to return gradients, except searches that are much slower than the fastest of all.

    If another search differs only in whether relays and neurons share a superstep and is nearly as fast, it is also returned.
    """
    best: dict[frozenset[BusSource], list[Search]] = {}
    for search in sorted(searches, key=Search.cycles):
        same = best.setdefault(search.problem.windowed, [search])
        fused = search.problem.fused is not None
        if all((other.problem.fused is not None) != fused for other in same) and search.cycles() <= CLOSE * same[0].cycles():
            same.append(search)
    fastest = min(same[0].cycles() for same in best.values())
    return [search for same in best.values() for search in same if search.cycles() <= FAR * fastest]


def _plan_bytes(request: MappingRequest, *, quick: bool, effort: int) -> tuple[int, int]:
    """Plan a changed request, as :class:`snnc.compiler.tiles.remedies.Attempt` describes: the fastest plan or the smallest misfit."""
    searches = quick_searches(request) if quick else fitting_searches(request, SNNC, None)
    best = (min(searches, key=Search.cycles) if quick else _refine_all(_candidates(searches, request), effort).price_exactly()).best
    if best is not None:
        return best.memory.largest, best.layout.placement.chips
    return bytes_needed(searches), 0
