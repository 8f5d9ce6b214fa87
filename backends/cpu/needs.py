"""Memory that an emitted program allocates, as the :class:`~snnc.backends.native.memory.Needs` from which totals are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.backends.cpu.operations import Statements, is_large
from snnc.backends.cpu.stages import Stages
from snnc.backends.native.memory import ListNeeds, Needs, OmittedCopies
from snnc.backends.native.row_buffers import LINE, RowBuffer, padded, pitch
from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.backends.native.tables import two_axes
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.graph import Array
from snnc.compiler.losses.update_rules import moments

SPIKING: Final = 0.08
"""Assumed fraction of neurons that spike in a step, until a sequence has been observed."""
IN_SUPPORT: Final = 0.25
"""Assumed fraction of neurons inside the support of the surrogate. It is used if only these neurons receive a gradient."""
LISTED_PART: Final = 4
"""An input is stored as lists if at most one in this many values is nonzero."""
SPARSE: Final = 1 / LISTED_PART
"""Assumed fraction of nonzero values of an input of values, until a sequence has been observed."""
PACKED: Final = 64
"""Maximum number of inputs in a panel of the copy of a dense weight for the backward pass; processors with narrower vectors use fewer."""
PANEL: Final = 128
"""Maximum number of outputs in a panel of a dense weight (a range of outputs whose weights are stored contiguously)."""
CHUNK: Final = 32
"""Maximum number of bfloat16 values in a chunk, a part of a panel's row."""
SESSION: Final = 1 << 16
"""Bytes of a session in addition to its network: names and threads."""


