"""What the emitter looks up in a step program and its plan.

docs/reference/terms.md explains the terms of tile machines: relay, bus, window, block, replica, stage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from snnc.backends.poplar.errors import PlanMismatchError, UnsupportedOnPoplarError
from snnc.backends.poplar.plan_check import check_plan
from snnc.compiler.errors import HalfDeltasError
from snnc.compiler.ir.plan import BusPlan, Plan
from snnc.compiler.ir.step_operations import (
    AddOneToOne,
    Fill,
    NeuronAdjoint,
    NeuronStep,
)
from snnc.compiler.ir.step_program import ConnectionInfo, OutputInfo, StepProgram
from snnc.compiler.lowering.statistics import statistics_on_device
from snnc.compiler.tiles.blocks.grouping import mask_unit
from snnc.compiler.tiles.indexed.plan_tables import IndexedConnection, indexed_connections
from snnc.compiler.tiles.mapped.network import Layer, Link, MappedNetwork, describe
from snnc.compiler.tiles.schedule.buses import whole_words
from snnc.compiler.tiles.schedule.further_windows import FurtherWindows, WindowSizes, request_length
from snnc.compiler.tiles.schedule.schedule import Arc, stages_of
from snnc.compiler.tiles.schedule.window_test import WindowTest, window_test
from snnc.compiler.tiles.vertices.codelet_costs import network_costs
from snnc.compiler.tiles.vertices.control_vertices import most
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.relay_vertices import StoredSpikes, id_type
from snnc.compiler.tiles.vertices.vertex_spec import Element


@dataclass(frozen=True)
class Store:
    """The memory in which the relays of a source store its values."""

    buffer: str
    owner: str
    """Id of the source's population or input."""
    width: int
    """Number of neurons of the source."""
    kind: str
    """``"events"`` or ``"values"``."""
    buses: tuple[BusPlan, ...]
    stored: int
    """Maximum number of events stored per sample and step."""
    before: bool
    """Whether a slot contains the value before step 0, which the host can set."""
    static: bool
    """Whether the source has the same values at all steps."""
    external: bool
    """Whether the source is an input."""

    @property
    def bits(self) -> bool:
        """Whether it stores one bit per neuron instead of ids."""
        return self.buses[0].form == "bits"

    @property
    def with_support(self) -> bool:
        """Whether it also stores the neurons that receive a gradient without a spike."""
        return any(b.gradient is not None for b in self.buses)

    @property
    def lag(self) -> int:
        """The largest lag of its buses."""
        return max(bus.lag for bus in self.buses)

    @property
    def id_type(self) -> Element:
        """C++ type of an id."""
        return id_type(self.width)

    @property
    def drops_support(self) -> bool:
        """Whether more neurons may receive a gradient in a step than it can store."""
        return self.with_support and self.stored < self.width

    @property
    def stored_spikes(self) -> StoredSpikes:
        """How it stores spikes, for the descriptions of vertices."""
        return StoredSpikes(self.id_type, self.bits, self.with_support, self.drops_support, self.drops_spikes)

    @property
    def drops_spikes(self) -> bool:
        """Whether relays limit the number of spikes sent per step (mode ``drop``)."""
        return self.kind == "events" and not self.external and not self.bits and self.buses[0].mode == "drop"

    def room(self, ids: int) -> int:
        """Return the length of a list of `ids` ids, rounded up to whole 32-bit words."""
        return whole_words(ids, self.width)

    @property
    def poplar_type(self) -> str:
        """Poplar type of an id."""
        return "poplar::UNSIGNED_SHORT" if self.id_type == "unsigned short" else "poplar::UNSIGNED_INT"


