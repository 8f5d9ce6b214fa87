"""Run a network step by step, with only the memory that its longest delay needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from snnc.backends.reference.forward import run_step
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.runtime.engine import Array, Initial
from snnc.compiler.ir.step_operations import Fill, NeuronStep
from snnc.compiler.ir.step_program import StepProgram


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
