"""Convert the elementwise classes of one population to equations, in the order of the file's operations.

A class is an operation of the recovered step; see :class:`~snnc.frontends.onnx.reroll.roll.StepClass`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Symbol, call, symbols, transform
from snnc.frontends.onnx.flattening.node import Array, Node
from snnc.frontends.onnx.recovery.detaching import Detach, detached, hoist_detach, reaching
from snnc.frontends.onnx.recovery.learned import label_of, learned
from snnc.frontends.onnx.recovery.states import States
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep


@dataclass(eq=False)
class EquationsDraft:
    """Equations with placeholder names.

    ``c7`` is class 7 in this step, ``p7_1`` its stored value one step ago, ``q7`` its previous value computed from the states,
    ``i0`` an input port, and ``k0`` one use of a constant. ``alias`` maps classes to equal ones; ``labels`` maps trainable constants
    to their names in the exported module.
    """

    lines: list[Assignment] = field(default_factory=list)
    ports: list[Operand] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    alias: dict[int, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


class Writer:
    """Converts one group of classes; see :func:`draft`."""

    def __init__(self, step: RecoveredStep, members: list[int], states: States) -> None:
        self._step = step
        self._members = members
        self._inside = set(members)
        self._states = states
        self._draft = EquationsDraft()
        self._fired: set[int] = set()
        """Classes whose previous value already has an equation (``q7``)."""

    def write(self) -> EquationsDraft:
        """Return the draft of the whole group."""
        for cls in self._members:
            if cls in self._states.computed and cls not in self._fired:
                self._fired.add(cls)
                self._draft.lines.append(Assignment(f"q{cls}", self._operation(cls, late=True)))
        for cls in self._members:
            self._draft.lines.append(Assignment(f"c{cls}", self._operation(cls, late=False)))
        return self._draft

    def _operation(self, cls: int, late: bool) -> Expression:
        step_class = self._step.classes[cls]
        args = [self._operand(cls, o, late) for o in self._step.operands(cls)]
        args = [call("detach", a) if k in step_class.detached_operands else a for k, a in enumerate(args)]
        if step_class.op not in ("gt", "ge"):
            return call(step_class.op, *args)
        zero = self._value(args[1])
        difference = args[0] if zero is not None and not zero.any() else call("sub", *args)
        return call("spike" if step_class.op == "gt" else "spike_ge", difference)

    def _operand(self, cls: int, operand: Operand, late: bool) -> Expression:
        match operand:
            case Const(value, node):
                return self._constant(self._step.constant(value, cls)) if node is None else self._parameter_expression(node, cls)
            case Ref(source, delay) if source in self._inside:
                if late or delay:
                    return self._late(source, delay + late)
                return Symbol(f"c{source}")
        return self._port(operand)

    def _late(self, source: int, delay: int) -> Expression:
        """Return the value of a class in an earlier step: stored, or computed from the states."""
        if source in self._states.stored:
            return Symbol(f"p{source}_{delay}")
        if source in self._states.computed:
            return Symbol(f"q{source}")
        if self._step.classes[source].op not in ("gt", "ge"):
            return self._operation(source, late=True)
        if source not in self._fired:
            self._fired.add(source)
            self._draft.lines.append(Assignment(f"q{source}", self._operation(source, late=True)))
        return Symbol(f"q{source}")

    def _parameter_expression(self, node: Node, cls: int) -> Expression:
        """Return a constant as an expression of the trainable parameters from which it is computed."""
        constant = self._step.constant(_value_of(node), cls)
        if not learned(node):
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

    def _value(self, expression: Expression) -> Array | None:
        return self._draft.constants.get(expression.name) if isinstance(expression, Symbol) else None

    def _port(self, operand: Operand) -> Symbol:
        if operand not in self._draft.ports:
            self._draft.ports.append(operand)
        return Symbol(f"i{self._draft.ports.index(operand)}")


def draft(step: RecoveredStep, members: list[int], states: States, visible: set[int], detach: Detach | None) -> EquationsDraft:
    """Convert a group to equations; values used once, and only inside the group, are inlined unless they are spikes.

    Gradients stop according to `detach`, or if it is None, at the detached operands of `step`.
    """
    result = Writer(step, members, states).write()
    if detach is not None:
        result.lines = detached(result.lines, result.constants, [f"c{c}" for c in states.stored], detach)
    result.lines = _simplify(result.lines, {k: v for k, v in result.constants.items() if k not in result.labels})
    values = {line.target: line.value for line in result.lines}
    for cls in visible - set(states.stored):
        value = values[f"c{cls}"]
        while isinstance(value, Symbol) and value.name[0] == "c":
            result.alias[cls] = int(value.name[1:])
            value = values[value.name]
    keep = {f"c{result.alias.get(c, c)}" for c in visible} | {f"c{c}" for c in states.stored}
    result.lines = _inline(hoist_detach([line for line in result.lines if line.target in reaching(result.lines, keep)], keep), keep)
    return result


def _value_of(node: Node) -> Array:
    assert node.value is not None, "a constant"
    return node.value


def is_spike(expression: Expression) -> bool:
    """Return whether an expression is the spike function, possibly detached."""
    match expression:
        case Call("detach", (inner,)):
            return is_spike(inner)
        case Call("spike" | "spike_ge", _):
            return True
    return False


def _simplify(lines: list[Assignment], constants: dict[str, Array]) -> list[Assignment]:
    """Remove additions and subtractions of 0, divisions by 1, and multiplications by 1 except those of values of an earlier step."""

    def scalar(e: Expression) -> float | None:
        value = constants.get(e.name) if isinstance(e, Symbol) else None
        return float(value) if value is not None and value.ndim == 0 else None

    def rule(e: Expression) -> Expression:
        match e:
            case Call("mul", (a, b)) if scalar(b) == 1 and not _is_late(a):
                return a
            case Call("mul", (a, b)) if scalar(a) == 1 and not _is_late(b):
                return b
            case Call("add", (a, b)) if scalar(b) == 0:
                return a
            case Call("add", (a, b)) if scalar(a) == 0:
                return b
            case Call("sub", (a, b)) if scalar(b) == 0:
                return a
            case Call("div", (a, b)) if scalar(b) == 1:
                return a
        return e

    return [Assignment(line.target, transform(line.value, rule)) for line in lines]


def _is_late(e: Expression) -> bool:
    """Return whether an expression is a value of an earlier step, possibly detached."""
    if isinstance(e, Call) and e.function == "detach":
        return _is_late(e.args[0])
    return isinstance(e, Symbol) and e.name[0] in "pq"


def _inline(lines: list[Assignment], keep: set[str]) -> list[Assignment]:
    """Inline aliases and values that are used once, except spikes, and drop values that are not used."""
    uses: dict[str, int] = {}
    for line in lines:
        for name in symbols(line.value):
            uses[name] = uses.get(name, 0) + 1
    placed: dict[str, Expression] = {}
    found: list[Assignment] = []

    def rule(e: Expression) -> Expression:
        return placed.get(e.name, e) if isinstance(e, Symbol) else e

    for line in lines:
        value = transform(line.value, rule)
        alias = isinstance(value, Symbol) and value.name[0] in "ci"
        if line.target in keep:
            found.append(Assignment(line.target, value))
        elif not uses.get(line.target):
            continue
        elif (uses[line.target] == 1 or alias) and not is_spike(value):
            placed[line.target] = value
        else:
            found.append(Assignment(line.target, value))
    return found
