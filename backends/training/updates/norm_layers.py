"""The batch normalisations that a program trains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from snnc.backends.runtime.errors import NormalisationError
from snnc.compiler.ir.graph import Shape
from snnc.compiler.ir.step_operations import NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.statistics import levels_of, statistics_inputs, statistics_outputs, summed_adjoints
from snnc.compiler.neurons.library.batch_norm import is_batch_norm


@dataclass(frozen=True)
class NormLayer:
    """A batch normalisation."""

    label: str
    population: str
    shape: Shape
    level: int  # maximum number of other normalisations on a path to it
    output: str  # id of the output that records the layer's output; equals its input while statistics are measured (mean 0, var 1 - eps)
    parameters: Mapping[str, str]  # names of its parameters, by their labels in the model
    gain: str  # name of the weight of the connection after it
    bias: str  # name of the bias of that connection
    axes: tuple[int, ...]  # axes of [T, B, *shape] over which a mean is computed
    inputs: tuple[str, ...]
    """Ids of the inputs with the statistics of each step, in the order of the ports; empty if all steps share one set of statistics."""
    adjoint: str | None  # tensor with the adjoint of the current; None if no gradient passes the layer
    summed: bool
    """Whether the host sums adjoints for the gradient through the statistics; else the gradients of gain and bias give these sums."""

    @property
    def shared(self) -> tuple[int, ...]:
        """Dimensions of `shape` over which a mean is computed, such as height and width."""
        return tuple(axis - 2 for axis in self.axes if axis > 1)

    def values_per_channel(self, samples: int) -> int:
        """Return the number of values of a channel; `samples`: steps times samples of a batch."""
        return samples * math.prod(self.shape[axis] for axis in self.shared)

    def require_two_values(self, count: int) -> None:
        """Raise a NormalisationError if a channel has fewer than two values in a batch, so that its variance is undefined."""
        if count < 2:
            raise NormalisationError(
                f"{self.label!r} has one value per channel in a batch; statistics need two or more. Use a larger batch, or more steps."
            )


def trains_normalised(program: StepProgram) -> bool:
    """Return whether `program` trains batch normalisations."""
    return program.optimizer is not None and any(is_batch_norm(p.model) for p in program.populations)


def norm_layers(program: StepProgram) -> tuple[NormLayer, ...]:
    """Return the normalisations of a program with a loss."""
    steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
    outputs, inputs, levels = statistics_outputs(program), statistics_inputs(program), levels_of(program)
    passed = {op.population for op in program.backward if isinstance(op, NeuronAdjoint)}
    summed = summed_adjoints(program)
    layers = []
    for info in program.populations:
        if not is_batch_norm(info.model):
            continue
        (scaled,) = (c for c in program.connections if c.source == info.id)
        assert scaled.weight is not None
        assert scaled.bias is not None
        kernel = info.kernel
        names = {kernel.labels[a]: name for a, name in zip(kernel.parameters, steps[info.id].parameters, strict=True)}
        weight = program.parameters[scaled.weight].value.shape
        shared = [axis for axis in range(len(info.shape)) if len(weight) == len(info.shape) and weight[axis] == 1]
        input_ids, output = inputs.get(info.id, ()), outputs[info.id].id
        axes = (*(() if input_ids else (0,)), 1, *(axis + 2 for axis in shared))
        adjoint = f"d_{info.id}" if info.id in passed else None
        gain, bias = scaled.weight, scaled.bias
        ids = info.label, info.id, info.shape
        layers.append(NormLayer(*ids, levels[info.id], output, names, gain, bias, axes, input_ids, adjoint, info.id in summed))
    return tuple(layers)
