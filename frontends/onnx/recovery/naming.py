"""Name the states, parameters and outputs of recovered equations by their roles.

A class is a value of the recovered step, such as a membrane potential or a spike (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`).
Equations come with placeholder names, which are replaced here: ``c7`` is the value of class 7 in this step, ``p7_2`` its stored value two
steps ago, ``q7`` its value one step ago computed from the states, ``i0`` the first input port, and ``k0`` one use of a constant. A state
has the same final name in this step (``c7``) and one step ago (``p7_1``), because each step overwrites it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol, calls, substitute, symbols
from snnc.frontends.onnx.flattening.node import Array
from snnc.frontends.onnx.recovery.equations import EquationsDraft, is_spike
from snnc.frontends.onnx.recovery.states import States


@dataclass(frozen=True)
class NamedEquations:
    """Equations with their final names; states and outputs by class, the values of parameters by name."""

    lines: tuple[Assignment, ...]
    states: Mapping[int, str]
    past: Mapping[tuple[int, int], str]
    """Name of a state's value k steps ago, by (class, k)."""
    outputs: Mapping[int, str]
    parameters: Mapping[str, Array]
    ports: tuple[str, ...]
    learnable: frozenset[str] = frozenset()
    """Names of the trainable parameters."""


def name_equations(draft: EquationsDraft, states: States, visible: set[int]) -> NamedEquations:
    """Replace the placeholder names of a draft by final names; `visible` classes are outputs."""
    # The draft has no equation for an output that always equals another class; that class has the equation and the name.
    named_class = {c: draft.alias.get(c, c) for c in visible}
    outputs_named = set(named_class.values())
    fires = {line.target: line.value for line in draft.lines if is_spike(line.value)}
    state_names = _states(draft, states, fires, outputs_named)
    final: dict[str, Expression] = {f"i{k}": Symbol("i" if k == 0 else f"i{k + 1}") for k in range(len(draft.ports))}
    past = {(c, k): state_names[c] + ("" if k == 1 else f"_{k}") for c, d in states.stored.items() for k in range(1, d + 1)}
    final.update({f"c{c}": Symbol(n) for c, n in state_names.items()})
    final.update({f"p{c}_{k}": Symbol(n) for (c, k), n in past.items()})
    reserved = {*past.values(), *(s.name for s in final.values() if isinstance(s, Symbol))}
    for line in draft.lines:
        if line.target in final:
            continue
        of_this_step = line.target[0] == "c"
        if is_spike(line.value):
            base = "s" if of_this_step else "z"  # z: a spike of the previous step
        else:
            base = "y" if of_this_step and int(line.target[1:]) in outputs_named else "u"  # y: an output, u: any other value
        final[line.target] = Symbol(_unused_name(base, reserved))
    learned = _learned(draft, final, reserved)
    parameters = _parameters(draft, state_names, fires, final, reserved, learned)
    lines = _final_lines(draft, states, final, reserved)
    outputs = {c: _symbol_name(final[f"c{named}"]) for c, named in named_class.items()}
    ports = tuple(_symbol_name(final[f"i{k}"]) for k in range(len(draft.ports)))
    return NamedEquations(tuple(lines), state_names, past, outputs, parameters, ports, frozenset(learned))


def _symbol_name(symbol: Expression) -> str:
    if not isinstance(symbol, Symbol):
        raise TypeError(symbol)
    return symbol.name


def _unused_name(base: str, reserved: set[str]) -> str:
    """Reserve and return `base` or, if it is taken, `base` with the next free number: v, v2, v3; a final 1 is replaced: k1, k2, k3."""
    name, k = base, 1
    while name in reserved:
        k += 1
        name = f"{base.rstrip('1')}{k}"
    reserved.add(name)
    return name


def _states(draft: EquationsDraft, states: States, fires: Mapping[str, Expression], visible: set[int]) -> dict[int, str]:
    """Name the states: v for the membrane potential, i_syn for a state that inputs affect and v does not, s for spikes, x for others."""
    values = {line.target: line.value for line in draft.lines}
    stored = list(states.stored)

    def reach(start: str) -> set[str]:
        seen, stack = set[str](), [start]
        while stack:
            new = set(symbols(values[stack.pop()])) - seen
            seen |= new
            stack.extend(new & values.keys())
        return seen

    compared = {s for value in fires.values() for s in symbols(value)}

    def rank(c: int) -> tuple[bool, bool, bool, bool, int]:
        """Return the sort key of a state; the membrane potential has the lowest.

        It is not a spike, is compared with a threshold, is reset by a spike, is an output, and depends on many values. An earlier one of
        these properties decides before a later one.
        """
        reached = reach(f"c{c}")
        compares, resets = {f"c{c}", f"p{c}_1"} & compared, {s for s in fires if s[0] == "c"} & reached
        return f"c{c}" in fires, not compares, not resets, c not in visible, -len(reached)

    stored.sort(key=rank)
    names: dict[int, str] = {}
    reserved: set[str] = set()
    for k, c in enumerate(stored):
        reached = reach(f"c{c}")
        input_only = f"p{stored[0]}_1" not in reached and any(s[0] == "i" for s in reached)
        base = "s" if f"c{c}" in fires else "v" if k == 0 else "i_syn" if input_only else "x"
        names[c] = _unused_name(base, reserved)
    return names


