"""Backward operations on NumPy arrays; the function of each operation adds its contribution to adjoints and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

import numpy as np

from snnc.backends.reference.convolution import convolve_input_gradient, convolve_weight_gradient, per_channel
from snnc.backends.reference.forward import population_of
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.reference.pooling import pool_gradient, reduce_gradient
from snnc.backends.reference.scaling import cut, inside, rescale, sum_to
from snnc.backends.reference.sparse import sparse_input_gradient, sparse_weight_gradient
from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_operations import (
    BackwardOp,
    BiasGradient,
    BufferValue,
    ConvolveBiasGradient,
    ConvolveInputGradient,
    ConvolveWeightGradient,
    DenseInputGradient,
    DenseWeightGradient,
    NeuronAdjoint,
    OneToOneInputGradient,
    OneToOneWeightGradient,
    PadGradient,
    PoolingGradient,
    RecordAdjoint,
    ReduceGradient,
    RescaleBiasGradient,
    RescaleInputGradient,
    RescaleWeightGradient,
    SliceGradient,
    SparseInputGradient,
    SparseWeightGradient,
)
from snnc.compiler.neurons.expression import Number, Symbol
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.kernel import Kernel


@singledispatch
def run_backward(op: BackwardOp, memory: SequenceArrays, t: int) -> None:
    """Run `op` at step `t`; steps run from the last to the first."""
    raise TypeError(op)


def forget_before(memory: SequenceArrays, t: int) -> None:
    """Clear the contributions of step `t` and later steps to the adjoints of earlier steps."""
    for op in memory.program.backward:
        if isinstance(op, NeuronAdjoint):
            for state in op.states:
                memory[f"d_{state}"][t] = 0
            for output in op.outputs:
                memory[f"d_{output}"][:t] = 0


def _add_to_source(memory: SequenceArrays, source: BufferValue, t: int, adjoint: Array) -> None:
    """Add an adjoint [B, n] to that of the step that `source` read at step `t`; values before the first step have no adjoint."""
    if t >= source.delay:
        memory[f"d_{source.buffer}"][t - source.delay] += adjoint


def _sum_like(memory: SequenceArrays, gradient: str, values: Array) -> None:
    """Add values [B, n], summed over the batch, to a gradient with one element per neuron or one for all neurons."""
    memory[gradient][...] += values.sum(axis=0) if memory[gradient].ndim else values.sum()


@run_backward.register
def _record(op: RecordAdjoint, memory: SequenceArrays, t: int) -> None:
    _add_to_source(memory, op.source, t, memory[f"d_{op.target}"][t])


@run_backward.register
def _neuron(op: NeuronAdjoint, memory: SequenceArrays, t: int) -> None:
    info = population_of(memory, op.population)
    kernel = info.kernel
    environment = {canonical: memory[name] for canonical, name in zip(kernel.parameters, op.parameters, strict=True)}
    for canonical, name in zip(kernel.states, op.states, strict=True):
        environment[f"d_{canonical}"] = memory[f"d_{name}"][t + 1]
        if canonical in kernel.history:
            environment[f"{canonical}_prev"], environment[canonical] = memory[name][t], memory[name][t + 1]
    environment |= {canonical: memory[name][t] for canonical, name in zip(kernel.saved, op.saved, strict=True)}
    environment |= _as_stored(kernel, environment)
    environment |= {f"d_{canonical}": memory[f"d_{name}"][t] for canonical, name in zip(kernel.outputs, op.outputs, strict=True)}
    results = evaluate(kernel.backward, environment)
    for canonical, name in zip(kernel.states, op.states, strict=True):
        memory[f"d_{name}"][t] = results[f"d_{canonical}_prev"]
    for canonical, name in zip(kernel.inputs, op.currents, strict=True):
        memory[f"d_{name}"][:] = results[f"d_{canonical}"]
    for canonical, gradient in zip(kernel.learnable, op.gradients, strict=True):
        _sum_like(memory, gradient, np.broadcast_to(results[f"d_{canonical}"], (memory.batch, size(info.shape))))


def _as_stored(kernel: Kernel, environment: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values that the kernel stores as float16 for the backward pass, rounded as they are stored."""
    stored: dict[str, Array] = {}
    for canonical, offset in kernel.rounded.items():
        assert isinstance(offset, Number | Symbol), "an offset is a number or a parameter"
        for name in {canonical, f"{canonical}_prev"} & environment.keys():
            value = environment[name]
            centre = np.asarray(offset.value if isinstance(offset, Number) else environment[offset.name], value.dtype)
            with np.errstate(over="ignore"):  # float16 overflow gives infinity, as on an IPU
                stored[name] = (value - centre).astype(np.float16).astype(value.dtype) + centre
    return stored