def needs_of(statements: Statements, row_buffers: Sequence[RowBuffer]) -> Needs:
    """Return the memory needs of a session: for a training step if the program trains, else for a run."""
    storage, stages, trains = statements.storage, statements.stages, statements.trains
    program = storage.program
    rows = {"once": 8, "steps": 0, "segment": 0, "block": 0}  # bytes as in Needs.rows; 8: a label and a loss
    for one in row_buffers:
        slots = one.in_training if trains else one.in_inference
        if slots is not None:
            rows["once"] += slots.number * one.row_bytes
            for length in slots.lengths:
                rows[length] += one.row_bytes
    rows["segment"] += _choice_bytes(storage) if trains else 0
    for info in program.inputs:
        name = f"{info.id}_in"
        stored, spikes = storage.stored(name), program.buffers[name].kind == "spikes"
        if stored.rows or (spikes and not stored.listed):
            rows["steps"] += 4 * pitch(storage.size(name))
            rows["once"] += 4 * pitch(storage.size(name)) * stored.past
    # In bfloat16, backward products read the deltas of a dense connection as pairs, of 4 bytes each.
    returning = [op for op in program.backward if isinstance(op, ops.DenseInputGradient)]
    pairs = max((4 * -(-program.buffers[op.weight].shape[0] // 2) for op in returning), default=0)
    if storage.precision == "bfloat16":
        rows["block" if stages.backward else "once"] += pairs
    values = {name: _stored_values(storage, name) for name in program.parameters}
    learned = [u.parameter for u in program.update] if trains else []
    states = sum(storage.size(n) for op in program.forward if isinstance(op, ops.NeuronStep) for n in (*op.states, *op.outputs))
    fixed = SESSION + 4 * sum(values.values()) + 4 * len(moments(program.optimizer)) * sum(values[name] for name in learned)
    maxima = [op for op in program.forward if isinstance(op, ops.Pooling | ops.AddReduced) and storage.reads_lists(op)]
    fixed += sum(_spike_maximum_bytes(storage, op) for op in maxima)
    # Tables of one column count twice, as an upper bound: of these, only tables of constants are copied.
    fixed += _copy_bytes(storage, trains) + 4 * sum(t.size * (1 + (t.shape[1:] == (1,))) for t in statements.tables) + 4 * states
    fixed += 4 * sum(values[name] for name in statements.shared)
    unshared = sum(values[name] for name in learned if name not in statements.shared)
    thread = 4 * unshared + 4 * sum(map(padded, statements.sums.values())) + _scratch_bytes(storage, maxima)
    lists = _lists(storage, trains)
    return Needs(
        fixed,
        rows,
        storage.checkpoint_bytes if trains else 0,
        thread,
        lists,
        _transposed(storage, {one.name: one for one in lists}),
        blocks=trains or bool(stages.forward),
        shared_gradients=bool(statements.shared),
        omitted=_omitted_copies(storage, stages, trains),
    )


def _omitted_copies(storage: SequenceStorage, stages: Stages, trains: bool) -> OmittedCopies:
    """Return the bytes of the copies of weights that a training step with checkpoints does not make, and the rows needed instead."""
    backward = [op for op in storage.program.backward if trains and isinstance(op, ops.DenseInputGradient) and is_large(storage, op)]
    shapes = [storage.program.buffers[op.weight].shape for op in backward]
    copies = sum(4 * (-(-inputs // PACKED) * PACKED) * outputs for outputs, inputs in shapes)
    row_bytes = max((4 * (PANEL + padded(inputs)) for _, inputs in shapes), default=0)
    return OmittedCopies(copies, row_bytes, "block" if stages.backward else "once")


def _stored_values(storage: SequenceStorage, parameter: str) -> int:
    """Return the number of values of a parameter as its connection stores it, with padding."""
    value: Array = storage.program.parameters[parameter].value
    match [c.kind for c in storage.program.connections if c.weight == parameter]:
        case ["dense"]:
            return int(value.shape[1]) * padded(value.shape[0])
        case ["convolution"]:
            op = next(op for op in storage.program.forward if isinstance(op, ops.Convolve) and op.weight == parameter)
            return op.windows.channels * math.prod(op.windows.kernel) * padded(value.shape[0] // op.groups)
    return padded(max(1, value.size))


def _choice_bytes(storage: SequenceStorage) -> int:
    """Return the bytes, per step and sample, that are needed to store which input each maximum selected."""
    bytes_ = 0
    for op in storage.program.backward:
        if isinstance(op, ops.PoolingGradient | ops.ReduceGradient) and is_maximum(op) and not storage.reads_lists(op):
            bytes_ += 4 * storage.size(op.target)
    for forward in storage.program.forward:
        if isinstance(forward, ops.Convolve) and forward.connection in storage.pooled:
            outputs = storage.program.buffers[forward.weight].shape[0]
            bytes_ += math.prod(storage.pooled[forward.connection].output) * forward.groups * padded(outputs // forward.groups)
    return bytes_


def _spike_maximum_bytes(storage: SequenceStorage, op: ops.Pooling | ops.AddReduced) -> int:
    """Return the bytes of the tables of a maximum over spikes, by source and by target."""
    targets, sources = storage.size(op.target), storage.size(op.source.buffer)
    entries = targets * math.prod(op.windows.kernel) if isinstance(op, ops.Pooling) else sources
    return 4 * (sources + 1 + targets + entries)


def _copy_bytes(storage: SequenceStorage, trains: bool) -> int:
    rounded, bytes_ = storage.precision == "bfloat16", 0
    for op in storage.program.forward:
        if isinstance(op, ops.DenseProduct) and rounded:
            outputs, inputs = storage.program.buffers[op.weight].shape
            width = padded(-(-outputs // -(-outputs // PANEL)))
            bytes_ += 2 * -(-padded(outputs) // width) * inputs * (-(-width // CHUNK) * CHUNK)
    for back in storage.program.backward if trains else ():
        if isinstance(back, ops.DenseInputGradient):
            outputs, inputs = storage.program.buffers[back.weight].shape
            bytes_ += 4 * (-(-inputs // PACKED) * PACKED) * (-(-outputs // 2) if rounded else outputs) + 8 * inputs
        elif isinstance(back, ops.ConvolveInputGradient):
            bytes_ += 4 * _convolution(storage, back.connection).packed
    return bytes_


def _lists(storage: SequenceStorage, trains: bool) -> tuple[ListNeeds, ...]:
    program, lists = storage.program, []
    for info in program.inputs:
        name = f"{info.id}_in"
        stored, size = storage.stored(name), storage.size(name)
        if program.buffers[name].kind != "spikes":
            lists.append(ListNeeds(info.id, size, stored.past, SPARSE, 8, 0 if stored.rows else 4 * pitch(size)))
        elif stored.listed:
            lists.append(ListNeeds(info.id, size, stored.past, SPIKING))
    for op in program.forward:
        if isinstance(op, ops.NeuronStep):
            lists += [ListNeeds(n, storage.size(n), storage.stored(n).past, SPIKING) for n in op.outputs if storage.stored(n).listed]
            near = [n for n in op.outputs if trains and n in storage.outputs_with_support]
            lists += [ListNeeds(f"{n}_near", storage.size(n), 0, IN_SUPPORT) for n in near]
    return tuple(lists)


def _transposed(storage: SequenceStorage, lists: Mapping[str, ListNeeds]) -> tuple[tuple[str, int], ...]:
    """Return the lists that a thread transposes for a block of steps: name, and bytes of a transposed entry."""
    inputs = {f"{info.id}_in": info.id for info in storage.program.inputs}
    entry_bytes: dict[str, int] = {}
    for op in storage.program.forward:
        if isinstance(op, ops.DenseProduct):
            name = inputs.get(op.source.buffer, op.source.buffer)
            near = f"{op.source.buffer}_near"
            entry_bytes |= {name: lists[name].width} if name in lists else {}
            entry_bytes |= {near: 8} if near in lists else {}
    return tuple(entry_bytes.items())


def _scratch_bytes(storage: SequenceStorage, maxima: Sequence[ops.Pooling | ops.AddReduced]) -> int:
    """Return the bytes of an object of the C++ class ``Scratch``, the temporary memory of a thread.

    Transposed entries of lists are not included, because their number depends on the activity.
    """
    program = storage.program
    inputs = max((storage.program.buffers[op.weight].shape[1] for op in program.forward if isinstance(op, ops.DenseProduct)), default=0)
    columns = 8 * (1 + inputs)  # where each column of the transposed lists begins
    sums = 4 * (LINE + 4 * inputs)
    convolutions = [_convolution(storage, op.connection) for op in program.forward if isinstance(op, ops.Convolve)]
    stored = [b for b in program.buffers.values() if b.lifetime == "sequence" and b.role in ("input", "output")]
    rows = [storage.size(b.name) for b in stored if not storage.stored(b.name).listed]  # readers may list their nonzero values
    rows += [c.outer for c in convolutions]
    lists = (4 + 4) * (LINE + max(rows, default=0))  # ids and values
    rooms = 4 * sum(max((c.rooms[n] for c in convolutions), default=0) for n in range(3))
    starts = 8 * max((c.values for c in convolutions), default=0)
    starts += 8 * max((storage.size(op.target) for op in maxima), default=0)
    return columns + sums + lists + rooms + starts


@dataclass(frozen=True)
class _Convolution:
    """Sizes of a convolution, in values."""

    packed: int
    """Size of the copy of the weights for the backward pass."""
    rooms: tuple[int, int, int]
    """Sizes of the three temporary arrays of a thread (``Scratch::rooms``); the forward and the backward pass store different data
    there."""
    outer: int
    """Number of output channels in a group."""
    values: int
    """Number of input values in a channel."""


def _convolution(storage: SequenceStorage, connection: str) -> _Convolution:
    """Return the sizes of a convolution.

    If the convolution is regular (stride 1, and no dilation along a row), each temporary output row has a margin, and extra rows precede
    the first one. Then the products with a row of taps are added to one contiguous range, which no end of a row interrupts.
    """
    op = next(op for op in storage.program.forward if isinstance(op, ops.Convolve) and op.connection == connection)
    windows, pool = op.windows, storage.pooled.get(connection)
    size, kernel, stride, dilation = (two_axes(axes) for axes in (windows.size, windows.kernel, windows.stride, windows.dilation))
    before = two_axes([b for b, _ in windows.padding], 0)
    outputs = storage.program.buffers[op.weight].shape[0]
    positions = two_axes(windows.output if pool is None else pool.reach)
    inner, outer = windows.channels // op.groups, outputs // op.groups
    regular = stride == (1, 1) and dilation[1] == 1
    margin = max(kernel[1] - 1, size[1] + before[1] - positions[1]) if regular else 0
    above = (kernel[0] - 1) * dilation[0] if regular else 0
    lines = op.groups * ((above + positions[0]) * (positions[1] + margin) + margin) * padded(outer)
    columns = kernel[0] * padded(kernel[1] * inner)
    values = size[0] * size[1]
    maxima, input_terms = 0 if pool is None else math.prod(pool.output) * op.groups * padded(outer), positions[1] * columns
    rooms = lines, max(maxima, input_terms), max(op.groups * padded(outer), values * inner + LINE)
    return _Convolution(outputs * columns, rooms, outer, values)
