"""The code of a population's blocks: the assignments of its kernel that the emitted vertices hold, and the names that they read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from snnc.compiler.lowering.gradient_support import argument_name, with_arguments
from snnc.compiler.neurons.expression import Assignment
from snnc.compiler.neurons.single_assignment import live, reads
from snnc.compiler.tiles.network import Layer, LearnedParameter


@dataclass(frozen=True)
class BlockCode:
    """Assignments that some results need, in order, and the names that these and the results read but that are not assigned."""

    assignments: tuple[Assignment, ...]
    reads: frozenset[str]


@dataclass(frozen=True)
class BackwardCode(BlockCode):
    """The same of the adjoint.

    Attributes
    ----------
    states
        States whose adjoint is passed from step to step.
    ports
        Ports whose current's gradient is formed.
    sums
        Parameters and biases whose gradients are summed.
    """

    states: tuple[str, ...]
    ports: tuple[int, ...]
    sums: tuple[LearnedParameter, ...]


def code_of(assignments: Sequence[Assignment], results: Iterable[str]) -> BlockCode:
    """Return the code that `results` need."""
    results = set(results)
    code = live(assignments, results)
    return BlockCode(code, frozenset(reads(code, results)))


def forward_code(layer: Layer, supports: Collection[int], *, saved: bool) -> BlockCode:
    """Return the code of a step.

    `supports` are the outputs whose masks also show neurons in the support of the surrogate; with `saved`, values are kept for the adjoint.
    """
    kernel = layer.kernel
    used = {source.buffer for source in layer.sent} | set(layer.recorded)
    names = [kernel.outputs[o] for o in supports]
    results = [*kernel.states, *(f"o{index}" for index, buffer in enumerate(layer.outputs) if buffer in used)]
    results += [*(kernel.saved if saved else ()), *(argument_name(name) for name in names)]
    return code_of(with_arguments(kernel, names), results)


def backward_code(layer: Layer) -> BackwardCode:
    """Return the code of the adjoint of a step."""
    kernel = layer.kernel
    states = tuple(state for state in kernel.states if any(a.target == f"d_{state}_prev" for a in kernel.backward))
    ports = tuple(sorted({link.port for link in layer.incoming if link.weight_gradient or link.input_gradient}))
    results = [f"d_{state}_prev" for state in states] + [f"d_i{port}" for port in ports]
    code = code_of(kernel.backward, [*results, *(parameter.gradient for parameter in layer.learned)])
    return BackwardCode(code.assignments, code.reads, states, ports, layer.learned)
