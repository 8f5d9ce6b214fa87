"""Fusion of a convolution with the maximum over windows (max pooling) that reads its result.

Lowering inserts a relay population between them, which stores the result of the convolution. The fused convolution writes directly to the
target of the maximum, and its adjoint reads from there, so the values of the relay population and their adjoint are not stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.neurons.library.stateless import Relay

CHOICES: Final = 256
"""Maximum number of positions in a window: the index of the largest value is stored in one byte."""


@dataclass(frozen=True)
class _Pair:
    """A convolution, the relay population that stores its result, and the maximum that is the only reader of the result."""

    convolve: ops.Convolve
    relay: ops.NeuronStep
    pooling: ops.Pooling


def with_pooled_convolutions(program: StepProgram) -> tuple[StepProgram, Mapping[str, Windows]]:
    """Return `program` with fused convolutions, and a mapping from the connection of each to its pooling windows."""
    pairs = [pair for op in program.forward if isinstance(op, ops.Convolve) and (pair := _pair(program, op)) is not None]
    if not pairs:
        return program, {}
    forward: list[ops.ForwardOp] = list(program.forward)
    backward: list[ops.BackwardOp] = list(program.backward)
    for pair in pairs:
        fused = replace(pair.convolve, target=pair.pooling.target)
        forward = [fused if op is pair.pooling else op for op in forward if op is pair.pooling or not _replaced(op, pair)]
        backward = [_moved(op, pair) for op in backward if not _replaced(op, pair)]
    pooled = {pair.convolve.connection: pair.pooling.windows for pair in pairs}
    relays = {pair.relay.population for pair in pairs}
    populations = tuple(p for p in program.populations if p.id not in relays)
    return replace(program, forward=tuple(forward), backward=tuple(backward), populations=populations), pooled


def _pair(program: StepProgram, convolve: ops.Convolve) -> _Pair | None:
    into = [op for op in program.forward if not isinstance(op, ops.NeuronStep) and op.target == convolve.target]
    relay = next(op for op in program.forward if isinstance(op, ops.NeuronStep) and convolve.target in op.currents)
    info = program.population(relay.population)
    fills = [op for op in into if isinstance(op, ops.Fill)]
    alone = info.model == Relay() and len(into) == 1 + len(fills) and not any(fill.biases for fill in fills)
    watched = isinstance(program.loss, ExternalLoss) and info.label in program.loss.relays
    if not alone or watched or len(relay.currents) != 1 or len(relay.outputs) != 1:
        return None
    match [op for op in program.forward if not isinstance(op, ops.Fill | ops.NeuronStep) and op.source.buffer == relay.outputs[0]]:
        case [ops.Pooling(kind="max", windows=windows) as pooling] if not pooling.source.delay:
            inside = all(int(counts.min()) > 0 for counts in windows.taps_inside(count_padding=False))
            return _Pair(convolve, relay, pooling) if math.prod(windows.kernel) <= CHOICES and inside else None
    return None


def _replaced(op: ops.ForwardOp | ops.BackwardOp, pair: _Pair) -> bool:
    if isinstance(op, ops.NeuronStep | ops.NeuronAdjoint):
        return op.population == pair.relay.population
    if isinstance(op, ops.Pooling | ops.PoolingGradient):
        return op.connection == pair.pooling.connection
    return isinstance(op, ops.Fill | ops.Convolve) and op.target == pair.convolve.target


def _moved(op: ops.BackwardOp, pair: _Pair) -> ops.BackwardOp:
    gradients = ops.ConvolveInputGradient | ops.ConvolveWeightGradient | ops.ConvolveBiasGradient
    return replace(op, target=pair.pooling.target) if isinstance(op, gradients) and op.target == pair.convolve.target else op
