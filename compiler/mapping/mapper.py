"""StepProgram x Target -> Plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from snnc.compiler.mapping.bounds import balance_bound, ideal_bound
from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.capacity import check_names
from snnc.compiler.mapping.errors import MappingOptionError
from snnc.compiler.mapping.grouping import column_groups, sample_groups, split, split_samples
from snnc.compiler.mapping.knobs import Trial
from snnc.compiler.mapping.network import Layer, describe
from snnc.compiler.mapping.placement import Placement
from snnc.compiler.mapping.predict import cycles_by_tile, supersteps
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.request import Request
from snnc.compiler.mapping.schedule import make_schedule
from snnc.compiler.mapping.search import EFFORT, Priced, Search
from snnc.compiler.mapping.strategies import SNNC, check_strategy
from snnc.compiler.mapping.supported import check_supported
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.too_big import baseline_too_big, bytes_at_least, too_big
from snnc.compiler.plan import Block, BusPlan, ConnectionPlan, Mode, Plan, PopulationPlan, Relay
from snnc.compiler.step_program import StepProgram
from snnc.compiler.target import Target

Placer: TypeAlias = Callable[[Problem], Iterable[Placement]]


def make_plan(
    program: StepProgram,
    target: Target,
    *,
    steps: int,
    batch: int,
    training: bool | None = None,
    activity: Mapping[str, float] | None = None,
    activity_source: str = "assumed",
    capacity: Mapping[str, int] | int | None = None,
    mode: Mode = "exact",
    chips: int | None = None,
    strategy: str = "snnc",
    placer: Placer | None = None,
    effort: int | None = None,
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
    activity_source
        Where `activity` comes from, for reports.
    capacity
        Events a sample that a window holds: for all buses, or by StepProgram buffer. None: from measured activity, else the width.
    mode
        What happens to more events than that: "exact" sends further windows, "drop" keeps the lowest ids.
    chips
        How many chips of the target to use; None: as many as make the predicted step fastest.
    strategy
        How tiles are chosen: "snnc", or one of the baselines of :mod:`snnc.compiler.mapping.strategies`.
    placer
        Where populations lie, in place of the search: the fastest of these placements is taken.
    effort
        Changes that local search tries around the best placement, in units of a network with one population on one tile: a
        network twice as large on as many tiles gets half as many. None: :data:`snnc.compiler.mapping.search.EFFORT`.

    Raises
    ------
    MappingOptionError, CapacityError
        An option is outside its range.
    NotOnMachineError
        The program holds an operation that only the reference runs.
    NoScheduleError
        A cycle of the network holds no delay.
    TooBigError
        A tile would have to hold more than its memory.
    StrategyError, NoPartitionerError, BaselineTooBigError
        The strategy is not known, its partitioner is not installed, or no form of it fits.
    """
    check_strategy(strategy)
    _check(target, steps=steps, batch=batch, chips=chips, mode=mode)
    check_supported(program)
    network = describe(program, training)
    check_names(network, activity, capacity)
    request = Request(network, make_schedule(network), target, steps, batch, mode, activity, capacity, chips)
    found = list(_searches(request, strategy, placer))
    fastest = min(found, key=Search.cycles)
    if strategy == SNNC and placer is None:
        fastest.refine(EFFORT if effort is None else effort)
    if fastest.best is not None:
        return _plan(program.name, fastest.best, activity_source, chips or target.chips, strategy)
    if strategy != SNNC:
        raise baseline_too_big(found[0].problem, strategy, found[0].misfit)
    raise too_big(found[0].problem, found[0].misfit, None if placer is not None else (request, _attempt))


def _searches(request: Request, strategy: str, placer: Placer | None) -> Iterator[Search]:
    """Search once for each way to size the windows, the later times on as many chips as the first."""
    first: Search | None = None
    for problem in request.problems():
        search = Search(problem)
        if placer is not None:
            search.run_given(placer(problem))
        elif strategy != SNNC:
            search.run_baseline(strategy, request.chips)
        elif first is None or first.best is None:
            search.run(request.chips)
        else:
            search.run_as(first.best.layout.placement)
        first = first or search
        yield search


