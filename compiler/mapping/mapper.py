"""StepProgram x Target -> Plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.mapping.block_memory import block_bytes
from snnc.compiler.mapping.buses import Bus, make_buses
from snnc.compiler.mapping.capacity import check_names, expected_activity
from snnc.compiler.mapping.cost import network_costs
from snnc.compiler.mapping.errors import MappingOptionError
from snnc.compiler.mapping.grouping import Ints, column_groups, sample_groups, split
from snnc.compiler.mapping.knobs import Trial
from snnc.compiler.mapping.memory import memory_by_tile
from snnc.compiler.mapping.network import Layer, describe
from snnc.compiler.mapping.placement import Placement, TileRange, chip_counts, choices, placements
from snnc.compiler.mapping.predict import cycles_by_tile, phase, supersteps
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.relays import deal_relays
from snnc.compiler.mapping.schedule import make_schedule
from snnc.compiler.mapping.supported import check_supported
from snnc.compiler.mapping.too_big import bytes_at_least, too_big
from snnc.compiler.mapping.traffic import Layout
from snnc.compiler.plan import Block, BusPlan, ConnectionPlan, Mode, Phase, Plan, PopulationPlan, Relay
from snnc.compiler.step_program import StepProgram
from snnc.compiler.target import Target

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
    buses, bus_of = make_buses(network, schedule, activity, capacity)
    problem = Problem(network, schedule, buses, bus_of, network_costs(network), expected, target, steps, batch, mode)
    search = Search(problem).run(chips)
    if search.best is None:
        raise too_big(problem, search.misfit, _attempt)
    return _plan(program.name, search.best, activity_source)


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


def _attempt(problem: Problem) -> Trial:
    """Plan a changed problem: bytes of the fullest tile of the fastest plan, or of the one that misses by least."""
    search = Search(problem).run(None)
    if search.best is not None:
        return Trial(int(np.sum(list(search.best.memory.values()), axis=0).max()), search.best.layout.placement.chips)
    return Trial(bytes_at_least(problem) if search.misfit is None else search.misfit[0], 0)


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
        options = choices(self.problem)
        for count in chip_counts(self.problem, chips):
            before = self.best
            for share in BLOCK_SHARES:
                tight = [option.within(share * self.problem.target.tile_bytes) for option in options]
                found = list(placements(self.problem, tight, count))
                if self._price_all(found, near=True) or self._price_all(found, near=False):
                    break
            if before is not None and self.best is before:
                break
        return self

    def _price_all(self, found: Sequence[Placement], *, near: bool) -> bool:
        fits = [self.price(placement, near=near) for placement in found]
        return any(fits)


def lay_out(problem: Problem, placement: Placement, *, near: bool) -> Layout:
    """Deal relays and losses over tiles; `near`: relays lie on the chips of their source (of its first reader, for an input)."""
    held = np.zeros(problem.target.tiles, dtype=np.int64)
    ranges = {layer.id: where for layer, where in zip(problem.network.layers, placement.ranges, strict=True)}
    for layer in problem.network.layers:
        where = ranges[layer.id]
        held[where.first : where.stop] += sum(block_bytes(problem, layer, where.neurons).values())
    per_chip = problem.target.tiles_per_chip
    everywhere = range(placement.chips * per_chip)
    usable = {}
    for source in problem.network.sources:
        owner = source.owner if not source.external else next(link.target for link in problem.network.links if link.source == source)
        where = ranges[owner]
        usable[source] = range(where.first // per_chip * per_chip, ((where.stop - 1) // per_chip + 1) * per_chip) if near else everywhere
    relays = deal_relays(problem, held, usable, ranges)
    return Layout(problem, placement, relays, _loss_tiles(problem, held, everywhere))


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
        where.first,
        len(where.neurons),
        tuple(_blocks(problem, where)),
    )


def _blocks(problem: Problem, where: TileRange) -> list[Block]:
    """Cut each tile's neurons into column groups and these into sample groups."""
    workers, batch = problem.target.workers, problem.batch
    found: list[Block] = []
    first = 0
    groups = column_groups(where.neurons, workers).tolist()
    shares = sample_groups(where.neurons, workers, batch).tolist()
    for index, neurons in enumerate(where.neurons.tolist()):
        parts = list(split(batch, shares[index]))
        for start, count in split(neurons, groups[index]):
            found.extend(Block(where.first + index, first + start, count, sample, samples) for sample, samples in parts)
        first += neurons
    return found
