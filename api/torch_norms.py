"""Batch normalisations of a :class:`snnc.torch.Module`: statistics of a batch in ``train()`` mode, else running statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from snnc.backends.native.sequence_engine import SequenceEngine
from snnc.backends.training.updates.norm_layers import norm_layers
from snnc.backends.training.updates.norm_passes import NormalisedBatch, NormPasses
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.neurons.library.batch_norm import MEAN, VARIANCE

_RUNNING: Final = (MEAN, VARIANCE)


class ModuleNorms:
    """Runs the passes of a batch (:mod:`snnc.backends.training.updates.norm_passes`) on the engine of a module."""

    def __init__(self, engine: SequenceEngine, program: StepProgram) -> None:
        self._engine = engine
        self._passes = NormPasses(engine, norm_layers(program))
        self.running = frozenset(layer.parameters[name] for layer in self._passes.layers for name in _RUNNING)
        """Names of the parameters with the running statistics."""
        self._batch: NormalisedBatch | None = None

    def in_eval(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a forward pass with the running statistics."""
        self._batch = None
        return self._passes.filled(inputs)

    def in_train(self, inputs: Mapping[str, Any], masks: int) -> tuple[dict[str, Any], dict[str, Array]]:
        """Set the statistics of a batch in the engine.

        Return the inputs of its forward pass, and the running statistics after it. `masks` is the number of the draw of dropout masks.
        """
        filled = self._passes.filled(inputs)
        steps, batch = next(iter(inputs.values())).shape[:2]
        values = self._engine.parameters_named(self._passes.parameters)
        running = {name: values[name] for name in self.running}
        initial = {} if self._engine.draw_masks is None else self._engine.draw_masks(masks, 0, batch)
        self._batch = NormalisedBatch(filled, values, steps)
        self._passes.measure(self._batch, running, initial)
        return filled, running

    def go_back(self, run_again: Callable[[Mapping[str, Any]], None]) -> None:
        """After a backward pass in ``train()`` mode, run the others; `run_again` runs forward with the given inputs, and backward."""
        batch = self._batch
        if batch is not None:
            assert batch.inputs is not None
            inputs = batch.inputs
            self._passes.set_sums(batch, lambda: run_again(inputs))


def put(buffer: torch.Tensor, value: Array) -> None:
    """Overwrite a buffer of a module, as PyTorch's normalisations do."""
    buffer.copy_(torch.from_numpy(value.reshape(buffer.shape)))
