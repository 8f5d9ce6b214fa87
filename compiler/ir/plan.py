"""Plan: the placement and schedule of a StepProgram on a Target. A plan is data (JSON) that backends print.

The unit of placement is the *block*: the neurons ``[first, first + count)`` of a population for the samples
``[sample, sample + samples)``, on one tile, run by one worker. All that belongs to a block alone (state history, currents, private weight
gradients) is contiguous in that tile's memory.

Values move over *buses*. A bus belongs to a source (an input or a population's output port) and a lag. Its samples are
spread over *relay* tiles: a relay keeps the values of all steps of its samples, compacts spikes into ids, and
presents one step's window, which every consumer tile reads.

Schedule (wavefront by retiming, Leiserson & Saxe 1991): iteration k runs population p at step t when ``k == interval * t + stage[p]``.
``interval`` is the smallest R for which ``R * delay + stage[target] - stage[source] >= 1`` can hold on every connection between
populations; a bus's lag is that left-hand side. Without short cycles R is 1 and a sequence takes T + L - 1 iterations. With a `latency`
of 2 the forward pass has stages of its own, for which the left-hand side is at least 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snnc.compiler.ir.segments import Segments, Streamed
from snnc.compiler.machines.target import Target

Mode: TypeAlias = Literal["exact", "drop"]
Overlap: TypeAlias = Literal["auto", "on", "off"]
"""Whether the host's streams run beside computing: where that is predicted to be faster, always, never."""
Recompute: TypeAlias = Literal["auto", "off"] | int
"""Whether segments of the sequence run forward a second time: where nothing fits without, never, or with so many iterations in each."""
Precision = Literal["float32", "bfloat16", "float16"]
"""Of the factors of dense backward products; float16: of forward products and of what is kept of the past too. Sums are float32."""
Streaming: TypeAlias = Literal["auto"] | Streamed
"""What a sequence in segments may keep outside the tiles: whatever makes it fit and fastest, or as :data:`Streamed`."""


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
    """Placement of one population.

    Attributes
    ----------
    id, label
        Canonical id and author's name.
    neurons, stage
        Size of one sample; offset in the wavefront.
    starts, width
        A replica lies on the `width` tiles from ``starts[replica]`` on; it holds all neurons for its share of the batch. All replicas cut
        the neurons in the same way.
    blocks
        All blocks, ordered by replica, tile, first neuron, first sample. Blocks of one tile that hold the same neurons (other
        samples) share their weights. A replica updates its share of the parameters and sends it to the others.
    """

    id: str
    label: str
    neurons: int
    stage: int
    starts: tuple[int, ...]
    width: int
    blocks: tuple[Block, ...]

    @property
    def replicas(self) -> int:
        """Groups of tiles that share the batch."""
        return len(self.starts)

    @property
    def tiles(self) -> int:
        """Tiles of all replicas."""
        return self.replicas * self.width

    @property
    def all_tiles(self) -> tuple[int, ...]:
        """Tiles that hold any of its blocks, replica after replica."""
        return tuple(dict.fromkeys(block.tile for block in self.blocks))

    def replica_tiles(self, replica: int) -> range:
        """Tiles of one replica."""
        return range(self.starts[replica], self.starts[replica] + self.width)


@dataclass(frozen=True)
class Relay:
    """Samples ``[sample, sample + samples)`` of a source, kept on `tile`."""

    tile: int
    sample: int
    samples: int


