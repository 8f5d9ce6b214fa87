"""StepProgram x Target -> Plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.mapping.block_memory import block_bytes
from snnc.compiler.mapping.buses import Bus, make_buses
from snnc.compiler.mapping.capacity import check_names, expected_activity
from snnc.compiler.mapping.choices import Choice, choices
from snnc.compiler.mapping.cost import network_costs
from snnc.compiler.mapping.cut import Cut
from snnc.compiler.mapping.errors import MappingOptionError
from snnc.compiler.mapping.grouping import Ints, column_groups, sample_groups, split, split_samples
from snnc.compiler.mapping.memory import memory_by_tile
from snnc.compiler.mapping.network import Layer, describe
from snnc.compiler.mapping.placement import Placement, chip_counts, copy_counts, each_once, placements
from snnc.compiler.mapping.predict import cycles_by_tile, phase, supersteps
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.relays import Room, deal_relays
from snnc.compiler.mapping.schedule import make_schedule
from snnc.compiler.mapping.supported import check_supported
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.too_big import too_big
from snnc.compiler.mapping.traffic import Layout
from snnc.compiler.plan import Block, BusPlan, ConnectionPlan, Mode, Phase, Plan, PopulationPlan, Relay
from snnc.compiler.step_program import StepProgram
from snnc.compiler.target import Target

Placer: TypeAlias = Callable[[Problem], Iterable[Placement]]
BLOCK_SHARES: Final = (1.0, 0.8, 0.6, 0.4)
"""Parts of a tile that blocks may fill, tried in this order until relays find room."""


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
    place: Placer | None = None,
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
    place
        Where populations lie, in place of the search: the fastest of these placements is taken.

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
    """
    _check(target, steps=steps, batch=batch, chips=chips, mode=mode)
    check_supported(program)
    network = describe(program, training)
    check_names(network, activity, capacity)
    schedule = make_schedule(network)
    expected = expected_activity(network, activity)
    costs = network_costs(network)
    found: list[Search] = []
    for measured in _window_sizes(activity, capacity, mode):
        buses, bus_of = make_buses(network, schedule, measured, capacity)
        search = Search(Problem(network, schedule, buses, bus_of, costs, expected, target, steps, batch, mode))
        first = found[0].best if found else None
        if place is not None:
            found.append(search.run_given(place(search.problem)))
        else:
            found.append(search.run(chips) if first is None else search.run_as(first.layout.placement))
    best = min((search.best for search in found if search.best is not None), key=lambda priced: priced.cycles, default=None)
    if best is None:
        raise too_big(found[0].problem, found[0].misfit, _larger_target(found[0].problem))
    return _plan(program.name, best, activity_source)


def _window_sizes(
    activity: Mapping[str, float] | None, capacity: Mapping[str, int] | int | None, mode: Mode
) -> tuple[Mapping[str, float] | None, ...]:
    """Activities to size windows by: small windows that may be followed by further ones, and windows that hold everything.

    Small windows save bytes but cost a test for further ones in every iteration. Whatever the user gave is kept.
    """
    return (activity, None) if activity and capacity is None and mode == "exact" else (activity,)


def _plan(name: str, best: Priced, activity_source: str) -> Plan:
    """Write down a layout."""
    layout, problem = best.layout, best.layout.problem
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
        tile_cycles=cycles_by_tile(layout, supersteps(layout)),
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


@dataclass(frozen=True, eq=False)
class Priced:
    """A layout that fits, with its memory and its predicted phases."""

    layout: Layout
    memory: dict[str, Ints]
    phases: tuple[Phase, ...]

    @property
    def cycles(self) -> float:
        """Predicted cycles of a training step."""
        return sum(p.runs * (p.compute + p.sync + p.exchange) for p in self.phases)


def _larger_target(problem: Problem) -> str | None:
    """Name of the smallest machine with more chips of the same kind on which the network fits."""
    from snnc.compiler.targets import load_target, target_names

    mine = problem.target
    known = sorted((load_target(name) for name in target_names()), key=lambda t: (t.chips, t.name))
    for other in known:
        same = (other.ipu_version, other.tiles_per_chip, other.tile_bytes) == (mine.ipu_version, mine.tiles_per_chip, mine.tile_bytes)
        if same and other.chips > mine.chips and Search(replace(problem, target=other)).run(other.chips).best is not None:
            return other.name
    return None


def _check(target: Target, *, steps: int, batch: int, chips: int | None, mode: str) -> None:
    for name, value in (("steps", steps), ("batch", batch)):
        if value < 1:
            raise MappingOptionError(f"{name} is {value}; it is 1 or more.")
    if chips is not None and not 1 <= chips <= target.chips:
        raise MappingOptionError(f"chips is {chips}; the target {target.name} has 1 to {target.chips}.")
    if mode not in ("exact", "drop"):
        raise MappingOptionError(f"mode is {mode!r}; it is 'exact' or 'drop'.")


