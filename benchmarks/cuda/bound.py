"""Lower bounds of the time of a training step on a GPU: by memory, by operations and by barriers between dependent steps.

``python -m snnc.benchmarks.cuda.bound`` prints the table of ``docs/explanation/gpu-bounds.md``. With B samples, T steps, and a layer
of N neurons with M inputs of activity a:

===================  ===========================================================================================================
memory               the float32 batch, read once; states and deltas of all steps, written and read: 16 B T N; parameters: weight and two
                     moments read and written, gradient read: 28 bytes each
operations           pairs of a multiplication and an addition: one per weight of a gathered row, forward and for the gradient, 2 B T a M N,
                     and the backward product of a source that learns, B T M N, because an exact gradient needs every delta
steps                2 T, forward and backward, each of which is one barrier of the whole grid
===================  ===========================================================================================================

The times are bytes over bandwidth, operations over peak rate, and steps times the latency of a barrier; the bound is the largest. The table
also has the time of a program that gathers the weight rows selected by events from L2: 8 B T a M N bytes, forward and for the gradient,
over the bandwidth of L2. This is not a bound, because weights may be in shared memory. In a convolution, the row of an input value consists
of the taps that read it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from snnc.benchmarks.cpu.workloads import ConvLayer, Workload
from snnc.benchmarks.cuda.gpu import H200, Gpu

USUAL_ACTIVITY: Final = 0.05
"""Number of spikes per hidden neuron and step if none were counted."""


@dataclass(frozen=True)
class StepBound:
    """Lower bounds of a training step in seconds, by memory, operations and steps; `rows` are the seconds for gathering rows from L2."""

    memory: float
    operations: float
    steps: float
    rows: float

    @property
    def seconds(self) -> float:
        """Largest of the bounds by memory, operations and steps."""
        return max(self.memory, self.operations, self.steps)

    @property
    def reason(self) -> str:
        """Name of the largest bound."""
        return max(("memory", "operations", "steps"), key=lambda name: getattr(self, name))

    def to_data(self) -> dict[str, float | str]:
        """Return milliseconds as JSON data."""
        return {f"{name}_ms": 1e3 * getattr(self, name) for name in ("memory", "operations", "steps", "rows")} | {"by": self.reason}


@dataclass(frozen=True)
class Product:
    """A product of a layer: its number of inputs, the fan-out of each, and their activity."""

    inputs: int
    fan_out: int
    activity: float
    learns: bool
    """Whether a gradient flows to its source."""


def bound(workload: Workload, gpu: Gpu, activity: float = USUAL_ACTIVITY) -> StepBound:
    """Return the bound of a training step with exact gradients in float32, for `activity` spikes per hidden neuron and step."""
    samples = workload.batch * workload.steps
    memory = 4.0 * samples * math.prod(workload.shape) + 28 * parameters(workload)
    rows = operations = 0.0
    for one in products(workload, activity):
        multiplications = samples * one.inputs * one.fan_out
        rows += 8 * one.activity * multiplications
        operations += (2 * one.activity + one.learns) * multiplications
    memory += 16.0 * samples * sum(neurons(workload))
    return StepBound(
        memory / gpu.memory_bytes_per_s,
        operations / gpu.multiplications_per_s,
        2 * workload.steps * gpu.barrier_s,
        rows / gpu.l2_bytes_per_s,
    )


def neurons(workload: Workload) -> list[int]:
    """Return the number of neurons of each hidden layer, and of the readout."""
    return [math.prod(shape) for shape in workload.shapes()[1:]] + ([workload.classes] if workload.classes else [])


def parameters(workload: Workload) -> int:
    """Return the number of weights and biases."""
    count = 0
    for layer, shape in zip(workload.layers, workload.shapes(), strict=False):
        if isinstance(layer, ConvLayer):
            count += layer.channels * (shape[0] * layer.kernel**2 + 1)
        else:
            count += layer.neurons * (math.prod(shape) + 1 + layer.recurrent * layer.neurons)
    return count + workload.classes * (math.prod(workload.shapes()[-1]) + 1)


def products(workload: Workload, activity: float) -> list[Product]:
    """Return the products of the layers in a step, in order."""
    products, read_activity, learns = [], workload.density, False
    for layer, shape in zip(workload.layers, workload.shapes(), strict=False):
        size = math.prod(shape)
        if isinstance(layer, ConvLayer):
            windows = math.prod(n - layer.kernel + 1 for n in shape[1:])
            products.append(Product(size, round(layer.channels * windows * shape[0] * layer.kernel**2 / size), read_activity, learns))
        else:
            products.append(Product(size, layer.neurons, read_activity, learns))
            if layer.recurrent:
                products.append(Product(layer.neurons, layer.neurons, activity, True))
        read_activity, learns = activity, True
    if workload.classes:
        products.append(Product(math.prod(workload.shapes()[-1]), workload.classes, activity, True))
    return products


def table(chosen: Sequence[Workload], gpu: Gpu) -> list[str]:
    """Return the bounds as lines of Markdown."""
    lines = [
        "| workload | B | memory, ms | operations, ms | steps, ms | **bound, ms** | limited by | rows from L2, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for workload in chosen:
        of = bound(workload, gpu)
        parts = " | ".join(f"{1e3 * value:.3g}" for value in (of.memory, of.operations, of.steps))
        largest = f"**{1e3 * of.seconds:.3g}** | {of.reason} | {1e3 * of.rows:.3g}"
        lines.append(f"| {workload.label} | {workload.batch} | {parts} | {largest} |")
    return lines


if __name__ == "__main__":
    from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS

    print("\n".join(table([w for w in CUDA_WORKLOADS if w.name.split("-")[0] in ("W1", "W2") and w.density == 0.05], H200)))