def _learned(draft: EquationsDraft, final: dict[str, Expression], reserved: set[str]) -> dict[str, Array]:
    """Name trainable parameters as in the PyTorch module; a parameter that is used several times has one name."""
    values: dict[str, Array] = {}
    names: dict[str, str] = {}
    used = {s for line in draft.lines for s in symbols(line.value)}
    for k, label in draft.labels.items():
        if k not in used:
            continue
        if label not in names:
            names[label] = _unused_name(label.rpartition(".")[2], reserved)
            values[names[label]] = draft.constants[k]
        final[k] = Symbol(names[label])
    return values


def _parameters(
    draft: EquationsDraft,
    states: Mapping[int, str],
    fires: Mapping[str, Expression],
    final: dict[str, Expression],
    reserved: set[str],
    learned: Mapping[str, Array],
) -> dict[str, Array]:
    """Name constants by their roles; equal constants with the same role share a name, and 0 or 1 without a role becomes a number."""
    roles: dict[str, str] = {}
    for target, call in ((line.target, call) for line in draft.lines for call in calls(line.value)):
        for position, argument in enumerate(call.args):
            if isinstance(argument, Symbol) and argument.name in draft.constants and not roles.get(argument.name):
                roles[argument.name] = _role(call, position, target, states, fires, draft)
    thresholds = [draft.constants[k] for k, r in roles.items() if r == "threshold"]
    values: dict[str, Array] = {}
    for k, value in draft.constants.items():
        if k in draft.labels:
            continue
        role = roles.get(k, "")
        if role == "reset" and any(np.array_equal(value, t) for t in thresholds):
            role = "threshold"
        if not role and value.ndim == 0 and float(value) in (0.0, 1.0):
            final[k] = Number(float(np.float32(value)))
            continue
        role = role or "k1"  # constants without a role are k1, k2, …
        same = next((n for n, v in values.items() if n.rstrip("0123456789") == role.rstrip("1") and np.array_equal(v, value)), None)
        parameter = same or _unused_name(role, reserved)
        values.setdefault(parameter, value)
        final[k] = Symbol(parameter)
    used = {s for line in draft.lines for s in symbols(substitute(line.value, final))}
    return {n: v for n, v in {**values, **learned}.items() if n in used}


def _role(call: Call, position: int, target: str, states: Mapping[int, str], fires: Mapping[str, Expression], draft: EquationsDraft) -> str:
    """Return a name for a constant, from its position in the equations; "" if the position does not suggest any."""
    if call.function == "sub" and position == 1 and any(_is_compared(f, call) for f in fires.values()):
        return "threshold"
    if call.function == "div" and position == 1:
        return "tau"
    if call.function != "mul":
        return ""
    other = call.args[1 - position]
    while isinstance(other, Call) and other.function == "detach":
        other = other.args[0]
    factors = set(_factors(other))
    for cls, state in states.items():
        if f"p{cls}_1" in factors:
            return {"v": "beta", "i_syn": "alpha"}.get(state, "")
    if not isinstance(other, Symbol):
        return ""
    if other.name in fires:
        # An output that is only the product of a spike and a constant is a graded spike.
        complete_line = any(line.target == target and line.value == call for line in draft.lines)
        return "graded" if complete_line and target[0] == "c" and int(target[1:]) not in states else "reset"
    return ""


def _factors(e: Expression) -> Iterator[str]:
    match e:
        case Symbol(name):
            yield name
        case Call("mul", (a, b)):
            yield from _factors(a)
            yield from _factors(b)


def _is_compared(fire: Expression, call: Call) -> bool:
    while isinstance(fire, Call) and fire.function in ("detach", "spike", "spike_ge"):
        fire = fire.args[0]
    return fire == call


def _final_lines(draft: EquationsDraft, states: States, final: Mapping[str, Expression], reserved: set[str]) -> list[Assignment]:
    """Return the equations with final names, and with the assignments that move stored values one step back.

    An equation that reads the old value of a state after the new value was assigned reads a copy instead, which the first lines make.
    """
    # Before a state is assigned, its older values move: p7_3 = p7_2, then p7_2 = p7_1. "p7_3+" as a target marks such a move: from there on
    # the name p7_3 has the new value, so later equations that mean the old one read the copy.
    moves = {c: [Assignment(f"p{c}_{k}+", Symbol(f"p{c}_{k - 1}")) for k in range(d, 1, -1)] for c, d in states.stored.items()}
    placed: list[Assignment] = []
    for line in draft.lines:
        if line.target[0] == "c":
            placed.extend(moves.get(int(line.target[1:]), ()))
        placed.append(line)
    copies: dict[str, str] = {}
    changed: set[str] = set()
    renamed: list[Assignment] = []
    for line in placed:
        late = {s for s in symbols(line.value) if s in changed and s not in copies}
        for s in sorted(late):
            copies[s] = _unused_name(f"{_symbol_name(final[s])}_old", reserved)
        value = substitute(line.value, {s: Symbol(n) for s, n in copies.items() if s in changed})
        target = line.target
        if target.endswith("+"):
            changed.add(target[:-1])
            target = target[:-1]
        elif target[0] == "c" and int(target[1:]) in states.stored:
            changed.add(f"p{target[1:]}_1")
        renamed.append(Assignment(_symbol_name(final[target]), substitute(value, final)))
    return [Assignment(n, final[s]) for s, n in copies.items()] + renamed
