"""Predicted bytes on every tile over a training step, by category, with their maximum over time.

A category, such as "weights", is divided by *lifetime*: the stages of a training step in which the data are live. Data with separate
lifetimes share memory (:mod:`snnc.compiler.tiles.memory.lifetimes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, LABEL_BYTES
from snnc.compiler.ir.plan import MemoryPhase
from snnc.compiler.tiles.blocks.grouping import Ints, ceil_div, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.indexed_cycles import owned_values
from snnc.compiler.tiles.exchange.indexed_traffic import owned_work
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.gradient_traffic import reduced_bytes
from snnc.compiler.tiles.gradients.packing import packings
from snnc.compiler.tiles.gradients.update_steps import norm_bytes, squared_shares
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.memory.block_memory import CategoryAndLife, block_bytes, estimated_bytes, most_bytes
from snnc.compiler.tiles.memory.lifetimes import LIVES, SEQUENCE, by_stage, stage_of
from snnc.compiler.tiles.prediction.codelet_bytes import codelet_bytes
from snnc.compiler.tiles.prediction.training_step import fragments_without_runs
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import mask_rows
from snnc.compiler.tiles.schedule.window_test import ROOT, level_reads
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft

CATEGORIES: Final = ("weights", "tables", "optimiser", "gradients", "history", "relays", "records", "exchange", "vertices", "code")
_PIECE: Final = 9
"""Number of constants that define one piece of a mask, which a worker of a relay searches."""
OF_SEQUENCE: Final = ("history", "relays", "records")
"""Categories of bytes that decrease if the sequence is divided into segments."""


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """Bytes in the memory of all tiles over a training step."""

    held: dict[CategoryAndLife, Ints]
    """Bytes on each tile, by (category, lifetime)."""
    steps: tuple[tuple[str, str, Ints], ...]
    """For each superstep: its name, its part of the training step, and the bytes of exchange buffers on each tile."""

    @cached_property
    def over_time(self) -> Ints:
        """Live bytes of all categories, [supersteps, tiles]."""
        live = by_stage(self.held, tuple(dict.fromkeys(self.stages)))
        return np.stack([live[stage] + buffers for stage, (_, _, buffers) in zip(self.stages, self.steps, strict=True)])

    @property
    def stages(self) -> tuple[str, ...]:
        """Stage of every superstep."""
        return tuple(stage_of(part, name) for name, part, _ in self.steps)

    @cached_property
    def peaks(self) -> Ints:
        """Maximum number of live bytes on each tile."""
        maximum: Ints = self.over_time.max(axis=0)
        return maximum

    @property
    def largest(self) -> int:
        """Number of bytes on the fullest tile."""
        return int(self.peaks.max())

    @property
    def of_update(self) -> int:
        """Bytes of the fullest tile in the update, without data of the sequence; segments cannot reduce these bytes."""
        update = [stage not in SEQUENCE for stage in self.stages]
        if not any(update):
            return 0
        of_sequence = sum((size for (name, life), size in self.held.items() if name in OF_SEQUENCE and life == "always"), start=np.int64(0))
        return int((self.over_time[update] - of_sequence).max())

    @property
    def tile(self) -> int:
        """The fullest tile."""
        return int(self.peaks.argmax())

    def phase_of(self, tile: int) -> str:
        """Return the name of the superstep in which a tile's memory is fullest."""
        return self.steps[int(self.over_time[:, tile].argmax())][0]

    @cached_property
    def at_peak(self) -> dict[str, Ints]:
        """Bytes on each tile at its peak, by category; they add up to :attr:`peaks`."""
        when = self.over_time.argmax(axis=0)
        by_category = {name: np.zeros(len(when), dtype=np.int64) for name in CATEGORIES}
        for (category, life), size in self.held.items():
            by_category[category] += size * np.array([stage in LIVES[life] for stage in self.stages])[when]
        by_category["exchange"] += np.stack([buffers for _, _, buffers in self.steps])[when, np.arange(len(when))]
        return by_category

    @property
    def unshared(self) -> Ints:
        """Bytes of each tile without memory sharing: all variables, and the largest exchange buffers."""
        total: Ints = sum(self.held.values(), start=np.int64(0)) + np.max([buffers for _, _, buffers in self.steps], axis=0)
        return total

    def phases(self) -> Iterator[MemoryPhase]:
        """Yield the bytes of :attr:`tile`, and of all tiles, in every superstep."""
        for (name, part, buffers), stage in zip(self.steps, self.stages, strict=True):
            fullest, all_tiles = dict.fromkeys(CATEGORIES, 0), dict.fromkeys(CATEGORIES, 0)
            for (category, life), size in self.held.items():
                if stage in LIVES[life]:
                    fullest[category] += int(size[self.tile])
                    all_tiles[category] += int(size.sum())
            fullest["exchange"], all_tiles["exchange"] = int(buffers[self.tile]), int(buffers.sum())
            yield MemoryPhase(name, part, fullest, all_tiles)


