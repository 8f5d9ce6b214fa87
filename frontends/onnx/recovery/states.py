"""Choose the states of a population: the values that it needs from the previous step.

A class is a value of the recovered step (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`); a group is the classes of one population,
its members. Every member that its own group reads with a delay is a state, unless other states determine it: for example, a reset that
the file computes from the previous membrane potential is not a state. If several delayed values have a common source, only the source is
stored. If the file resets a membrane potential to zero when it reads the potential, the potential before the reset is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from snnc.frontends.onnx.recovery.grouping import Grouping
from snnc.frontends.onnx.recovery.learned import is_learned
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep

_MAX_CHAIN: Final = 4
"""Maximum number of operations between a value and the state from which it is computed."""


@dataclass(frozen=True)
class States:
    """States of one group."""

    stored: dict[int, int]  # number of previous values of each class that is a state
    computed: frozenset[int]  # classes whose previous value is computed from the states


def states_of(step: RecoveredStep, groups: Grouping, group: int, visible: set[int]) -> States:
    """Return the states of a group; `visible` classes are outputs of its population.

    A delayed value that depends on a trainable parameter is also a state if gradients flow through it. Otherwise it would be computed
    from the initial states, and the parameter would receive a gradient before the first step.
    """
    members = groups.members(group)
    operands = [(step.classes[c], k, o) for c in members for k, o in enumerate(step.operands(c))]
    with_gradient = {o.cls for step_class, k, o in operands if isinstance(o, Ref) and o.delay and k not in step_class.detached_operands}
    added: set[int] = set()
    while True:
        states = _choose_states(step, members, visible, added)
        more = {c for c in states.computed & with_gradient if _uses_parameter(step, set(members), c, states.stored)} - added
        if not more:
            return states
        added |= more


def _computation(step: RecoveredStep, inside: set[int], cls: int, known: Collection[int]) -> Iterator[Operand]:
    """Yield the operands from which a step computes a class of a group, back to `known` classes and to operands from outside the group."""
    stack, seen = [cls], {cls}
    while stack:
        for operand in step.operands(stack.pop()):
            yield operand
            if isinstance(operand, Ref) and not operand.delay and operand.cls in inside and operand.cls not in {*seen, *known}:
                seen.add(operand.cls)
                stack.append(operand.cls)


def _uses_parameter(step: RecoveredStep, inside: set[int], cls: int, stored: Collection[int]) -> bool:
    sources = [o.source for o in _computation(step, inside, cls, stored) if isinstance(o, Const)]
    return any(source is not None and is_learned(source) for source in sources)


def _choose_states(step: RecoveredStep, members: list[int], visible: set[int], added: set[int]) -> States:
    """Choose the states of a group, including the classes `added`."""
    stored = _delays(step, members)
    required = {c for c in stored if _starts_from_input(step, c) or c in added}
    computed: set[int] = set()
    _drop_computable(step, members, stored, computed, required)
    # Store the source of a spike or of a constant multiple.
    for cls in [c for c in stored if c not in required and stored[c] == 1]:
        source = _plain_source(step, set(members), cls, visible)
        if source != cls:
            del stored[cls]
            computed.add(cls)
            stored[source] = max(1, stored.get(source, 1))
            if _starts_from_input(step, source):
                required.add(source)
    _drop_computable(step, members, stored, computed, required)
    sources = {c: _sources(step, members, c) for c in stored if c not in required and stored[c] == 1}
    # Store a membrane potential before the reset.
    for cls in [c for c in sources if c not in visible]:
        membrane = _reset_source(step, sources[cls], cls)
        if membrane is not None:
            del stored[cls]
            computed.add(cls)
            stored[membrane] = 1
    # Store the common source of several values.
    for cls in sorted(sources, key=members.index, reverse=True):
        for source in sources[cls]:
            sharing = [
                c for c in sources if c in stored and (c not in visible or _fires(step, c)) and (c == source or source in sources[c])
            ]
            if cls in stored and len(sharing) > 1 and source not in sharing:
                for c in sharing:
                    del stored[c]
                    computed.add(c)
                stored[source] = 1
                break
    _drop_computable(step, members, stored, computed, required)
    return States(stored, frozenset(computed))


def _starts_from_input(step: RecoveredStep, cls: int) -> bool:
    """Return whether inputs of the file provide a class's value before step 0 to all readers."""
    nodes = step.classes[cls].initial.get(-1, [])
    return bool(nodes) and all(n.op == "input" for n in nodes)


def _delays(step: RecoveredStep, members: list[int]) -> dict[int, int]:
    """Return, for each class of a group that the group itself reads with a delay, the largest delay."""
    inside = set(members)
    delays: dict[int, int] = {}
    for cls in members:
        for operand in step.operands(cls):
            if isinstance(operand, Ref) and operand.delay and operand.cls in inside:
                delays[operand.cls] = max(delays.get(operand.cls, 0), operand.delay)
    return delays