@run_backward.register
def _dense_input(op: DenseInputGradient, memory: SequenceArrays, t: int) -> None:
    if t >= op.source.delay:
        delta = memory[f"d_{op.target}"]
        with np.errstate(over="ignore"):  # float16 overflow gives infinity, which loss scaling detects
            delta = delta.astype(np.float16).astype(delta.dtype) if op.half else delta
        _add_to_source(memory, op.source, t, memory.returned(op.source, t, delta @ memory[op.weight]))


@run_backward.register
def _dense_weight(op: DenseWeightGradient, memory: SequenceArrays, t: int) -> None:
    memory[op.gradient][:] += memory[f"d_{op.target}"].T @ memory.received(op.source, t)


@run_backward.register
def _sparse_input(op: SparseInputGradient, memory: SequenceArrays, t: int) -> None:
    _add_to_source(memory, op.source, t, sparse_input_gradient(memory[f"d_{op.target}"], memory[op.weight], op.pattern))


@run_backward.register
def _sparse_weight(op: SparseWeightGradient, memory: SequenceArrays, t: int) -> None:
    memory[op.gradient][:] += sparse_weight_gradient(memory[f"d_{op.target}"], memory.received(op.source, t), op.pattern)


@run_backward.register
def _one_to_one_input(op: OneToOneInputGradient, memory: SequenceArrays, t: int) -> None:
    length = memory[op.source.buffer].shape[-1]
    part = memory[f"d_{op.target}"][:, op.offset : op.offset + length]
    _add_to_source(memory, op.source, t, part if op.weight is None else memory[op.weight] * part)


@run_backward.register
def _one_to_one_weight(op: OneToOneWeightGradient, memory: SequenceArrays, t: int) -> None:
    source = memory.received(op.source, t)
    _sum_like(memory, op.gradient, memory[f"d_{op.target}"][:, op.offset : op.offset + source.shape[1]] * source)


@run_backward.register
def _bias(op: BiasGradient, memory: SequenceArrays, t: int) -> None:
    memory[op.gradient][:] += memory[f"d_{op.target}"].sum(axis=0)


@run_backward.register
def _convolve_input(op: ConvolveInputGradient, memory: SequenceArrays, t: int) -> None:
    _add_to_source(memory, op.source, t, convolve_input_gradient(memory[f"d_{op.target}"], memory[op.weight], op.windows, op.groups))


@run_backward.register
def _convolve_weight(op: ConvolveWeightGradient, memory: SequenceArrays, t: int) -> None:
    gradient = memory[op.gradient]
    by_group = convolve_weight_gradient(memory[f"d_{op.target}"], memory.received(op.source, t), op.windows, op.groups)
    gradient += by_group.reshape(gradient.shape)


@run_backward.register
def _convolve_bias(op: ConvolveBiasGradient, memory: SequenceArrays, t: int) -> None:
    gradient = memory[op.gradient]
    gradient += per_channel(memory[f"d_{op.target}"], len(gradient)).sum(axis=(0, 2))


@run_backward.register
def _pooling(op: PoolingGradient, memory: SequenceArrays, t: int) -> None:
    adjoint = pool_gradient(memory[f"d_{op.target}"], memory.received(op.source, t), op.windows, op.kind, op.count_padding)
    _add_to_source(memory, op.source, t, adjoint)


@run_backward.register
def _rescale_input(op: RescaleInputGradient, memory: SequenceArrays, t: int) -> None:
    _add_to_source(memory, op.source, t, rescale(memory[f"d_{op.target}"], memory[op.weight], op.shape))


@run_backward.register
def _rescale_weight(op: RescaleWeightGradient, memory: SequenceArrays, t: int) -> None:
    gradient = memory[op.gradient]
    gradient += sum_to(memory[f"d_{op.target}"] * memory.received(op.source, t), op.shape, gradient.shape)


@run_backward.register
def _rescale_bias(op: RescaleBiasGradient, memory: SequenceArrays, t: int) -> None:
    gradient = memory[op.gradient]
    gradient += sum_to(memory[f"d_{op.target}"], op.shape, gradient.shape)


@run_backward.register
def _reduction(op: ReduceGradient, memory: SequenceArrays, t: int) -> None:
    adjoint = reduce_gradient(memory[f"d_{op.target}"], memory.received(op.source, t), op.shape, op.axes, op.kind)
    _add_to_source(memory, op.source, t, adjoint)


@run_backward.register
def _cut(op: SliceGradient, memory: SequenceArrays, t: int) -> None:
    if t >= op.source.delay:
        part = cut(memory[f"d_{op.source.buffer}"][t - op.source.delay], op.shape, op.axis, op.start, op.stop)
        part += memory[f"d_{op.target}"].reshape(part.shape)


@run_backward.register
def _surround(op: PadGradient, memory: SequenceArrays, t: int) -> None:
    part = inside(memory[f"d_{op.target}"], op.shape, op.padding)
    _add_to_source(memory, op.source, t, part.reshape(memory.batch, -1))
