"""Passes of an update that set the statistics of its batch, and the sums for the gradient through them, in an engine.

Normalisations of one *level* do not depend on each other; each one of a later level depends on at least one of the level before.

1. For each level, from the first: run forward with the statistics of earlier levels, and compute the statistics of this level.
2. Run forward with all statistics. For each level, from the last: run backward. The gradients of gain and bias are the two sums that
   the gradient through the statistics needs (:mod:`snnc.compiler.neurons.library.batch_norm`). If each step has its own statistics, or
   gain or bias is not trained, compute these sums from the adjoints of the normalised values, which the target stores.
3. Run backward again with all sums.

With L levels, these are L + 1 forward and L + 1 backward passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.backends.runtime.engine import Array, BackwardEngine, Initial, MeasuringEngine, Moments, SelectingEngine
from snnc.backends.training.updates.norm_layers import NormLayer
from snnc.compiler.neurons.library.batch_norm import EPSILON, MEAN, MOMENTUM, SHIFT, SLOPE, VARIANCE


@dataclass(eq=False)
class NormalisedBatch:
    """A batch and its measured statistics."""

    inputs: dict[str, Array] | None
    """Inputs of the batch, with the statistics of each step that an engine reads as inputs. None: this process has no samples of a batch
    that several processes share."""
    values: Mapping[str, Array]  # parameters of the program before the update
    steps: int
    loss_scale: float = 1.0
    """Factor for the engine's gradients; a :class:`~snnc.backends.runtime.engine.SelectingEngine` applies its loss scale itself."""

    def __post_init__(self) -> None:
        self.normalised: dict[str, Array] = {}
        """Output -> values normalised with the statistics of the batch, [T, B, *shape]; only if adjoints are summed."""
        self.deviation: dict[str, Array] = {}
        """Output -> the divisor, the square root of variance + eps; only if adjoints are summed."""
        self.counts: dict[str, int] = {}
        """Output -> number of values in a mean."""


