"""Find initial states: propose candidates, run the recovered step from them, and compare its first steps with the file.

A class is a value of the recovered step; see :class:`~snnc.frontends.onnx.reroll.roll.StepClass`.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import InitialStateError
from snnc.frontends.onnx.flattening.evaluate import Evaluator, compute
from snnc.frontends.onnx.flattening.node import Array, Shape
from snnc.frontends.onnx.recovery.grouping import Grouping
from snnc.frontends.onnx.recovery.states import States
from snnc.frontends.onnx.reroll.roll import Const, InputRef, Operand, Ref, StepClass
from snnc.frontends.onnx.reroll.step import RecoveredStep

_Fault: TypeAlias = tuple[int, int, float]
"""Class, step and difference of a value that differs from the file."""
_TOLERANCE: Final = 2e-6
"""Maximum difference, as computed by `_difference`, of values that count as equal."""
_MAX_CANDIDATES: Final = 200
_MIN_CANDIDATES: Final = 8
"""Bounds of the number of assignments of constants to states that are tried for one population."""
_MAX_WORK: Final = 1e9
"""Maximum number of multiplications for the candidates of one population, on one sample."""
_MAX_EARLY: Final = 100
"""Maximum number of nodes of the first steps that are searched for constants."""
_SAMPLES: Final = 8
"""Number of samples to compare, enough for some neurons to fire; two if a value of a step has :data:`_SMALL` elements or more."""
_SEARCHED: Final = 2
"""Number of samples to compare for a candidate."""
_SMALL: Final = 4096


@dataclass(eq=False)
class Start:
    """Initial states by (class, negative time), and the class whose initial state an input of the file provides, by input."""

    values: dict[tuple[int, int], Array] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)


class _StepSimulation:
    """Runs the recovered classes for a few steps on sample inputs."""

    def __init__(self, step: RecoveredStep, groups: Grouping, states: Mapping[int, States], sample: Evaluator, start: Start) -> None:
        self._step = step
        self._groups = groups
        self._states = states
        self._sample = sample
        self._start = start
        self._known: dict[tuple[int, int], Array] = {}
        """Values by class and step."""
        self._inputs = {cls: name for name, cls in reversed(start.inputs.items())}
        """First input of the file that provides the initial state, by class."""
        self._delayed_users: dict[int, list[tuple[int, int]]] = {}
        """Classes that read a class with a delay, and the delays, by class."""
        for user in groups.order:
            for operand in step.operands(user):
                if isinstance(operand, Ref) and operand.delay:
                    self._delayed_users.setdefault(operand.cls, []).append((user, operand.delay))

    def value(self, cls: int, t: int) -> Array:
        if (cls, t) not in self._known:
            self._known[cls, t] = self._computed(cls, t)
        return self._known[cls, t]

    def before(self, cls: int, t: int, reader: int | None) -> Array:
        """Return the value of a class before step 0, as read by the group `reader`."""
        step_class = self._step.classes[cls]
        group = self._groups.group.get(cls)
        states = self._states[group] if group is not None and group == reader else None
        if states is not None and cls not in states.stored:
            return self._computed(cls, t)
        if t == -1 and cls in self._inputs:
            return self._sample.input(self._inputs[cls], step_class.shape)
        value = None if states is None else self._start.values.get((cls, t))
        return np.zeros(step_class.shape) if value is None else np.broadcast_to(np.asarray(value, np.float64), step_class.shape)

    def _computed(self, cls: int, t: int) -> Array:
        step_class = self._step.classes[cls]
        arrays = [self._read(cls, o, t) for o in step_class.operands]
        return compute(step_class.op, step_class.attrs, step_class.shape, arrays)

    def _read(self, reader: int, operand: Operand, t: int) -> Array:
        match operand:
            case Const(value):
                return np.asarray(value, np.float64)
            case InputRef():
                return self._sample.steps(operand.name, operand.shape, t - operand.delay)
            case Ref(cls, delay):
                if t - delay >= 0:
                    return self.value(cls, t - delay)
                source = self._step.through_layout(operand)
                if not isinstance(source, Ref):
                    return np.zeros(self._step.classes[cls].shape)
                group = self._groups.group.get(reader)
                if group is None and self._step.is_layout(reader):
                    group = self._groups.group.get(source.cls)
                return self.before(source.cls, t - source.delay, group).reshape(self._step.classes[cls].shape)

    def faults(self, classes: list[int]) -> list[_Fault]:
        """Return class, step and difference of every value in the first steps that differs from the file."""
        return [(cls, t, gap) for cls in classes for t, gap in self._differences(cls) if gap > _TOLERANCE]

    def _differences(self, cls: int) -> Iterator[tuple[int, float]]:
        """Yield step and difference from the file of each value of a class in the first steps."""
        for t, nodes in self._step.classes[cls].forced.items():
            for node in nodes:
                yield t, _difference(self._sample(node), self.value(cls, t))
        if self._step.is_layout(cls):
            return
        for t, nodes in self._step.classes[cls].initial.items():
            for node in nodes:
                yield t, min(_difference(self._sample(node), self.before(cls, t, reader)) for reader in self._readers(cls, -t))

    def _readers(self, cls: int, delay: int) -> set[int | None]:
        """Return the readers of a class before step 0: its own group, which reads states, or None for other nodes, which read zeros."""
        local = self._groups.group.get(cls)
        users = self._delayed_users.get(cls, [])
        readers = {local if self._groups.group.get(user) == local else None for user, user_delay in users if user_delay >= delay}
        return readers or {local, None}


def find_start(step: RecoveredStep, groups: Grouping, states: Mapping[int, States], *, search: bool) -> Start:
    """Return initial states from which the recovered step computes the values of the file.

    With `search`, constants of each population are tried as initial states where the file does not contain any. If no initial states
    explain the file, raise an InitialStateError.
    """
    start = _explicit(step, groups, states)
    largest = max((math.prod(c.shape) for c in step.classes), default=0)
    samples = [Evaluator(k, step.axes) for k in range(_SAMPLES if largest < _SMALL else 2)]
    classes = [c.id for c in step.classes if c.forced or c.initial]

    def faults(proposal: Start, among: list[Evaluator] = samples) -> list[_Fault]:
        return [f for s in among for f in _StepSimulation(step, groups, states, s, proposal).faults(classes)]

    best = faults(start)
    if best and search:
        start = _searched(step, groups, states, start, lambda proposal: faults(proposal, samples[:_SEARCHED]))
        best = faults(start)
    if best:
        cls, t, difference = best[0]
        when = f"step {t}" if t >= 0 else "the start"
        raise InitialStateError(
            f"at {when} the file computes other values than its later steps would (operation '{step.classes[cls].op}' of shape "
            f"{list(step.classes[cls].shape)}, difference {difference:.3g}, {len(best)} value(s) in total), and no "
            f"initial state explains the difference."
        )
    return start


def _explicit(step: RecoveredStep, groups: Grouping, states: Mapping[int, States]) -> Start:
    """Return the initial states that the file contains explicitly."""
    start = Start()
    for step_class in step.classes:
        source = step.through_layout(Ref(step_class.id))
        if not isinstance(source, Ref):
            continue
        group = groups.group.get(source.cls)
        for t, nodes in step_class.initial.items():
            for node in nodes:
                if node.op == "input":
                    start.inputs.setdefault(str(node.attrs[0]), source.cls)
                elif group is not None and source.cls in states[group].stored and node.value is not None:
                    shape = step.classes[source.cls].shape
                    same_size = node.value.size == math.prod(shape)
                    value = node.value.reshape(shape) if same_size else np.broadcast_to(node.value, np.broadcast_shapes(node.shape, shape))
                    start.values.setdefault((source.cls, t), np.asarray(value, np.float64))
    return start


def _searched(
    step: RecoveredStep, groups: Grouping, states: Mapping[int, States], start: Start, faults: Callable[[Start], list[_Fault]]
) -> Start:
    """Try constants as missing initial states, population by population; add to `start` each assignment that explains more values."""
    fewest = len(faults(start))
    max_candidates = max(_MIN_CANDIDATES, min(_MAX_CANDIDATES, int(_MAX_WORK / max(1, sum(_work(c) for c in step.classes)))))
    for group in groups.groups:
        stored = states[group].stored
        missing = [c for c in stored if (c, -1) not in start.values and c not in start.inputs.values()]
        candidates = _constants(step, groups.members(group))
        for assignment in itertools.islice(_assignments(missing, candidates), max_candidates if candidates else 0):
            if not fewest:
                return start
            assigned = {(c, -k): v for c, v in assignment for k in range(1, stored[c] + 1)}
            proposal = Start({**start.values, **assigned}, start.inputs)
            remaining = len(faults(proposal))
            if remaining < fewest:
                start, fewest = proposal, remaining
    return start


def _work(step_class: StepClass) -> int:
    weight = step_class.operands[1] if step_class.op in ("linear", "conv") else None
    return math.prod(step_class.shape) * (math.prod(weight.value.shape[1:]) if isinstance(weight, Const) else 1)


def _assignments(missing: list[int], candidates: list[Array]) -> Iterator[tuple[tuple[int, Array], ...]]:
    """Yield assignments of constants to states: to one state, then to two, and so on."""
    for size in range(1, len(missing) + 1):
        for chosen in itertools.combinations(missing, size):
            for values in itertools.product(candidates, repeat=size):
                yield tuple(zip(chosen, values, strict=True))


def _constants(step: RecoveredStep, members: list[int]) -> list[Array]:
    """Return the nonzero constants in the file's first steps, then those of the step itself."""
    constants: dict[tuple[Shape, bytes], Array] = {}
    local = [o.value for cls in members for o in step.operands(cls) if isinstance(o, Const)]
    for value in (*_early(step, members), *local):
        exact = np.asarray(value, np.float64)
        if exact.any():
            constants.setdefault((exact.shape, exact.tobytes()), exact)
    return list(constants.values())


def _early(step: RecoveredStep, members: list[int]) -> Iterator[Array]:
    """Yield the constants of those first steps whose structure differs from that of later steps."""
    nodes = [n for cls in members for _, early in sorted(step.classes[cls].forced.items()) for n in early]
    largest = max((math.prod(step.classes[cls].shape) for cls in members), default=0)
    seen = {n.id for n in nodes}
    queue = deque(nodes)
    while queue and len(seen) < _MAX_EARLY:
        node = queue.popleft()
        if node.value is not None and node.value.size <= largest:
            yield node.value
        for operand in node.inputs if node.op in ELEMENTWISE else ():
            if operand.id not in seen:
                seen.add(operand.id)
                queue.append(operand)


def _difference(a: Array, b: Array) -> float:
    """Return the largest difference, relative to ``1 + |a|``; infinity if the shapes do not fit or a value is not finite."""
    try:
        gap = np.abs(a - b)
    except ValueError:
        return math.inf
    return float((gap / (1.0 + np.abs(a))).max(initial=0.0)) if np.isfinite(gap).all() else math.inf