@dataclass(frozen=True)
class PartialSum:
    """One vertex of the reduction of partial input gradients.

    It adds, for the samples ``[sample, sample + samples)`` and the entries ``[entry, entry + entries)`` of their windows, the partial
    products of `producers` column groups from `first` on, in the order connection, tile, neuron. Sums of one `part` cover everything
    once; several samples come with all entries.
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
    """How the gradient of a source comes back over a bus: only for neurons that spiked or are near the threshold.

    Attributes
    ----------
    capacity
        Entries a sample (spikes, then neurons near the threshold) that one window of the backward pass holds.
    parts
        Sums that stage one of the reduction leaves of each entry; the relays add them up.
    sums
        The vertices of stage one.
    """

    capacity: int
    parts: int
    sums: tuple[PartialSum, ...]


@dataclass(frozen=True)
class BusPlan:
    """One source seen with one lag.

    Attributes
    ----------
    id
        ``b0``, ``b1`` …
    source, buffer
        Input or population id, and the StepProgram buffer that is moved.
    width
        Values a sample and step.
    kind
        "events" (ids of spikes) or "values" (all values).
    lag
        Iterations between the source's step and its use. Buses of one source share the relays' memory of all steps.
    capacity
        Events a sample that one window holds (width when unlimited).
    mode
        What happens to more: "exact" sends further windows, "drop" keeps the lowest ids and counts the rest.
    relays
        Where its samples are kept.
    gradient
        How the gradient of the source comes back, when only neurons in the gradient window take it; None when every delta goes to the
        source.
    form
        What relays keep of events: "ids", or "bits", one for each value.
    """

    id: str
    source: str
    buffer: str
    width: int
    kind: Literal["events", "values"]
    lag: int
    capacity: int
    mode: Mode
    relays: tuple[Relay, ...]
    gradient: GradientPlan | None = None
    form: Literal["ids", "bits"] = "ids"


@dataclass(frozen=True)
class ConnectionPlan:
    """A connection of population `target` reads bus `bus`; its weights lie with the target's blocks (and again with the source's)."""

    id: str
    bus: str
    delay: int
    target: str = ""


@dataclass(frozen=True)
class Phase:
    """One kind of superstep, with its predicted cost a run of it at the busiest tile.

    Attributes
    ----------
    name
        For example ``"forward: neurons"``.
    part
        "forward", "loss", "recompute", "backward" or "update".
    runs
        How often a training step runs it.
    compute, sync, exchange
        Predicted cycles of one run.
    bytes_in
        Bytes that the busiest tile receives in one run.
    busiest_tile
        The tile that decides `compute`.
    waits
        Whether all tiles of all chips wait for each other: a decision, an exchange between chips, a copy from or to streaming memory.
    first
        What its first run computes, in predicted cycles; None: as all others.
    """

    name: str
    part: str
    runs: int
    compute: float
    sync: float
    exchange: float
    bytes_in: int
    busiest_tile: int
    waits: bool = False
    first: float | None = None

    @property
    def cycles(self) -> float:
        """Predicted cycles of one run."""
        return self.compute + self.sync + self.exchange

    @property
    def first_cycles(self) -> float:
        """Predicted cycles of the first run."""
        return self.cycles if self.first is None else self.first + self.sync + self.exchange


@dataclass(frozen=True)
class MemoryPhase:
    """What is live in one kind of superstep.

    Attributes
    ----------
    name, part
        As those of :class:`Phase`.
    tile
        Category -> predicted bytes on the plan's fullest tile (:attr:`Plan.fullest_tile`).
    all_tiles
        Category -> predicted bytes on all tiles together.
    """

    name: str
    part: str
    tile: dict[str, int]
    all_tiles: dict[str, int]


@dataclass(frozen=True)
class HostOverlap:
    """Host streams beside computing: tiles set aside take the inputs of the next step while this one runs.

    Attributes
    ----------
    tiles
        The last tiles of each chip; nothing is computed there.
    beside
        The part of a step in front of which the transfer begins.
    cycles
        Predicted cycles of the transfer that the step goes on beside.
    """

    tiles: int
    beside: Literal["forward", "backward", "update"]
    cycles: float


@dataclass(frozen=True)
class Plan:
    """The mapping of one StepProgram for a batch size and a number of steps; see the module's page."""

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
    """Spikes per value and step that the costs assume, by StepProgram buffer."""
    activity_source: str
    """"measured on …" or "assumed"."""
    memory: dict[str, tuple[int, ...]]
    """Category -> predicted bytes on each tile of the target where that tile holds most (weights, tables, optimiser, gradients, history,
    relays, records, exchange, vertices, code)."""
    phases: tuple[Phase, ...]
    loss_tiles: tuple[int, ...] = ()
    """Tile of each sample's loss (empty when not training)."""
    tile_cycles: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """"compute" and "exchange": predicted cycles of each tile in a whole training step, waiting not counted."""
    bound_cycles: float = 0.0
    """Balance bound of a training step: the same supersteps, each dealt evenly over all tiles (:mod:`snnc.compiler.tiles.bounds`)."""
    ideal_cycles: float = 0.0
    """Ideal bound of a training step: event loops of one issue a vector of columns, ids moved once, barriers."""
    strategy: str = "snnc"
    """How tiles were chosen: "snnc", or a baseline to compare it with."""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of the parts that populations were cut into, by the author's name; each part is a population of its own here."""
    host_bytes: int = 0
    """What the host streams to the chips in a training step: labels and inputs, before the first iteration or before each run of a
    segment; see :attr:`overlap`."""
    memory_over_time: tuple[MemoryPhase, ...] = ()
    """What is live in each kind of superstep, in order; see docs/decisions/0013-memory-over-time.md."""
    unshared_bytes: int = 0
    """What the fullest tile would hold if all that it ever holds had room of its own."""
    segment: int = 0
    """Iterations of a segment; the history of one at a time is on the tiles. 0: the history of all steps is."""
    streamed: Streamed = "off"
    """What of such a sequence lies outside the tiles."""
    streaming_bytes: tuple[int, ...] = ()
    """Bytes of streaming memory of each chip; empty where none is used."""
    latency: int = 1
    """Iterations that spikes of a population need at least to reach its readers in the forward pass: 2 where relays look for the spikes
    of one iteration while neurons compute the next. Stages and lags above are those of the backward pass, where it is 1."""
    dealt: tuple[str, ...] = ()
    """Populations whose weight gradients are dealt over the workers of a tile by the spikes of all its samples, in a superstep behind that
    of their neurons."""
    overlap: HostOverlap | None = None
    """How the host's streams run beside computing; None: the chips wait for them."""

    @property
    def segments(self) -> Segments:
        """How the iterations are cut."""
        return Segments(self.steps, self.interval, self.iterations, self.segment, self.streamed)

    @property
    def cycles(self) -> float:
        """Predicted cycles of one training step (of one forward pass when not training)."""
        return sum(p.runs * p.cycles for p in self.phases)

    @property
    def seconds(self) -> float:
        """Predicted seconds of one training step (of one forward pass when not training), without transfers to and from the host."""
        return self.cycles / self.target.clock_hz

    @property
    def host_seconds(self) -> float | None:
        """Predicted seconds of these transfers, which are not in :attr:`seconds`; None when the target does not tell its rate."""
        return self.host_bytes / self.target.host.bytes_per_second if self.target.host is not None else None

    @property
    def hidden_host_seconds(self) -> float:
        """Predicted seconds of them beside which the step goes on."""
        # The emulator's streams take whole cycles each.
        return 0.0 if self.overlap is None else min(self.overlap.cycles / self.target.clock_hz, self.host_seconds or 0.0)

    @property
    def seconds_with_host(self) -> float:
        """Predicted seconds of one step with the transfers that it waits for (without any where the target does not tell its rate)."""
        return self.seconds + (self.host_seconds or 0.0) - self.hidden_host_seconds

    @property
    def io_tiles(self) -> tuple[int, ...]:
        """Tiles that are set aside for the host's streams, chip after chip."""
        number, each = 0 if self.overlap is None else self.overlap.tiles, self.target.tiles_per_chip
        return tuple(each * (chip + 1) - number + n for chip in range(self.chips_used) for n in range(number))

    @property
    def tile_memory(self) -> tuple[int, ...]:
        """The most that each tile is predicted to hold at once, all categories."""
        return tuple(map(sum, zip(*self.memory.values(), strict=True)))

    @property
    def fullest_tile(self) -> int:
        """The first tile that holds most."""
        memory = self.tile_memory
        return memory.index(max(memory))

    @property
    def chips_used(self) -> int:
        """Chips that hold anything."""
        busy = [start + p.width - 1 for p in self.populations for start in p.starts] + [r.tile for b in self.buses for r in b.relays]
        return max(busy) // self.target.tiles_per_chip + 1

    def to_json(self) -> str:
        """Write the plan as JSON; see :mod:`snnc.compiler.ir.plan_json`."""
        from snnc.compiler.ir.plan_json import plan_to_json

        return plan_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        PlanFileError
            The text is not a plan of this version.
        """
        from snnc.compiler.ir.plan_json import plan_from_json

        return plan_from_json(text)
