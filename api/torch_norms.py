"""Batch normalisations of a :class:`snnc.torch.Module`: statistics of a batch in ``train()`` mode, else running statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

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
        """The last batch, if it ran in ``train()`` mode."""
        self._masks = 0

    def begin(self, inputs: Mapping[str, Any], masks: int | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Set the statistics of a batch in the engine; `masks` is the number of its draw of dropout masks, None in ``eval()`` mode.

        Return the inputs of its forward pass and, in ``train()`` mode, the running statistics after it.
        """
        filled = self._passes.filled(inputs)
        if masks is None:
            self._batch = None
            return filled, {}
        steps, batch = next(iter(inputs.values())).shape[:2]
        values = self._engine.parameters_named(self._passes.parameters)
        running = {name: values[name] for name in self.running}
        initial = {} if self._engine.draw_masks is None else self._engine.draw_masks(masks, 0, batch)
        self._batch, self._masks = NormalisedBatch(filled, values, steps), masks
        self._passes.measure(self._batch, running, initial)
        return filled, running

    def go_back(self, run_backward: Callable[[], None]) -> None:
        """After the first backward pass of a batch in ``train()`` mode, run its further ones, each after a forward pass."""
        if self._batch is None or self._batch.inputs is None:
            return
        inputs = self._batch.inputs

        def repeat() -> None:
            self._engine.run_forward(inputs, self._masks)
            run_backward()

        self._passes.set_sums(self._batch, repeat)