def _drop_computable(step: RecoveredStep, members: list[int], stored: dict[int, int], computed: set[int], required: Iterable[int]) -> None:
    """Move classes that the other states determine from `stored` to `computed`, except those in `required`."""
    for cls in sorted(stored, key=members.index, reverse=True):
        if cls in required or stored[cls] != 1:
            continue
        if _follows(step, set(members), cls, {c for c in stored if c != cls}):
            del stored[cls]
            computed.add(cls)


def _follows(step: RecoveredStep, inside: set[int], cls: int, known: set[int]) -> bool:
    """Return whether the `known` values of a step determine a class of the same step, which must depend on at least one of them."""
    depends = False
    for operand in _computation(step, inside, cls, known):
        if isinstance(operand, Const):
            continue
        if not isinstance(operand, Ref) or operand.delay or operand.cls not in inside:
            return False
        depends |= operand.cls in known
    return depends


def _plain_source(step: RecoveredStep, inside: set[int], cls: int, visible: set[int]) -> int:
    """Return the class of which `cls` is a constant multiple, or the membrane potential if `cls` is its spike; else `cls`."""
    start = cls
    while True:
        step_class, operands = step.classes[cls], step.operands(cls)
        plain = step_class.op in ("neg", "mul", "div", "gt", "ge") or (step_class.op == "sub" and _fires(step, start))
        refs = [o for o in operands if not isinstance(o, Const)]
        if not plain or len(refs) != 1 or (cls in visible and not _fires(step, cls)):
            return cls
        only = refs[0]
        if not isinstance(only, Ref) or only.delay or only.cls not in inside or (operands[-1] is only and step_class.op in ("div", "sub")):
            return cls
        if not _starts_at_zero(step, cls) and not _follows_start_input(step, cls):
            return cls
        cls = only.cls


def _follows_start_input(step: RecoveredStep, cls: int) -> bool:
    """Return whether a class is computed in a few operations from one class alone, whose value before step 0 is an input of the file."""
    for _ in range(_MAX_CHAIN):
        refs = [o for o in step.operands(cls) if isinstance(o, Ref)]
        if len(refs) != 1 or refs[0].delay:
            return False
        cls = refs[0].cls
        if _starts_from_input(step, cls):
            return True
    return False


def _starts_at_zero(step: RecoveredStep, cls: int) -> bool:
    """Return whether the file contains no other value of a class before step 0 than zero."""
    nodes = [n for nodes in step.classes[cls].initial.values() for n in nodes]
    return all(n.value is not None and not n.value.any() for n in nodes)


def _reset_source(step: RecoveredStep, sources: list[int], cls: int) -> int | None:
    """Return the membrane potential if `cls` is its product with constants and (1 - spike); else None."""
    stack, spikes, reached, seen = [cls], False, set[int](), set[int]()
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        step_class, operands = step.classes[current], step.operands(current)
        if any(isinstance(o, Ref) and o.delay for o in operands):
            reached.add(current)
        elif step_class.op == "mul":
            stack.extend(o.cls for o in operands if isinstance(o, Ref))
        elif step_class.op == "sub" and isinstance(operands[0], Const) and isinstance(operands[1], Ref) and _fires(step, operands[1].cls):
            spikes = True
        elif step_class.op == "gt":
            return None
        else:
            reached.add(current)
    return reached.pop() if spikes and len(reached) == 1 and reached <= set(sources) else None


def _fires(step: RecoveredStep, cls: int) -> bool:
    """Return whether a class is a spike, or a constant multiple of one."""
    step_class = step.classes[cls]
    if step_class.op == "mul" and any(isinstance(o, Const) for o in step.operands(cls)):
        return any(isinstance(o, Ref) and not o.delay and _fires(step, o.cls) for o in step.operands(cls))
    return step_class.op in ("gt", "ge")


def _sources(step: RecoveredStep, members: list[int], cls: int) -> list[int]:
    """Return the classes of the same step, nearest first, each of which determines `cls` by itself."""
    position = {c: k for k, c in enumerate(members)}
    frontier = {cls}
    sources: list[int] = []
    while True:
        latest = max(frontier, key=position.__getitem__)
        frontier.discard(latest)
        for operand in step.operands(latest):
            if isinstance(operand, Const):
                continue
            if not isinstance(operand, Ref) or operand.delay or operand.cls not in position:
                return sources
            frontier.add(operand.cls)
        if not frontier:
            return sources
        if len(frontier) == 1:
            sources.append(next(iter(frontier)))
