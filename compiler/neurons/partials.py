"""Partial derivatives of one single assignment, as sympy expressions over forward values."""

from __future__ import annotations

from collections.abc import Collection

import sympy

from snnc.compiler.neurons.binary_values import is_binary
from snnc.compiler.neurons.expression import Assignment, Call, Expression, Symbol, symbols
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.compiler.neurons.symbolic import symbol, to_sympy
from snnc.compiler.neurons.symbolic_functions import Detach, Sympy, Where


def partial_derivatives(assignment: Assignment, wanted: Collection[str], binary: Collection[str], surrogate: Surrogate) -> dict[str, Sympy]:
    """Derive `assignment` by each of the names `wanted` that it reads; vanishing derivatives are omitted.

    A function that stands alone is replaced by the name of its value, so the adjoint need not recompute it.
    """
    names = [name for name in dict.fromkeys(symbols(assignment.value)) if name in wanted]
    match assignment.value:
        case Call("spike" | "spike_ge", (Symbol(name),)):
            found = {name: to_sympy(surrogate.derivative).xreplace({symbol("x"): symbol(name)})} if name in wanted else {}
        case Call("where", (condition, *_)) if is_binary(condition, binary):
            mask = to_sympy(condition)
            rules = {Where(mask, 1, 0): mask, Where(mask, 0, 1): 1 - mask}
            found = {name: _derive(assignment.value, name).xreplace(rules) for name in names}
        case Call():
            whole = {to_sympy(assignment.value): symbol(assignment.target)}
            found = {name: _derive(assignment.value, name) for name in names}
            if assignment.value.function in _VALUE_IN_DERIVATIVE:
                found = {name: partial.xreplace(whole) for name, partial in found.items()}
        case _:
            found = dict.fromkeys(names, sympy.S.One)
    return {name: partial for name, partial in found.items() if partial != 0}


_VALUE_IN_DERIVATIVE = frozenset({"exp", "sqrt", "tanh", "sigmoid", "pow"})


def _derive(expression: Expression, name: str) -> Sympy:
    derivative = to_sympy(expression).diff(symbol(name))
    return derivative.replace(Detach, lambda operand: operand)
