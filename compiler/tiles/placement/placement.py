"""Placement of populations on tiles, such that work is balanced (docs/explanation/mapping.md).

Consecutive populations are divided between chips such that the work is even. On each chip, populations get contiguous tile ranges such that
the busiest tile is as fast as possible: for a bound X, each population gets the fewest tiles, over all ways to cut it, on which no tile
needs more than X cycles per step or more bytes than it has; bisection finds the smallest X for which the ranges fit on the chip.

With *copies* > 1 the chips are split into that many equal groups, each with the whole network for its share of the batch. The *options*
are the choices (:class:`~snnc.compiler.tiles.placement.choices.Choice`) of each population.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Cut, neurons_per_tile, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.placement.balance import AllocationTable, Balance, bisect, cached_table
from snnc.compiler.tiles.placement.choices import Allocation, Choice
from snnc.compiler.tiles.problem import MappingProblem

ROOMY: Final = 0.3
"""Tiles that remain are given to the population with the fullest tiles only if these are filled to more than this fraction."""
BISECTIONS: Final = 40
CLOSE: Final = 1.002
"""Bounds on a tile's cycles count as equal if their ratio is less than this."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Tile ranges of the layers in network order, the number of chips in use, and the number of groups of chips that share the batch.

    Layers share tiles only if `shared` is set, or if the target has fewer tiles than layers.
    """

    ranges: tuple[TileRange, ...]
    chips: int
    copies: int = 1
    shared: bool = False


def chip_counts(problem: MappingProblem, chips: int | None) -> tuple[int, ...]:
    """Return the numbers of chips to try: `chips`, or by default all powers of two up to the number of chips, and this number.

    By default, a machine with fewer tiles than layers is used completely.
    """
    if chips is not None:
        return (chips,)
    if problem.target.tiles < len(problem.network.layers):
        return (problem.target.chips,)
    return tuple(sorted({*(1 << k for k in range(problem.target.chips.bit_length())), problem.target.chips}))


def copy_counts(problem: MappingProblem, chips: int) -> tuple[int, ...]:
    """Return the possible numbers of groups of chips that share the batch: common divisors of `chips` and the batch.

    A machine with fewer tiles than layers has only one group.
    """
    if problem.target.tiles < len(problem.network.layers):
        return (1,)
    return tuple(n for n in range(1, chips + 1) if chips % n == 0 and problem.batch % n == 0)


def placements(
    problem: MappingProblem, options: Sequence[Sequence[Choice]], chips: int, copies: int = 1, *, balanced: Sequence[bool] = (False, True)
) -> Iterator[Placement]:
    """Yield placements on at most `chips` chips: some with tiles left free for relays, some without; none if the memory does not suffice.

    The chips form `copies` groups. `problem` and `options` are those of one group, with its share of the batch. For each number of free
    tiles, there is one placement for each element of `balanced`: whether it is balanced (see :func:`_place`).
    """
    if problem.target.tiles < len(problem.network.layers):
        yield _shared(problem, [choices[0] for choices in options])
        return
    if any(all(choice.fit < 1 for choice in choices) for choices in options):
        return
    fitting, tables = each_once(options, lambda choices: [choice for choice in choices if choice.fit >= 1]), Memo()
    relays = len(problem.network.sources) * problem.batch
    for spare in dict.fromkeys((min(relays, problem.target.tiles_per_chip // 3), min(relays // 4, problem.target.tiles_per_chip // 8), 0)):
        for each in balanced:
            placed = _place(problem, fitting, tables, chips // copies, spare, balanced=each)
            if placed is not None:
                yield copied(problem, placed, chips // copies, copies)


def each_once(options: Sequence[Sequence[Choice]], change: Callable[[Sequence[Choice]], list[Choice]]) -> list[Sequence[Choice]]:
    """Apply `change` once to each distinct list of choices; populations with the same structure share a list."""
    changed = {id(choices): change(choices) for choices in options}
    return [changed[id(choices)] for choices in options]


def copied(problem: MappingProblem, placed: Placement, chips: int, copies: int) -> Placement:
    """Repeat a placement on `chips` chips for `copies` groups of chips that share the batch."""
    tiles = chips * problem.target.tiles_per_chip
    used = placed.chips if copies == 1 else (copies - 1) * chips + placed.chips
    return Placement(tuple(r.repeated(copies, tiles, problem.batch) for r in placed.ranges), used, copies, placed.shared)


def _place(
    problem: MappingProblem, fitting: Sequence[Sequence[Choice]], tables: Memo, chips: int, spare: int, *, balanced: bool
) -> Placement | None:
    """Place the layers on `chips` chips; None if the memory does not suffice. `tables` caches what several placements need.

    On each chip, or on the chips of a layer that takes several, `spare` tiles are left free for relays.

    If not `balanced`, each layer gets the fewest tiles for the smallest bound on a tile's cycles. Balanced allocations use more tiles,
    which saves cycles but costs fragments, so both kinds are tried.
    """
    per_chip = problem.target.tiles_per_chip
    groups = tables.get(("groups", spare), lambda: _chip_groups(tables.get("sizes", partial(_sizes, fitting)), chips, per_chip - spare))
    if groups is None:
        return None
    ranges: list[TileRange] = []
    first_chip = 0
    allocations_of: dict[tuple[int, ...], list[Allocation] | None] = {}  # chips with the same structures get the same allocations
    for members, width in groups:
        group_options = [fitting[m] for m in members]
        if (key := (width, *map(id, group_options))) not in allocations_of:
            allocations_of[key] = _shared_out(group_options, tables, width * per_chip - spare, balanced=balanced)
        allocations = allocations_of[key]
        if allocations is None:
            return None
        first = first_chip * per_chip
        for allocation in allocations:
            ranges.append(lay_range(problem.batch, allocation.choice.neurons, allocation.choice.cut, allocation.width, first))
            first += allocation.tiles
        first_chip += width
    return Placement(tuple(ranges), first_chip)


def _shared_out(options: Sequence[Sequence[Choice]], tables: Memo, tiles: int, *, balanced: bool) -> list[Allocation] | None:
    key = tuple(map(id, options))
    allocations = tables.get(("allotted", tiles, key), partial(_allot, options, tables, tiles))
    if allocations is not None and balanced:
        balance: Balance = tables.get(("balance", key), partial(Balance, options, tables))
        allocations = _quicken(balance.improve(allocations, tiles), tiles)
    return None if allocations is None else _spread(allocations, tiles)


def lay_range(batch: int, neurons: int, cut: Cut, width: int, first: int) -> TileRange:
    """Place the replicas of a population, `width` tiles each, consecutively from tile `first`."""
    starts = tuple(first + r * width for r in range(cut.replicas))
    return TileRange(starts, neurons_per_tile(neurons, width), tuple(split(batch, cut.replicas)), cut.columns, paired=cut.paired)


def _allot(options: Sequence[Sequence[Choice]], tables: Memo, tiles: int) -> list[Allocation] | None:
    """Return allocations with the smallest bound on the cycles of a tile, each with the fewest tiles; None if they need too many tiles."""
    tables_of_options = [cached_table(tables, choices) for choices in {id(choices): choices for choices in options}.values()]
    members = Counter(map(id, options))
    number = [members[id(table.choices)] for table in tables_of_options]
    high = float(max(table.cycles.max() for table in tables_of_options))
    best = bisect(0.0, high, partial(_within, tables_of_options, number, tiles), BISECTIONS, CLOSE)
    if best is None:
        return None
    rows = {id(table.choices): (int(table.choice[row]), int(table.width[row])) for table, row in zip(tables_of_options, best, strict=True)}
    return [Allocation(choices[rows[id(choices)][0]], rows[id(choices)][1]) for choices in options]


def _within(tables: Sequence[AllocationTable], number: Sequence[int], tiles: int, bound: float) -> list[int] | None:
    """Return, per structure, the row of the allocation with the fewest tiles within `bound` cycles; None if `tiles` do not suffice.

    `number` is the number of populations of each structure.
    """
    rows, used = [], 0
    for table, members in zip(tables, number, strict=True):
        inside = table.cycles <= bound
        row = int(inside.argmax())
        used += members * int(table.tiles[row])
        if not inside[row] or used > tiles:
            return None
        rows.append(row)
    return rows


def _quicken(allocations: list[Allocation], tiles: int) -> list[Allocation]:
    """Give the remaining tiles to slow layers: widen the slowest layer of the longest part of the step that more tiles can shorten."""
    allocations = list(allocations)
    while True:
        longest = np.array([allocation.choice.parts[:, allocation.neurons - 1] for allocation in allocations])
        used = sum(allocation.tiles for allocation in allocations)
        for part in np.argsort(-longest.max(axis=0), kind="stable"):
            worst = int(longest[:, part].argmax())
            fewer_neurons = int(np.searchsorted(allocations[worst].choice.parts[part], longest[worst, part], side="left"))
            more = allocations[worst].with_fewer(fewer_neurons) if fewer_neurons else None
            if more is not None and used - allocations[worst].tiles + more.tiles <= tiles:
                allocations[worst] = more
                break
        else:
            return allocations


def _spread(allocations: list[Allocation], tiles: int) -> list[Allocation]:
    """Give remaining tiles to the layer with the fullest tiles, as long as these are filled to more than :data:`ROOMY`."""
    allocations = list(allocations)
    while True:
        full = [float(t.choice.used[t.neurons - 1] / t.choice.limit) if t.neurons > 1 else 0.0 for t in allocations]
        worst = int(np.argmax(full))
        if full[worst] <= ROOMY:
            return allocations
        more = allocations[worst].with_fewer(allocations[worst].neurons - 1)
        if sum(allocation.tiles for allocation in allocations) - allocations[worst].tiles + more.tiles > tiles:
            return allocations
        allocations[worst] = more


def _sizes(options: Sequence[Sequence[Choice]]) -> tuple[list[float], list[int], list[int]]:
    """Return the work of each layer, the smallest number of tiles on which it fits, and its number of neurons."""
    of_structure = {
        id(choices): (choices[0].weight, min(choice.tiles(max(choice.fit, 1)) for choice in choices), choices[0].neurons)
        for choices in {id(choices): choices for choices in options}.values()
    }
    work, fewest, neurons = zip(*(of_structure[id(choices)] for choices in options), strict=True)
    return list(work), list(fewest), list(neurons)


def _chip_groups(
    sizes: tuple[Sequence[float], Sequence[int], Sequence[int]], chips: int, per_chip: int
) -> list[tuple[list[int], int]] | None:
    """Cut the layers into consecutive groups of even work: one chip for each, or several chips for a layer that needs their memory.

    `sizes` is the result of :func:`_sizes`.
    """
    weights, tiles, neurons = sizes

    def cut(bound: float) -> list[tuple[list[int], int]] | None:
        groups = _cut(weights, tiles, neurons, bound, per_chip)
        return groups if sum(width for _, width in groups) <= chips else None

    return bisect(0.0, sum(weights), cut, BISECTIONS)


def _cut(
    weights: Sequence[float], fewest: Sequence[int], neurons: Sequence[int], bound: float, per_chip: int
) -> list[tuple[list[int], int]]:
    """Fill groups of layers in order; a group ends where its work would exceed `bound`, or its number of tiles `per_chip`.

    A layer that needs more than one chip is a group of its own. Return the layers and the number of chips of each group.
    """
    groups: list[tuple[list[int], int]] = []
    work, tiles = math.inf, 0
    for index, weight in enumerate(weights):
        if fewest[index] > per_chip:
            useful = min(math.ceil(weight / max(bound, 1.0)), neurons[index] // per_chip)
            groups.append(([index], max(math.ceil(fewest[index] / per_chip), useful)))
            work = math.inf
            continue
        if work + weight > bound or tiles + fewest[index] > per_chip:
            groups.append(([], 1))
            work, tiles = 0.0, 0
        groups[-1][0].append(index)
        work, tiles = work + weight, tiles + fewest[index]
    return groups


def _shared(problem: MappingProblem, options: Sequence[Choice]) -> Placement:
    """Place more populations than there are tiles: consecutive populations share a tile, with even work."""
    tiles = problem.target.tiles
    total, done = sum(option.weight for option in options), 0.0
    ranges = []
    for option in options:
        tile = min(int((done + option.weight / 2) / total * tiles), tiles - 1)
        ranges.append(TileRange((tile,), neurons_per_tile(option.neurons, 1), ((0, problem.batch),), problem.target.workers))
        done += option.weight
    return Placement(tuple(ranges), ranges[-1].starts[0] // problem.target.tiles_per_chip + 1)