def _attempt(request: Request, *, quick: bool) -> Trial:
    """Plan a changed request: bytes of the fullest tile of the fastest plan (quick: of any), or of the one that misses by least."""
    if quick:
        found = [Search(problem).run_quickly(request.chips) for problem in request.problems()]
    else:
        found = list(_searches(request, SNNC, None))
    best = min(found, key=Search.cycles).best
    if best is not None:
        return Trial(int(np.sum(list(best.memory.values()), axis=0).max()), best.layout.placement.chips)
    misfit = found[0].misfit
    return Trial(bytes_at_least(found[0].problem) if misfit is None else misfit[0], 0)


def _plan(name: str, best: Priced, activity_source: str, usable: int, strategy: str) -> Plan:
    """Write down a layout; `usable`: chips that it might have taken."""
    layout, problem = best.layout, best.layout.problem
    steps, tiles = supersteps(layout), usable * problem.target.tiles_per_chip
    return Plan(
        name=name,
        target=problem.target,
        steps=problem.steps,
        batch=problem.batch,
        training=problem.training,
        interval=problem.schedule.interval,
        iterations=problem.schedule.iterations(problem.steps),
        populations=tuple(_population(problem, layer, layout.range_of(layer)) for layer in problem.network.layers),
        buses=tuple(_bus(problem, bus, layout.relays[bus.source]) for bus in problem.buses),
        connections=tuple(ConnectionPlan(link.id, problem.bus_of[link.id], link.delay, link.target) for link in problem.network.links),
        activity=dict(problem.activity),
        activity_source=activity_source,
        memory={category: tuple(tiles.tolist()) for category, tiles in best.memory.items()},
        phases=best.phases,
        loss_tiles=layout.loss_tiles,
        tile_cycles=cycles_by_tile(layout, steps),
        bound_cycles=balance_bound(problem, steps, best.phases, tiles),
        ideal_cycles=ideal_bound(problem, tiles),
        strategy=strategy,
    )


def _bus(problem: Problem, bus: Bus, relays: tuple[Relay, ...]) -> BusPlan:
    return BusPlan(
        id=bus.id,
        source=bus.source.owner,
        buffer=bus.source.buffer,
        width=bus.source.width,
        kind="events" if bus.events else "values",
        lag=bus.lag,
        capacity=bus.capacity,
        mode=problem.mode,
        relays=relays,
    )


def _check(target: Target, *, steps: int, batch: int, chips: int | None, mode: str) -> None:
    for name, value in (("steps", steps), ("batch", batch)):
        if value < 1:
            raise MappingOptionError(f"{name} is {value}; it is 1 or more.")
    if chips is not None and not 1 <= chips <= target.chips:
        raise MappingOptionError(f"chips is {chips}; the target {target.name} has 1 to {target.chips}.")
    if mode not in ("exact", "drop"):
        raise MappingOptionError(f"mode is {mode!r}; it is 'exact' or 'drop'.")


def _population(problem: Problem, layer: Layer, where: TileRange) -> PopulationPlan:
    return PopulationPlan(
        layer.id,
        layer.label,
        layer.neurons,
        problem.schedule.stages[layer.id],
        where.starts,
        where.width,
        tuple(_blocks(problem, where)),
    )


def _blocks(problem: Problem, where: TileRange) -> Iterator[Block]:
    """Cut each tile's neurons into column groups and these into sample groups."""
    groups = column_groups(where.neurons, where.columns).tolist()
    for replica, (sample, samples) in enumerate(where.samples):
        tiles = where.of(replica).tolist()
        shares = sample_groups(where.neurons, where.columns, problem.target.workers, samples).tolist()
        first = 0
        for index, neurons in enumerate(where.neurons.tolist()):
            parts = list(split_samples(samples, shares[index]))
            for offset, count in split(neurons, groups[index]):
                yield from (Block(tiles[index], first + offset, count, sample + begin, number) for begin, number in parts)
            first += neurons
