"""Plan: placement and schedule of a StepProgram on a Target, as data (JSON) from which backends print programs.

The unit of placement is the *block*: the neurons ``[first, first + count)`` of a population for the samples
``[sample, sample + samples)``, on one tile, run by one worker. All data of a single block (state history, currents, private weight
gradients) are contiguous in that tile's memory.

Values move over *buses*. A bus belongs to a source (an input or a population's output port) and a lag. Its samples are distributed over
*relay* tiles: a relay stores the values of all steps of its samples, converts spike masks to ids, and writes the window of one step, which
every consumer tile reads.

Schedule (wavefront by retiming, Leiserson & Saxe 1991): iteration k runs population p at step t when ``k == interval * t + stage[p]``.
``interval`` is the smallest R for which ``R * delay + stage[target] - stage[source] >= 1`` can hold on every connection between
populations; a bus's lag is that left-hand side. Without short cycles R is 1 and a sequence of T steps takes T + L - 1 iterations, where L
is the number of stages. With a `latency` of 2 the forward pass has separate stages, for which the left-hand side is at least 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snnc.compiler.ir.segments import Segments, Streamed
from snnc.compiler.machines.target import Target

Mode: TypeAlias = Literal["exact", "drop"]
"""Treatment of events beyond the capacity of a window: "exact" sends them in further windows, "drop" drops them."""
Recompute: TypeAlias = Literal["auto", "off"] | int
"""Whether segments of the sequence run forward again: "auto" only if no plan fits otherwise; a number sets the iterations of a segment."""
Precision = Literal["float32", "tf32", "bfloat16", "float16"]
"""Precision of values that a target may round: histories, factors of products, deltas. Sums are float32."""
Streaming: TypeAlias = Literal["auto"] | Streamed
"""Data of a segmented sequence that may be stored outside the tiles: "auto" for the fastest plan that fits, or as in :data:`Streamed`."""


@dataclass(frozen=True)
class Block:
    """Neurons x samples on one worker of one tile."""

    tile: int
    first: int
    count: int
    sample: int
    samples: int


@dataclass(frozen=True)
class PopulationPlan:
    """Placement of one population."""

    # Canonical id, and name in the model.
    id: str
    label: str
    # Number of neurons; stage in the wavefront.
    neurons: int
    stage: int
    # A replica is on the `width` tiles from ``starts[replica]``; it processes all neurons for its share of the batch. All replicas cut
    # the neurons in the same way.
    starts: tuple[int, ...]
    width: int
    blocks: tuple[Block, ...]
    """All blocks, ordered by replica, tile, first neuron, first sample. Blocks of one tile with the same neurons (and other samples)
    share their weights. A replica updates its share of the parameters and sends it to the others."""

    @property
    def replicas(self) -> int:
        """Number of groups of tiles that share the batch."""
        return len(self.starts)

    @property
    def tiles(self) -> int:
        """Number of tiles of all replicas."""
        return self.replicas * self.width

    @property
    def all_tiles(self) -> tuple[int, ...]:
        """Tiles with blocks, ordered by replica."""
        return tuple(dict.fromkeys(block.tile for block in self.blocks))

    def replica_tiles(self, replica: int) -> range:
        """Return the tiles of one replica."""
        return range(self.starts[replica], self.starts[replica] + self.width)


@dataclass(frozen=True)
class Relay:
    """Samples ``[sample, sample + samples)`` of a source, stored on `tile`."""

    tile: int
    sample: int
    samples: int


@dataclass(frozen=True)
class PartialSum:
    """A vertex in the first stage of the reduction of partial input gradients.

    It adds partial products of `producers` column groups, numbered from `first` in the order connection, tile, neuron. It adds them for the
    samples ``[sample, sample + samples)``, and for the entries ``[entry, entry + entries)`` of each sample's backward window. The vertices
    of one `part` (the number of a partial sum of each entry, see :class:`GradientPlan`) together cover every entry once; a vertex with
    several samples covers all entries of each sample.
    """

    tile: int
    part: int
    sample: int
    samples: int
    entry: int
    entries: int
    first: int
    producers: int


@dataclass(frozen=True)
class GradientPlan:
    """The return of a source's gradient over a bus: only for neurons that spiked or are near the threshold."""

    capacity: int  # number of entries per sample (spikes, then neurons near the threshold) in one backward window
    parts: int  # number of partial sums of each entry after the first stage of the reduction; relays add these in the second stage
    sums: tuple[PartialSum, ...]  # the vertices of the first stage