def memory_of(layout: Layout, steps: Sequence[SuperstepDraft]) -> MemoryUse:
    """Return the predicted contents of every tile in the supersteps `steps`, including the code of their exchanges."""
    problem = layout.problem
    held: dict[CategoryAndLife, Ints] = {}

    def add(category_and_life: CategoryAndLife, tiles: Ints, size: Ints) -> None:
        np.add.at(held.setdefault(category_and_life, np.zeros(problem.target.tiles, dtype=np.int64)), tiles, size)

    used = np.zeros(problem.target.tiles, dtype=bool)
    used[layout.clock_tiles] = True
    for layer in problem.network.layers:
        where = layout.ranges[layer.id]
        used[where.tiles] = True
        for key, size in _block_bytes(layout, layer, where).items():
            add(key, where.tiles, size)
    for key, tiles, size in _owned(layout):
        add(key, tiles, size)
    if problem.network.norm_cycles:
        add(("optimiser", "always"), np.arange(problem.target.tiles), norm_bytes(layout, squared_shares(layout)))
    for _, packing in packings(layout):
        add(("weights", "packed rows"), packing.tiles, np.tile(FLOAT * packing.elements, len(packing.readers)))
    for source, relays in layout.relays.items():
        tiles, samples = np.array([(relay.tile, relay.samples) for relay in relays], dtype=np.int64).T
        used[tiles] = True
        for life, per_sample in problem.store_lives[source].items():
            add(("relays", life), tiles, samples * per_sample)
    every = np.arange(problem.target.tiles)
    for life, size in reduced_bytes(layout).items():
        add(("gradients", life), every, size)
    if problem.further.known:
        add(("relays", "always"), np.array([ROOT]), np.array([FLOAT * problem.segments.iterations]))
    losses = np.array(layout.loss_tiles, dtype=np.int64)
    used[losses] = True
    for life, per_sample in _loss_bytes(problem).items():
        add(("records", life), losses, np.full(len(losses), per_sample))
    fragments = np.sum([traffic.fragments for step in steps if not step.repeats for traffic in (step.traffic, *step.after)], axis=0)
    fragments = fragments + sum(step.row.fragments for step in steps if step.row is not None)
    fragments = fragments + fragments_without_runs(layout)
    code, vertices = codelet_bytes(layout)
    of_fragments: Ints = (fragments * problem.target.fragment_code_bytes).astype(np.int64)
    add(("code", "always"), every, code + used * problem.target.fixed_tile_bytes + of_fragments)
    add(("vertices", "always"), every, vertices + constant_bytes(layout))
    return MemoryUse(held, tuple((step.name, step.part, _buffers(step)) for step in steps))


def _block_bytes(layout: Layout, layer: Layer, where: TileRange) -> dict[CategoryAndLife, Ints]:
    problem = layout.problem
    if not layout.exact or not any(link.indexed is not None for link in (*layer.incoming, *layer.outgoing)):
        return estimated_bytes(problem, layer, where)
    of_tile = where.tile_neurons, where.tile_samples
    return block_bytes(problem, layer, where.cut, *of_tile, layout.holdings(layer), owned=False)


def _buffers(step: SuperstepDraft) -> Ints:
    """Return the bytes of exchange buffers in a superstep, for data that vertices read from or write to other tiles."""
    if not step.load.vertices:
        return np.zeros(step.traffic.received.shape, dtype=np.int64)
    return (step.traffic.received + sum(traffic.sent for traffic in step.after)).astype(np.int64)


