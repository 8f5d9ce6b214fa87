"""Determine where gradients stop inside a neuron: at marks in the file, or according to a rule.

ONNX has no operator that stops a gradient, so a file does not define which of a neuron's own spikes are constants in its gradient.
:data:`DETACHES` are the available rules; exports of PyTorch modules contain exact marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from snnc.compiler.ir.graph import Graph, Population
from snnc.compiler.neurons.expression import SPIKES, Assignment, Call, Expression, Number, Symbol, call, symbols, transform
from snnc.compiler.neurons.single_assignment import without_detach
from snnc.compiler.passes.edit import replace_operation
from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import DetachError
from snnc.frontends.onnx.flattening.node import Array
from snnc.frontends.onnx.reroll.roll import Ref, StepClass, delayed

Detach: TypeAlias = Literal["reset", "none", "all"]
DETACHES: Final[tuple[Detach, ...]] = get_args(Detach)
"""Rules for a neuron's own spike. ``reset``: it is a constant in the term that resets the membrane potential. ``none``: it is never a
constant. ``all``: it is a constant wherever the neuron itself reads it, also in feedback and adaptation without a synapse."""
DEFAULT: Final[Detach] = "reset"
MARK: Final = "snnc_detach"
"""Prefix of the names of ``Identity`` nodes that mark PyTorch's ``detach`` in snnc's exports."""
PARAMETER: Final = "snnc_parameter:"
"""Prefix of the names of ``Identity`` nodes that name a learnable neuron parameter."""


def strip_marks(classes: list[StepClass]) -> None:
    """Remove marks from a step, in place; `detached_operands` of elementwise operations then lists the operands that were marked.

    A mark before a result or before an operation that is not elementwise remains, as an elementwise operation.
    """
    for step_class in classes:
        if step_class.op not in ELEMENTWISE or step_class.op == "detach":
            continue
        for k, operand in enumerate(step_class.operands):
            unmarked = operand
            while isinstance(unmarked, Ref) and classes[unmarked.cls].op == "detach":
                unmarked = delayed(classes[unmarked.cls].operands[0], unmarked.delay)
            if unmarked is not operand:
                step_class.operands[k] = unmarked
                step_class.detached_operands |= {k}


def detached(lines: list[Assignment], constants: Mapping[str, Array], states: Iterable[str], rule: Detach) -> list[Assignment]:
    """Return the equations of one population with ``detach`` inserted according to `rule`.

    `lines` contain no ``detach``; their names are those of an :class:`~snnc.frontends.onnx.recovery.equations.EquationsDraft`, or of a
    model. Lines on which no state depends are not changed.
    """
    if rule == "none":
        return lines
    inner = reaching(lines, set(states))
    marker = _Marker(constants, rule)
    return [Assignment(line.target, marker.line(line.target, line.value, line.target in inner)) for line in lines]


def hoist_detach(lines: list[Assignment], outside: set[str]) -> list[Assignment]:
    """Move ``detach`` to the definition of each spike that is detached wherever the population's lines read it.

    Spikes that are read outside the population, listed in `outside`, do not change.
    """
    fires = {line.target for line in lines if isinstance(line.value, Call) and line.value.function in SPIKES} - outside
    read = {name for line in lines for name in symbols(line.value)}
    plain = {name for line in lines for name in symbols(transform(line.value, lambda e: Number(0.0) if _detached_name(e) else e))}
    names = fires & read - plain
    hoisted = []
    for line in lines:
        value = transform(line.value, lambda e: Symbol(name) if (name := _detached_name(e)) in names else e)
        hoisted.append(Assignment(line.target, call("detach", value) if line.target in names else value))
    return hoisted


def _detached_name(e: Expression) -> str:
    """Return x for ``detach(x)``; "" for other expressions."""
    match e:
        case Call("detach", (Symbol(name),)):
            return name
    return ""


Form: TypeAlias = "Mapping[str, Array | None]"
"""Factor of each spike in an expression that consists of spikes and constants; None if the expression is not linear in the spike."""


class _Marker:
    """Tracks spikes, and values gated by spikes, from line to line."""

    def __init__(self, constants: Mapping[str, Array], rule: Detach) -> None:
        self._rule = rule
        self._constants = {name: np.asarray(value, np.float64) for name, value in constants.items()}
        self._lines: dict[str, Expression] = {}
        self._forms: dict[str, Form] = {}
        """Form of each value that consists of spikes and constants."""
        self._thresholds: dict[str, Array] = {}
        """Threshold of each spike; NaN if it is not a constant."""
        self._gates: dict[str, set[str]] = {}
        """Spikes that multiply a part of a value, by value."""
        self._spike_sums: dict[str, Expression] = {}
        """Values that consist of spikes and constants, other than the spikes themselves."""

    def line(self, target: str, value: Expression, inner: bool) -> Expression:
        """Record the form of a line, and return its value; if a state depends on the line (`inner`), with spikes detached."""
        self._lines[target] = value
        names = (target, f"p{target[1:]}_1") if target[0] == "c" else (target,)  # the next step reads c7 as p7_1
        if isinstance(value, Call) and value.function in SPIKES:
            form: Form | None = {target: np.ones(())}
            self._thresholds[target] = self._threshold(value.args[0])
        else:
            form = self._form(value)
            if form:
                self._spike_sums[target] = value
        gates: set[str] = set()
        result = self._cut_in(value, gates) if inner and form is None else value
        for name in names:
            self._gates[name] = gates
            if form is not None:
                self._forms[name] = form
        return result

    def _threshold(self, argument: Expression) -> Array:
        """Return the constant that the argument of a spike function subtracts from the membrane potential; NaN if there is none."""
        while isinstance(argument, Symbol) and argument.name in self._lines:
            argument = self._lines[argument.name]
        match argument:
            case Call("sub", (_, Symbol(name))) if name in self._constants:
                return self._constants[name]
        return np.full((), np.nan)

    def _value(self, e: Expression) -> Array | None:
        match e:
            case Number(value):
                return np.asarray(value)
            case Symbol(name):
                return self._constants.get(name)
        return None

    def _form(self, e: Expression) -> Form | None:
        """Return the form of an expression of spikes and constants, empty without spikes; None for other expressions."""
        if isinstance(e, Symbol):
            return {} if e.name in self._constants else self._forms.get(e.name)
        if not isinstance(e, Call):
            return {}
        forms = [self._form(a) for a in e.args]
        if any(f is None for f in forms):
            return None
        known: list[Form] = [f for f in forms if f is not None]
        signs = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "neg": (-1.0,)}.get(e.function)
        if signs is not None:
            return _sum(known, signs)
        if e.function in ("mul", "div"):
            (first, second), factors = known, [self._value(a) for a in e.args]
            if first and not second and factors[1] is not None and (e.function == "mul" or factors[1].all()):
                return _scaled(first, factors[1] if e.function == "mul" else 1 / factors[1])
            if second and not first and factors[0] is not None and e.function == "mul":
                return _scaled(second, factors[0])
        return {name: None for f in known for name in f}

    def _cut_in(self, e: Expression, gates: set[str]) -> Expression:
        """Return an expression of spikes and other values, with spikes detached by the rule.

        Spikes that multiply other values are added to `gates`.
        """
        if not isinstance(e, Call):
            gates |= self._gates.get(e.name, set()) if isinstance(e, Symbol) else set()
            return e
        forms = [self._form(a) for a in e.args]
        args = [a if f is not None else self._cut_in(a, gates) for a, f in zip(e.args, forms, strict=True)]
        for k, form in enumerate(forms):
            if not form:
                continue
            if e.function in ("mul", "div") and None in forms:
                gates.update(form)
                args[k] = self._cut(args[k])
            elif self._rule == "all" or (e.function == "where" and k == 0) or self._resets(e.function, k, form, gates):
                args[k] = self._cut(args[k])
        return Call(e.function, tuple(args))

    def _cut(self, e: Expression) -> Expression:
        """Detach the spikes in an expression of spikes and constants; gradients still flow to the constants."""
        match e:
            case Symbol(name) if name in self._spike_sums:
                return self._cut(self._spike_sums[name])
            case Symbol(name) if name not in self._constants:
                return call("detach", e)
            case Call(function, args):
                return Call(function, tuple(self._cut(a) for a in args))
        return e

    def _resets(self, function: str, position: int, form: Form, gates: set[str]) -> bool:
        """Return whether operand `position` of a sum is a reset: it subtracts a threshold, or its spike also multiplies another term."""
        if function not in ("add", "sub"):
            return False
        sign = -1.0 if function == "sub" and position == 1 else 1.0
        return any(name in gates or self._subtracts_threshold(name, scale, sign) for name, scale in form.items())

    def _subtracts_threshold(self, name: str, scale: Array | None, sign: float) -> bool:
        threshold = self._thresholds.get(name if name[0] != "p" else f"c{name[1:].rpartition('_')[0]}")
        if scale is None or threshold is None or not _broadcastable(scale, threshold):
            return False
        return not scale.any() or bool(np.allclose(sign * scale, -threshold, rtol=1e-6, atol=0))


def _sum(forms: list[Form], signs: tuple[float, ...]) -> Form:
    total: dict[str, Array | None] = {}
    for form, sign in zip(forms, signs, strict=True):
        for name, scale in form.items():
            before = total.get(name, np.zeros(()))
            total[name] = before + sign * scale if scale is not None and before is not None and _broadcastable(before, scale) else None
    return total


def _scaled(form: Form, factor: Array) -> Form:
    return {name: scale * factor if scale is not None and _broadcastable(scale, factor) else None for name, scale in form.items()}


def _broadcastable(a: Array, b: Array) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


def reaching(lines: list[Assignment], names: set[str]) -> set[str]:
    """Return `names` and all names on which their lines depend in this step, directly or indirectly."""
    reached = set(names)
    for line in reversed(lines):
        if line.target in reached:
            reached.update(symbols(line.value))
    return reached


def check_rule(rule: str) -> Detach:
    """Return `rule`; raise a DetachError if it is not in :data:`DETACHES`."""
    for known in DETACHES:
        if rule == known:
            return known
    raise DetachError(f"detach={rule!r} is unknown; choose one of {', '.join(map(repr, DETACHES))}.")


def apply_rule(graph: Graph, rule: Detach) -> None:
    """Let gradients stop in all populations of `graph` according to `rule`, in place."""
    for name, population in list(graph.of_type(Population)):
        model = population.model
        plain = [Assignment(a.target, without_detach(a.value)) for a in model.equations]
        values = {p: np.asarray(population.parameters.get(p, default)) for p, default in model.parameters.items()}
        lines = hoist_detach(detached(plain, values, model.states, rule), {*model.outputs, *model.states})
        replace_operation(graph, name, replace(population, model=replace(model, equations=tuple(lines))))


def detach_notes(graph: Graph, rule: Detach) -> list[str]:
    """Return a sentence that says where the graph's gradients stop; none if no neuron reads its own spikes."""
    if not any(_reads_itself(p) for _, p in graph.of_type(Population)):
        return []
    others = " and ".join(f"'{other}'" for other in DETACHES if other != rule)
    return [f"The file does not define where gradients stop: {_MEANINGS[rule]} (detach '{rule}'; others are {others})."]


_MEANINGS: Final[Mapping[Detach, str]] = {
    "reset": "a neuron's spike is a constant where it resets the neuron",
    "none": "they pass through every spike, even where it resets a neuron",
    "all": "a neuron's spike is a constant wherever the neuron itself reads it",
}


def _reads_itself(population: Population) -> bool:
    model = population.model
    fires = {a.target for a in model.equations if isinstance(a.value, Call) and a.value.function in {*SPIKES, "detach"}}
    inner = reaching(list(model.equations), set(model.states))
    return any(fires & set(symbols(a.value)) for a in model.equations if a.target in inner)
