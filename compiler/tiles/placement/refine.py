"""Local search: change cuts and widths of populations in a placement, and predict the cycles of each resulting placement as a whole.

A change gives all populations with the same structure a different number of replicas (copies, each for a share of the batch), other column
groups (parts of a tile's neurons), or more or fewer neurons per tile. This finds effects on relays, fragments and the exchange between
replicas, which balancing (:mod:`snnc.compiler.tiles.placement.placement`) does not see. The order of changes is fixed and their number
bounded, so plans are reproducible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.tiles.blocks.grouping import Cut, ceil_div
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.placement.choices import Choice
from snnc.compiler.tiles.placement.placement import Placement, lay_range
from snnc.compiler.tiles.problem import MappingProblem

SIMILAR: Final = 0.1
"""Maximum relative difference in size between populations that are changed together."""


@dataclass(frozen=True)
class PlacedShape:
    """Cut and tiles of a population in one of the groups of chips that share the batch."""

    cut: Cut
    width: int
    """Cut of the population, and number of tiles of a replica."""
    chip: int
    """Chip of the first tile. Populations with the same chip follow each other from the first tile of the chip on."""
    first: int | None = None
    """First tile if populations share tiles; otherwise None."""

    @property
    def tiles(self) -> int:
        """Number of tiles of all replicas."""
        return self.cut.replicas * self.width


def shapes_of(problem: MappingProblem, placement: Placement) -> tuple[PlacedShape, ...]:
    """Return the shapes of all populations in a placement."""
    shapes = []
    for where in placement.ranges:
        cut = replace(where.cut, replicas=where.replicas // placement.copies)
        shapes.append(
            PlacedShape(cut, where.width, where.starts[0] // problem.target.tiles_per_chip, where.starts[0] if placement.shared else None)
        )
    return tuple(shapes)


def placed(problem: MappingProblem, shapes: Sequence[PlacedShape], chips: int, copies: int) -> Placement | None:
    """Place shapes consecutively from the first tile of their chip, in each of `copies` groups of chips; return None if they do not fit."""
    per_chip, group = problem.target.tiles_per_chip, chips // copies * problem.target.tiles_per_chip
    batch = problem.batch // copies
    ranges: list[TileRange] = []
    first, chip = 0, -1
    for layer, shape in zip(problem.network.layers, shapes, strict=True):
        if shape.first is not None:
            if shape.first + shape.tiles > group:
                return None
            ranges.append(lay_range(batch, layer.neurons, shape.cut, shape.width, shape.first))
            continue
        if shape.chip != chip:
            if first > shape.chip * per_chip:
                return None
            first, chip = shape.chip * per_chip, shape.chip
        ranges.append(lay_range(batch, layer.neurons, shape.cut, shape.width, first))
        first += shape.tiles
    if first > group:
        return None
    shared = any(shape.first is not None for shape in shapes)
    return Placement(tuple(where.repeated(copies, group, batch) for where in ranges), chips, copies, shared)


def changes(
    problem: MappingProblem, shapes: Sequence[PlacedShape], options: Sequence[Sequence[Choice]]
) -> Iterator[tuple[PlacedShape, ...]]:
    """Yield changed shapes: first for families of similar populations, then for those that share their choices, most work first."""
    classes: dict[int, list[int]] = {}
    for index, choices in enumerate(options):
        classes.setdefault(id(choices), []).append(index)
    work = {index: options[index][0].weight for index in range(len(options))}
    together = [family for family in _families(problem) if len({id(options[m]) for m in family}) > 1]
    for groups in (together, list(classes.values())):
        for members in sorted(groups, key=lambda group: -sum(work[m] for m in group)):
            yield from _changed(shapes, options, members)


def _changed(
    shapes: Sequence[PlacedShape], options: Sequence[Sequence[Choice]], members: Sequence[int]
) -> Iterator[tuple[PlacedShape, ...]]:
    """Yield shapes in which `members` have the same new cut and number of neurons per tile, or their old shape if that is impossible."""
    for choice, width in _moves(shapes[members[0]], options[members[0]]):
        neurons, changed = int(ceil_div(choice.neurons, width)), list(shapes)
        for index in members:
            same_cut = next((option for option in options[index] if option.cut == choice.cut and neurons <= option.fit), None)
            if same_cut is not None:
                changed[index] = replace(shapes[index], cut=same_cut.cut, width=int(ceil_div(same_cut.neurons, neurons)))
        yield tuple(changed)


def _families(problem: MappingProblem) -> list[list[int]]:
    """Return groups of populations with incoming indexed connections, equal states and similar sizes: usually parts of one population."""
    layers, families = problem.network.layers, dict[int, list[int]]()
    for index, layer in enumerate(layers):
        if any(link.indexed is not None for link in layer.incoming):
            equal_states = [first for first in families if layers[first].kernel.states == layer.kernel.states]
            similar = (f for f in equal_states if abs(layers[f].neurons - layer.neurons) <= SIMILAR * layers[f].neurons)
            families.setdefault(next(similar, index), []).append(index)
    return list(families.values())


def _moves(shape: PlacedShape, choices: Sequence[Choice]) -> Iterator[tuple[Choice, int]]:
    by_cut = {choice.cut: choice for choice in sorted(choices, key=lambda choice: (choice.cut.columns, not choice.cut.paired))}
    replicas = sorted({choice.cut.replicas for choice in choices})
    present = by_cut.get(shape.cut)
    if present is None:
        return
    position = replicas.index(shape.cut.replicas)
    neurons = int(ceil_div(present.neurons, shape.width))
    moves = [(shape.cut, neurons - 1), (shape.cut, neurons + 1), *((cut, neurons) for cut in by_cut if cut.replicas == shape.cut.replicas)]
    for r in (*replicas[max(0, position - 2) : position], *replicas[position + 1 : position + 3]):
        same = int(ceil_div(present.neurons, max(1, shape.tiles // r)))  # neurons per tile, with about as many tiles in total
        moves += [(cut, n) for cut in by_cut if cut.replicas == r for n in (same, same + 1)]
    for cut, n in moves:
        choice = by_cut.get(cut)
        if choice is None or not 1 <= n <= choice.fit or (cut, n) == (shape.cut, neurons):
            continue
        yield choice, int(ceil_div(choice.neurons, n))
