"""Lower bounds of the time of a training step on a GPU: by memory, by operations and by barriers between dependent steps.

``python -m snnc.benchmarks.cuda.bound`` prints the table of ``docs/explanation/gpu-bounds.md``, which derives the bounds. The table also
has the time of a program that gathers the weight rows selected by events from L2. This is not a bound, because weights may be in shared
memory. In a convolution, the row of an input value consists of the weights that multiply it.
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
    returns: bool
    """Whether a gradient flows to its source."""


def bound(workload: Workload, gpu: Gpu, activity: float = USUAL_ACTIVITY) -> StepBound:
    """Return the bound of a training step with exact gradients in float32, for `activity` spikes per hidden neuron and step."""
    samples = workload.batch * workload.steps
    # The batch is read once. Per parameter: weight and two moments are read and written, the gradient is read.
    memory = 4.0 * samples * math.prod(workload.shape) + 28 * parameters(workload)
    rows = operations = 0.0
    for one in products(workload, activity):
        multiplications = samples * one.inputs * one.fan_out
        # Rows of 4-byte weights are gathered forward and for the gradient; an exact gradient of a source needs every delta.
        rows += 8 * one.activity * multiplications
        operations += (2 * one.activity + one.returns) * multiplications
    # States and deltas of all steps are written and read.
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
    products, read_activity, returns = [], workload.density, False
    for layer, shape in zip(workload.layers, workload.shapes(), strict=False):
        size = math.prod(shape)
        if isinstance(layer, ConvLayer):
            windows = math.prod(n - layer.kernel + 1 for n in shape[1:])
            products.append(Product(size, round(layer.channels * windows * shape[0] * layer.kernel**2 / size), read_activity, returns))
        else:
            products.append(Product(size, layer.neurons, read_activity, returns))
            if layer.recurrent:
                products.append(Product(layer.neurons, layer.neurons, activity, True))
        read_activity, returns = activity, True
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
        limits = bound(workload, gpu)
        parts = " | ".join(f"{1e3 * value:.3g}" for value in (limits.memory, limits.operations, limits.steps))
        largest = f"**{1e3 * limits.seconds:.3g}** | {limits.reason} | {1e3 * limits.rows:.3g}"
        lines.append(f"| {workload.label} | {workload.batch} | {parts} | {largest} |")
    return lines


if __name__ == "__main__":
    from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS

    print("\n".join(table([w for w in CUDA_WORKLOADS if w.name.split("-")[0] in ("W1", "W2") and w.density == 0.05], H200)))
