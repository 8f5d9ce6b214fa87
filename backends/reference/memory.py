"""The arrays of a running step program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snnc.backends.runtime.engine import Array, Initial
from snnc.backends.runtime.errors import MemoryNeededError
from snnc.compiler.ir.arrays.sizes import machine_memory
from snnc.compiler.ir.step_operations import BufferValue
from snnc.compiler.ir.step_program import Buffer, StepProgram
from snnc.compiler.lowering.spike_limits import limited_sources, sent, without_returns


@dataclass
class SequenceArrays:
    """Arrays of a sequence, by the names of the program's buffers.

    Buffers of lifetime "sequence" are [T, B, n] (states and their adjoints [T + 1, B, n]), those of lifetime "step" [B, n], and those of
    lifetime "program" have the shape of the buffer.
    """

    program: StepProgram
    steps: int
    batch: int
    parameters: Mapping[str, Array]
    dtype: np.dtype[Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    sent: dict[str, Array] = field(default_factory=dict)
    """Buffer -> spikes that were sent, for sources with a spike limit."""
    dropped: int = 0
    before: dict[str, Array] = field(default_factory=dict)
    """Buffer -> values before the first step, for delayed reads; missing values are 0."""

    def __post_init__(self) -> None:
        check_memory(self.program, self.steps, self.batch, self.dtype)
        for buffer in self.program.buffers.values():
            if buffer.role == "parameter":
                self.arrays[buffer.name] = self.parameters[buffer.name]
            else:
                self.arrays[buffer.name] = np.zeros(_shape(self.program, buffer, self.steps, self.batch), self.dtype)
        self._limited = limited_sources(self.program)
        self._without_returns = without_returns(self.program)
        self.sent = {name: np.zeros_like(self.arrays[name]) for name in self._limited}

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def read(self, value: BufferValue, t: int) -> Array:
        """Return `value` at step `t`: [B, n]."""
        array = self.arrays[value.buffer]
        values: Array = array[t - value.delay] if t >= value.delay else self.before.get(value.buffer, np.zeros_like(array[0]))
        return values

    def received(self, value: BufferValue, t: int) -> Array:
        """Return `value` at step `t` without dropped spikes, as connections receive it: [B, n]."""
        if value.buffer in self.sent and t >= value.delay:
            spikes: Array = self.sent[value.buffer][t - value.delay]
            return spikes
        return self.read(value, t)

    def returned(self, value: BufferValue, t: int, adjoint: Array) -> Array:
        """Return the `adjoint` that a dense connection sends back to `value`: 0 for dropped spikes if the surrogate has bounded support."""
        if value.buffer not in self._without_returns:
            return adjoint
        source_step = t - value.delay
        was_sent = self.sent[value.buffer][source_step] == self.arrays[value.buffer][source_step]
        return np.where(was_sent, adjoint, adjoint.dtype.type(0))

    def send(self, buffer: str, t: int) -> None:
        """Choose the spikes that a source with a spike limit sends at step `t`, and count the others."""
        limit = self._limited.get(buffer)
        if limit is not None:
            spikes = self.arrays[buffer][t]
            capacity, key = int(self.parameters[limit.capacity]), float(self.parameters[limit.key])
            self.sent[buffer][t] = sent(spikes, capacity, key, t)
            self.dropped += int(np.count_nonzero(spikes) - np.count_nonzero(self.sent[buffer][t]))

    def set_initial(self, initial: Initial) -> None:
        """Set states and outputs before the first step to the values in `initial`, or else to the program's."""
        for info in self.program.populations:
            for state, value in zip(info.kernel.states, info.initial, strict=True):
                other = initial.get((info.id, state))
                first = value.reshape(-1) if other is None else np.reshape(other, (self.batch, -1))
                self.arrays[f"{info.id}_{state}"][0] = first
            for buffer, value in info.before.items():
                self.before[buffer] = np.broadcast_to(value.reshape(-1), self.arrays[buffer][0].shape).astype(self.dtype)
            for buffer in info.output_buffers.values():
                if (info.id, buffer) in initial:
                    self.before[buffer] = np.reshape(initial[info.id, buffer], (self.batch, -1)).astype(self.dtype)


def check_memory(program: StepProgram, steps: int, batch: int, dtype: np.dtype[Any]) -> None:
    """Raise a MemoryNeededError for a sequence that does not fit in this machine's memory."""
    needed = sum(math.prod(_shape(program, b, steps, batch)) for b in program.buffers.values()) * dtype.itemsize
    available = machine_memory()
    if needed > available:
        raise MemoryNeededError(
            f"{program.name!r} with {steps} steps and a batch of {batch} needs {needed / 2**30:.1f} GiB; this machine has "
            f"{available / 2**30:.1f} GiB. Use a smaller batch or fewer steps."
        )


def _shape(program: StepProgram, buffer: Buffer, steps: int, batch: int) -> tuple[int, ...]:
    match buffer.lifetime:
        case "program":
            return buffer.shape
        case "step":
            return (batch, *buffer.shape)
        case _:
            original = program.buffers.get(buffer.name.removeprefix("d_"), buffer)
            return (steps + (original.role == "state"), batch, *buffer.shape)
