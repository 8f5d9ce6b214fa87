"""Run graphs on sample data in float64, a limited number of samples at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from snnc.compiler.ir.graph import Array, Conv, Edge, FileLayout, Graph, Linear, Output, Pool, Population
from snnc.compiler.ir.shapes import PortMap, port_map, size
from snnc.compiler.passes.edit import add_edge, fresh_name
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.onnx.errors import OnnxLimitError

_MAX_VALUES: Final = 2**24
"""Maximum number of values in one array of a run with more than one sample."""
MAX_NUMBERS: Final = 2**27
"""Maximum number of values in one array for one sample."""
MAX_WORK: Final = 40_000_000_000
"""Maximum number of multiplications for one sample."""


def recording(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Return a copy of `graph` with a recording output on each population, and the name of that output by population."""
    graph, names = graph.copy(), dict[str, str]()
    for name, population in list(graph.of_type(Population)):
        names[name] = graph.add(fresh_name(graph, f"record.{name}"), Output("all", FileLayout(None, 0)))
        add_edge(graph, Edge(name, names[name], population.model.outputs[0], "in"))
    return graph, names


def runs(graph: Graph, inputs: Mapping[str, Array], steps: int) -> Iterator[tuple[slice, Iterator[Mapping[str, Array]]]]:
    """Run `graph` on constant inputs; yield each part of the samples as a slice, and an iterator over its outputs at all `steps` steps."""
    count, width = len(next(iter(inputs.values()))), max(1, _MAX_VALUES // _widest(graph, port_map(graph)))
    for start in range(0, count, width):
        part = slice(start, min(start + width, count))
        yield part, _steps(graph, {n: a[part].astype(float) for n, a in inputs.items() if n in graph.nx}, steps)


def _steps(graph: Graph, inputs: Mapping[str, Array], steps: int) -> Iterator[Mapping[str, Array]]:
    runner = GraphRunner(graph, len(next(iter(inputs.values()))), {})
    for _ in range(steps):
        yield runner.step(inputs)


def check_affordable(graph: Graph, ports: PortMap) -> None:
    """Refuse a network that is too large to run in NumPy.

    Raises
    ------
    OnnxLimitError
        One sample needs more than :data:`MAX_WORK` multiplications, or an array of more than :data:`MAX_NUMBERS` values.
    """
    widest = _widest(graph, ports)
    layers = [(o.weight.shape[1:], ports[n, "out"].shape) for n, o in graph.of_type(Linear, Conv)]
    work = sum(math.prod(weight) * size(out) for weight, out in layers)
    if widest > MAX_NUMBERS or work > MAX_WORK:
        raise OnnxLimitError(
            f"one sample needs {work:,} multiplications and {widest:,} values at a time; a conversion runs the network in NumPy "
            f"and allows up to {MAX_WORK:,} multiplications and {MAX_NUMBERS:,} values. Convert a smaller network, "
            "or one with smaller inputs."
        )


def _widest(graph: Graph, ports: PortMap) -> int:
    """Return the size of the largest array for one sample: the values of an operation, or of all windows of a convolution or pooling."""
    sizes: Sequence[int] = [size(port.shape) for port in ports.values()]
    for name, operation in graph.of_type(Conv, Pool):
        kernel = operation.weight.shape[2:] if isinstance(operation, Conv) else operation.kernel
        (before,) = graph.incoming(name)
        channels = ports[before.source, before.source_port].shape[0]
        sizes = [*sizes, channels * math.prod(kernel) * size(ports[name, "out"].shape[1:])]
    return max(sizes)
