"""Cost of the supersteps of the published program: vertices on the busiest tile, exchanges, barriers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeAlias

from snnc.benchmarks.published.layout import PublishedLayout
from snnc.benchmarks.published.net import PublishedNet
from snnc.benchmarks.published.options import CONTROL, LOCAL_COPY, LOCAL_COPY_BYTES, PROLOGUE, SUPERVISOR, VECTOR, PublishedOptions
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.machines.target import Target

Category: TypeAlias = Literal[
    "gather and scatter of U and dU",
    "dynamic slices",
    "flags and compaction",
    "event loops",
    "id broadcasts",
    "reduction",
    "surrogate",
    "update",
    "host",
    "rest",
]
Part: TypeAlias = Literal["forward", "backward", "update"]


@dataclass(frozen=True)
class Exchange:
    """Data that the busiest tile of an exchange moves."""

    received: float = 0.0
    """Number of received bytes."""
    pieces: float = 0.0
    """Number of fragments of the received bytes, each contiguous on the sender and on the receiver."""
    sent: float = 0.0
    """Number of sent bytes."""
    sent_pieces: float = 0.0
    """Number of contiguous pieces of the sent bytes, each for one receiver."""
    link: float = 0.0
    """Number of bytes that the busiest chip receives from others."""

    def plus(self, other: Exchange) -> Exchange:
        """Return the sum of two exchanges on the same tile."""
        return Exchange(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Superstep:
    """The predicted cost of one kind of superstep."""

    name: str
    category: Category
    part: Part
    runs: int
    """Number of runs in a training step."""
    compute: float
    """Tile cycles of one run for computation on the busiest tile."""
    sync: float
    """Tile cycles of one run for barriers, set-up of exchanges and control."""
    exchange: float
    """Tile cycles of one run for exchanges."""
    received: float
    """Number of bytes that the busiest tile receives in one run."""
    pieces: float
    """Number of fragments that the busiest tile receives and sends in one run."""
    program_steps: int
    """Number of program steps (such as compute sets or copies) in one run; 0 for an exchange that belongs to another superstep's step."""

    @property
    def cycles(self) -> float:
        """Tile cycles of all runs."""
        return self.runs * (self.compute + self.sync + self.exchange)