class NormPasses:
    """Sets the statistics of batches in an engine; `layers` are the normalisations of its program."""

    def __init__(self, engine: BackwardEngine, layers: Sequence[NormLayer]) -> None:
        self.engine = engine
        self.layers = layers
        self.levels = sorted({layer.level for layer in layers})
        self.repeats = not any(layer.inputs for layer in layers)
        """Whether the sums are parameters, so that a backward pass can be repeated without its forward pass."""
        self.parameters = frozenset(name for layer in layers for name in (*layer.parameters.values(), layer.gain))
        """Names of the parameters that the passes read."""
        self.total: Callable[[Array], Array] | None = None
        """Function that sums an array over the processes that share a batch; None: this process trains alone."""

    def measure(self, batch: NormalisedBatch, running: dict[str, Array], initial: Initial) -> None:
        """Set the statistics of a batch in the engine, and update the running statistics in `running`, by parameter of the program.

        `initial` is as in :meth:`Engine.forward <snnc.backends.runtime.engine.Engine.forward>`. Raises a NormalisationError if a channel
        has a single value.
        """
        for level in self.levels:
            self._measure_level([layer for layer in self.layers if layer.level == level], batch, running, initial)

    def set_sums(self, batch: NormalisedBatch, run_backward: Callable[[], object]) -> None:
        """Set the sums for the gradients through the statistics, and run backward again after each level.

        Before the call, the engine has run forward and backward with all statistics.
        """
        for level in reversed(self.levels):
            for layer in self.layers:
                if layer.level == level and layer.adjoint is not None:
                    self._set_adjoint_sums(layer, batch)
            run_backward()

    def filled(self, inputs: Mapping[str, Array], leading: int = 2) -> dict[str, Array]:
        """Return `inputs` with zeros for the statistics of each step, so that the running statistics apply.

        The first `leading` axes of inputs are steps and samples, or samples alone.
        """
        sizes = next(iter(inputs.values())).shape[:leading]
        return {**inputs} | {id_: np.zeros((*sizes, *layer.shape), np.float32) for layer in self.layers for id_ in layer.inputs}

    def _measure_level(self, layers: Sequence[NormLayer], batch: NormalisedBatch, running: dict[str, Array], initial: Initial) -> None:
        for layer in layers:
            self._set(layer, {MEAN: 0.0, VARIANCE: 1 - batch.values[layer.parameters[EPSILON]]})  # its output is then its input
        records, moments = self._run(batch.inputs, initial)
        for layer in layers:
            if layer.output in moments:
                mean, variance, count = _merged(moments[layer.output], layer.axes)
            else:
                x = records.get(layer.output, np.zeros((batch.steps, 0, *layer.shape), np.float32))
                count = math.prod(x.shape[axis] for axis in layer.axes)
                mean, variance = _moments(x, layer.axes)
            mean, variance, count = self._shared(mean, variance, count)
            batch.counts[layer.output] = count
            layer.require_two_values(count)
            eps, momentum = (float(batch.values[layer.parameters[name]].reshape(-1)[0]) for name in (EPSILON, MOMENTUM))
            for name, of_steps in ((MEAN, mean), (VARIANCE, variance * count / (count - 1))):
                average = running[layer.parameters[name]].astype(np.float64)
                for of_step in of_steps[:, 0]:
                    average = (1 - momentum) * average + momentum * np.broadcast_to(of_step, layer.shape).reshape(average.shape)
                running[layer.parameters[name]] = average.astype(np.float32)
            if layer.summed:
                batch.deviation[layer.output] = np.sqrt(variance + eps)
                batch.normalised[layer.output] = (x - mean) / batch.deviation[layer.output]
            self._set_for_update(layer, batch, dict(zip((MEAN, VARIANCE), (mean, variance), strict=True)))

    def _run(self, inputs: Mapping[str, Array] | None, initial: Initial) -> tuple[dict[str, Array], dict[str, Moments]]:
        """Run forward; return the outputs of layers, and the moments of those that the engine measures itself."""
        if inputs is None:
            return {}, {}
        if isinstance(self.engine, MeasuringEngine):
            return self.engine.measure(inputs, initial)
        return self.engine.forward(inputs, initial), {}

    def _shared(self, mean: Array, variance: Array, count: int) -> tuple[Array, Array, int]:
        """Return the statistics of the samples of all processes that share the batch."""
        if self.total is None:
            return mean, variance, count
        sums = self.total(np.array([count, *(count * mean).flat]))
        joint_mean = (sums[1:] / sums[0]).reshape(mean.shape)
        squares = self.total(count * (variance + np.square(mean - joint_mean)))
        return joint_mean, squares / sums[0], round(sums[0])

    def _scaled_gradients(self, layer: NormLayer, batch: NormalisedBatch) -> dict[str, Array]:
        """Return the gradients of the gain and the bias of a layer, times the loss scale, as the next backward pass needs them."""
        if batch.inputs is None:
            return {name: np.zeros_like(batch.values[layer.gain], np.float64) for name in (layer.gain, layer.bias)}
        if isinstance(self.engine, SelectingEngine):
            return self.engine.scaled_gradients_named((layer.gain, layer.bias))
        return {name: batch.loss_scale * gradient for name, gradient in self.engine.gradients().items()}

    def _set_adjoint_sums(self, layer: NormLayer, batch: NormalisedBatch) -> None:
        """Set the sums needed for the gradient through the statistics of a layer, divided by minus the number of values in a mean."""
        if layer.summed:
            assert layer.adjoint is not None
            x = batch.normalised[layer.output]
            stored = np.zeros_like(x) if batch.inputs is None else self.engine.adjoint_of(layer.adjoint)
            adjoint = stored.reshape(x.shape) * batch.deviation[layer.output]
            sums = adjoint.sum(layer.axes, keepdims=True), (adjoint * x).sum(layer.axes, keepdims=True)
        else:
            gradients, gain = self._scaled_gradients(layer, batch), batch.values[layer.gain].astype(np.float64)
            per_channel = (1, 1, *(1 if axis + 2 in layer.axes else n for axis, n in enumerate(layer.shape)))
            sums = (gain * gradients[layer.bias]).reshape(per_channel), (gain * gradients[layer.gain]).reshape(per_channel)
        totals = sums if self.total is None else [self.total(of_process) for of_process in sums]
        count = batch.counts[layer.output]
        self._set_for_update(layer, batch, {name: -total / count for name, total in zip((SHIFT, SLOPE), totals, strict=True)})

    def _set_for_update(self, layer: NormLayer, batch: NormalisedBatch, values: Mapping[str, Array]) -> None:
        """Set statistics, or the sums for their gradients, for the rest of an update; each has shape [T or 1, 1, *channels]."""
        if not layer.inputs:
            self._set(layer, {name: value[0, 0] for name, value in values.items()})
            return
        self._set(layer, dict.fromkeys(values, 0.0))
        if batch.inputs is None:
            return
        inputs = dict(zip((MEAN, VARIANCE, SHIFT, SLOPE), layer.inputs, strict=True))
        for name, value in values.items():
            full = np.broadcast_to(value, batch.inputs[inputs[name]].shape)
            batch.inputs[inputs[name]] = np.ascontiguousarray(full, np.float32)

    def _set(self, layer: NormLayer, values: Mapping[str, Any]) -> None:
        self.engine.set_parameters(
            {
                layer.parameters[name]: np.ascontiguousarray(np.broadcast_to(value, layer.shape).reshape(-1), np.float32)
                for name, value in values.items()
            }
        )


def _moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the mean and the variance over `axes` in float64; without values, both are 0. Reduced axes keep length 1.

    One of the values is subtracted from all of them before they are summed in float64, so values far from 0 lose no digits.
    """
    count = math.prod(x.shape[axis] for axis in axes)
    if not count:
        shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
        return np.zeros(shape), np.zeros(shape)
    first = x[tuple(slice(1) if axis in axes else slice(None) for axis in range(x.ndim))]
    differences = x - first
    mean = differences.sum(axes, dtype=np.float64, keepdims=True) / count
    np.square(differences, out=differences)
    variance = differences.sum(axes, dtype=np.float64, keepdims=True) / count - np.square(mean)
    return first + mean, np.maximum(variance, 0)


def _merged(moments: Moments, axes: tuple[int, ...]) -> tuple[Array, Array, int]:
    """Combine the moments of each neuron; return mean and variance over `axes` of [T, B, *shape], and the number of values in a mean."""
    shared = tuple(axis - 2 for axis in axes if axis > 1)
    several = math.prod(moments.mean.shape[axis] for axis in shared)
    mean = moments.mean.mean(shared, keepdims=True)
    squares = (moments.squares + moments.count * np.square(moments.mean - mean)).sum(shared, keepdims=True)
    return mean[None, None], squares[None, None] / (moments.count * several), moments.count * several
