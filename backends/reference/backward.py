"""Backward operations on NumPy arrays; each adds its contribution to adjoints or gradients."""

from __future__ import annotations

from collections.abc import Mapping

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
    AnyBiasGradient,
    BackwardOp,
    BiasGradient,
    ConvolveBiasGradient,
    ConvolveInputGradient,
    ConvolveWeightGradient,
    DenseInputGradient,
    DenseWeightGradient,
    InputGradient,
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
    WeightGradient,
)
from snnc.compiler.neurons.expression import Number, Symbol
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.kernel import Kernel


def run_backward(op: BackwardOp, memory: SequenceArrays, t: int) -> None:
    """Run `op` at step `t`; steps run from the last to the first."""
    match op:
        case NeuronAdjoint():
            _run_neurons(op, memory, t)
        case BiasGradient() | ConvolveBiasGradient() | RescaleBiasGradient():
            _add_bias_gradient(op, memory)
        case DenseWeightGradient() | SparseWeightGradient() | OneToOneWeightGradient() | ConvolveWeightGradient() | RescaleWeightGradient():
            _add_weight_gradient(op, memory, t)
        case _ if t >= op.source.delay:  # values before the first step have no adjoint
            _add_source_adjoint(op, memory, t)


def forget_before(memory: SequenceArrays, t: int) -> None:
    """Clear the contributions of step `t` and later steps to the adjoints of earlier steps."""
    for op in memory.program.backward:
        if isinstance(op, NeuronAdjoint):
            for state in op.states:
                memory[f"d_{state}"][t] = 0
            for output in op.outputs:
                memory[f"d_{output}"][:t] = 0


def _sum_like(memory: SequenceArrays, gradient: str, values: Array) -> None:
    """Add values [B, n], summed over the batch, to a gradient with one element per neuron or one for all neurons."""
    memory[gradient][...] += values.sum(axis=0) if memory[gradient].ndim else values.sum()


def _run_neurons(op: NeuronAdjoint, memory: SequenceArrays, t: int) -> None:
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
    """Return the values that the kernel stores as float16, as the backward pass reads them: ``offset + float16(value - offset)``."""
    stored: dict[str, Array] = {}
    for canonical, offset in kernel.rounded.items():
        assert isinstance(offset, Number | Symbol), "an offset is a number or a parameter"
        for name in {canonical, f"{canonical}_prev"} & environment.keys():
            value = environment[name]
            offset_value = np.asarray(offset.value if isinstance(offset, Number) else environment[offset.name], value.dtype)
            with np.errstate(over="ignore"):  # float16 overflow gives infinity, as on an IPU
                stored[name] = (value - offset_value).astype(np.float16).astype(value.dtype) + offset_value
    return stored


def _add_bias_gradient(op: AnyBiasGradient, memory: SequenceArrays) -> None:
    delta, gradient = memory[f"d_{op.target}"], memory[op.gradient]
    match op:
        case BiasGradient():
            gradient += delta.sum(axis=0)
        case ConvolveBiasGradient():
            gradient += per_channel(delta, len(gradient)).sum(axis=(0, 2))
        case RescaleBiasGradient():
            gradient += sum_to(delta, op.shape, gradient.shape)


def _add_weight_gradient(op: WeightGradient, memory: SequenceArrays, t: int) -> None:
    delta, source, gradient = memory[f"d_{op.target}"], memory.received(op.source, t), memory[op.gradient]
    match op:
        case DenseWeightGradient():
            gradient += delta.T @ source
        case SparseWeightGradient():
            gradient += sparse_weight_gradient(delta, source, op.pattern)
        case OneToOneWeightGradient():
            _sum_like(memory, op.gradient, delta[:, op.offset : op.offset + source.shape[1]] * source)
        case ConvolveWeightGradient():
            gradient += convolve_weight_gradient(delta, source, op.windows, op.groups).reshape(gradient.shape)
        case RescaleWeightGradient():
            gradient += sum_to(delta * source, op.shape, gradient.shape)


def _add_source_adjoint(op: InputGradient | RecordAdjoint, memory: SequenceArrays, t: int) -> None:
    """Add to the adjoint [B, n] of the value that `op` read at step `t`, which its source sent `op.source.delay` steps before."""
    delta, adjoint = memory[f"d_{op.target}"], memory[f"d_{op.source.buffer}"][t - op.source.delay]
    match op:
        case RecordAdjoint():
            adjoint += delta[t]
        case DenseInputGradient():
            with np.errstate(over="ignore"):  # float16 overflow gives infinity, which loss scaling detects
                delta = delta.astype(np.float16).astype(delta.dtype) if op.half else delta
            adjoint += memory.returned(op.source, t, delta @ memory[op.weight])
        case SparseInputGradient():
            adjoint += sparse_input_gradient(delta, memory[op.weight], op.pattern)
        case OneToOneInputGradient():
            part = delta[:, op.offset : op.offset + adjoint.shape[-1]]
            adjoint += part if op.weight is None else memory[op.weight] * part
        case ConvolveInputGradient():
            adjoint += convolve_input_gradient(delta, memory[op.weight], op.windows, op.groups)
        case PoolingGradient():
            adjoint += pool_gradient(delta, memory.received(op.source, t), op.windows, op.kind, op.count_padding)
        case RescaleInputGradient():
            adjoint += rescale(delta, memory[op.weight], op.shape)
        case ReduceGradient():
            adjoint += reduce_gradient(delta, memory.received(op.source, t), op.shape, op.axes, op.kind)
        case SliceGradient():
            part = cut(adjoint, op.shape, op.axis, op.start, op.stop)
            part += delta.reshape(part.shape)
        case PadGradient():
            adjoint += inside(delta, op.shape, op.padding).reshape(memory.batch, -1)