@dataclass(frozen=True)
class BusPlan:
    """A source that is read with one lag."""

    id: str  # ``b0``, ``b1`` …
    # Id of the input or population, and the StepProgram buffer that is transported.
    source: str
    buffer: str
    width: int  # number of values per sample and step
    kind: Literal["events", "values"]  # "events" (ids of spikes) or "values" (all values)
    lag: int  # number of iterations from a source's step to the step that reads it. Buses of one source share the relays' stored steps.
    capacity: int  # maximum number of events per sample in one window (the width if unlimited)
    mode: Mode  # treatment of events beyond the capacity: "exact" sends them in further windows, "drop" drops and counts them
    relays: tuple[Relay, ...]  # the tiles that store its samples
    gradient: GradientPlan | None = None
    """Return of the source's gradient, if only neurons in the gradient window receive it; None if every delta is sent to the source."""
    form: Literal["ids", "bits"] = "ids"  # storage of events in relays: "ids", or "bits", one for each value


@dataclass(frozen=True)
class ConnectionPlan:
    """A connection. Its weights are stored with the blocks of the target, and copies of the weights with those of the source."""

    # Id of the connection; id of the bus that it reads; delay in steps; id of the population that reads it.
    id: str
    bus: str
    delay: int
    target: str = ""
    packed: int = 0
    """Number of bundles of target tiles that pack rows of weights before they send them to the source; 0: the source reads rows from
    the blocks. See :mod:`snnc.compiler.tiles.gradients.packing`."""
    returns: bool = False  # whether the gradient of the source returns in windows, as partial products with the target's own weights


@dataclass(frozen=True)
class PhaseLoop:
    """A loop of the slowest vertex on the busiest tile of a superstep, averaged over the runs in which the vertex has a step."""

    vertex: str  # the vertex, with the name of its population or source
    name: str  # the work of a trip, such as "weights of a spike"
    # Expected number of trips per run, and number of worker cycles per trip.
    trips: float
    cycles: float

    @property
    def total(self) -> float:
        """Worker cycles in a run."""
        return self.trips * self.cycles


@dataclass(frozen=True)
class Phase:
    """One kind of superstep, with the predicted cost of one run on the busiest tile."""

    name: str  # for example ``"forward: neurons"``
    part: str  # "forward", "loss", "recompute", "backward" or "update"
    runs: int  # number of runs in a training step
    # Predicted cycles of one run.
    compute: float
    sync: float
    exchange: float
    bytes_in: int  # bytes that the busiest tile receives in one run
    busiest_tile: int  # the tile that determines `compute`
    loops: tuple[PhaseLoop, ...] = ()  # loops of the slowest vertex on that tile, most cycles first; empty if the vertex has no named loops

    @property
    def cycles(self) -> float:
        """Predicted cycles of one run."""
        return self.compute + self.sync + self.exchange


@dataclass(frozen=True)
class MemoryPhase:
    """Live data in one kind of superstep."""

    # As in :class:`Phase`.
    name: str
    part: str
    tile: dict[str, int]  # predicted bytes by category on the plan's fullest tile (:attr:`Plan.fullest_tile`)
    all_tiles: dict[str, int]  # predicted bytes by category on all tiles together


@dataclass(frozen=True)
class LayerFlow:
    """Bytes per training step from node `source` to node `target` (indices into :attr:`PlanTraffic.nodes`)."""

    source: int
    target: int
    kind: str  # of data, such as "windows" or "deltas"
    bytes: float


@dataclass(frozen=True)
class PlanTraffic:
    """Bytes that one training step moves."""

    nodes: tuple[str, ...]  # ids of the inputs, then of the populations
    flows: tuple[LayerFlow, ...]  # bytes that tiles receive, by sender, receiver and kind
    chips: dict[str, tuple[tuple[float, ...], ...]]
    """For each kind, bytes from chip (row) to chip (column); the diagonal is the traffic inside a chip."""
    links: dict[str, tuple[tuple[int, tuple[int, ...], float], ...]]
    """For each kind, transfers between chips: sender, receivers, bytes; data for several chips count once."""