@dataclass(frozen=True)
class Machine:
    """Cost model of the published program: its net, layout, target and options determine the cost of every superstep."""

    net: PublishedNet
    layout: PublishedLayout
    target: Target
    options: PublishedOptions

    @property
    def tiles(self) -> int:
        """Number of tiles per chip, less the unused tile of the first chip; on other chips, the difference of one tile is neglected."""
        return max(1, self.target.tiles_per_chip - 1)

    @property
    def serial(self) -> int:
        """Maximum number of layers on one chip; their operations run one after another."""
        return max(len(self.layout.layers_of(chip)) for chip in range(self.layout.chips))

    def per_tile(self, layer: int) -> int:
        """Return the number of neurons of `layer` on a full tile."""
        return -(-self.net.layers[layer].neurons // self.layout.ranges[layer].tiles)

    def incoming(self, layer: int) -> tuple[int, float, float]:
        """Return K, n0 and n1 (see :class:`PublishedLayer`) of the ids that `layer` reads; for inputs, n1 = n0."""
        if layer == 0:
            return self.net.input_capacity, self.net.input_spikes, self.net.input_spikes
        before = self.net.layers[layer - 1]
        return before.capacity, before.spikes, before.gradients

    def reads_another_chip(self, layer: int) -> bool:
        """Whether `layer` reads spikes from another chip."""
        return layer > 0 and self.layout.ranges[layer - 1].chip != self.layout.ranges[layer].chip

    # ---- time --------------------------------------------------------------------------------------------------------

    def vertices(self, number: float, cycles: float) -> float:
        """Return the tile cycles of `number` vertices of `cycles` worker cycles.

        The workers of a tile take turns, so even a single vertex takes as many tile cycles per worker cycle as there are workers.
        """
        return math.ceil(number / self.target.workers) * self.target.workers * (self.target.vertex_start_cycles + cycles)

    def elementwise(self, values: float, cycles: float = VECTOR) -> float:
        """Return the tile cycles of a PopLibs operation on `values` fp32 values of a tile; two values take `cycles` worker cycles."""
        workers = self.target.workers
        return SUPERVISOR + workers * (PROLOGUE + cycles * math.ceil(math.ceil(values / 2) / workers))

    def broadcast_elementwise(self, values: float) -> float:
        """Return the tile cycles of :meth:`elementwise` with a broadcast second operand, which naive code first copies."""
        share = {"naive": 1.0, "ideal": 0.0, "mean": 0.5}[self.options.code]
        return self.elementwise(values) + share * self.local_copy(FLOAT * values)

    @staticmethod
    def local_copy(size: float) -> float:
        """Return the tile cycles of a copy of `size` bytes within a tile."""
        return LOCAL_COPY + size / LOCAL_COPY_BYTES

    @staticmethod
    def dynamic(values: float) -> float:
        """Return the tile cycles of a 1-D dynamic slice or update of `values` values on a tile (constants from PopLibs' codelet)."""
        return max(403.0, 25 + 6 * (39 + 24 + 2 * (math.ceil(values / 6) // 2)))

    def exchange(self, moved: Exchange) -> float:
        """Return the tile cycles of an exchange: the slowest of receiving, sending and transfers over links."""
        rate = self.target.exchange_bytes_per_cycle
        each = self.target.fragment_cycles if self.options.fragment_cycles is None else self.options.fragment_cycles
        over_links = moved.link / self.target.link_bytes_per_second * self.target.clock_hz if moved.link else 0.0
        return max(moved.received / rate + each * moved.pieces, moved.sent / rate + each * moved.sent_pieces, over_links)

    def barrier(self, moved: Exchange) -> float:
        """Return the tile cycles of the barrier and set-up of an exchange."""
        sync = self.target.link_sync_cycles if moved.link else self.target.sync_cycles
        return sync + self.target.superstep_cycles - CONTROL

    def one_by_one(self, cycles: Sequence[float]) -> float:
        """Return the cycles of one operation per layer; those of a chip run one after another, and chips run in parallel."""
        return max(sum(cycles[i] for i in self.layout.layers_of(chip)) for chip in range(self.layout.chips))

    # ---- supersteps --------------------------------------------------------------------------------------------------

    def step(
        self,
        name: str,
        category: Category,
        part: Part,
        *,
        compute: float = 0.0,
        moves: Iterable[Exchange] = (),
        runs: int | None = None,
        program_steps: int = 1,
    ) -> Superstep:
        """Return a superstep of `program_steps` steps of the Poplar program, with one exchange for each of `moves`."""
        moved = tuple(m for m in moves if m.received or m.sent)
        return Superstep(
            name=name,
            category=category,
            part=part,
            runs=self.net.steps if runs is None else runs,
            compute=compute,
            sync=program_steps * CONTROL + sum(self.barrier(m) for m in moved),
            exchange=sum(self.exchange(m) for m in moved),
            received=sum(m.received for m in moved),
            pieces=sum(m.pieces + m.sent_pieces for m in moved),
            program_steps=program_steps,
        )

    def copies(
        self,
        name: str,
        category: Category,
        part: Part,
        copies: Sequence[tuple[int, Exchange]],
        *,
        same_tiles: bool,
    ) -> tuple[Superstep, ...]:
        """Return the supersteps of adjacent copies; `copies` contains pairs of a receiving layer and an exchange.

        With the option `merge_copies`, all copies run in one exchange, in which those to the same tiles add up. `same_tiles` is whether
        all layers of a chip receive on the same tiles. Without the option, the copies of each chip run one after another.
        """
        ranges = self.layout.ranges
        if self.options.merge_copies:
            together: dict[int, Exchange] = {}
            for layer, moved in copies:
                key = ranges[layer].chip if same_tiles else layer
                together[key] = together.get(key, Exchange()).plus(moved)
            return (self.step(name, category, part, moves=(self.busiest(together.values()),)),) if copies else ()
        queues: dict[int, list[Exchange]] = {}
        for layer, moved in copies:
            queues.setdefault(ranges[layer].chip, []).append(moved)
        rounds = zip_longest(*queues.values(), fillvalue=Exchange())
        return tuple(self.step(f"{name} {i}", category, part, moves=(self.busiest(one),)) for i, one in enumerate(rounds))

    def busiest(self, moves: Iterable[Exchange]) -> Exchange:
        """Return the slowest of exchanges that run in parallel on separate tiles, with the largest number of bytes over links."""
        known = tuple(moves)
        slowest = max(known, key=self.exchange, default=Exchange())
        return replace(slowest, link=max((moved.link for moved in known), default=0.0))
