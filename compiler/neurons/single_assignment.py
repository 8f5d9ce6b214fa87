"""Neuron equations as single assignments: each name is assigned once, and names are canonical (:mod:`snnc.compiler.neurons.kernel`).

Every function except sums, products, quotients, constant powers and ``detach`` gets its own assignment, with names
and constants as operands, so that the adjoint can refer to its value and its argument exactly as the forward code computed them.
:func:`inline` undoes this for printing. The author's order of operations never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol, substitute, symbols, transform
from snnc.compiler.neurons.neuron import NeuronModel

_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "div", "neg", "detach"})
_PRODUCTS: Final = frozenset({-2.0, -1.0, 0.5, 1.0, 2.0, 3.0})
"""Exponents for which products, quotients and roots have the same results as PyTorch's pow."""
_MAX_DEPTH: Final = 12
"""Maximum nesting of sums and products; deeper expressions are split to limit SymPy's recursion."""


@dataclass(frozen=True)
class Equations:
    """Single assignments, which may contain ``detach``; `hoisted` are names introduced here for parts of the author's expressions."""

    inputs: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    hoisted: frozenset[str]
    labels: Mapping[str, str]  # the author's name, by canonical name


def previous(state: str) -> str:
    """Return the name of `state` before the step."""
    return f"{state}_prev"


def without_detach(expression: Expression) -> Expression:
    """Replace each ``detach(x)`` in `expression` by ``x``."""
    return transform(expression, lambda e: e.args[0] if isinstance(e, Call) and e.function == "detach" else e)


def lower(model: NeuronModel, ports: Iterable[str] | None = None) -> Equations:
    """Convert `model` to single assignments that compute its states and the outputs `ports`.

    A port that is neither a state nor assigned raises a NeuronDefinitionError.
    """
    output_ports = tuple(model.outputs if ports is None else ports)
    inputs = {name: f"i{n}" for n, name in enumerate(model.inputs)}
    states = {name: f"s{n}" for n, name in enumerate(model.states)}
    parameters = {name: f"a{n}" for n, name in enumerate(model.parameters)}
    last = {assignment.target: n for n, assignment in enumerate(model.equations)}
    unknown = [port for port in output_ports if port not in states and port not in last]
    if unknown:
        raise NeuronDefinitionError(f"neuron '{model.name}': the output {', '.join(unknown)} is neither a state nor assigned.")

    builder = _AssignmentBuilder(names={**inputs, **{n: previous(s) for n, s in states.items()}, **parameters})
    for n, assignment in enumerate(model.equations):
        target = assignment.target
        if last[target] != n:
            canonical = builder.fresh(target)
        elif target in states:
            canonical = states[target]
        else:
            canonical = f"o{output_ports.index(target)}" if target in output_ports else builder.fresh(target)
        builder.assign(target, canonical, assignment.value)
    for author, state in states.items():
        if author not in last:
            builder.assignments.append(Assignment(state, Symbol(previous(state))))
            builder.names[author] = state
    outputs = tuple(f"o{n}" for n in range(len(output_ports)))
    for port, output in zip(output_ports, outputs, strict=True):
        if builder.names[port] != output:
            builder.assignments.append(Assignment(output, Symbol(builder.names[port])))

    roots = [*states.values(), *outputs]
    labels = {canonical: author for names in (inputs, states, parameters) for author, canonical in names.items()}
    labels |= {previous(state): author for author, state in states.items()}
    labels |= dict(zip(outputs, output_ports, strict=True)) | builder.labels
    return Equations(
        tuple(inputs.values()),
        tuple(states.values()),
        tuple(parameters.values()),
        outputs,
        live(builder.assignments, roots),
        frozenset(builder.hoisted),
        labels,
    )