@dataclass(frozen=True)
class Plan:
    """The mapping of one StepProgram for a batch size and a number of steps; see the module's docstring."""

    name: str
    target: Target
    steps: int
    batch: int
    training: bool
    interval: int
    iterations: int
    populations: tuple[PopulationPlan, ...]
    buses: tuple[BusPlan, ...]
    connections: tuple[ConnectionPlan, ...]
    activity: dict[str, float]
    """Share of the values that are spikes in a step, as assumed by the costs, by StepProgram buffer."""
    activity_source: str
    """Origin of `activity`: "measured on …" or "assumed"."""
    memory: dict[str, tuple[int, ...]]
    """Predicted bytes by category on each tile of the target at its peak (weights, tables, optimiser, gradients, history,
    relays, records, exchange, vertices, code)."""
    phases: tuple[Phase, ...]
    loss_tiles: tuple[int, ...] = ()
    """Tile of each sample's loss (empty without training)."""
    tile_cycles: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """"compute" and "exchange": predicted cycles of each tile in a whole training step, without waiting."""
    bound_cycles: float = 0.0
    """Balance bound of a training step: the same supersteps, each spread evenly over all tiles (:mod:`snnc.compiler.tiles.bounds`)."""
    ideal_cycles: float = 0.0
    """Ideal bound of a training step, the minimum work of any code (:mod:`snnc.compiler.tiles.bounds`)."""
    strategy: str = "snnc"
    """Strategy that chose the tiles: "snnc", or a baseline for comparison."""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of the parts into which populations were cut, by the population's name in the model; each part is a population of the plan."""
    host_bytes: int = 0
    """Bytes that the host streams to the chips in a training step: labels and inputs, before the first iteration or before each run of a
    segment."""
    memory_over_time: tuple[MemoryPhase, ...] = ()
    """Live data in each kind of superstep, in order; see docs/decisions/0013-memory-over-time.md."""
    segment: int = 0
    """Number of iterations per segment, if the tiles store the history of one segment at a time; 0: they store that of all steps."""
    streamed: Streamed = "off"
    """Data of a segmented sequence stored outside the tiles."""
    streaming_bytes: tuple[int, ...] = ()
    """Bytes of streaming memory of each chip; empty if none is used."""
    unshared_bytes: int = 0
    """Number of bytes on the fullest tile if data did not share memory over time."""
    traffic: PlanTraffic | None = None
    """Bytes moved by a training step, by layer and chip; None in estimates."""
    latency: int = 1
    """Minimum number of iterations until spikes of a population reach its readers in the forward pass: 2 if relays search for the spikes of
    one iteration while neurons compute the next. Stages and lags above are those of the backward pass, where the latency is 1."""

    @property
    def segments(self) -> Segments:
        """Division of the iterations into segments."""
        return Segments(self.steps, self.interval, self.iterations, self.segment, self.streamed)

    @property
    def cycles(self) -> float:
        """Predicted cycles of one training step (of one forward pass without training)."""
        return sum(p.runs * p.cycles for p in self.phases)

    @property
    def seconds(self) -> float:
        """Predicted seconds of one training step (of one forward pass without training), without transfers to and from the host."""
        return self.cycles / self.target.clock_hz

    @property
    def host_seconds(self) -> float | None:
        """Predicted seconds of transfers from the host, which :attr:`seconds` omits; None if the target does not define their rate."""
        return self.host_bytes / self.target.host.bytes_per_second if self.target.host is not None else None

    @property
    def seconds_with_host(self) -> float:
        """Predicted seconds of one training step with transfers from the host (without these if the target does not define their rate)."""
        return self.seconds + (self.host_seconds or 0.0)

    @property
    def tile_memory(self) -> tuple[int, ...]:
        """Predicted peak bytes of each tile, summed over categories."""
        return tuple(map(sum, zip(*self.memory.values(), strict=True)))

    @property
    def fullest_tile(self) -> int:
        """The first of the fullest tiles."""
        memory = self.tile_memory
        return memory.index(max(memory))

    @property
    def chips_used(self) -> int:
        """Number of chips up to the last one in use."""
        busy = [start + p.width - 1 for p in self.populations for start in p.starts] + [r.tile for b in self.buses for r in b.relays]
        return max(busy) // self.target.tiles_per_chip + 1