class Search:
    """The fastest placement so far that fits, and the one that misses by least."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[int, tuple[tuple[Choice, ...], ...]] = {}
        self.best: Priced | None = None
        self.misfit: tuple[int, Layout, dict[str, Ints]] | None = None

    def price(self, placement: Placement, *, near: bool) -> bool:
        """Lay out and price one placement; tell whether it fits."""
        layout = lay_out(self.problem, placement, near=near)
        found = supersteps(layout)
        memory = memory_by_tile(layout, found)
        largest = int(np.sum(list(memory.values()), axis=0).max())
        if largest > self.problem.target.tile_bytes:
            if self.misfit is None or largest < self.misfit[0]:
                self.misfit = largest, layout, memory
            return False
        priced = Priced(layout, memory, tuple(phase(layout, step) for step in found))
        if self.best is None or priced.cycles < self.best.cycles:
            self.best = priced
        return True

    def run(self, chips: int | None) -> Search:
        """Try few chips first and stop once more of them no longer help; give blocks less of a tile where relays do not fit."""
        for count in chip_counts(self.problem, chips):
            before = self.best
            for copies in copy_counts(self.problem, count):
                self._run_copies(count, copies)
            if before is not None and self.best is before:
                break
        return self

    def run_given(self, found: Iterable[Placement]) -> Search:
        """Try these placements."""
        given = list(found)
        if not self._price_all(given, near=True):
            self._price_all(given, near=False)
        return self

    def run_as(self, placement: Placement) -> Search:
        """Try as many chips and copies as `placement` has."""
        self._run_copies(placement.chips, placement.copies)
        return self

    def _run_copies(self, chips: int, copies: int) -> None:
        """Try `copies` groups of chips that share the batch."""
        part = replace(self.problem, batch=self.problem.batch // copies)
        options = self._options(part)
        for share in BLOCK_SHARES:
            limit = share * part.target.tile_bytes
            tight = each_once(options, partial(_within, limit))
            found = list(placements(part, tight, chips, copies))
            if self._price_all(found, near=True) or self._price_all(found, near=False):
                break

    def _options(self, part: Problem) -> tuple[tuple[Choice, ...], ...]:
        if part.batch not in self._known:
            self._known[part.batch] = choices(part)
        return self._known[part.batch]

    def _price_all(self, found: Sequence[Placement], *, near: bool) -> bool:
        fits = [self.price(placement, near=near) for placement in found]
        return any(fits)


def _within(limit: float, some: Sequence[Choice]) -> list[Choice]:
    return [option.within(limit) for option in some]


def lay_out(problem: Problem, placement: Placement, *, near: bool) -> Layout:
    """Deal relays and losses over tiles; `near`: relays lie on the chips of their source (of its first reader, for an input)."""
    held = np.zeros(problem.target.tiles, dtype=np.int64)
    ranges = {layer.id: where for layer, where in zip(problem.network.layers, placement.ranges, strict=True)}
    for layer in problem.network.layers:
        where = ranges[layer.id]
        cut = Cut(where.replicas, where.columns)
        held[where.tiles] += sum(block_bytes(problem, layer, cut, where.tile_neurons, where.tile_samples).values())
    rooms = {}
    for source in problem.network.sources:
        owner = source.owner if not source.external else next(link.target for link in problem.network.links if link.source == source)
        rooms[source] = _rooms(problem, placement, ranges[owner], near=near)
    relays = deal_relays(problem, held, rooms, ranges)
    return Layout(problem, placement, relays, _loss_tiles(problem, held, range(placement.chips * problem.target.tiles_per_chip)))


def _rooms(problem: Problem, placement: Placement, where: TileRange, *, near: bool) -> list[Room]:
    """Tiles for the relays of each group of chips: all of them, or those of the chips of `where`."""
    per_chip, copies = problem.target.tiles_per_chip, placement.copies
    group = -(-placement.chips // copies) * per_chip
    each = where.replicas // copies
    found = []
    for copy, (sample, samples) in enumerate(split(problem.batch, copies)):
        first, stop = copy * group, min((copy + 1) * group, placement.chips * per_chip)
        if near:
            mine = where.tiles[copy * each * where.width : (copy + 1) * each * where.width]
            first, stop = int(mine.min()) // per_chip * per_chip, (int(mine.max()) // per_chip + 1) * per_chip
        found.append(Room(first, stop, sample, samples))
    return found


def _loss_tiles(problem: Problem, held: Ints, usable: range) -> tuple[int, ...]:
    """Losses go, one sample after the other, to the tiles that hold least."""
    if not problem.training or problem.network.loss_layer is None:
        return ()
    order = np.argsort(held[usable.start : usable.stop], kind="stable") + usable.start
    return tuple(int(order[sample % len(order)]) for sample in range(problem.batch))


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
    for start, (sample, samples) in zip(where.starts, where.samples, strict=True):
        shares = sample_groups(where.neurons, where.columns, problem.target.workers, samples).tolist()
        first = 0
        for index, neurons in enumerate(where.neurons.tolist()):
            parts = list(split_samples(samples, shares[index]))
            for offset, count in split(neurons, groups[index]):
                yield from (Block(start + index, first + offset, count, sample + begin, number) for begin, number in parts)
            first += neurons
