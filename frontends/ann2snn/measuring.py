"""Run networks on sample data in float64: measure the scale of each ReLU layer, and compare the ReLU network with the spiking one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array, Conv, Edge, FileLayout, Graph, Linear, Output, Pool, Population
from snnc.compiler.ir.shapes import PortMap, port_map, size
from snnc.compiler.passes.edit import add_edge, fresh_name
from snnc.frontends.ann2snn.errors import SilentLayerError
from snnc.frontends.ann2snn.report import AccuracyPoint
from snnc.frontends.ann2snn.samples import Samples
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.onnx.errors import OnnxLimitError

_MOST_ACTIVATIONS: Final = 2**26
"""Maximum number of activations measured, over all layers and samples."""
_MAX_RUN_VALUES: Final = 2**24
"""Maximum number of values in one array of a run with several samples (128 MiB of float64); further samples run afterwards."""
_MAX_SAMPLE_VALUES: Final = 2**27
"""Maximum number of values in one array for one sample (1 GiB of float64); larger networks are refused."""
_MAX_WORK: Final = 40_000_000_000
"""Maximum number of multiplications for one sample and step; larger networks are refused."""


def scales(graph: Graph, samples: Samples, percentile: float, origins: Mapping[str, str]) -> tuple[dict[str, float], int]:
    """Return the activation that becomes a firing rate of 1, by population, and the number of samples used.

    This activation is the `percentile` of a layer's positive activations (Rueckauer et al. 2017, "Conversion of continuous-valued deep
    networks to efficient event-driven networks for image classification"). The percentile 100 is their maximum, as in Diehl et al. 2015,
    "Fast-classifying, high-accuracy spiking deep networks through weight and threshold balancing". Larger activations saturate. A layer
    that is zero on all samples raises a SilentLayerError.
    """
    neurons = sum(size(p.shape) for _, p in graph.of_type(Population))
    used = max(1, min(len(samples), _MOST_ACTIVATIONS // neurons))
    recorded, names = _recording(graph)
    activations: dict[str, list[Array]] = {name: [] for name in names}
    for _, steps in _runs(recorded, {n: a[:used] for n, a in samples.inputs.items()}, 1):
        for outputs in steps:
            for name, output in names.items():
                values = outputs[output]
                activations[name].append(values[values > 0].astype(np.float32))
    result = {}
    for name, parts in activations.items():
        positive = np.concatenate(parts)
        if not positive.size:
            raise SilentLayerError(
                f"the layer {name!r} ({origins[name]}) is 0 on all {used} samples, so its threshold cannot be balanced; give sample data "
                "that resemble the training data and are scaled in the same way, or remove the layer."
            )
        result[name] = float(np.percentile(positive, percentile))
    return result, used


def measure(
    ann: Graph, snn: Graph, samples: Samples, steps: int, output: str, layers: Iterable[str]
) -> tuple[float | None, tuple[AccuracyPoint, ...], dict[str, float]]:
    """Run both networks on all samples, and compare their `output` after an eighth, a quarter, a half and all of `steps`.

    Return the accuracy of the ReLU network (None without labels), the results of the spiking network after increasing numbers of steps,
    and the spikes per neuron and step of each of `layers`, populations of `snn`.
    """
    expected = np.concatenate([outputs[output] for _, run in _runs(ann, samples.inputs, 1) for outputs in run])
    measured_steps = sorted({max(1, steps // k) for k in (8, 4, 2, 1)})
    means: dict[int, list[Array]] = {t: [] for t in measured_steps}
    recorded, names = _recording(snn)
    spikes = dict.fromkeys(layers, 0.0)
    for part, run in _runs(recorded, samples.inputs, steps):
        total = np.zeros_like(expected[part])
        for t, outputs in enumerate(run, 1):
            total += outputs[output].reshape(total.shape)
            if t in means:
                means[t].append(total / t)
            for name in layers:
                spikes[name] += float(outputs[names[name]].mean(axis=tuple(range(1, outputs[names[name]].ndim))).sum())
    ann_rows = expected.reshape(len(expected), -1)
    points = tuple(_point(t, np.concatenate(means[t]).reshape(ann_rows.shape), ann_rows, samples.labels) for t in measured_steps)
    rates = {name: count / (steps * len(samples)) for name, count in spikes.items()}
    return _accuracy(ann_rows, samples.labels), points, rates


def _point(steps: int, snn: Array, ann: Array, labels: Array | None) -> AccuracyPoint:
    length = np.linalg.norm(ann, axis=1)
    gap = np.linalg.norm(snn - ann, axis=1) / np.maximum(length, np.finfo(np.float32).tiny)
    agreement = None if ann.shape[1] < 2 else float((snn.argmax(axis=1) == ann.argmax(axis=1)).mean())
    return AccuracyPoint(steps, _accuracy(snn, labels), agreement, float(gap.mean()), float(np.percentile(gap, 95)))


def _accuracy(rows: Array, labels: Array | None) -> float | None:
    return None if labels is None else float((rows.argmax(axis=1) == labels).mean())


def _recording(graph: Graph) -> tuple[Graph, dict[str, str]]:
    graph, names = graph.copy(), dict[str, str]()
    for name, population in list(graph.of_type(Population)):
        names[name] = graph.add(fresh_name(graph, f"record.{name}"), Output("all", FileLayout(None, 0)))
        add_edge(graph, Edge(name, names[name], population.model.outputs[0], "in"))
    return graph, names


def _runs(graph: Graph, inputs: Mapping[str, Array], steps: int) -> Iterator[tuple[slice, Iterator[Mapping[str, Array]]]]:
    """Run `graph` on constant inputs; yield each part of the samples as a slice, and an iterator over its outputs at all `steps` steps."""
    count, samples_per_run = len(next(iter(inputs.values()))), max(1, _MAX_RUN_VALUES // _widest(graph, port_map(graph)))
    for start in range(0, count, samples_per_run):
        part = slice(start, min(start + samples_per_run, count))
        part_inputs = {n: a[part].astype(float) for n, a in inputs.items() if n in graph.nx}
        runner = GraphRunner(graph, part.stop - start, {})
        yield part, (runner.step(part_inputs) for _ in range(steps))


def check_runs_in_numpy(graph: Graph, ports: PortMap) -> None:
    """Refuse a network that is too large to run in NumPy, by an :class:`OnnxLimitError`."""
    widest = _widest(graph, ports)
    layers = [(o.weight.shape[1:], ports[n, "out"].shape) for n, o in graph.of_type(Linear, Conv)]
    work = sum(math.prod(weight) * size(out) for weight, out in layers)
    if widest > _MAX_SAMPLE_VALUES or work > _MAX_WORK:
        raise OnnxLimitError(
            f"one sample needs {work:,} multiplications and {widest:,} values at a time; a conversion runs the network in NumPy "
            f"and allows up to {_MAX_WORK:,} multiplications and {_MAX_SAMPLE_VALUES:,} values. Convert a smaller network, "
            "or one with smaller inputs."
        )


def _widest(graph: Graph, ports: PortMap) -> int:
    """Return the size of the largest array for one sample: the values of an operation, or of all windows of a convolution or pooling."""
    sizes = [size(port.shape) for port in ports.values()]
    for name, operation in graph.of_type(Conv, Pool):
        kernel = operation.weight.shape[2:] if isinstance(operation, Conv) else operation.kernel
        (before,) = graph.incoming(name)
        channels = ports[before.source, before.source_port].shape[0]
        sizes.append(channels * math.prod(kernel) * size(ports[name, "out"].shape[1:]))
    return max(sizes)