@dataclass
class _AssignmentBuilder:
    """Builder of single assignments; `names` maps the author's names to the current canonical names."""

    names: dict[str, str]
    assignments: list[Assignment] = field(default_factory=list)
    hoisted: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    _known: dict[Expression, str] = field(default_factory=dict)
    _count: int = 0

    def fresh(self, label: str = "") -> str:
        """Return a new name; `label` is the author's name of the value, if any."""
        self._count += 1
        name = f"k{self._count - 1}"
        if label:
            self.labels[name] = label
        return name

    def assign(self, author: str, target: str, value: Expression) -> None:
        """Assign `value` to `target`, the new canonical name of `author`."""
        flat = self._flatten(substitute(value, {a: Symbol(n) for a, n in self.names.items()}), target)
        if flat != Symbol(target):
            self.assignments.append(Assignment(target, flat))
        self.names[author] = target

    def _flatten(self, expression: Expression, target: str = "") -> Expression:
        """Convert an expression: sums and products stay nested, and every other function gets its own assignment."""
        if not isinstance(expression, Call):
            return expression
        function, args = expression.function, expression.args
        if function in _ARITHMETIC:
            flat: Expression = Call(function, tuple(self._flatten(a) for a in args))
            return self._named(flat) if _depth(flat) > _MAX_DEPTH else flat
        if function == "pow" and isinstance(args[1], Number):
            return self._power(self._flatten(args[0]), args[1])
        plain = Call(function, tuple(self._plain(self._flatten(a)) for a in args))
        return self._named(plain, target)

    def _power(self, base: Expression, exponent: Number) -> Expression:
        """Return a power with a constant exponent as products, a quotient or a root where the result is the same."""
        if exponent.value not in _PRODUCTS:
            return Call("pow", (self._plain(base), exponent))
        if exponent.value == 0.5:
            return self._named(Call("sqrt", (self._plain(base),)))
        plain = self._plain(base)
        product = plain
        for _ in range(int(abs(exponent.value)) - 1):
            product = Call("mul", (product, plain))
        return product if exponent.value > 0 else Call("div", (Number(1.0), product))

    def _plain(self, expression: Expression) -> Expression:
        """Return a plain operand, a constant or a name; a call is assigned to a new name."""
        return self._named(expression) if isinstance(expression, Call) else expression

    def _named(self, expression: Expression, target: str = "") -> Expression:
        if expression in self._known:
            return Symbol(self._known[expression])
        name = target or self.fresh()
        if not target:
            self.hoisted.add(name)
        self._known[expression] = name
        self.assignments.append(Assignment(name, expression))
        return Symbol(name)


def _depth(expression: Expression) -> int:
    return 1 + max(map(_depth, expression.args)) if isinstance(expression, Call) else 0


def live(assignments: Iterable[Assignment], roots: Iterable[str]) -> tuple[Assignment, ...]:
    """Return the assignments that `roots` depend on."""
    needed = set(roots)
    kept: list[Assignment] = []
    for assignment in reversed(tuple(assignments)):
        if assignment.target in needed:
            kept.append(assignment)
            needed.update(symbols(assignment.value))
    return tuple(reversed(kept))


def reads(assignments: Iterable[Assignment], results: Iterable[str]) -> set[str]:
    """Return the names that `assignments` and `results` read but do not assign."""
    listed = tuple(assignments)
    names = {name for assignment in listed for name in symbols(assignment.value)} | set(results)
    return names - {assignment.target for assignment in listed}


def inline(assignments: Iterable[Assignment], names: Collection[str]) -> tuple[Assignment, ...]:
    """Replace each of `names` that is read exactly once by its value; return the remaining assignments."""
    listed = tuple(assignments)
    read_counts = Counter(name for assignment in listed for name in symbols(assignment.value))
    values: dict[str, Expression] = {}
    remaining: list[Assignment] = []
    for assignment in listed:
        value = substitute(assignment.value, values)
        if assignment.target in names and read_counts[assignment.target] == 1:
            values[assignment.target] = value
        else:
            remaining.append(Assignment(assignment.target, value))
    return tuple(remaining)
