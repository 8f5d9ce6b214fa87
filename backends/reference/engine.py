"""The engine of the reference backend, in float32 or float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from snnc.backends.reference.backward import forget_before, run_backward
from snnc.backends.reference.forward import run_step
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.reference.optimizers import HalfKey, OptimizerState
from snnc.backends.runtime.engine import SKIPPED, Array, Initial, OptimizerValues
from snnc.backends.runtime.errors import NotTrainableError
from snnc.backends.training.updates.masks import masks_of
from snnc.compiler.ir.step_operations import Fill, NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.optimizers import settings_of
from snnc.compiler.losses.update_rules import moments
from snnc.compiler.losses.weight_rounding import REMAINDER, nearest
from snnc.compiler.lowering.statistics import stored_adjoints


class ReferenceEngine:
    """Runs a step program operation by operation; its methods are those of the protocols in :mod:`snnc.backends.runtime.engine`.

    `dtype` is the type of all values.
    """

    steps: int | None = None
    batch: int | None = None

    def __init__(self, program: StepProgram, dtype: npt.DTypeLike = np.float32) -> None:
        self.program = program
        self.steps = program.steps
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._parameters = {name: p.value.astype(self.dtype) for name, p in program.parameters.items()}
        self._optimizer = None if program.optimizer is None else OptimizerState(program.optimizer)
        self._gradients: dict[str, Array] = {}
        self._sums: dict[str, Array] = {}
        """Sums of the gradients of earlier parts of an update."""
        self._dropped = 0
        self._step_memory: StepMemory | None = None
        self._masks = masks_of(program)
        self._stored_adjoints = stored_adjoints(program)
        self._adjoints: dict[str, Array] = {}
        """``d_<id>`` -> adjoints of the current at all steps of the last backward pass, for populations of :func:`stored_adjoints`."""

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        memory = self.run_sequence(inputs, initial)
        return {o.id: memory[o.record].reshape(memory.steps, memory.batch, *o.shape) for o in self.program.outputs}

    def loss_and_gradients(
        self, inputs: Mapping[str, Array], target: Array, initial: Initial | None = None, scale: float = 1.0
    ) -> tuple[float, dict[str, Array]]:
        """Run a sequence forward and backward; return the loss, and the gradients of the loss times `scale` by parameter."""
        program = self.program
        if program.loss is None:
            raise NotTrainableError(f"{program.name!r} was compiled without a loss; give one to train it.")
        memory = self.run_sequence(inputs, initial or {})
        record = next(o.record for o in program.outputs if o.id == program.loss_output)
        loss, memory[f"d_{record}"][:] = program.loss.value_and_gradient(memory[record], target)
        memory[f"d_{record}"][:] *= self.dtype.type(scale)
        adjoints: dict[str, list[Array]] = {f"d_{id_}": [] for id_ in self._stored_adjoints}
        for t in reversed(range(memory.steps)):
            for op in program.backward:
                run_backward(op, memory, t)
                if isinstance(op, NeuronAdjoint) and op.population in self._stored_adjoints:
                    adjoints[f"d_{op.population}"].append(memory[f"d_{op.currents[0]}"].copy())
            if program.truncate and t % program.truncate == 0:
                forget_before(memory, t)
        self._adjoints = {name: np.stack(last_to_first[::-1]) for name, last_to_first in adjoints.items() if last_to_first}
        learned = {name: f"d_{name}" for name in program.parameters if f"d_{name}" in program.buffers}
        return loss, {name: memory[gradient] for name, gradient in learned.items()}

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        return self.train_parts([(inputs, target)], len(target), learning_rate)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        loss = self.gather_parts(parts, samples)
        self.change_parameters(learning_rate)
        return loss

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int = 0) -> float:
        state = self._state()
        mean_loss, gradients, factor = 0.0, dict[str, Array](), state.scale.factor
        for inputs, target in parts:
            masks = self._masks.of(self._parameters.__getitem__, state.count, first, len(target))
            with np.errstate() if factor == 1 else np.errstate(over="ignore", invalid="ignore"):  # after overflow, the update is skipped
                loss, of_part = self.loss_and_gradients(inputs, target, masks, factor)
            first += len(target)
            share = len(target) / samples
            mean_loss += loss * share
            gradients = {name: gradients.get(name, 0) + gradient * self.dtype.type(share) for name, gradient in of_part.items()}
        self._gradients = gradients if factor == 1 else {n: g / self.dtype.type(factor) for n, g in gradients.items()}
        return mean_loss

    def keep_gradients(self, share: float, *, last: bool) -> None:
        self._sums = {name: self._sums.get(name, 0) + gradient * self.dtype.type(share) for name, gradient in self._gradients.items()}
        if last:
            self._gradients, self._sums = self._sums, {}

    def forget_gradients(self) -> None:
        self._sums = {}

    def change_parameters(self, learning_rate: float) -> None:
        state, gradients = self._state(), self._gradients
        if state.skips(gradients[op.parameter] for op in self.program.update):
            return
        scale = state.begin({op.parameter: gradients[op.parameter] for op in self.program.update})
        for number, op in enumerate(self.program.update):
            name = op.parameter
            settings = settings_of(state.optimizer, self.program.parameters[name].label)
            arguments = name, self._parameters[name], gradients[name], learning_rate, settings, scale
            if self.program.parameters[name].half and self.program.rounding is not None:
                state.change_half(*arguments, HalfKey(self.program.rounding, number))
            else:
                state.change(*arguments)

    def adjoint_of(self, tensor: str) -> Array:
        return self._adjoints[tensor]

    def _state(self) -> OptimizerState:
        if self._optimizer is None:
            raise NotTrainableError(f"{self.program.name!r} was compiled without a loss and an optimiser; give both to train it.")
        return self._optimizer

    def gradients(self) -> dict[str, Array]:
        return {name: gradient.copy() for name, gradient in self._gradients.items()}

    def get_parameters(self) -> dict[str, Array]:
        return {name: value.copy() for name, value in self._parameters.items()}

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        for name, value in values.items():
            half = self.program.parameters[name].half
            self._parameters[name][...] = nearest(value) if half else value
            if half and self._optimizer is not None:
                self._optimizer.moments_of(REMAINDER).pop(name, None)

    def get_optimizer(self) -> OptimizerValues:
        state = self._optimizer
        if state is None:
            return OptimizerValues(0, {})
        learned = {op.parameter: self._parameters[op.parameter] for op in self.program.update}
        copies = {}
        for moment in moments(state.optimizer):
            stored = state.moments_of(moment)
            copies[moment] = {name: stored.get(name, np.zeros_like(value)).copy() for name, value in learned.items()}
        if self.program.rounding is not None and self.program.rounding.kind == "master":
            halves = {name: value for name, value in learned.items() if self.program.parameters[name].half}
            remainders = state.moments_of(REMAINDER)
            copies[REMAINDER] = {name: remainders.get(name, np.zeros_like(value)).copy() for name, value in halves.items()}
        scaled = state.optimizer.loss_scale is not None
        return OptimizerValues(state.count, copies, (state.scale.factor, state.scale.good) if scaled else None)

    def set_optimizer(self, values: OptimizerValues) -> None:
        assert self._optimizer is not None
        self._optimizer.count = values.updates
        if values.loss_scale is not None:
            self._optimizer.scale.factor, self._optimizer.scale.good = values.loss_scale
        for moment, arrays in values.moments.items():
            self._optimizer.moments_of(moment).update({name: value.astype(self.dtype) for name, value in arrays.items()})

    def reset(self, batch: int, initial: Initial) -> None:
        self._dropped += 0 if self._step_memory is None else self._step_memory.memory.dropped
        self._step_memory = StepMemory(self.program, batch, self._parameters, self.dtype, initial)

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if self._step_memory is None:
            self.reset(len(next(iter(inputs.values()))), {})
        assert self._step_memory is not None
        return self._step_memory.step(inputs)

    def counters(self) -> dict[str, int]:
        """Return the numbers of dropped spikes and, with a loss scale, of skipped updates."""
        counts = {"dropped_spikes": self._dropped + (0 if self._step_memory is None else self._step_memory.memory.dropped)}
        if self._optimizer is not None and self._optimizer.optimizer.loss_scale is not None:
            counts[SKIPPED] = self._optimizer.scale.skipped
        return counts

    def close(self) -> None:
        self._step_memory, self._gradients = None, {}

    def run_sequence(
        self, inputs: Mapping[str, Array], initial: Initial, after_step: Callable[[SequenceArrays, int], None] | None = None
    ) -> SequenceArrays:
        """Run a sequence forward and return all its arrays; call `after_step` with the arrays and the number of each step."""
        steps, batch = next(iter(inputs.values())).shape[:2]
        memory = SequenceArrays(self.program, steps, batch, self._parameters, self.dtype)
        memory.set_initial(initial)
        for info in self.program.inputs:
            memory[f"{info.id}_in"][:] = inputs[info.id].reshape(steps, batch, -1)
        for t in range(steps):
            run_step(memory, t)
            if after_step is not None:
                after_step(memory, t)
        self._dropped += memory.dropped
        return memory


class StepMemory:
    """The arrays of the last D + 1 steps, where D is the longest delay in steps."""

    def __init__(self, program: StepProgram, batch: int, parameters: Mapping[str, Array], dtype: np.dtype[Any], initial: Initial) -> None:
        reads = [op.source.delay for op in program.forward if not isinstance(op, Fill | NeuronStep)]
        self.memory = SequenceArrays(program, max(reads, default=0) + 1, batch, parameters, dtype)
        self.memory.set_initial(initial)
        self.filled = 0

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step: input id -> [B, *shape] to output id -> [B, *shape]."""
        memory, program = self.memory, self.memory.program
        if self.filled == memory.steps:
            self._shift()
        t, self.filled = self.filled, self.filled + 1
        for info in program.inputs:
            memory[f"{info.id}_in"][t] = inputs[info.id].reshape(memory.batch, -1)
        run_step(memory, t)
        return {o.id: memory[o.record][t].reshape(memory.batch, *o.shape).copy() for o in program.outputs}

    def _shift(self) -> None:
        """Drop the oldest step."""
        for buffer in self.memory.program.buffers.values():
            if buffer.lifetime == "sequence" and buffer.role != "adjoint":
                array = self.memory[buffer.name]
                array[:-1] = array[1:].copy()
        for array in self.memory.sent.values():
            array[:-1] = array[1:].copy()
        self.filled -= 1
