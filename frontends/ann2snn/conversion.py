"""Convert the ReLU network of an ONNX file to a spiking network, and measure on sample data how much accuracy is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.graph import Graph, Output, Pool, Population, Reduce
from snnc.compiler.ir.shapes import size
from snnc.frontends.ann2snn.convert import convert
from snnc.frontends.ann2snn.errors import ConversionOptionError
from snnc.frontends.ann2snn.measuring import measure, scales
from snnc.frontends.ann2snn.read import read_relu_network
from snnc.frontends.ann2snn.report import ReluLayer, Report
from snnc.frontends.ann2snn.samples import check_samples, split

STEPS: Final = 64
"""Default number of time steps."""
PERCENTILE: Final = 99.9
"""Default percentile of a layer's positive activations that becomes a firing rate of 1, from Rueckauer et al. 2017."""
_MAX_STEPS: Final = 1_000_000


@dataclass(frozen=True, eq=False)
class Conversion:
    """A spiking network, and measurements of how its results differ from those of the ReLU network."""

    graph: Graph  # the spiking network; its ``assumptions`` contain the report in sentences
    report: Report


def convert_file(
    path: str | Path,
    calibration: Mapping[str, npt.ArrayLike],
    *,
    labels: npt.ArrayLike | None = None,
    steps: int = STEPS,
    percentile: float = PERCENTILE,
) -> Conversion:
    """Convert the ReLU network of an ONNX file; see :func:`snnc.ann2snn`."""
    if not 0 < percentile <= 100:
        raise ConversionOptionError(f"the percentile is {percentile}; give a number above 0 and at most 100.")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 1 <= steps <= _MAX_STEPS:
        raise ConversionOptionError(f"steps is {steps}; a converted network runs for 1 to {_MAX_STEPS:,} steps.")
    network = read_relu_network(Path(path))
    samples = check_samples(network.graph, calibration, labels)
    balancing, measuring = split(samples)
    layer_scales, used = scales(network.graph, balancing, percentile, network.origins)
    graph = convert(network.graph, layer_scales, int(steps))
    output, _ = next(network.graph.of_type(Output))
    accuracy, points, rates = measure(network.graph, graph, measuring, int(steps), output, layer_scales)
    layers = tuple(
        ReluLayer(name, network.origins[name], size(p.shape), layer_scales[name], rates[name])
        for name, p in network.graph.of_type(Population)
    )
    described = balancing.described if used == len(balancing) else f"the first {used} of {balancing.described}"
    report = Report(
        output, percentile, (used, described), (len(measuring), measuring.described), samples.described, accuracy, layers, points
    )
    graph.assumptions.append(
        f"Converted from a ReLU network: {len(layers)} ReLU layer{'s' if len(layers) > 1 else ''} became integrate-and-fire neurons of "
        "threshold 1 that start at 1/2. Inputs and biases are constant currents, the same at every step; outputs are means over the steps."
    )
    if any(o.kind == "max" for _, o in network.graph.of_type(Pool, Reduce)):
        graph.assumptions.append("Maximum pooling compares numbers of spikes so far, so that its rate is the largest rate of its inputs.")
    graph.assumptions += [*network.notes, *report.sentences()]
    return Conversion(graph, report)
