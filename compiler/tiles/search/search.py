"""Search for a placement: a range of tiles for each population, on one of several numbers of chips, with balanced work.

*Pricing* a placement predicts its cycles and bytes. The placement of relays, the tiles that distribute spikes or values, is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Final

import numpy as np

from snnc.compiler.ir.plan import Phase
from snnc.compiler.machines.target import Streaming
from snnc.compiler.tiles.baselines import assignments, place
from snnc.compiler.tiles.blocks.blocks import cut_key
from snnc.compiler.tiles.blocks.grouping import Cut, Floats
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.parameter_copies import weights_to_replicas
from snnc.compiler.tiles.gradients.update_steps import least_update
from snnc.compiler.tiles.mapped.learned import learned_parameters, learned_scalars
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.placement.choices import Choice, all_within, choices
from snnc.compiler.tiles.placement.placement import Placement, chip_counts, copy_counts, each_once, placements
from snnc.compiler.tiles.placement.refine import changes, placed, shapes_of
from snnc.compiler.tiles.placement.sharing import sharing_tiles
from snnc.compiler.tiles.prediction.memory import MemoryUse, bytes_before_pricing, memory_of
from snnc.compiler.tiles.prediction.training_step import phase, supersteps
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.search.layouts import make_layout
from snnc.compiler.tiles.supersteps.streaming import streaming_bytes

NONE: Final = Streaming(0, 1.0)
"""Streaming memory of a machine that defines none."""
BLOCK_SHARES: Final = (1.0, 0.8, 0.6, 0.4)
"""Fractions of a tile's memory that blocks may fill, tried in this order until relays fit as well."""
TIGHT_SHARES: Final = (1.0, 0.98, 0.95, 0.92, *BLOCK_SHARES[1:])
"""Fractions of a tile's memory that blocks may fill if rows of weights are packed: finer steps, because tiles are then nearly full."""
QUICK_SHARES: Final = (1.0, 0.8, 0.6)
"""Fractions of a tile's memory that blocks may fill, in a search that stops at the first placement that fits."""
EFFORT: Final = 600_000
"""Maximum product of the changes that local search tries, the populations, and the tiles of the chips in use: a few seconds on a laptop."""
ROOMY: Final = 256
"""Minimum number of tiles of a chip for which shared tiles are tried; on smaller chips, all tiles are busy in any case."""
EXACT_PRICES: Final = 8
"""Number of placements priced exactly, if first prices use estimated tables of indexed connections (with errors of a few per cent)."""
MIN_EXACT_PRICES: Final = 5
"""Minimum number of placements priced exactly, even if :data:`EXACT_WORK` allows fewer."""
EXACT_WORK: Final = 1_200_000
"""Limit on the placements priced exactly: their number, times the iterations of the timeline, times the workers of the chips in use."""
QUICK_EXACT_PRICES: Final = 2
"""Number of placements that a quick estimate prices exactly."""
BOUND_MARGIN: Final = 0.9
"""Fraction of a population's tabulated cycles that serves as a lower bound: the tables are made monotone, so exact cycles may be lower."""
OVERHEAD_SHARE: Final = (0.5, 0.8)
"""Fraction of the overhead (cycles of relays and exchange, above the lower bound) that a change of the placement is assumed to leave, for
exact prices and for estimates."""
CLOSE: Final = 1.03
"""If prices are estimates, local search also prices changes that are expected to take up to this factor times the best cycles."""
MIN_CHANGES, MAX_CHANGES = 6, 80
"""Bounds on the number of changes that local search may try, the upper one before it is multiplied by :data:`MEASURED_FACTOR`."""
MEASURED_FACTOR: Final = 2
"""Factor for the number of changes that local search tries if events were measured: tables of mean cycles are then less accurate."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A layout that fits, its memory, and its predicted phases (without busiest tiles and their loops)."""

    layout: Layout
    memory: MemoryUse
    phases: tuple[Phase, ...]

    @cached_property
    def cycles(self) -> float:
        """Predicted cycles of a training step."""
        return sum(p.runs * (p.compute + p.sync + p.exchange) for p in self.phases)


