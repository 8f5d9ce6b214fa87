"""Measured spikes and synaptic operations of a model on given data, counted in the reference backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.arrays import checked
from snnc.compiler.ir.graph import Array, Graph, Input, Output, Population
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.compiler.lowering.lower import lower
from snnc.compiler.passes.edit import fresh_name
from snnc.driver.measuring import calibration, sequences
from snnc.understanding.synops import Counting, MeasuredSynops, fan_out, has_synapses, source_of

CHUNK = 16
"""Samples that run at a time."""
SATURATED = 0.95
"""Share of the steps in which a neuron fires from which on it counts as saturated."""


@dataclass
class PortActivity:
    """What one port sent, summed over all samples and steps."""

    counts: npt.NDArray[np.int64]
    """Values other than 0, at each place."""
    binary: bool = True
    """Whether every value was -1, 0 or 1."""


def measure(graph: Graph, data: Path) -> MeasuredSynops:
    """Run `graph` on the samples of an npz archive and count what its synapses transmit.

    Raises
    ------
    DataFileError, UnknownNameError, DataShapeError, DataNotFiniteError, NotBinaryError
        The archive does not hold inputs of the model.
    """
    ports = port_map(graph)
    probed, probes = _probed(graph, ports)
    program = lower(probed)
    given = sequences(program, calibration(data, graph))
    inputs = {i.id: checked(given[i.id], i.kind, f"the input {i.label!r}").astype(np.float32) for i in program.inputs}
    steps, samples = next(iter(inputs.values())).shape[:2]
    seen: dict[tuple[str, str], PortActivity] = {}
    engine = ReferenceEngine(program)
    labels = {o.id: probes[o.label] for o in program.outputs if o.label in probes}
    for first in range(0, samples, CHUNK):
        part = {name: array[:, first : first + CHUNK] for name, array in inputs.items()}
        for name, record in engine.forward(part, {}).items():
            if name in labels:
                _count(seen, labels[name], record)
        for info in program.inputs:
            _count(seen, (info.label, "out"), part[info.id])
    return _summed(graph, ports, seen, MeasuredSynops(data.name, samples, steps))


def _probed(graph: Graph, ports: PortMap) -> tuple[Graph, dict[str, tuple[str, str]]]:
    """Return the graph with an output for every port that feeds synapses or fires, and which output is whose."""
    wanted = {(e.source, e.source_port) for n in graph.names if has_synapses(graph.operation(n)) for e in graph.incoming(n)}
    wanted |= {(n, p.model.outputs[0]) for n, p in graph.of_type(Population) if ports[n, p.model.outputs[0]].kind == "spikes"}
    probed, probes = graph.copy(), {}
    for source, port in sorted(wanted):
        if not isinstance(graph.operation(source), Input):
            name = probed.add(fresh_name(probed, "probe"), Output())
            probed.connect(source, name, source_port=port)
            probes[name] = (source, port)
    return probed, probes


def _count(seen: dict[tuple[str, str], PortActivity], key: tuple[str, str], record: Array) -> None:
    entry = seen.setdefault(key, PortActivity(np.zeros(record.shape[2:], np.int64)))
    entry.counts += np.count_nonzero(record, axis=(0, 1))
    entry.binary = entry.binary and bool(np.isin(record, (-1.0, 0.0, 1.0)).all())


def _summed(graph: Graph, ports: PortMap, seen: Mapping[tuple[str, str], PortActivity], about: MeasuredSynops) -> MeasuredSynops:
    runs = about.samples * about.steps
    operations: dict[str, tuple[float, Counting]] = {}
    for name in graph.names:
        if has_synapses(graph.operation(name)):
            edge = source_of(graph, name)
            sent = seen[edge.source, edge.source_port]
            each = fan_out(name, graph.operation(name), ports[edge.source, edge.source_port].shape)
            operations[name] = (float((sent.counts * each.reshape(sent.counts.shape)).sum()) / runs, "AC" if sent.binary else "MAC")
    rates, silent, saturated = {}, {}, {}
    for (name, port), sent in seen.items():
        operation = graph.operation(name)
        own = isinstance(operation, Population) and port == operation.model.outputs[0] and ports[name, port].kind == "spikes"
        if own or (isinstance(operation, Input) and sent.binary):
            rates[name] = float(sent.counts.sum()) / (runs * max(sent.counts.size, 1))
        if own and sent.counts.size:
            silent[name] = float((sent.counts == 0).mean())
            saturated[name] = float((sent.counts >= SATURATED * runs).mean())
    return MeasuredSynops(about.source, about.samples, about.steps, operations, rates, silent, saturated)
