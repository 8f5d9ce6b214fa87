"""Run the program of a :class:`snnc.torch.Module` on a tile machine, for up to the compiled numbers of steps and samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch

from snnc.backends.runtime.engine import AdjointEngine
from snnc.backends.runtime.errors import NotBinaryError, TorchTensorError
from snnc.backends.runtime.events import Events
from snnc.backends.training.updates.masks import masks_of
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import InputInfo
from snnc.torch_program import ModuleProgram


class MachineRun:
    """Runs the program of a module on an engine, with PyTorch's current weights.

    Shorter sequences and smaller batches are padded with zeros, which change neither gradients nor the outputs that are returned.
    """

    def __init__(self, engine: AdjointEngine, lowered: ModuleProgram) -> None:
        self._engine = engine
        self._lowered = lowered
        self._weights: dict[str, Array] = {}
        self._masks = masks_of(lowered.program)

    def run(self, inputs: Mapping[str, torch.Tensor | Events], values: Mapping[str, torch.Tensor], masks: int | None) -> torch.Tensor:
        """Run `inputs` with the parameters `values`, and with the dropout masks of draw number `masks` (None: no dropout).

        The next :meth:`go_back` is the backward pass of this run.
        """
        weights = {name: value.detach().numpy() for name, value in values.items()}
        changed = {n: value.copy() for n, value in weights.items() if n not in self._weights or not np.array_equal(self._weights[n], value)}
        self._engine.set_parameters(changed)
        self._weights |= changed
        arrays = {info.id: self._padded(_dense(info, inputs[info.id]), info.label) for info in self._lowered.program.inputs}
        steps, batch = next(iter(inputs.values())).shape[:2]
        initial = {} if masks is None else self._masks.of(self._weights.__getitem__, masks, 0, self._engine.batch or batch)
        return _tensor(self._engine.forward(arrays, initial)[self._lowered.output.id][:steps, :batch])

    def go_back(self, adjoint: torch.Tensor, learned: Iterable[str]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Return the gradients of the `learned` parameters, and of the inputs that have gradients, from the `adjoint` of the output."""
        flat = adjoint.detach().to(torch.float32).flatten(2).numpy()
        self._engine.run_backward(self._padded(flat, "the output's gradient"))
        gradients = self._engine.gradients()
        steps, batch = adjoint.shape[:2]
        shapes = {info.id: info.shape for info in self._lowered.program.inputs}
        input_gradients = {
            name: _tensor(self._engine.adjoint_of(tensor)[:steps, :batch]).reshape(steps, batch, *shapes[name])
            for name, tensor in self._lowered.input_adjoints.items()
        }
        return {name: _tensor(gradients[name]) for name in learned}, input_gradients

    def _padded(self, array: Array, name: str) -> Array:
        """Pad `array` with zeros to the compiled steps and samples; raise TorchTensorError, which calls it `name`, if it exceeds them."""
        max_steps, max_samples = self._engine.steps, self._engine.batch
        assert max_steps is not None, "a machine's program has a fixed size"
        assert max_samples is not None, "a machine's program has a fixed size"
        steps, batch = array.shape[:2]
        if (steps, batch) == (max_steps, max_samples):
            return np.ascontiguousarray(array, dtype=np.float32)
        if steps > max_steps or batch > max_samples:
            raise TorchTensorError(
                f"{name!r} has {steps} steps and {batch} samples; the module was compiled for up to {max_steps} and {max_samples}: set "
                "steps= and batch= when creating it."
            )
        padded = np.zeros((max_steps, max_samples, *array.shape[2:]), dtype=np.float32)
        padded[:steps, :batch] = array
        return padded


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float32))


def _dense(info: InputInfo, value: torch.Tensor | Events) -> Array:
    array: Array = value.dense() if isinstance(value, Events) else value.detach().numpy()
    if info.kind == "spikes" and not np.isin(array, (0, 1)).all():
        raise NotBinaryError(f"the input {info.label!r} accepts spikes, 0 or 1, but has other values.")
    return array
