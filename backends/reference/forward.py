"""Forward operations on NumPy arrays, one function each."""

from __future__ import annotations

from functools import singledispatch

from snnc.backends.reference.convolution import convolve, per_channel
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.reference.pooling import pool, reduce
from snnc.backends.reference.scaling import cut, inside, rescale
from snnc.backends.reference.sparse import sparse_product
from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.step_operations import (
    AddOneToOne,
    AddPadded,
    AddReduced,
    AddSlice,
    Convolve,
    DenseProduct,
    Fill,
    ForwardOp,
    NeuronStep,
    Pooling,
    Record,
    Rescale,
    SparseProduct,
)
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.neurons.interpret import evaluate


@singledispatch
def run_forward(op: ForwardOp, memory: SequenceArrays, t: int) -> None:
    """Run `op` at step `t`."""
    raise TypeError(op)


@run_forward.register
def _fill(op: Fill, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] = 0
    for bias in op.biases:
        memory[op.target][:] += memory[bias]


@run_forward.register
def _dense(op: DenseProduct, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] += memory.received(op.source, t) @ memory[op.weight].T


@run_forward.register
def _sparse(op: SparseProduct, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] += sparse_product(memory.received(op.source, t), memory[op.weight], op.pattern)


@run_forward.register
def _one_to_one(op: AddOneToOne, memory: SequenceArrays, t: int) -> None:
    source = memory.received(op.source, t)
    part = memory[op.target][:, op.offset : op.offset + source.shape[1]]
    part += source if op.weight is None else memory[op.weight] * source


@run_forward.register
def _convolve(op: Convolve, memory: SequenceArrays, t: int) -> None:
    target = memory[op.target]
    target += convolve(memory.received(op.source, t), memory[op.weight], op.windows, op.groups)
    if op.bias is not None:
        per_channel(target, len(memory[op.bias]))[:] += memory[op.bias][:, None]


@run_forward.register
def _pooling(op: Pooling, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] += pool(memory.received(op.source, t), op.windows, op.kind, op.count_padding)


@run_forward.register
def _rescale(op: Rescale, memory: SequenceArrays, t: int) -> None:
    target = memory[op.target]
    target += rescale(memory.received(op.source, t), memory[op.weight], op.shape)
    if op.bias is not None:
        target.reshape(memory.batch, *op.shape)[:] += memory[op.bias]


@run_forward.register
def _reduction(op: AddReduced, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] += reduce(memory.received(op.source, t), op.shape, op.axes, op.kind)


@run_forward.register
def _cut(op: AddSlice, memory: SequenceArrays, t: int) -> None:
    memory[op.target][:] += cut(memory.received(op.source, t), op.shape, op.axis, op.start, op.stop).reshape(memory.batch, -1)


@run_forward.register
def _surround(op: AddPadded, memory: SequenceArrays, t: int) -> None:
    part = inside(memory[op.target], op.shape, op.padding)
    part += memory.received(op.source, t).reshape(part.shape)


@run_forward.register
def _neuron_step(op: NeuronStep, memory: SequenceArrays, t: int) -> None:
    kernel = population_of(memory, op.population).kernel
    environment = environment_of(op, memory, t)
    results = evaluate(kernel.forward, environment)
    for canonical, name in zip(kernel.states, op.states, strict=True):
        memory[name][t + 1] = results[canonical]
    for canonical, name in zip(kernel.outputs, op.outputs, strict=True):
        memory[name][t] = results[canonical]
        memory.send(name, t)
    for canonical, name in zip(kernel.saved, op.saved, strict=True):
        memory[name][t] = (results if canonical in results else environment)[canonical]


@run_forward.register
def _record(op: Record, memory: SequenceArrays, t: int) -> None:
    memory[op.target][t] = memory.read(op.source, t)


def environment_of(op: NeuronStep, memory: SequenceArrays, t: int) -> dict[str, Array]:
    """Return what a population's forward code reads at step `t`, currents, parameters and previous states, by its name in the kernel."""
    kernel = population_of(memory, op.population).kernel
    environment = {canonical: memory[name] for canonical, name in zip(kernel.inputs, op.currents, strict=True)}
    environment |= {canonical: memory[name] for canonical, name in zip(kernel.parameters, op.parameters, strict=True)}
    return environment | {f"{canonical}_prev": memory[name][t] for canonical, name in zip(kernel.states, op.states, strict=True)}


def population_of(memory: SequenceArrays, id_: str) -> PopulationInfo:
    """Return the population with an id."""
    return memory.program.population(id_)


def run_step(memory: SequenceArrays, t: int) -> None:
    """Run the forward part of step `t`; the inputs of the step must be in their buffers."""
    for info in memory.program.inputs:
        memory.send(f"{info.id}_in", t)
    for op in memory.program.forward:
        run_forward(op, memory, t)