class Search:
    """Search for a placement; stores the fastest one so far that fits, and the closest one that does not fit."""

    def __init__(self, problem: MappingProblem) -> None:
        self.problem = problem
        self.limit = math.inf
        """Placements with a lower bound of at least these cycles are not priced."""
        self._known = Memo()
        """Choices of all populations, by number of samples and whether every sample is assumed to have the mean number of events."""
        self.best: Priced | None = None
        self.misfit: tuple[int, Layout, MemoryUse] | None = None
        self._update_bytes = math.inf
        """Bytes of the fullest tile in the update; the minimum over all placements that did not fit."""
        self._estimates: list[Priced] = []
        self._prices = Memo()
        self._exact = Memo()
        """Exact prices of estimates, by the ``id`` of the estimate."""
        self._least_known = math.inf
        """Bytes of the smallest placement that was too large by its variables alone; larger ones are not priced."""

    def with_schedule(self, problem: MappingProblem) -> Search:
        """Return a search for the same network with another schedule, which shares the tables of choices."""
        search = Search(problem)
        search._known = self._known
        return search

    def cycles(self) -> float:
        """Return the predicted cycles of a training step with the best placement; infinite without one."""
        return math.inf if self.best is None else self.best.cycles

    @property
    def too_big_after_sequence(self) -> bool:
        """Whether the update alone is too large in every placement, so that segments do not help.

        With segments, more neurons fit on a tile, but more neurons need more fragments of gradients and weights, and so more code in
        the update.
        """
        return self.misfit is not None and self.best is None and self._update_bytes > self.problem.target.tile_bytes

    def price(self, placement: Placement, *, local_relays: bool) -> Priced | None:
        """Return a placement with its predicted cycles and bytes, cached; None if it does not fit. Sizes of tables are estimated."""
        key = (local_relays, *map(_price_key, placement.ranges))
        return self._prices.get(key, partial(self._price_anew, placement, local_relays=local_relays))

    def _price_anew(self, placement: Placement, *, local_relays: bool) -> Priced | None:
        layout = make_layout(self.problem, placement, local_relays=local_relays)
        known = bytes_before_pricing(layout)
        if known > self.problem.target.tile_bytes:
            if known >= self._least_known:
                self._update_bytes = 0.0  # unknown, so it must not count as too large
                return None
            self._least_known = known
        return self._priced(replace(layout, exact=False) if self.problem.network.indexed else layout)

    def _priced(self, layout: Layout) -> Priced | None:
        steps = supersteps(layout)
        memory = memory_of(layout, steps)
        largest = memory.largest
        if largest > self.problem.target.tile_bytes:
            self._update_bytes = min(self._update_bytes, memory.of_update)
            if self.misfit is None or largest < self.misfit[0]:
                self.misfit = largest, layout, memory
            return None
        if max(streaming_bytes(layout), default=0) > (self.problem.target.streaming or NONE).bytes_per_chip:
            return None
        priced = Priced(layout, memory, tuple(phase(layout, step, roughly=True) for step in steps))
        if not layout.exact:
            self._estimates.append(priced)
        if self.best is None or priced.cycles < self.best.cycles:
            self.best = priced
        return priced

    def run(self, chips: int | None) -> Search:
        """Search on few chips first, and stop when more chips are not faster; if relays do not fit, blocks get less memory of a tile."""
        for count in chip_counts(self.problem, chips):
            before = self.best
            for copies in copy_counts(self.problem, count):
                self.run_copies(count, copies)
            if before is not None and self.best is before:
                break
        return self

    def run_quickly(self, chips: int | None) -> Search:
        """Use `chips` chips (None: all), allow relays on any tile, and stop at the first placement that fits, even if it is slow."""
        options = self._options(self.problem)
        for share in TIGHT_SHARES if self.problem.packed else QUICK_SHARES:
            tight = each_once(options, partial(all_within, share * self.problem.target.tile_bytes))
            for alike in (tight, *(_equal_replicas(tight) if self.problem.packed else ())):
                # The first and the third of up to three placements: with most tiles left free for relays, and with none.
                placed = placements(self.problem, alike, chips or self.problem.target.chips, balanced=(False,))
                for placement in islice(placed, 0, None, 2):
                    if self.price(placement, local_relays=False) is not None:
                        return self
        return self

    def run_placements(self, placed: Iterable[Placement]) -> Search:
        """Price the placements, with relays near their sources and, if none fits, anywhere."""
        candidates = list(placed)
        for local_relays in (True, False):
            fits = [self.price(placement, local_relays=local_relays) is not None for placement in candidates]
            if any(fits):
                break
        return self

    def refine(self, effort: int) -> Search:
        """Change the best placement in small steps as long as that helps; see :mod:`snnc.compiler.tiles.placement.refine`."""
        if self.best is None or self.problem.target.tiles < len(self.problem.network.layers):
            return self
        placement = self.best.layout.placement
        chips, copies = placement.chips, placement.copies
        part = replace(self.problem, batch=self.problem.batch // copies)
        options = self._options(part)
        tiles = chips * self.problem.target.tiles_per_chip
        more = MEASURED_FACTOR if self.problem.activity.counts else 1
        most = max(MIN_CHANGES, more * min(MAX_CHANGES, effort // (tiles * len(options)))) if effort else 0
        seen, tried = {shapes := shapes_of(self.problem, placement)}, 0
        overhead = self.best.cycles - self._least_cycles(part, options, placement) if most else 0.0
        improved = True
        while improved and tried < most:
            improved = False
            for changed in changes(part, shapes, options):
                where = placed(self.problem, changed, chips, copies) if changed not in seen else None
                seen.add(changed)
                if where is None or tried >= most or (least := self._least_cycles(part, options, where)) >= self.best.cycles:
                    continue
                tried += 1
                before = self.best.cycles
                exact = self.best.layout.exact
                if least + OVERHEAD_SHARE[not exact] * overhead >= before * (1.0 if exact else CLOSE):
                    continue
                priced = self.price(where, local_relays=True)
                overhead = min(overhead, priced.cycles - least) if priced is not None else overhead
                if self.best.cycles < before:
                    shapes, improved = changed, True
                    break
        return self

    def exact_price_count(self) -> int:
        """Return the number of estimates that a full plan prices exactly."""
        if self.best is None:
            return EXACT_PRICES
        problem = self.problem
        workers = self.best.layout.placement.chips * problem.target.tiles_per_chip * problem.target.workers
        return max(MIN_EXACT_PRICES, min(EXACT_PRICES, EXACT_WORK // (workers * len(problem.timeline.chosen))))

    def use_estimates(self) -> Search:
        """Make the fastest estimate the best placement again, after :meth:`price_exactly`."""
        if self._estimates:
            self.best = min(self._estimates, key=lambda estimate: estimate.cycles)
        return self

    def price_exactly(self, most: int = EXACT_PRICES) -> Search:
        """Price the `most` fastest estimates exactly, then up to half as many others that may be faster, or others until one fits.

        Estimates with similar cuts of populations are assumed to have similar errors.
        """
        waiting, ratios = list(self._estimates), list[tuple[Placement, float]]()
        if waiting:
            self.best = None
        for tried in range(len(waiting)):
            likely = {id(e): e.cycles * (1.0 if tried < most else _error(e.layout.placement, ratios)) for e in waiting}
            priced = min(waiting, key=lambda e: likely[id(e)])
            if self.best is not None and tried >= most and (tried >= most + most // 2 or likely[id(priced)] >= self.best.cycles):
                break
            waiting.remove(priced)
            exact = self._exact.get(id(priced), partial(self._priced, replace(priced.layout, exact=True)))
            if exact is not None:
                self.best = exact if exact.cycles < self.cycles() else self.best
                ratios.append((priced.layout.placement, exact.cycles / priced.cycles))
        return self

    def run_baseline(self, strategy: str, chips: int | None) -> Search:
        """Price every form of a baseline, with relays near their sources and anywhere, on `chips` chips or on all numbers of chips."""
        for count in chip_counts(self.problem, chips):
            for assignment in assignments(self.problem, strategy, count * self.problem.target.tiles_per_chip):
                placement = place(self.problem, assignment)
                for local_relays in (True, False):
                    self.price(placement, local_relays=local_relays)
        return self

    def run_copies(self, chips: int, copies: int) -> Search:
        """Try placements on `chips` chips, in `copies` groups that each run the whole network for a share of the batch."""
        part = replace(self.problem, batch=self.problem.batch // copies)
        # Measured samples differ so much that the best placement for their mean is another good start.
        for even in (False, True) if self.problem.activity.counts else (False,):
            self._run_options(part, self._options(part, even=even), chips, copies)
        return self

    def _run_options(self, part: MappingProblem, options: Sequence[Sequence[Choice]], chips: int, copies: int) -> None:
        """Price placements with these choices, with less and less memory of a tile for blocks, until relays fit as well."""
        for share in TIGHT_SHARES if part.packed else BLOCK_SHARES:
            limit = share * part.target.tile_bytes
            tight = each_once(options, partial(all_within, limit))
            candidates = list(placements(part, tight, chips, copies))
            for alike in _equal_replicas(tight) if part.packed else ():
                candidates += placements(part, alike, chips, copies)
            if part.network.indexed and share == BLOCK_SHARES[0] and part.target.tiles_per_chip >= ROOMY:
                candidates += sharing_tiles(part, tight, candidates, chips, copies)
            least = {id(placement): self._least_cycles(part, options, placement) for placement in candidates}
            candidates.sort(key=lambda placement: least[id(placement)])
            if self._price_promising(candidates, least, local_relays=True) or self._price_promising(candidates, least, local_relays=False):
                break

    def _price_promising(self, candidates: Sequence[Placement], least: Mapping[int, float], *, local_relays: bool) -> bool:
        """Price the placements that may be faster than the best one; return whether any placement fits, or is too slow to be priced."""
        done = False
        for placement in candidates:
            slow = least[id(placement)] >= min(self.cycles(), self.limit)
            done |= slow or self.price(placement, local_relays=local_relays) is not None
        return done

    def work(self) -> float:
        """Return the tile cycles of a step of all populations, summed over tiles, with one replica of each."""
        return sum(of_population[0].weight for of_population in self._options(self.problem))

    def _least_cycles(self, part: MappingProblem, options: Sequence[Sequence[Choice]], placement: Placement) -> float:
        """Return a lower bound on the cycles of a placement: the slowest population in each part of a step, without relays.

        `part` is the problem for one copy of the network, with its share of the batch.
        """
        if part.target.tiles < len(options):
            return 0.0
        columns: dict[tuple[int, Cut, int], Floats] = {}
        for of_population, where in zip(options, placement.ranges, strict=True):
            key = (id(of_population), where.cut, neurons := int(where.neurons.max()))
            if key not in columns:
                cut = replace(where.cut, replicas=where.replicas // placement.copies)
                columns[key] = next(choice.parts[:, neurons - 1] for choice in of_population if choice.cut == cut)
        parts = part.steps * float(np.max(list(columns.values()), axis=0).sum())
        return BOUND_MARGIN * (parts + self._least_update(placement)) + self._over_links(placement)

    def _least_update(self, placement: Placement) -> float:
        """Return a lower bound on the cycles of the update: the slowest population in each superstep."""
        problem, layout = self.problem, Layout(self.problem, placement, {}, (), exact=False)
        if not problem.training:
            return 0.0
        each = [
            problem.memo.get(("update", _learned(layer), cut_key(where)), partial(least_update, layout, layer))
            for layer, where in zip(problem.network.layers, placement.ranges, strict=True)
        ]
        return float(np.max(each, axis=0).sum())

    def _over_links(self, placement: Placement) -> float:
        """Return the cycles in which copies of the network exchange gradients and new weights."""
        if placement.copies == 1:
            return 0.0
        traffic = weights_to_replicas(Layout(self.problem, placement, {}, ()))
        return 0.0 if traffic is None else 2 * self.problem.routes.cycles(traffic.flows)

    def _options(self, part: MappingProblem, *, even: bool = False) -> tuple[tuple[Choice, ...], ...]:
        return self._known.get((part.batch, even), partial(choices, part, even=even))


def _equal_replicas(options: Sequence[Sequence[Choice]]) -> Iterator[list[Sequence[Choice]]]:
    """Yield, for each number of replicas, the choices in which all populations have this number.

    If the numbers differ, a tile reads deltas for only some of another tile's samples: one piece per neuron, with code for each piece.
    """
    for replicas in sorted({choice.cut.replicas for of_population in options for choice in of_population}):
        restricted = each_once(options, partial(_with_replicas, replicas))
        if all(restricted):
            yield restricted


def _with_replicas(replicas: int, options: Sequence[Choice]) -> list[Choice]:
    return [choice for choice in options if choice.cut.replicas == replicas]


def _error(placement: Placement, ratios: Sequence[tuple[Placement, float]]) -> float:
    """Return the assumed ratio of exact to estimated cycles of a placement: that of the most similar placement in `ratios`.

    The less similar the two placements are, the closer the result is to 1.
    """
    if not ratios:
        return 1.0
    form = attrgetter("cut", "width")
    alike = [np.mean([form(a) == form(b) for a, b in zip(placement.ranges, other.ranges, strict=True)]) for other, _ in ratios]
    most = int(np.argmax(alike))
    return 1 + float(alike[most]) * (ratios[most][1] - 1)


def _learned(layer: Layer) -> object:
    if any(link.indexed is not None for link in layer.incoming):
        return layer.id
    return tuple(learned_parameters(layer)), learned_scalars(layer)


def _price_key(where: TileRange) -> object:
    """Return a key of all properties that determine a price; a limit on column groups above the number of neurons makes no difference."""
    return where.tiles.tobytes(), cut_key(where)[0], where.samples, min(where.columns, int(where.neurons.max())), where.paired
