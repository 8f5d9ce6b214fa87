"""Derivation of a :class:`~snnc.compiler.neurons.kernel.Kernel` from neuron equations: forward code and its adjoint.

The adjoint is computed by reverse accumulation over assignments, of which each assigns a new name. d_x is the gradient of the loss with
respect to x; those of outputs and states arrive from the targets of the outputs and from the following step::

    d_x  =  arriving d_x  +  sum over the assignments y = f(x, …) of  d_y * df/dx

where df/dx is the surrogate for ``spike`` (Neftci, Mostafa & Zenke 2019, "Surrogate gradient learning in spiking neural
networks") and 0 through ``detach``. SymPy computes local derivatives and finds common subexpressions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import sympy

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.binary_values import binary_names, is_binary
from snnc.compiler.neurons.expression import Assignment, Call, Expression, Symbol, substitute, symbols
from snnc.compiler.neurons.forward_kernel import assemble, numbering, plain, renamed
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.single_assignment import Equations, inline, live, lower, previous
from snnc.compiler.neurons.stored_values import choose_storage
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.compiler.neurons.symbolic import Detach, Sympy, Where, from_sympy, to_sympy


def derive_kernel(model: NeuronModel, surrogate: Surrogate, learnable: Iterable[str] = (), ports: Iterable[str] | None = None) -> Kernel:
    """Lower `model` to forward code and derive its adjoint, with gradients of the parameters `learnable`.

    `surrogate` is the derivative of ``spike`` and ``spike_ge``; in addition to ``x``, it may read parameters of the neuron. `ports` are the
    output ports that are read, in the order ``o0``, ``o1``, …: states or assigned names, by default ``model.outputs``. A name in
    `learnable` that is not a parameter, or a port that does not exist, raises a NeuronDefinitionError.
    """
    learned = set(learnable)
    if learned - set(model.parameters):
        unknown = ", ".join(sorted(learned - set(model.parameters)))
        known = ", ".join(model.parameters) or "no parameter"
        raise NeuronDefinitionError(f"neuron '{model.name}': {unknown} cannot be learned; it has {known}.")
    equations = lower(model, ports)
    gradients = tuple(a for a, author in zip(equations.parameters, model.parameters, strict=True) if author in learned)
    binary = binary_names(equations.assignments)

    canonical = {author: Symbol(name) for author, name in zip(model.parameters, equations.parameters, strict=True)}
    derivative = replace(surrogate, derivative=substitute(surrogate.derivative, canonical | {"x": Symbol("x")}))
    adjoint = _adjoint(equations, gradients, binary, derivative)
    forward_names = {*equations.inputs, *map(previous, equations.states), *(a.target for a in equations.assignments)}
    needed = {name for assignment in adjoint for name in symbols(assignment.value)} & forward_names
    storage = choose_storage(equations, needed)
    values = plain(equations)
    recomputed = tuple(a for a in values if a.target in storage.recomputed)
    forward = inline(values, equations.hoisted - set(storage.saved))
    backward = inline((*recomputed, *adjoint), equations.hoisted - needed)
    return assemble(
        equations,
        forward,
        numbering(forward, backward),
        backward=backward,
        history=storage.history,
        saved=storage.saved,
        learnable=gradients,
    )


def _adjoint(equations: Equations, learnable: tuple[str, ...], binary: frozenset[str], surrogate: Surrogate) -> tuple[Assignment, ...]:
    """Return the code that computes gradients of inputs, previous states and parameters from incoming gradients."""
    results = {**{previous(s): f"d_{s}_prev" for s in equations.states}, **{n: f"d_{n}" for n in (*equations.inputs, *learnable)}}
    active = set(results)
    for assignment in equations.assignments:
        if any(name in active for name in symbols(assignment.value)):
            active.add(assignment.target)

    gradient: dict[str, Sympy] = {n: sympy.Symbol(f"d_{n}") for n in (*equations.states, *equations.outputs)}
    statements: dict[str, Sympy] = {}
    for assignment in reversed(equations.assignments):
        arriving = gradient.get(assignment.target, sympy.S.Zero)
        if arriving == 0 or assignment.target not in active:
            continue
        partials = partial_derivatives(assignment, active, binary, surrogate)
        if len(arriving.free_symbols) > 1:
            name = f"g{len(statements)}"
            statements[name] = arriving
            arriving = sympy.Symbol(name)
        for operand, partial in partials.items():
            gradient[operand] = gradient.get(operand, sympy.S.Zero) + arriving * partial
    for name, target in results.items():
        statements[target] = gradient.get(name, sympy.S.Zero)
    return _code(statements, tuple(results.values()))


def _code(statements: Mapping[str, Sympy], results: tuple[str, ...]) -> tuple[Assignment, ...]:
    """Convert statements to assignments, ordered by dependency, with temporary names ``r0``, ``r1`` … for all except `results`."""
    shared, values = sympy.cse(list(statements.values()), symbols=sympy.numbered_symbols("c"), order="canonical")
    table: dict[str, Sympy] = {s.name: value for s, value in shared} | dict(zip(statements, values, strict=True))

    ordered: list[Assignment] = []
    ordered_names: set[str] = set()

    def name_it(value: Expression) -> Expression:
        name = f"h{len(ordered)}"
        ordered.append(Assignment(name, value))
        return Symbol(name)

    todo = list(reversed(results))
    while todo:
        name = todo[-1]
        open_operands = sorted({s.name for s in table[name].free_symbols} & table.keys() - ordered_names, reverse=True)
        todo.extend(open_operands)
        if not open_operands:
            todo.pop()
            if name not in ordered_names:
                ordered_names.add(name)
                ordered.append(Assignment(name, from_sympy(table[name], name_it)))
    code = live(ordered, results)
    temporary = [a.target for a in code if a.target not in results]
    return renamed(code, {name: f"r{n}" for n, name in enumerate(temporary)})


def partial_derivatives(assignment: Assignment, wanted: Collection[str], binary: Collection[str], surrogate: Surrogate) -> dict[str, Sympy]:
    """Differentiate `assignment` with respect to each name in `wanted` that it reads; derivatives that are 0 are omitted.

    A derivative that contains the value of the differentiated function, as that of ``exp`` does, reads the assigned name.
    """
    names = [name for name in dict.fromkeys(symbols(assignment.value)) if name in wanted]
    match assignment.value:
        case Call("spike" | "spike_ge", (Symbol(name),)):
            partials = {name: to_sympy(surrogate.derivative).xreplace({sympy.Symbol("x"): sympy.Symbol(name)})} if name in wanted else {}
        case Call("where", (condition, *_)) if is_binary(condition, binary):
            mask = to_sympy(condition)
            rules = {Where(mask, 1, 0): mask, Where(mask, 0, 1): 1 - mask}
            partials = {name: _derive(assignment.value, name).xreplace(rules) for name in names}
        case Call():
            partials = {name: _derive(assignment.value, name) for name in names}
            if assignment.value.function in _VALUE_IN_DERIVATIVE:
                value = {to_sympy(assignment.value): sympy.Symbol(assignment.target)}
                partials = {name: partial.xreplace(value) for name, partial in partials.items()}
        case _:
            partials = dict.fromkeys(names, sympy.S.One)
    return {name: partial for name, partial in partials.items() if partial != 0}


_VALUE_IN_DERIVATIVE = frozenset({"exp", "sqrt", "tanh", "sigmoid", "pow"})
"""Functions whose derivative contains the value of the function."""


def slope_of(value: Expression, name: str, target: str) -> tuple[Assignment, ...]:
    """Return code that assigns to `target` the derivative of `value` with respect to `name`; spikes have the derivative 0."""
    return _code({target: _derive(value, name)}, (target,))


def _derive(expression: Expression, name: str) -> Sympy:
    derivative = to_sympy(expression).diff(sympy.Symbol(name))
    return derivative.replace(Detach, lambda operand: operand)  # `detach` stops derivatives and keeps values
