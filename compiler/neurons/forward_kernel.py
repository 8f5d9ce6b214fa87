"""Lowering of neuron equations to a :class:`~snnc.compiler.neurons.kernel.Kernel` with forward code only."""

from __future__ import annotations

from collections.abc import Iterable

from snnc.compiler.neurons.binary_values import binary_names
from snnc.compiler.neurons.expression import Assignment, Expression, Symbol, substitute
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.single_assignment import Equations, inline, lower, without_detach


def forward_kernel(model: NeuronModel, ports: Iterable[str] | None = None) -> Kernel:
    """Lower `model` to forward code; `ports` and errors as in :func:`~snnc.compiler.neurons.adjoint.derive_kernel`."""
    equations = lower(model, ports)
    forward = inline(plain(equations), equations.hoisted)
    return assemble(equations, forward, numbering(forward))


def plain(equations: Equations) -> tuple[Assignment, ...]:
    """Return the assignments without ``detach``, which has no effect on forward code."""
    return tuple(Assignment(a.target, without_detach(a.value)) for a in equations.assignments)


def assemble(
    equations: Equations,
    forward: tuple[Assignment, ...],
    rename: dict[str, str],
    *,
    backward: tuple[Assignment, ...] = (),
    history: tuple[str, ...] = (),
    saved: tuple[str, ...] = (),
    learnable: tuple[str, ...] = (),
) -> Kernel:
    """Return the kernel of `equations`; `rename` contains new names for intermediate values."""
    return Kernel(
        inputs=equations.inputs,
        states=equations.states,
        parameters=equations.parameters,
        outputs=equations.outputs,
        forward=renamed(forward, rename),
        backward=renamed(backward, rename),
        history=history,
        saved=tuple(rename.get(n, n) for n in saved),
        learnable=learnable,
        binary=binary_names(equations.assignments) & set(equations.outputs),
        labels={rename.get(n, n): label for n, label in equations.labels.items() if not n.startswith("k") or n in rename},
    )


def numbering(*code: Iterable[Assignment]) -> dict[str, str]:
    """Return new names for the intermediate values that `code` assigns, whose names begin with k, numbered in order of appearance."""
    names = dict.fromkeys(a.target for assignments in code for a in assignments if a.target.startswith("k"))
    return {name: f"k{n}" for n, name in enumerate(names)}


def renamed(assignments: Iterable[Assignment], names: dict[str, str]) -> tuple[Assignment, ...]:
    """Return `assignments` with targets and symbols renamed by `names`."""
    values: dict[str, Expression] = {old: Symbol(new) for old, new in names.items()}
    return tuple(Assignment(names.get(a.target, a.target), substitute(a.value, values)) for a in assignments)