def _owned(layout: Layout) -> Iterator[tuple[CategoryAndLife, Ints, Ints]]:
    for connection in layout.copied if layout.exact else ():
        size = FLOAT * connection.owners.count
        values = owned_values(layout.problem, 1, int(connection.link.weight_gradient))
        yield from ((key, connection.owners.tile, number * size) for key, number in values.items())
        if connection.link.half:
            # Two weights share a word; an odd number is padded.
            words = FLOAT * ceil_div(connection.owners.count, 2) - size
            yield ("weights", "always"), connection.owners.tile, words * connection.halves
            if layout.problem.network.rounding == "master" and connection.link.weight_gradient:
                yield ("optimiser", "always"), connection.owners.tile, size * (connection.halves & connection.owners.learned)


def _loss_bytes(problem: MappingProblem) -> dict[str, int]:
    """Return the bytes per sample of a loss vertex, by lifetime: positions of outputs, scores, targets and the loss.

    Records and adjoints are counted as exchange buffers.
    """
    loss = problem.network.loss
    targets = FLOAT * loss.targets(problem.steps)
    sizes = {
        "always": FLOAT * 2 * loss.width,
        "scores": FLOAT * (1 + loss.chooses_step) * loss.scores,
        "loss": FLOAT * problem.loss_parts + (0 if targets else LABEL_BYTES),
    }
    # Targets arrive before the first superstep of the loss.
    sizes["scores" if loss.scores else "loss"] += targets
    return sizes


def bytes_before_pricing(layout: Layout) -> int:
    """Return a lower bound on the bytes of the fullest tile before cycles are predicted.

    It counts variables, and the exchange code of the test for further windows.
    """
    problem = layout.problem
    held: dict[CategoryAndLife, Ints] = {("code", "always"): np.zeros(problem.target.tiles, dtype=np.int64)}
    for layer in problem.network.layers:
        where = layout.ranges[layer.id]
        for key, size in estimated_bytes(problem, layer, where).items():
            held.setdefault(key, np.zeros(problem.target.tiles, dtype=np.int64))[where.tiles] += size
    for source, relays in layout.relays.items():
        for life, each in problem.store_lives[source].items():
            stored = held.setdefault(("relays", life), np.zeros(problem.target.tiles, dtype=np.int64))
            np.add.at(stored, [r.tile for r in relays], [r.samples * each for r in relays])
    for level in level_reads(layout.window_test) if layout.window_test is not None else ():
        held["code", "always"][level.tile] += level.fragments.astype(np.int64) * problem.target.fragment_code_bytes
    return int(most_bytes(problem, held).max())


def largest_category(memory: dict[str, Ints], tile: int) -> tuple[str, int]:
    """Return the name and the bytes of the largest category on `tile`."""
    name = max(CATEGORIES, key=lambda category: int(memory[category][tile]))
    return name, int(memory[name][tile])


def constant_bytes(layout: Layout) -> Ints:
    """Return the bytes of constants on every tile, without tables of indexed connections and positions of outputs that a loss reads."""
    problem, workers = layout.problem, layout.problem.target.workers
    words: Ints = np.zeros(problem.target.tiles, dtype=np.int64)
    for source, relays in layout.relays.items():
        if source.external:
            continue
        rows = mask_rows(problem, source, layout.ranges[source.owner])
        tiles, samples = np.array([(relay.tile, relay.samples) for relay in relays], dtype=np.int64).T
        if source.kind != "spikes":
            np.add.at(words, tiles, rows.tiles + 1)
            continue
        worker = np.arange(workers)[:, None]
        pieces = (ceil_div((worker + 1) * samples, workers) - worker * samples // workers).sum(axis=0)
        np.add.at(words, tiles, rows.all + 2 * (workers + 1 + _PIECE * pieces))
    for layer in problem.network.layers if problem.training else ():
        for link in layer.outgoing:
            if problem.copies(link) and link.dense:
                words[layout.ranges[layer.id].tiles] += _row_constants(layout.ranges[link.target])
    for work in owned_work(layout, problem.network.layers) if problem.training else ():
        # A worker that sums pieces for an owner reads the position and the length of each of its pieces, or one entry if it has none.
        np.add.at(words, work.tiles, 2 * np.maximum(work.pieces, workers) + work.elements * work.places)
    for _, packing in packings(layout):
        np.add.at(words, packing.tiles, packing.shape_constants())
    return FLOAT * words


def _row_constants(where: TileRange) -> int:
    """Return the number of constants that describe rows of weights: one group of constants per run of tiles with equally many neurons."""
    first = np.append(True, np.diff(where.neurons) != 0)
    return int((3 + column_groups(where.neurons, where.columns))[first].sum())
