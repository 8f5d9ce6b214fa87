"""Training of networks with batch normalisation: the statistics of a batch are computed before its gradients.

Normalisations of one *level* do not depend on each other; each one of a later level depends on at least one of the level before. An update
runs the whole program several times:

1. For each level, from the first: run forward with the statistics of earlier levels, and compute the statistics of this level.
2. Run forward with all statistics. For each level, from the last: run backward. The gradients of gain and bias are the two sums that
   the gradient through the statistics needs (:mod:`snnc.compiler.neurons.library.batch_norm`). If each step has its own statistics,
   compute these sums from the adjoints of the normalised values, which the target stores.
3. Run backward again with all sums, and update.

With L levels, these are L + 1 forward and L + 1 backward passes. Some engines cannot repeat a backward pass: they run forward before
each one. Every engine does so if each step has its own statistics, because the sums are then inputs of the network.

If an update has several parts, each part has its own statistics, as in PyTorch: all passes run for each part, the gradients of the parts
are summed, and each part updates the running statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from snnc.backends.runtime.engine import (
    Array,
    Engine,
    Initial,
    MeasuringEngine,
    Moments,
    OptimizerValues,
    RepeatingEngine,
    ResumableEngine,
    SelectingEngine,
    SplitEngine,
    SteppingEngine,
    accumulates,
    samples_at_once,
)
from snnc.backends.runtime.engine_wrapper import EngineWrapper
from snnc.backends.runtime.errors import NormalisationError
from snnc.backends.training.updates.masks import masks_of
from snnc.backends.training.updates.norm_layers import NormLayer, norm_layers
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.statistics import statistics_outputs
from snnc.compiler.neurons.library.batch_norm import EPSILON, MEAN, MOMENTUM, SHIFT, SLOPE, VARIANCE, is_batch_norm


class _Update:
    """State of one update: the measured statistics, and the inputs that carry the statistics of each step."""

    def __init__(self, inputs: Mapping[str, Array], values: Mapping[str, Array]) -> None:
        self.inputs = dict(inputs)
        self.values = values
        self.normalised: dict[str, Array] = {}
        """Output -> values normalised with the statistics of the batch, [T, B, *shape]; only for statistics of each step."""
        self.deviation: dict[str, Array] = {}
        """Output -> the divisor, the square root of variance + eps; only for statistics of each step."""
        self.counts: dict[str, int] = {}
        """Output -> number of values in a mean."""


class NormalisingEngine(EngineWrapper[SplitEngine]):
    """Trains on `engine` with the statistics of each batch; see :class:`snnc.backends.runtime.engine.Engine`.

    Raises
    ------
    NormalisationError
        A gain or bias is not trained, or the engine cannot separate gradients from updates.
    """

    def __init__(self, engine: Engine, program: StepProgram) -> None:
        if not (isinstance(engine, SplitEngine) and isinstance(engine, ResumableEngine)):
            name = next(p.label for p in program.populations if is_batch_norm(p.model))
            raise NormalisationError(
                f"{name!r} normalises over a batch, but this target cannot train it: it has one program for gradients and update. Train on "
                "'cpu', 'cuda', 'reference' or a machine; compiled without a loss, it runs on this target with the running statistics."
            )
        super().__init__(engine)
        self._layers = norm_layers(program)
        self._masks = masks_of(program)
        self._repeats = not any(layer.inputs for layer in self._layers)
        self._hidden = {o.id for o in statistics_outputs(program).values()}

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        return self._shown(self.engine.forward(self._filled(inputs), initial))

    @property
    def accumulates(self) -> bool:
        """See :class:`~snnc.backends.runtime.engine.AccumulatingEngine`."""
        return accumulates(self.engine)

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        return self.train_parts([(inputs, target)], len(target), learning_rate)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """See :class:`~snnc.backends.runtime.engine.GatheringEngine`; statistics are those of each part."""
        values = self._parameters()
        running = {name: values[name] for layer in self._layers for name in layer.parameters.values()}
        whole, first = 0.0, 0
        try:
            for inputs, target in parts:
                share = len(target) / samples
                whole += share * self._gather(_Update(self._filled(inputs), values), target, running, first)
                first += len(target)
                if share < 1:
                    self.engine.keep_gradients(share, last=first == samples)
        except BaseException:
            self.engine.forget_gradients()
            raise
        finally:
            self.engine.set_parameters(running)
        self.engine.change_parameters(learning_rate)
        return whole

    def _gather(self, update: _Update, target: Array, running: dict[str, Array], first: int) -> float:
        """Compute the gradients of one part of an update, with its own statistics, and return its loss."""
        samples = len(target)
        masks = self._masks.of(update.values.__getitem__, self.get_optimizer().updates, first, samples) if self._masks.layers else {}
        levels = sorted({layer.level for layer in self._layers})
        for level in levels:
            self._measure([layer for layer in self._layers if layer.level == level], update, running, masks)
        loss = self.engine.gather_parts([(update.inputs, target)], samples, first)
        for level in reversed(levels):
            for layer in self._layers:
                if layer.level == level and layer.adjoint is not None:
                    self._set_adjoint_sums(layer, update)
            if self._repeats and isinstance(self.engine, RepeatingEngine):
                self.engine.gather_again(samples)
            else:
                self.engine.gather_parts([(update.inputs, target)], samples, first)
        return loss

    def _measure(self, layers: Sequence[NormLayer], update: _Update, running: dict[str, Array], initial: Initial) -> None:
        """Set the statistics of the batch for the layers of a level, and update their running statistics."""
        for layer in layers:
            self._set(layer, {MEAN: 0.0, VARIANCE: 1 - update.values[layer.parameters[EPSILON]]})
        found, moments = self._run(update.inputs, initial)
        for layer in layers:
            if layer.output in moments:
                mean, variance, count = _merged(moments[layer.output], layer.axes)
            else:
                x = found[layer.output]
                count = math.prod(x.shape[axis] for axis in layer.axes)
                mean, variance = _moments(x, layer.axes)
            update.counts[layer.output] = count
            layer.require_two_values(count)
            eps, momentum = (float(update.values[layer.parameters[name]].reshape(-1)[0]) for name in (EPSILON, MOMENTUM))
            for name, of_steps in ((MEAN, mean), (VARIANCE, variance * count / (count - 1))):
                now = running[layer.parameters[name]].astype(np.float64)
                for measured in of_steps[:, 0]:
                    now = (1 - momentum) * now + momentum * np.broadcast_to(measured, layer.shape).reshape(now.shape)
                running[layer.parameters[name]] = now.astype(np.float32)
            if layer.inputs:
                update.deviation[layer.output] = np.sqrt(variance + eps)
                update.normalised[layer.output] = (x - mean) / update.deviation[layer.output]
            self._set_for_update(layer, update, dict(zip((MEAN, VARIANCE), (mean, variance), strict=True)))

    def _run(self, inputs: Mapping[str, Array], initial: Initial) -> tuple[dict[str, Array], dict[str, Moments]]:
        """Run forward; return the normalised values, and the moments that the engine measures itself."""
        if isinstance(self.engine, MeasuringEngine):
            return self.engine.measure(inputs, initial)
        return self.engine.forward(inputs, initial), {}

    def _parameters(self) -> dict[str, Array]:
        """Return the parameters and gains of the normalisations; all parameters if dropout layers draw masks."""
        if self._masks.layers or not isinstance(self.engine, SelectingEngine):
            return self.engine.get_parameters()
        return self.engine.parameters_named({name for layer in self._layers for name in (*layer.parameters.values(), layer.gain)})

    def _scaled_gradients(self, layer: NormLayer) -> dict[str, Array]:
        """Return the gradients of the gain and the bias of a layer, times the loss scale, as the next backward pass needs them."""
        if isinstance(self.engine, SelectingEngine):
            return self.engine.scaled_gradients_named((layer.gain, layer.bias))
        scale = self.get_optimizer().loss_scale
        return {name: (1 if scale is None else scale[0]) * gradient for name, gradient in self.engine.gradients().items()}

    def _set_adjoint_sums(self, layer: NormLayer, update: _Update) -> None:
        """Set the sums needed for the gradient through the statistics of a layer, divided by minus the number of values in a mean."""
        count = update.counts[layer.output]
        if layer.inputs:
            assert layer.adjoint is not None
            x = update.normalised[layer.output]
            adjoint = self.engine.adjoint_of(layer.adjoint).reshape(x.shape) * update.deviation[layer.output]
            sums = adjoint.sum(layer.axes, keepdims=True), (adjoint * x).sum(layer.axes, keepdims=True)
        else:
            gradients, gain = self._scaled_gradients(layer), update.values[layer.gain].astype(np.float64)
            wide = (1, 1, *(1 if axis + 2 in layer.axes else n for axis, n in enumerate(layer.shape)))
            sums = (gain * gradients[layer.bias]).reshape(wide), (gain * gradients[layer.gain]).reshape(wide)
        self._set_for_update(layer, update, {name: -total / count for name, total in zip((SHIFT, SLOPE), sums, strict=True)})

    def _set_for_update(self, layer: NormLayer, update: _Update, values: Mapping[str, Array]) -> None:
        """Set statistics, or the sums for their gradients, for the rest of an update; each has shape [T or 1, 1, *channels]."""
        if not layer.inputs:
            self._set(layer, {name: value[0, 0] for name, value in values.items()})
            return
        self._set(layer, dict.fromkeys(values, 0.0))
        inputs = dict(zip((MEAN, VARIANCE, SHIFT, SLOPE), layer.inputs, strict=True))
        for name, value in values.items():
            whole = np.broadcast_to(value, update.inputs[inputs[name]].shape)
            update.inputs[inputs[name]] = np.ascontiguousarray(whole, np.float32)

    def _set(self, layer: NormLayer, values: Mapping[str, Any]) -> None:
        self.engine.set_parameters(
            {
                layer.parameters[name]: np.ascontiguousarray(np.broadcast_to(value, layer.shape).reshape(-1), np.float32)
                for name, value in values.items()
            }
        )

    def _filled(self, inputs: Mapping[str, Array], leading: int = 2) -> dict[str, Array]:
        """Return `inputs` with zeros for the statistics of each step, so that the running statistics apply."""
        sizes = next(iter(inputs.values())).shape[:leading]
        return {**inputs} | {id_: np.zeros((*sizes, *layer.shape), np.float32) for layer in self._layers for id_ in layer.inputs}

    def _shown(self, records: Mapping[str, Array]) -> dict[str, Array]:
        return {id_: record for id_, record in records.items() if id_ not in self._hidden}

    def gradients(self) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.GradientEngine`."""
        return self.engine.gradients()

    def get_parameters(self) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        return self.engine.get_parameters()

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        self.engine.set_parameters(values)

    def get_optimizer(self) -> OptimizerValues:
        """See :class:`~snnc.backends.runtime.engine.ResumableEngine`."""
        assert isinstance(self.engine, ResumableEngine)
        return self.engine.get_optimizer()

    def set_optimizer(self, values: OptimizerValues) -> None:
        """See :class:`~snnc.backends.runtime.engine.ResumableEngine`."""
        assert isinstance(self.engine, ResumableEngine)
        self.engine.set_optimizer(values)

    def reset(self, batch: int, initial: Initial) -> None:
        """See :class:`~snnc.backends.runtime.engine.SteppingEngine`."""
        assert isinstance(self.engine, SteppingEngine)
        self.engine.reset(batch, initial)

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.SteppingEngine`."""
        assert isinstance(self.engine, SteppingEngine)
        return self._shown(self.engine.step(self._filled(inputs, leading=1)))

    def max_samples(self, steps: int, batch: int) -> int:
        """See :class:`~snnc.backends.runtime.engine.BoundedEngine`."""
        return samples_at_once(self.engine, steps, batch)


def _moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return mean and variance over `axes` in float64; reduced axes have length 1.

    One of the values is subtracted from all of them before they are summed in float64, so values far from 0 lose no digits.
    """
    first = x[tuple(slice(1) if axis in axes else slice(None) for axis in range(x.ndim))]
    apart = x - first
    count = math.prod(x.shape[axis] for axis in axes)
    mean = apart.sum(axes, dtype=np.float64, keepdims=True) / count
    np.square(apart, out=apart)
    variance = apart.sum(axes, dtype=np.float64, keepdims=True) / count - np.square(mean)
    return first + mean, np.maximum(variance, 0)


def _merged(moments: Moments, axes: tuple[int, ...]) -> tuple[Array, Array, int]:
    """Combine the moments of each neuron; return mean and variance over `axes` of [T, B, *shape], and the number of values in a mean."""
    shared = tuple(axis - 2 for axis in axes if axis > 1)
    several = math.prod(moments.mean.shape[axis] for axis in shared)
    mean = moments.mean.mean(shared, keepdims=True)
    squares = (moments.squares + moments.count * np.square(moments.mean - mean)).sum(shared, keepdims=True)
    return mean[None, None], squares[None, None] / (moments.count * several), moments.count * several
