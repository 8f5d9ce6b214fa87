"""Count the spikes and synaptic operations of a model on given data, in the reference backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.arrays import checked
from snnc.compiler.ir.graph import Array, Graph, Input, Output, Population
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.compiler.lowering.lower import lower
from snnc.compiler.passes.edit import fresh_name
from snnc.driver.measuring import calibration, sequences
from snnc.understanding.synops import Counting, Counts, MeasuredSynops, effective_fan_out, fan_out, has_synapses, source_of

CHUNK = 16
"""Number of samples per run."""
SATURATED = 0.95
"""Minimum firing rate of a saturated neuron, in spikes per step."""


@dataclass
class PortActivity:
    """Values sent by one port at one delay, over all samples and steps; values still in transit at the end are not counted."""

    counts: npt.NDArray[np.int64]
    """Number of nonzero values per neuron."""
    binary: bool = True
    """Whether every value was -1, 0 or 1."""


Activities: TypeAlias = dict[tuple[str, str, int], PortActivity]
"""Activity by source, source port and delay of the connection."""


def measure(graph: Graph, data: Path) -> MeasuredSynops:
    """Run `graph` on the samples of an npz archive and count what its synapses transmit.

    Raises
    ------
    DataFileError, UnknownNameError, DataShapeError, DataNotFiniteError, NotBinaryError
        The archive does not contain the inputs of the model.
    """
    ports = port_map(graph)
    probed, probes = _probed(graph, ports)
    program = lower(probed)
    given = sequences(program, calibration(data, graph))
    inputs = {i.id: checked(given[i.id], i.kind, f"the input {i.label!r}").astype(np.float32) for i in program.inputs}
    steps, samples = next(iter(inputs.values())).shape[:2]
    activities: Activities = {}
    delays = _delays(graph)
    engine = ReferenceEngine(program)
    labels = {o.id: probes[o.label] for o in program.outputs if o.label in probes}
    for first in range(0, samples, CHUNK):
        part = {name: array[:, first : first + CHUNK] for name, array in inputs.items()}
        for name, record in engine.forward(part, {}).items():
            if name in labels:
                _count(activities, delays, labels[name], record)
        for info in program.inputs:
            _count(activities, delays, (info.label, "out"), part[info.id])
    return _summed(graph, ports, activities, MeasuredSynops(data.name, samples, steps))


def _probed(graph: Graph, ports: PortMap) -> tuple[Graph, dict[str, tuple[str, str]]]:
    """Return a copy of `graph` with probes, and the probed port by name.

    A probe is an Output on the first port of each population and on every port that feeds synapses. Inputs need none: their values
    are given.
    """
    wanted = {(e.source, e.source_port) for n in graph.names if has_synapses(graph.operation(n)) for e in graph.incoming(n)}
    wanted |= {(n, p.model.outputs[0]) for n, p in graph.of_type(Population)}
    probed, probes = graph.copy(), {}
    for source, port in sorted(wanted):
        if not isinstance(graph.operation(source), Input):
            name = probed.add(fresh_name(probed, "probe"), Output())
            probed.connect(source, name, source_port=port)
            probes[name] = (source, port)
    return probed, probes


def _delays(graph: Graph) -> dict[tuple[str, str], set[int]]:
    """Return, by port, the delays of the connections that read it; always includes 0."""
    found: dict[tuple[str, str], set[int]] = {}
    for edge in graph.edges:
        found.setdefault((edge.source, edge.source_port), {0}).add(edge.delay)
    return found


def _count(activities: Activities, delays: Mapping[tuple[str, str], set[int]], port: tuple[str, str], record: Array) -> None:
    """Add the values of one port, [T, B, *shape], to its activity at each delay."""
    binary = bool(np.isin(record, (-1.0, 0.0, 1.0)).all())
    for delay in delays.get(port, {0}):
        entry = activities.setdefault((*port, delay), PortActivity(np.zeros(record.shape[2:], np.int64)))
        entry.counts += np.count_nonzero(record[: max(len(record) - delay, 0)], axis=(0, 1))
        entry.binary = entry.binary and binary


def _summed(graph: Graph, ports: PortMap, activities: Activities, about: MeasuredSynops) -> MeasuredSynops:
    """Return `about` with synaptic operations and rates, per sample and step."""
    runs = about.samples * about.steps
    operations: dict[str, tuple[float, Counting]] = {}
    effective: dict[str, float] = {}
    for name in graph.names:
        if has_synapses(graph.operation(name)):
            edge = source_of(graph, name)
            sent = activities[edge.source, edge.source_port, edge.delay]
            synapses = name, graph.operation(name), ports[edge.source, edge.source_port].shape
            operations[name] = (_sum(sent, fan_out(*synapses)) / runs, "AC" if sent.binary else "MAC")
            effective[name] = _sum(sent, effective_fan_out(*synapses)) / runs
    rates, silent, saturated, activations = {}, {}, {}, {}
    for (name, port, delay), sent in activities.items():
        if delay:
            continue
        operation = graph.operation(name)
        own = isinstance(operation, Population) and port == operation.model.outputs[0] and ports[name, port].kind == "spikes"
        if own or (isinstance(operation, Input) and sent.binary):
            rates[name] = float(sent.counts.sum()) / (runs * max(sent.counts.size, 1))
        if own and sent.counts.size:
            silent[name] = float((sent.counts == 0).mean())
            saturated[name] = float((sent.counts >= SATURATED * runs).mean())
        if isinstance(operation, Population) and port == operation.model.outputs[0]:
            activations[name] = int(sent.counts.sum()), runs * sent.counts.size
    return replace(
        about,
        operations=operations,
        rates=rates,
        silent=silent,
        saturated=saturated,
        effective=effective,
        activations=activations,
    )


def _sum(sent: PortActivity, synapses: Counts) -> float:
    return float((sent.counts * synapses.reshape(sent.counts.shape)).sum())
