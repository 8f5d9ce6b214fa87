"""One function for each forward operation: what it does to the memory at step t."""

from __future__ import annotations

from functools import singledispatch

from snnc.backends.reference.memory import Memory
from snnc.compiler.interpret import evaluate
from snnc.compiler.step_program import Dense, Fill, ForwardOp, NeuronStep, OneToOne, PopulationInfo, Record


@singledispatch
def run_forward(op: ForwardOp, memory: Memory, t: int) -> None:
    """Run `op` at step `t`."""
    raise TypeError(op)


@run_forward.register
def _fill(op: Fill, memory: Memory, t: int) -> None:
    memory[op.target][:] = 0
    for bias in op.biases:
        memory[op.target][:] += memory[bias]


@run_forward.register
def _dense(op: Dense, memory: Memory, t: int) -> None:
    memory[op.target][:] += memory.read(op.source, t) @ memory[op.weight].T


@run_forward.register
def _one_to_one(op: OneToOne, memory: Memory, t: int) -> None:
    source = memory.read(op.source, t)
    part = memory[op.target][:, op.offset : op.offset + source.shape[1]]
    part += source if op.weight is None else memory[op.weight] * source


@run_forward.register
def _neuron_step(op: NeuronStep, memory: Memory, t: int) -> None:
    kernel = population_of(memory, op.population).kernel
    environment = {canonical: memory[name] for canonical, name in zip(kernel.inputs, op.currents, strict=True)}
    environment |= {canonical: memory[name] for canonical, name in zip(kernel.parameters, op.parameters, strict=True)}
    environment |= {f"{canonical}_prev": memory[name][t] for canonical, name in zip(kernel.states, op.states, strict=True)}
    found = evaluate(kernel.forward, environment)
    for canonical, name in zip(kernel.states, op.states, strict=True):
        memory[name][t + 1] = found[canonical]
    for canonical, name in zip(kernel.outputs, op.outputs, strict=True):
        memory[name][t] = found[canonical]
    for canonical, name in zip(kernel.saved, op.saved, strict=True):
        memory[name][t] = (found if canonical in found else environment)[canonical]


@run_forward.register
def _record(op: Record, memory: Memory, t: int) -> None:
    memory[op.target][t] = memory.read(op.source, t)


def population_of(memory: Memory, id_: str) -> PopulationInfo:
    """Return a population by its id."""
    return next(info for info in memory.program.populations if info.id == id_)
