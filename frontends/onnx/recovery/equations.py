"""Convert the elementwise classes of one population to equations, in the order of the file's operations.

A class is a value of the recovered step; see :class:`~snnc.frontends.onnx.reroll.roll.StepClass`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from snnc.compiler.neurons.expression import SPIKES, Assignment, Call, Expression, Symbol, call, substitute, symbols, transform
from snnc.compiler.neurons.single_assignment import without_detach
from snnc.frontends.onnx.flattening.node import Array, Node
from snnc.frontends.onnx.recovery.detaching import Detach, detached, hoist_detach, reaching
from snnc.frontends.onnx.recovery.learned import is_learned, label_of
from snnc.frontends.onnx.recovery.states import States
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep


@dataclass(eq=False)
class EquationsDraft:
    """Equations with the placeholder names that :mod:`snnc.frontends.onnx.recovery.naming` explains."""

    lines: list[Assignment] = field(default_factory=list)
    ports: list[Operand] = field(default_factory=list)
    """Operand by number of the input port."""
    constants: dict[str, Array] = field(default_factory=dict)  # value by placeholder
    alias: dict[int, int] = field(default_factory=dict)  # equal class, by class
    labels: dict[str, str] = field(default_factory=dict)  # name in the exported module, by placeholder of a trainable constant


class _Writer:
    """Converts the classes of one population; see :func:`draft`."""

    def __init__(self, step: RecoveredStep, members: list[int], states: States) -> None:
        self._step = step
        self._members = members
        self._inside = set(members)
        self._states = states
        self._draft = EquationsDraft()
        self._previous: set[int] = set()
        """Classes whose previous value already has an equation (``q7``)."""

    def write(self) -> EquationsDraft:
        for cls in self._members:
            if cls in self._states.computed:
                self._add_previous(cls)
        for cls in self._members:
            self._draft.lines.append(Assignment(f"c{cls}", self._operation(cls, previous=False)))
        return self._draft

    def _operation(self, cls: int, previous: bool) -> Expression:
        step_class = self._step.classes[cls]
        args = [self._operand(cls, o, previous) for o in self._step.operands(cls)]
        args = [call("detach", a) if k in step_class.detached_operands else a for k, a in enumerate(args)]
        if step_class.op not in ("gt", "ge"):
            return call(step_class.op, *args)
        bound = self._draft.constants.get(args[1].name) if isinstance(args[1], Symbol) else None
        difference = args[0] if bound is not None and not bound.any() else call("sub", *args)
        return call("spike" if step_class.op == "gt" else "spike_ge", difference)

    def _operand(self, cls: int, operand: Operand, previous: bool) -> Expression:
        match operand:
            case Const(value, node):
                return self._constant(self._step.constant(value, cls)) if node is None else self._parameter_expression(node, cls)
            case Ref(source, delay) if source in self._inside:
                if previous or delay:
                    return self._earlier_value(source, delay + previous)
                return Symbol(f"c{source}")
        if operand not in self._draft.ports:
            self._draft.ports.append(operand)
        return Symbol(f"i{self._draft.ports.index(operand)}")

    def _earlier_value(self, source: int, delay: int) -> Expression:
        """Return the value of a class in an earlier step: stored, or computed from the states."""
        if source in self._states.stored:
            return Symbol(f"p{source}_{delay}")
        if source in self._states.computed:
            return Symbol(f"q{source}")
        if self._step.classes[source].op not in ("gt", "ge"):
            return self._operation(source, previous=True)
        self._add_previous(source)
        return Symbol(f"q{source}")

    def _add_previous(self, cls: int) -> None:
        if cls not in self._previous:
            self._previous.add(cls)
            self._draft.lines.append(Assignment(f"q{cls}", self._operation(cls, previous=True)))

    def _parameter_expression(self, node: Node, cls: int) -> Expression:
        """Return a constant as an expression of the trainable parameters from which it is computed."""
        constant = self._step.constant(np.asarray(node.value), cls)
        if not is_learned(node):
            return self._constant(constant)
        label = label_of(node)
        if label:
            symbol = self._constant(constant)
            self._draft.labels[symbol.name] = label
            return symbol
        return call(node.op, *(self._parameter_expression(operand, cls) for operand in node.inputs))

    def _constant(self, value: Array) -> Symbol:
        name = f"k{len(self._draft.constants)}"
        self._draft.constants[name] = value
        return Symbol(name)


def draft(step: RecoveredStep, members: list[int], states: States, visible: set[int], detach: Detach | None) -> EquationsDraft:
    """Convert the classes of one population, `members`, to equations; `visible` classes are its outputs.

    A value that is used once, and only in the population, is inlined unless it is a spike. Gradients stop according to `detach`; if it is
    None, at the detached operands of `step`.
    """
    result = _Writer(step, members, states).write()
    if detach is not None:
        result.lines = detached(result.lines, result.constants, [f"c{c}" for c in states.stored], detach)
    result.lines = _simplify(result.lines, {k: v for k, v in result.constants.items() if k not in result.labels})
    values = {line.target: line.value for line in result.lines}
    for cls in visible - set(states.stored):
        value = values[f"c{cls}"]
        while isinstance(value, Symbol) and value.name[0] == "c":
            result.alias[cls] = int(value.name[1:])
            value = values[value.name]
    needed = {f"c{result.alias.get(c, c)}" for c in visible} | {f"c{c}" for c in states.stored}
    result.lines = _inline(hoist_detach([line for line in result.lines if line.target in reaching(result.lines, needed)], needed), needed)
    return result


def is_spike(expression: Expression) -> bool:
    """Return whether an expression is the spike function, possibly detached."""
    inner = without_detach(expression)
    return isinstance(inner, Call) and inner.function in SPIKES


def _simplify(lines: list[Assignment], constants: dict[str, Array]) -> list[Assignment]:
    """Remove additions and subtractions of 0, and divisions and multiplications by 1.

    Multiplications of a value of an earlier step stay, so that a decay of 1 remains a parameter.
    """

    def scalar(e: Expression) -> float | None:
        value = constants.get(e.name) if isinstance(e, Symbol) else None
        return float(value) if value is not None and value.ndim == 0 else None

    def rule(e: Expression) -> Expression:
        match e:
            case Call("mul", (a, b)) if scalar(b) == 1 and not _is_earlier_value(a):
                return a
            case Call("mul", (a, b)) if scalar(a) == 1 and not _is_earlier_value(b):
                return b
            case Call("add" | "sub", (a, b)) if scalar(b) == 0:
                return a
            case Call("add", (a, b)) if scalar(a) == 0:
                return b
            case Call("div", (a, b)) if scalar(b) == 1:
                return a
        return e

    return [Assignment(line.target, transform(line.value, rule)) for line in lines]


def _is_earlier_value(e: Expression) -> bool:
    """Return whether an expression is a value of an earlier step, possibly detached."""
    inner = without_detach(e)
    return isinstance(inner, Symbol) and inner.name[0] in "pq"


def _inline(lines: list[Assignment], needed: set[str]) -> list[Assignment]:
    """Inline aliases and values that are used once, except spikes, and drop values that are not used."""
    uses = Counter(name for line in lines for name in symbols(line.value))
    inlined: dict[str, Expression] = {}
    remaining: list[Assignment] = []
    for line in lines:
        value = substitute(line.value, inlined)
        alias = isinstance(value, Symbol) and value.name[0] in "ci"
        if line.target not in needed and (uses[line.target] == 1 or alias) and not is_spike(value):
            inlined[line.target] = value
        elif line.target in needed or uses[line.target]:
            remaining.append(Assignment(line.target, value))
    return remaining
