"""Storage of each sequence buffer in the emitted program: rows, lists of nonzero values, and slots of adjoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from snnc.backends.native.row_buffers import Slots, pitch
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.gradient_support import support_bounds
from snnc.compiler.lowering.halves import Halves
from snnc.compiler.neurons.expression import Expression
from snnc.compiler.neurons.rounded_values import rounded_values


@dataclass(frozen=True)
class StoredBuffer:
    """Storage of a buffer that connections or records read."""

    past: int
    """Number of steps before the first one that are read: the longest delay."""
    listed: bool
    """Whether lists of spikes are stored: the values are spikes, and some connection reads lists."""
    ring: int
    """Number of rows of the ring buffer if only the forward pass reads them."""
    history: bool
    """Whether the backward pass reads rows of all steps."""
    rows: bool
    """Whether a record or a maximum over values reads the buffer: these readers need rows even if lists are stored."""

    def slots(self, trained: bool) -> Slots:
        """Return the number of rows per sample."""
        return Slots(self.past, ("segment",)) if trained and self.history else Slots(self.ring)


@dataclass(frozen=True)
class SequenceStorage:
    """Storage of the buffers of `program`."""

    program: StepProgram
    pooled: Mapping[str, Windows] = field(default_factory=dict)
    """Connection of a convolution -> windows of the max pooling that is the only reader of its result."""
    precision: Precision = "float32"
    """Precision of the histories for the backward pass and, if it is bfloat16, of the dense weights that connections read."""
    half: Halves | None = None
    """Layers whose histories have this precision; None: all."""

    def size(self, buffer: str) -> int:
        """Return the number of values of a buffer per step and sample."""
        return math.prod(self.program.buffers[buffer].shape)

    def stored(self, buffer: str) -> StoredBuffer:
        """Return the storage of an input or output buffer."""
        readers = [op for op in self.program.forward if not isinstance(op, ops.Fill | ops.NeuronStep) and op.source.buffer == buffer]
        by_rows = [op for op in readers if isinstance(op, ops.Record) or (is_maximum(op) and not self.reads_lists(op))]
        listed = self.program.buffers[buffer].kind == "spikes" and len(by_rows) < len(readers)
        delays = [op.source.delay for op in readers]
        row_delays = [op.source.delay for op in (by_rows if listed else readers)]
        history = not listed and any(isinstance(op, ops.WeightGradient) and op.source.buffer == buffer for op in self.program.backward)
        return StoredBuffer(max(delays, default=0), listed, max(row_delays, default=0) + 1, history, bool(by_rows))

    def reads_lists(self, op: ops.ForwardOp | ops.BackwardOp) -> bool:
        """Return whether `op` is a maximum over spikes (1 if any of them fired), or its adjoint."""
        return is_maximum(op) and self.program.buffers[op.source.buffer].kind == "spikes"

    @cached_property
    def outputs_with_support(self) -> frozenset[str]:
        """Outputs to which dense connections or convolutions return gradients only in the surrogate's support."""
        reading = [op for op in self.program.backward if isinstance(op, ops.DenseInputGradient | ops.ConvolveInputGradient)]
        # Most gradients that a maximum returns are 0: skipping them costs less than listing neurons.
        receiving = {op.source.buffer for op in reading if op.connection not in self.pooled}
        with_bounds = set()
        for info in self.program.populations:
            step = next(op for op in self.program.forward if isinstance(op, ops.NeuronStep) and op.population == info.id)
            outputs = [(buffer, support_bounds(info, output)) for output, buffer in zip(info.kernel.outputs, step.outputs, strict=True)]
            with_bounds |= {buffer for buffer, bounds in outputs if bounds is not None}
        return frozenset(with_bounds & receiving)

    @cached_property
    def rounded(self) -> dict[str, dict[str, Expression]]:
        """Population -> canonical name of each state and saved value stored in 16 bits -> offset that is subtracted before rounding."""
        adjoints = {op.population for op in self.program.backward if isinstance(op, ops.NeuronAdjoint)}
        rounds = self.precision != "float32" and self.program.optimizer is not None
        chosen = {p.id for p in self.program.populations if self.half is None or "history" in self.half.of(p.label)}
        return {p.id: rounded_values(p.kernel) if rounds and p.id in adjoints & chosen else {} for p in self.program.populations}

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of a checkpoint per sample: states, and values of earlier steps that later steps read."""
        values = 0
        for op in self.program.forward:
            if isinstance(op, ops.NeuronStep):
                values += sum(pitch(self.size(state)) for state in op.states)
                stored = {o: self.stored(o) for o in op.outputs}
                values += sum(pitch(self.size(o)) * (k.past if k.history else min(k.past, k.ring - 1)) for o, k in stored.items())
        return 4 * values

    def bytes_per_step(self) -> int:
        """Return the bytes of a sequence without checkpoints, per step and sample; lists, padding and 16-bit storage are not considered."""
        program = self.program
        names = [b.name for b in program.buffers.values() if b.lifetime == "sequence" and b.role in ("state", "saved", "record", "input")]
        names += [o for op in program.forward if isinstance(op, ops.NeuronStep) for o in op.outputs if self.stored(o).history]
        names += [f"d_{o.record}" for o in program.outputs if o.id == program.loss_output]
        return 4 * sum(self.size(name) for name in names)

    @cached_property
    def adjoint_slots(self) -> dict[str, int]:
        """Number of stored steps of the adjoint of each output: the longest delay of a gradient that returns to it, plus one."""
        delays: dict[str, int] = {}
        for op in self.program.backward:
            if isinstance(op, ops.NeuronAdjoint):
                for name in op.outputs:
                    delays.setdefault(name, 0)
            elif isinstance(op, ops.RecordAdjoint | ops.InputGradient):
                delays[op.source.buffer] = max(delays.get(op.source.buffer, 0), op.source.delay)
        return {name: delay + 1 for name, delay in delays.items()}


def is_maximum(op: object) -> TypeGuard[ops.Pooling | ops.PoolingGradient | ops.AddReduced | ops.ReduceGradient]:
    """Return whether `op` is a maximum or its adjoint."""
    return isinstance(op, ops.Pooling | ops.PoolingGradient | ops.AddReduced | ops.ReduceGradient) and op.kind == "max"