@dataclass(frozen=True, eq=False)
class PoplarNetwork:
    """The emitted program and its plan."""

    program: StepProgram
    plan: Plan
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Buffer -> initial capacity and key of the random choice of spikes, for limits that a run may change."""
    operation: bool = False
    """Whether the program is an operation in the graph of another framework: no host sets values or reads results."""

    @property
    def training(self) -> bool:
        """Whether a training step is emitted."""
        return self.plan.training

    @cached_property
    def mapped(self) -> MappedNetwork:
        """The network in the form in which the mapper describes its vertices."""
        return describe(self.program, self.training)

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        """Layer of every population."""
        return {layer.id: layer for layer in self.mapped.layers}

    @cached_property
    def links(self) -> Mapping[str, Link]:
        """Descriptions of connections, by id."""
        return {link.id: link for link in self.mapped.links}

    @cached_property
    def costs(self) -> Mapping[str, CodeletCost]:
        """Cost coefficients of every codelet."""
        return network_costs(self.mapped)

    @cached_property
    def indexed(self) -> Mapping[str, IndexedConnection]:
        """Indexed connections by id."""
        return indexed_connections(self.program, self.plan)

    @cached_property
    def stages(self) -> Mapping[str, int]:
        """Stage of every population and input."""
        return {**{i.id: -1 for i in self.program.inputs}, **{p.id: p.stage for p in self.plan.populations}}

    @property
    def fused(self) -> bool:
        """Whether, in the forward pass, relays search for the spikes of an iteration while neurons compute the next."""
        return self.plan.latency > 1

    @cached_property
    def forward_stages(self) -> Mapping[str, int]:
        """Stage of every population and input in the forward pass, which differs from :attr:`stages` if the pass is :attr:`fused`."""
        if not self.fused:
            return self.stages
        names = [p.id for p in self.plan.populations]
        arcs = [Arc(bus.source, c.target, c.delay) for c in self.plan.connections if (bus := self.buses[c.id]).source in names]
        stages = stages_of(names, arcs, self.plan.interval, self.plan.latency)
        if stages is None:
            raise PlanMismatchError(f"the plan's latency of {self.plan.latency} does not match this program; map the program again.")
        return {**self.stages, **stages}

    @cached_property
    def buses(self) -> Mapping[str, BusPlan]:
        """Bus of every connection."""
        by_id = {b.id: b for b in self.plan.buses}
        return {c.id: by_id[c.bus] for c in self.plan.connections}

    def size(self, buffer: str) -> int:
        """Return the number of elements of a buffer per sample and step."""
        return math.prod(self.program.buffers[buffer].shape)

    def step(self, population: str) -> NeuronStep:
        """Return the forward operation of a population."""
        return next(op for op in self.program.forward if isinstance(op, NeuronStep) and op.population == population)

    def adjoint(self, population: str) -> NeuronAdjoint | None:
        """Return the backward operation of a population; None if it has none, or without training."""
        if not self.training:
            return None
        return next((op for op in self.program.backward if isinstance(op, NeuronAdjoint) and op.population == population), None)

    def incoming(self, population: str) -> tuple[ConnectionInfo, ...]:
        """Return the connections into a population."""
        return tuple(c for c in self.program.connections if c.target == population)

    def outgoing(self, population: str) -> tuple[ConnectionInfo, ...]:
        """Return the connections out of a population for which the source computes the input gradient, from the deltas of all targets."""
        of_source = (c for c in self.program.connections if c.source == population)
        return tuple(c for c in of_source if self.links[c.id].input_gradient and c.id not in self.returning)

    @cached_property
    def returning(self) -> frozenset[str]:
        """Ids of the connections whose targets compute partial products of the source's gradient, which return in windows."""
        return frozenset(c.id for c in self.plan.connections if c.returns)

    @cached_property
    def gradient_buses(self) -> tuple[BusPlan, ...]:
        """Buses on which gradients return in windows."""
        return tuple(bus for bus in self.plan.buses if bus.gradient is not None)

    @property
    def owners_sum_gradients(self) -> bool:
        """Whether owners of the weights of an indexed connection sum private gradients."""
        return any(self.links[id_].weight_gradient for id_ in self.indexed)

    @cached_property
    def copied_rows(self) -> tuple[ConnectionInfo, ...]:
        """Dense connections whose weights are also stored with their source."""
        others = self.returning | self.indexed.keys()
        dense = (c for c in self.program.connections if c.kind == "dense" and c.weight)
        return tuple(c for c in dense if self.links[c.id].input_gradient and c.id not in others)

    @cached_property
    def packed_rows(self) -> Mapping[str, int]:
        """Connection id -> number of bundles of target tiles that pack rows of weights for the source."""
        rows = {c.id for c in self.copied_rows}
        return {c.id: c.packed for c in self.plan.connections if c.packed and c.id in rows}

    def cpp_shape(self, parameter: str) -> str:
        """Return the shape of a parameter as C++."""
        return "{" + ", ".join(map(str, self.program.buffers[parameter].shape or (1,))) + "}"

    def offset(self, connection: str) -> int:
        """Return the first target neuron of a one-to-one connection; 0 for other connections."""
        return next((op.offset for op in self.program.forward if isinstance(op, AddOneToOne) and op.connection == connection), 0)

    def biases(self, port: str) -> tuple[str, ...]:
        """Return the biases of a current."""
        return tuple(b for op in self.program.forward if isinstance(op, Fill) and op.target == port for b in op.biases)

    def moment_outputs(self, population: str) -> tuple[OutputInfo, ...]:
        """Return the outputs that a population records only for their mean and variance."""
        return (statistics_on_device(self.program)[population],) if self.layers[population].computes_statistics else ()

    @cached_property
    def further(self) -> FurtherWindows:
        """Windows that may be too small, and buses whose relays request further windows."""
        sizes = {}
        for bus in self.plan.buses:
            gradient = None if bus.gradient is None else bus.gradient.capacity
            sizes[bus.id] = WindowSizes(bus.width, bus.kind == "events", bus.mode == "exact", bus.capacity, gradient)
        return FurtherWindows(sizes, self.training)

    def limited(self, bus: BusPlan, *, backward: bool = False) -> bool:
        """Return whether a step may not fit in one window of `bus`."""
        return self.further.sizes[bus.id].limited(backward=backward)

    @cached_property
    def requesting_buses(self) -> tuple[BusPlan, ...]:
        """Buses whose relays request further windows: in the forward pass, or in the backward pass if none do so forward."""
        return tuple(bus for bus in self.plan.buses if bus.id in self.further.requesting)

    def request_length(self, bus: BusPlan) -> int:
        """Return the number of counts that a relay of `bus` writes to request further windows."""
        return request_length(self.plan.target.workers, bits=bus.form == "bits", external=self.stores[bus.buffer].external, lag=bus.lag)

    @cached_property
    def window_test(self) -> WindowTest | None:
        """The test for further windows; None if no window can be too small."""
        direction = self.further.requested_in
        if direction is None:
            return None
        tiles = [relay.tile for bus in self.requesting_buses for relay in bus.relays]
        lengths = [self.request_length(bus) for bus in self.requesting_buses for _ in bus.relays]
        return window_test(direction, 1 + self.further.both, tiles, lengths, self.plan.target, most(self.costs))

    def mask_kind(self, store: Store) -> str:
        """Return the layout of a source's masks, a value of the C++ ``Mask``: a unit has bits of spikes (SPIKES), or also bits of neurons
        that receive a gradient, in the other half of the word (HALVES) or in a second word (PAIRS)."""
        if not store.with_support:
            return "SPIKES"
        placed = next(p for p in self.plan.populations if p.id == store.owner)
        return "HALVES" if mask_unit(max(b.count for b in placed.blocks), support=True) == 1 else "PAIRS"

    def mask_unit(self, store: Store) -> int:
        """Return the number of 32-bit words in a unit of a source's masks; a unit is for up to 32 neurons."""
        return 2 if self.mask_kind(store) == "PAIRS" else 1

    def last_step(self, bus: BusPlan) -> int:
        """Return the last step of the source whose values are read on `bus`."""
        return self.plan.steps - 1 - min(c.delay for c in self.plan.connections if c.bus == bus.id)

    @cached_property
    def stores(self) -> Mapping[str, Store]:
        """Stores of all sources, by buffer."""
        return {buffer: self._store(buffer) for buffer in dict.fromkeys(b.buffer for b in self.plan.buses)}

    def _store(self, buffer: str) -> Store:
        buses = tuple(b for b in self.plan.buses if b.buffer == buffer)
        if len({(b.kind, b.relays) for b in buses}) != 1:
            raise PlanMismatchError(f"the buses {', '.join(b.id for b in buses)} of one source differ in kind or relays.")
        first = buses[0]
        largest = max(b.width if b.mode == "exact" else max(b.capacity, b.gradient.capacity if b.gradient else 0) for b in buses)
        network_input = next((i for i in self.program.inputs if i.id == first.source), None)
        return Store(
            buffer=buffer,
            owner=first.source,
            width=first.width,
            kind=first.kind,
            buses=buses,
            stored=whole_words(largest, first.width),
            before=buffer in self.initial_outputs,
            static=network_input is not None and network_input.repeated,
            external=network_input is not None,
        )

    @cached_property
    def initial_outputs(self) -> frozenset[str]:
        """Output buffers that delayed connections read, and whose value before step 0 the host can set."""
        delayed = {c.source_buffer for c in self.program.connections if c.delay > 0}
        settable = set()
        for info in self.program.populations:
            names = {info.kernel.labels[s] for s in info.kernel.states}
            names |= {ref.name for ref in self.program.state_inputs.values() if ref.node == info.id}
            settable |= {buffer for label, buffer in info.output_buffers.items() if label in names}
        return frozenset(settable & delayed)

    def check(self) -> None:
        """Raise an error if the plan does not match the program, or the program cannot be emitted.

        Raises a PlanMismatchError as :func:`~snnc.backends.poplar.plan_check.check_plan` does; a HalfDeltasError if deltas are float16 and
        a block has an odd number of samples; an UnsupportedOnPoplarError if several connections share a weight, an output reads neither an
        input nor an output port, or gradients are truncated.
        """
        if self.program.truncate is not None:
            raise UnsupportedOnPoplarError(
                f"{self.program.name!r} truncates gradients after {self.program.truncate} steps; Poplar programs cannot truncate them."
            )
        check_plan(self.program, self.plan)
        for placed in self.plan.populations:
            if self.mapped.half_deltas and any(block.sample % 2 or block.samples % 2 for block in placed.blocks):
                raise HalfDeltasError(
                    f"deltas are float16, with two samples per word, but a block of {placed.label!r} has an odd number of samples; "
                    "use an even batch size, or remove deltas from half."
                )
        weights = [c.weight for c in self.program.connections if c.weight]
        for weight in sorted({w for w in weights if weights.count(w) > 1}):
            raise UnsupportedOnPoplarError(
                f"the weight {self.program.parameters[weight].label!r} is shared by several connections; give each its own."
            )
        for output in self.program.outputs:
            if output.source.buffer in {f"{i.id}_in" for i in self.program.inputs}:
                continue
            if not any(output.source.buffer in self.step(p.id).outputs for p in self.program.populations):
                raise UnsupportedOnPoplarError(
                    f"the output {output.label!r} does not read an output port of a population; insert a population before it."
                )
