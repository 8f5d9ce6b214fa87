"""Code of a population's blocks: the kernel assignments that the emitted vertices contain, and the names that they read.

A block is the neurons and samples that one worker of a tile processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from snnc.compiler.lowering.gradient_support import argument_name, with_arguments
from snnc.compiler.neurons.expression import Assignment, Expression, symbols
from snnc.compiler.neurons.single_assignment import live, reads
from snnc.compiler.tiles.mapped.network import Layer, LearnedParameter


@dataclass(frozen=True)
class BlockCode:
    """Assignments in order, and `reads`: the names that are used or are results, but that no assignment defines."""

    assignments: tuple[Assignment, ...]
    reads: frozenset[str]


@dataclass(frozen=True)
class HalfState:
    """Float32 state whose history is stored as float16.

    `index` is its position among the states, and `offset` is subtracted before rounding. The adjoint reads the state `before` a step,
    `after` it, or both.
    """

    index: int
    name: str
    offset: Expression
    before: bool
    after: bool


@dataclass(frozen=True)
class BackwardCode(BlockCode):
    """Code of the adjoint of a step."""

    states: tuple[str, ...]
    """States whose adjoint is passed from step to step."""
    ports: tuple[int, ...]
    """Ports for which the gradient of the current is computed."""
    sums: tuple[LearnedParameter, ...]
    """Parameters and biases whose gradients are summed."""


def code_of(assignments: Sequence[Assignment], results: Iterable[str]) -> BlockCode:
    """Return the code that computes `results`."""
    results = set(results)
    code = live(assignments, results)
    return BlockCode(code, frozenset(reads(code, results)))


def forward_code(layer: Layer, supports: Collection[int], *, saved: bool) -> BlockCode:
    """Return the code of a forward step; with `saved`, values are also stored for the adjoint.

    `supports` are the outputs whose masks also mark neurons in the support of the surrogate.
    """
    kernel = layer.kernel
    used = {source.buffer for source in layer.sent} | set(layer.recorded)
    names = [kernel.outputs[o] for o in supports]
    results = [*kernel.states, *(f"o{index}" for index, buffer in enumerate(layer.outputs) if buffer in used)]
    results += [*(kernel.saved if saved else ()), *(argument_name(name) for name in names)]
    code = code_of(with_arguments(kernel, names), results)
    if not (saved and kernel.rounded):
        return code
    halves = half_states(layer)
    more = {symbol for offset in kernel.rounded.values() for symbol in symbols(offset)} | {f"{state.name}_prev" for state in halves}
    return BlockCode(code.assignments, code.reads | more)


def backward_code(layer: Layer) -> BackwardCode:
    """Return the code of the adjoint of a step."""
    kernel = layer.kernel
    states = tuple(state for state in kernel.states if any(a.target == f"d_{state}_prev" for a in kernel.backward))
    ports = tuple(sorted({link.port for link in layer.incoming if link.weight_gradient or link.input_gradient}))
    results = [f"d_{state}_prev" for state in states] + [f"d_i{port}" for port in ports]
    code = code_of(kernel.backward, [*results, *(parameter.gradient for parameter in layer.learned)])
    offsets = {symbol for offset in kernel.rounded.values() for symbol in symbols(offset)}
    return BackwardCode(code.assignments, code.reads | offsets, states, ports, layer.learned)


def half_states(layer: Layer) -> tuple[HalfState, ...]:
    """Return the float32 states whose history is stored as float16 and read by the adjoint."""
    if not (layer.gradient and layer.kernel.rounded):
        return ()
    reads = backward_code(layer).reads
    candidates = [
        HalfState(index, name, layer.kernel.rounded[name], f"{name}_prev" in reads, name in reads)
        for index, name in enumerate(layer.kernel.states)
        if name in layer.kernel.history and name in layer.kernel.rounded and name not in layer.kernel.halves
    ]
    return tuple(state for state in candidates if state.before or state.after)
