"""Bytes that a plan moves in one training step, between layers and between chips.

The counts follow the program of docs/decisions/0001-poplar-program.md: spikes move to the relays of their samples, windows from relays to
every tile that reads them, deltas to every tile of the source, records to the tiles of the loss, and their adjoints back. New weights move
to the copies that sources store, and replicas exchange gradients and new weights.

Flags, losses, and data that a tile reads from its own memory do not count. On a chip, every tile that reads a piece of data counts. Between
chips, a piece counts once for each chip that reads it. Windowed gradients, and the deltas of indexed connections, count as deltas of all
neurons of the target. Copies of the weights of indexed connections do not count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import BusPlan, LayerFlow, Plan, PlanTraffic, Relay
from snnc.compiler.machines.chip_links import Flows, Routes
from snnc.compiler.tiles.blocks.grouping import Floats, mask_unit
from snnc.compiler.tiles.exchange.places import BatchGroup, LayerPlace, LayerPlaces, locate
from snnc.compiler.tiles.exchange.traffic import common
from snnc.compiler.tiles.mapped.learned import learned_rows
from snnc.compiler.tiles.mapped.network import MappedNetwork
from snnc.compiler.tiles.schedule.buses import COUNT_BYTES, whole_words

Span: TypeAlias = tuple[int, int]
"""Samples ``[first, stop)``."""
SPIKES: Final = "spikes to relays"
WINDOWS: Final = "windows"
BACKWARD_WINDOWS: Final = "windows, backward"
DELTAS: Final = "deltas"
RECORDS: Final = "records"
ADJOINTS: Final = "adjoints"
WEIGHT_COPIES: Final = "weights to copies"
REPLICA_GRADIENTS: Final = "gradients"
REPLICA_WEIGHTS: Final = "new weights"
"""Kinds of traffic, as reports name them; the last two are between replicas."""


@dataclass(frozen=True, eq=False)
class StepTraffic:
    """Bytes that one training step moves."""

    nodes: tuple[str, ...]
    """Ids of the inputs, then of the layers."""
    flows: tuple[LayerFlow, ...]
    """Bytes that tiles receive, by node of the sender, node of the receiver, and kind."""
    chips: Floats
    """Bytes from chip (row) to chip (column); the diagonal is the traffic inside a chip."""
    by_kind: Mapping[str, Floats]
    """Matrices like `chips`, by kind."""
    links: Mapping[str, Flows]
    """Bytes that chips send to other chips, for each kind; see :class:`snnc.compiler.machines.chip_links.Flows`."""

    @classmethod
    def of(cls, plan: PlanTraffic) -> StepTraffic:
        """Return the traffic stored in a plan."""
        links: dict[str, Flows] = {}
        for kind, sent in plan.links.items():
            links[kind] = Flows()
            for source, receivers, size in sent:
                links[kind].send(source, receivers, size)
        by_kind = {kind: np.array(rows) for kind, rows in plan.chips.items()}
        return cls(plan.nodes, plan.flows, sum(by_kind.values(), np.zeros(())), by_kind, links)

    def to_plan(self) -> PlanTraffic:
        """Return this traffic in the form stored in a plan."""
        links = {
            kind: tuple((source, tuple(sorted(receivers)), size) for (source, receivers), size in flows.bytes.items())
            for kind, flows in self.links.items()
            if flows.bytes
        }
        chips = {kind: tuple(map(tuple, rows.tolist())) for kind, rows in self.by_kind.items()}
        return PlanTraffic(self.nodes, self.flows, chips, links)

    def load(self, routes: Routes) -> dict[tuple[int, int], float]:
        """Return the bytes per training step on every wire between chips that carries data, by (from, to)."""
        by_wire: dict[tuple[int, int], float] = defaultdict(float)
        for flows in self.links.values():
            for wire, size in routes.load(flows).items():
                by_wire[wire] += size
        return dict(by_wire)

    def matrix(self) -> Floats:
        """Return the bytes from node (row) to node (column)."""
        total = np.zeros((len(self.nodes), len(self.nodes)))
        for flow in self.flows:
            total[flow.source, flow.target] += flow.bytes
        return total


def traffic_of(plan: Plan, network: MappedNetwork) -> PlanTraffic:
    """Return the traffic of a plan of `network`."""
    return measure_traffic(plan, locate(plan), program_traffic(network)).to_plan()


def program_traffic(network: MappedNetwork) -> dict[str, Any]:
    """Return the parts of a summary (:func:`snnc.report.summarise`) that determine the traffic, as JSON types."""
    connections = [
        {
            "id": link.id,
            "source": link.source.owner,
            "target": link.target,
            "port": link.port,
            "weight_gradient": link.weight_gradient,
            "input_gradient": link.input_gradient,
            "copied": link.outputs if link.dense else int(link.weight_elements > 1),  # weights per source neuron
        }
        for link in network.links
    ]
    learned = [{"id": layer.id, "learned": sum(learned_rows(layer)) * layer.neurons + layer.learnable_scalars} for layer in network.layers]
    return {"connections": connections, "populations": learned, "loss_layer": network.loss_layer}


def measure_traffic(plan: Plan, places: LayerPlaces, program: Mapping[str, Any] | None = None) -> StepTraffic:
    """Count the bytes of one training step (of one forward pass when not training); `places` is the result of :func:`locate` for `plan`.

    `program` is a summary by :func:`snnc.report.summarise`: the connections that learn, and the layer that the loss reads. Without it,
    every connection counts as learning, and as passing gradients to its source if that is a layer; records, adjoints, copies of weights,
    and the exchange between replicas are left out.
    """
    count = _Count(plan, places, program or {})
    for index in range(len(plan.populations)):
        count.spikes(index)
    for bus in plan.buses:
        count.windows(bus)
    if plan.training:
        for index in range(len(plan.populations)):
            count.deltas(index)
            count.replicas(index)
        count.loss()
        for connection in plan.connections:
            count.copies(connection.id)
    return count.result()


class _Count:
    """Accumulator of flows between layers and of matrices [sending chip, receiving chip].

    Arrays named `sent`, `readers` or `local` have one value per chip.
    """

    def __init__(self, plan: Plan, places: LayerPlaces, program: Mapping[str, Any]) -> None:
        self.plan, self.places, self.program = plan, places, program
        self.populations = {p.id: n for n, p in enumerate(plan.populations)}
        self.inputs = tuple(dict.fromkeys(b.source for b in plan.buses if b.source not in self.populations))
        self.buses = {b.id: b for b in plan.buses}
        self.known = {c["id"]: c for c in program.get("connections", [])}
        self.flows: dict[tuple[int, int, str], float] = defaultdict(float)
        self.moved: dict[str, Floats] = {}
        self.links: dict[str, Flows] = defaultdict(Flows)

    def result(self) -> StepTraffic:
        nodes = (*self.inputs, *self.populations)
        chips = self.plan.target.chips
        flows = tuple(LayerFlow(*key, size) for key, size in self.flows.items() if size > 0)
        return StepTraffic(nodes, flows, sum(self.moved.values(), np.zeros((chips, chips))), self.moved, self.links)

    def node(self, name: str) -> int:
        return len(self.inputs) + self.populations[name] if name in self.populations else self.inputs.index(name)

    def layer(self, name: str) -> LayerPlace:
        return self.places.layers[self.populations[name]]

    def chip(self, tiles: Any) -> Any:
        return np.asarray(tiles) // self.plan.target.tiles_per_chip

    def chip_vector(self, tile: int) -> Floats:
        """Return a vector over chips: 1 for the chip of the tile, 0 for the others."""
        vector = np.zeros(self.plan.target.chips)
        vector[tile // self.plan.target.tiles_per_chip] = 1.0
        return vector

    def by_chip(self, tiles: Any, weights: Any) -> Floats:
        return np.bincount(self.chip(tiles), weights=weights, minlength=self.plan.target.chips).astype(np.float64)

    def add(self, source: str, target: str, kind: str, size: float, chips: Floats) -> None:
        """Add `size` bytes that tiles receive; `chips` contains these bytes by sending and receiving chip."""
        self.flows[self.node(source), self.node(target), kind] += size
        self.moved[kind] = self.moved.get(kind, 0.0) + chips

    def send(self, source: str, target: str, kind: str, sent: Floats, readers: Floats, local: Floats, times: float) -> None:
        """Add data that every reader receives, `times` times.

        The arrays have one value per chip: the bytes `sent`, the number of `readers` (tiles), and the bytes that readers have in their own
        memory (`local`).
        """
        receivers, links = readers.nonzero()[0].tolist(), self.links[kind]
        for source_chip in sent.nonzero()[0].tolist():
            links.send(source_chip, receivers, times * float(sent[source_chip]))
        chips = sent[:, None] * (readers > 0)
        chips.flat[:: len(chips) + 1] = sent * readers - local
        self.add(source, target, kind, times * float(sent.sum() * readers.sum() - local.sum()), times * chips)

    def learns(self, connection: str, what: str) -> bool:
        """Return whether a step computes the gradient `what` ("weight_gradient" or "input_gradient") of a connection."""
        source = self.buses[next(c.bus for c in self.plan.connections if c.id == connection)].source
        return bool(self.known.get(connection, {}).get(what, what == "weight_gradient" or source in self.populations))

    def spikes(self, index: int) -> None:
        """Add the spikes or values that a layer sends to its relays; every tile sends as many words per sample as the fullest one."""
        name, where = self.plan.populations[index].id, self.places.layers[index]
        for bus in {b.buffer: b for b in self.plan.buses if b.source == name}.values():
            words = np.full(len(where.tiles), where.neurons.max(initial=0))
            if bus.kind == "events":
                support = any(b.gradient is not None for b in self.plan.buses if b.buffer == bus.buffer)
                words = where.words * int(mask_unit(max(b.count for b in self.plan.populations[index].blocks), support=support))
            for group in where.groups:
                sent = FLOAT * self.by_chip(group.tiles, words[group.at])
                for relay, size in _overlapping(bus.relays, group.first, group.count):
                    readers = self.chip_vector(relay.tile)
                    local = size * FLOAT * readers * words[group.at[group.tiles == relay.tile]].sum()
                    self.send(name, name, SPIKES, size * sent, readers, local, self.plan.iterations)

    def windows(self, bus: BusPlan) -> None:
        """Add the windows that tiles read for their samples in each iteration, and again in the backward pass if weights learn."""
        received: dict[str, dict[int, tuple[Span, ...]]] = {WINDOWS: {}, BACKWARD_WINDOWS: {}}
        for target in dict.fromkeys(c.target for c in self.plan.connections if c.bus == bus.id):
            connection_ids = [c.id for c in self.plan.connections if c.bus == bus.id and c.target == target]
            read_backward = self.plan.training and any(self.learns(c, "weight_gradient") for c in connection_ids)
            for kind in (WINDOWS, BACKWARD_WINDOWS) if read_backward else (WINDOWS,):
                for group in self.layer(target).groups:
                    for (first, stop), tiles in _not_received(group, received[kind]).items():
                        self._window(bus, target, kind, tiles, first, stop - first)

    def _window(self, bus: BusPlan, target: str, kind: str, tiles: Any, first: int, count: int) -> None:
        """Add the windows of a bus that `tiles` read for the samples ``[first, first + count)``, in all iterations."""
        readers = self.by_chip(tiles, np.ones(len(tiles)))
        reading, each = set(tiles), window_bytes(bus)
        for relay, samples in _overlapping(bus.relays, first, count):
            sent = float(samples * each) * self.chip_vector(relay.tile)
            local = sent * (relay.tile in reading)
            self.send(bus.source, target, kind, sent, readers, local, self.plan.iterations)

    def deltas(self, index: int) -> None:
        """Add the deltas of the targets that every tile of a source reads for its samples."""
        name, where = self.plan.populations[index].id, self.places.layers[index]
        returning = [c for c in self.plan.connections if self.buses[c.bus].source == name and self.learns(c.id, "input_gradient")]
        for target, _ in dict.fromkeys((c.target, self.known.get(c.id, {}).get("port", 0)) for c in returning):
            writer = self.layer(target)
            for reads in where.groups:
                readers = self.by_chip(reads.tiles, np.ones(len(reads.tiles)))
                reading = np.zeros(self.plan.target.tiles, dtype=bool)
                reading[reads.tiles] = True
                first, stop = reads.first, reads.first + reads.count
                for writes in (other for other in writer.groups if other.first < stop and first < other.first + other.count):
                    sizes = FLOAT * common((first, reads.count), (writes.first, writes.count)) * writer.neurons[writes.at]
                    local = self.by_chip(writes.tiles, sizes * reading[writes.tiles])
                    sent = self.by_chip(writes.tiles, sizes)
                    self.send(target, name, DELTAS, sent, readers, local, self.plan.iterations)

    def loss(self) -> None:
        """Add the records that move to the tile of each sample's loss, and the adjoints of records that move back."""
        name = self.program.get("loss_layer")
        if name not in self.populations or not self.plan.loss_tiles:
            return
        where, tiles = self.layer(name), np.asarray(self.plan.loss_tiles)
        for group in where.groups:
            each = FLOAT * self.plan.steps * where.neurons[group.at]
            losses, samples = np.unique(tiles[group.first : group.first + group.count], return_counts=True)
            for tile, number in zip(losses, samples, strict=True):
                sent = number * self.by_chip(group.tiles, each)
                reader = self.chip_vector(tile)
                local = reader * float(number * each[group.tiles == tile].sum())
                self.send(name, name, RECORDS, sent, reader, local, 1)
                self.add(name, name, ADJOINTS, float(sent.sum() - local.sum()), np.outer(reader, sent) - np.diag(local))
                self.links[ADJOINTS].send_each(np.outer(reader, sent))

    def copies(self, connection: str) -> None:
        """Add the new weights of a connection that move to the copies on the tiles of its source."""
        data = self.known.get(connection)
        if data is None or not (data["weight_gradient"] and data["input_gradient"] and data["source"] in self.populations):
            return
        source, target = self.layer(data["source"]), self.layer(data["target"])
        outputs = max(1, self.plan.populations[self.populations[data["target"]]].neurons)
        for number, group in enumerate(source.groups):
            other = target.groups[number * len(target.groups) // len(source.groups)]
            neurons, read = _on_tiles(source, group), FLOAT * data["copied"] * source.neurons[group.at]
            written = _on_tiles(target, other)
            stored = {t: FLOAT * data["copied"] * n * written[t] / outputs for t, n in neurons.items() if t in written}
            local = self.by_chip(list(stored), list(stored.values())) if stored else np.zeros(self.plan.target.chips)
            received = self.by_chip(group.tiles, read)
            share = self.by_chip(list(written), list(written.values())) / sum(written.values())
            self.links[WEIGHT_COPIES].send_each(np.outer(share, received))
            self.add(
                data["target"],
                data["source"],
                WEIGHT_COPIES,
                float(received.sum() - local.sum()),
                np.outer(share, received) - np.diag(local),
            )

    def replicas(self, index: int) -> None:
        """Add the exchange of replicas: each owns a share of the parameters, receives the gradients of its share, and sends new values."""
        population, where = self.plan.populations[index], self.places.layers[index]
        learned = next((p.get("learned", 0) for p in self.program.get("populations", []) if p["id"] == population.id), 0)
        number = len(where.groups)
        if number < 2 or not learned:
            return
        chips = np.array([self.by_chip(g.tiles, np.ones(len(g.tiles))) / len(g.tiles) for g in where.groups])
        share = FLOAT * learned / number
        moved = share * (np.outer(chips.sum(axis=0), chips.sum(axis=0)) - chips.T @ chips)
        for kind in (REPLICA_GRADIENTS, REPLICA_WEIGHTS):
            self.links[kind].send_each(moved)
            self.add(population.id, population.id, kind, share * number * (number - 1), moved)


def _on_tiles(layer: LayerPlace, group: BatchGroup) -> dict[int, int]:
    return dict(zip(group.tiles.tolist(), layer.neurons[group.at].tolist(), strict=True))


def window_bytes(bus: BusPlan) -> int:
    """Return the bytes of one sample's window: a count and ids (of 16 bits if these suffice) in whole words, or all values."""
    if bus.kind == "values":
        return FLOAT * bus.width
    return whole_words(bus.capacity, bus.width) * (2 if bus.width <= 1 << 16 else 4) + COUNT_BYTES


def _overlapping(relays: Sequence[Relay], first: int, count: int) -> list[tuple[Relay, int]]:
    """Return the relays that store some of the samples ``[first, first + count)``, and how many; `relays` are sorted by sample."""
    begin = bisect_right(relays, first, key=lambda relay: relay.sample + relay.samples)
    end = bisect_left(relays, first + count, key=lambda relay: relay.sample)
    return [(relay, common((relay.sample, relay.samples), (first, count))) for relay in relays[begin:end]]


def _not_received(group: BatchGroup, received: dict[int, tuple[Span, ...]]) -> dict[Span, list[int]]:
    """Return the ranges of samples that tiles of `group` have not received, each with its tiles; `received` is updated."""
    alike: dict[tuple[Span, ...], list[int]] = defaultdict(list)
    for tile in group.tiles.tolist():
        alike[received.get(tile, ())].append(tile)
    wanted = group.first, group.first + group.count
    missing: dict[Span, list[int]] = defaultdict(list)
    for covered, tiles in alike.items():
        for span in _uncovered(*wanted, covered):
            missing[span] += tiles
        received.update(dict.fromkeys(tiles, (*covered, wanted)))
    return missing


def _uncovered(first: int, stop: int, covered: Iterable[Span]) -> list[Span]:
    """Return the parts of the samples ``[first, stop)`` that no range in `covered` covers."""
    parts = [(first, stop)]
    for a, b in covered:
        parts = [p for f, s in parts for p in ((f, min(s, a)), (max(f, b), s)) if p[0] < p[1]]
    return parts
