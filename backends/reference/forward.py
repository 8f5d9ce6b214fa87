"""Forward operations on NumPy arrays."""

from __future__ import annotations

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


def run_forward(op: ForwardOp, memory: SequenceArrays, t: int) -> None:
    """Run `op` at step `t`."""
    if isinstance(op, NeuronStep):
        _run_neurons(op, memory, t)
        return
    if isinstance(op, Record):
        memory[op.target][t] = memory.read(op.source, t)
        return
    target = memory[op.target]
    if isinstance(op, Fill):
        target[:] = 0
        for bias in op.biases:
            target += memory[bias]
        return
    source = memory.received(op.source, t)
    match op:
        case DenseProduct():
            target += source @ memory[op.weight].T
        case SparseProduct():
            target += sparse_product(source, memory[op.weight], op.pattern)
        case AddOneToOne():
            target[:, op.offset : op.offset + source.shape[1]] += source if op.weight is None else memory[op.weight] * source
        case Convolve():
            target += convolve(source, memory[op.weight], op.windows, op.groups)
            if op.bias is not None:
                per_channel(target, len(memory[op.bias]))[:] += memory[op.bias][:, None]
        case Pooling():
            target += pool(source, op.windows, op.kind, op.count_padding)
        case Rescale():
            target += rescale(source, memory[op.weight], op.shape)
            if op.bias is not None:
                target.reshape(memory.batch, *op.shape)[:] += memory[op.bias]
        case AddReduced():
            target += reduce(source, op.shape, op.axes, op.kind)
        case AddSlice():
            target += cut(source, op.shape, op.axis, op.start, op.stop).reshape(memory.batch, -1)
        case AddPadded():
            part = inside(target, op.shape, op.padding)
            part += source.reshape(part.shape)


def _run_neurons(op: NeuronStep, memory: SequenceArrays, t: int) -> None:
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
