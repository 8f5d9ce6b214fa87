"""Count the spikes and synaptic operations of a model on given data, in the reference backend, and warn of layers that hardly fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Array, Graph, Input, Population
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.compiler.lowering.lower import lower
from snnc.driver.measuring import checked_sequences, with_outputs
from snnc.understanding.synops import Counting, Counts, MeasuredSynops, effective_fan_out, fan_out, has_synapses, source_of

CHUNK = 16
"""Number of samples per run, which limits the memory."""
SATURATED = 0.95
"""Minimum firing rate of a saturated neuron, in spikes per step."""
MOSTLY: Final = 0.5
"""Smallest share of silent or saturated neurons at which a layer is reported."""
_SILENT: Final = (
    "SNNC-W279: {share:.0f} % of the neurons of {name!r} never fire {where}. Far below the threshold, gradients are close to 0: draw new "
    "weights (snnc.initialise with FluctuationDriven or LSUV), lower the threshold or scale the input."
)
_SATURATED: Final = (
    "SNNC-W280: {share:.0f} % of the neurons of {name!r} fire in nearly every step {where}: this carries no information. Draw smaller "
    "weights (snnc.initialise with FluctuationDriven or LSUV), raise the threshold or penalise the rate."
)


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
    """Run `graph` on the samples of an npz archive and count what its synapses transmit."""
    ports = port_map(graph)
    probed, names = with_outputs(graph, _probed_ports(graph))
    probes = {name: port for port, name in names.items()}
    program = lower(probed)
    inputs = checked_sequences(graph, program, data)
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
    return _summed(graph, ports, activities, data.name, samples, steps)


def firing_warnings(measured: MeasuredSynops) -> list[str]:
    """Return a warning for each layer of which at least half of the neurons are silent on the data, or at least half are saturated."""
    where = f"on {measured.samples:,} samples of {measured.source}"
    return [
        text.format(share=100 * share, name=name, where=where)
        for text, shares in ((_SILENT, measured.silent), (_SATURATED, measured.saturated))
        for name, share in shares.items()
        if share >= MOSTLY
    ]


def _probed_ports(graph: Graph) -> list[tuple[str, str]]:
    """Return the first output port of each population, and every port that feeds synapses, except those of inputs."""
    ports = {(e.source, e.source_port) for n in graph.names if has_synapses(graph.operation(n)) for e in graph.incoming(n)}
    ports |= {(n, p.model.outputs[0]) for n, p in graph.of_type(Population)}
    return sorted((source, port) for source, port in ports if not isinstance(graph.operation(source), Input))


def _delays(graph: Graph) -> dict[tuple[str, str], set[int]]:
    """Return, by port, the delays of the connections that read it; always includes 0."""
    delays: dict[tuple[str, str], set[int]] = {}
    for edge in graph.edges:
        delays.setdefault((edge.source, edge.source_port), {0}).add(edge.delay)
    return delays


def _count(activities: Activities, delays: Mapping[tuple[str, str], set[int]], port: tuple[str, str], record: Array) -> None:
    binary = bool(np.isin(record, (-1.0, 0.0, 1.0)).all())
    for delay in delays.get(port, {0}):
        entry = activities.setdefault((*port, delay), PortActivity(np.zeros(record.shape[2:], np.int64)))
        entry.counts += np.count_nonzero(record[: max(len(record) - delay, 0)], axis=(0, 1))
        entry.binary = entry.binary and binary


def _summed(graph: Graph, ports: PortMap, activities: Activities, source: str, samples: int, steps: int) -> MeasuredSynops:
    sample_steps = samples * steps
    operations: dict[str, tuple[float, Counting]] = {}
    effective: dict[str, float] = {}
    for name in graph.names:
        if has_synapses(graph.operation(name)):
            edge = source_of(graph, name)
            sent = activities[edge.source, edge.source_port, edge.delay]
            synapses = name, graph.operation(name), ports[edge.source, edge.source_port].shape
            operations[name] = (_sum(sent, fan_out(*synapses)) / sample_steps, "AC" if sent.binary else "MAC")
            effective[name] = _sum(sent, effective_fan_out(*synapses)) / sample_steps
    rates, silent, saturated, activations = {}, {}, {}, {}
    for (name, port, delay), sent in activities.items():
        if delay:
            continue
        operation = graph.operation(name)
        is_output = isinstance(operation, Population) and port == operation.model.outputs[0]
        spiking = is_output and ports[name, port].kind == "spikes"
        if spiking or (isinstance(operation, Input) and sent.binary):
            rates[name] = float(sent.counts.sum()) / (sample_steps * max(sent.counts.size, 1))
        if spiking and sent.counts.size:
            silent[name] = float((sent.counts == 0).mean())
            saturated[name] = float((sent.counts >= SATURATED * sample_steps).mean())
        if is_output:
            activations[name] = int(sent.counts.sum()), sample_steps * sent.counts.size
    return MeasuredSynops(source, samples, steps, operations, rates, silent, saturated, effective, activations)


def _sum(sent: PortActivity, synapses: Counts) -> float:
    return float((sent.counts * synapses.reshape(sent.counts.shape)).sum())
