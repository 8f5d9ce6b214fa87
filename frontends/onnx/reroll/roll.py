"""Undo the unrolling in time: group the nodes of all steps into classes, one class for each value that a step computes.

A *tuple* (:data:`Steps`) contains one node per time step. Tuples are analysed from the outputs towards the inputs: equal constants are a
parameter; a tuple that equals a known class shifted by d steps reads it with delay d; any other tuple is a new class, whose operands are
tuples again. Names and the order of nodes do not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from snnc.frontends.onnx.errors import TimeMixingError, TimeVaryingError
from snnc.frontends.onnx.flattening.node import Array, Node, Shape
from snnc.frontends.onnx.reroll.timeline import GraphTimeline, trace_back

Steps: TypeAlias = dict[int, Node]
Reading: TypeAlias = Literal["early", "aligned", "late"]
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)
"""Rules that assign values to steps; see :class:`Roller`."""
_HEAD_STEPS: Final = 4
"""Number of first steps whose operations may differ from those of later steps, because exporters fold them; their values are compared."""

_COMMUTATIVE: Final = frozenset({"add", "mul", "min", "max"})


@dataclass(frozen=True, eq=False)
class Const:
    """A parameter: a constant that is the same at every step, and the node that computes it."""

    value: Array
    source: Node | None = None


@dataclass(frozen=True)
class Ref:
    """The value of a class `delay` steps ago."""

    cls: int
    delay: int = 0


@dataclass(frozen=True)
class InputRef:
    """An input of the network `delay` steps ago; an input without time axis is the same at every step.

    `shape` is the shape of one step; a time axis has size 1.
    """

    name: str
    delay: int = 0
    shape: Shape = ()


Operand: TypeAlias = Const | Ref | InputRef


def delayed(operand: Operand, steps: int) -> Operand:
    """Return `operand` with an additional delay of `steps`; constants do not change."""
    return operand if isinstance(operand, Const) else replace(operand, delay=operand.delay + steps)


@dataclass(eq=False)
class StepClass:
    """One value of the step; `op`, `attrs` and `shape` are those of its :class:`~snnc.frontends.onnx.flattening.node.Node` at each step."""

    id: int  # index in the list of classes
    op: str
    attrs: tuple[Any, ...]
    shape: Shape
    nodes: Steps
    operands: list[Operand] = field(default_factory=list)
    forced: dict[int, list[Node]] = field(default_factory=dict)
    """By early step, nodes that must have the class's value, but compute it with other operations."""
    initial: dict[int, list[Node]] = field(default_factory=dict)
    """By step, which is negative: nodes that must have the class's value before step 0."""
    static: bool = False  # whether the value is the same at all steps
    swapped: set[int] = field(default_factory=set)  # early steps whose two operands are exchanged
    detached_operands: frozenset[int] = frozenset()
    """Indices of operands through which gradients do not flow; see :mod:`snnc.frontends.onnx.recovery.detaching`."""

    @property
    def signature(self) -> tuple[Hashable, ...]:
        """What all nodes of the class have in common."""
        return next(iter(self.nodes.values())).signature

    def copied(self) -> StepClass:
        """Return a copy with its own list of operands."""
        return replace(self, operands=list(self.operands))

    def inputs(self, t: int) -> tuple[Node, ...]:
        """Return the operands at step `t`, in the order of the class."""
        inputs = self.nodes[t].inputs
        return (inputs[1], inputs[0]) if t in self.swapped else inputs


class Roller:
    """Rolls up the tuples of one flattened graph; see the module.

    `reading` is the rule for the step of a value. "early": the step of the latest input that it depends on. "late": the step that reads it.
    "aligned": like "late", but :func:`~snnc.frontends.onnx.reroll.retime.retime` then counts the steps of a value from the first one at
    which the file computes it. All rules result in the same network after the first steps, but in different values before step 0.
    """

    def __init__(self, timeline: GraphTimeline, reading: Reading = "early") -> None:
        self.timeline = timeline
        self.reading = reading
        self.moved = False
        """Whether the rule put a value into an earlier step than its reader."""
        self.classes: list[StepClass] = []
        self._where: dict[int, tuple[int, int]] = {}
        """Class and step of each node, by the node's id."""
        self._open: deque[tuple[int, int]] = deque()
        """Class and index of each operand that is not yet resolved."""
        self._checks: deque[tuple[Operand, int, Node]] = deque()
        """Triples (operand, step, node) to be checked: at the step, the operand must have the value of the node."""

    def roll(self, steps: Steps) -> Operand:
        """Roll up a tuple and everything that it depends on.

        Steps that differ in parameters or operations raise a TimeVaryingError; a step that reads the future, or the sequence out of order,
        raises a TimeMixingError.
        """
        operand = self._resolve(steps)
        while self._open or self._checks:
            if self._checks:
                self._unify(*self._checks.popleft())
                continue
            cls, k = self._open.popleft()
            step_class = self.classes[cls]
            steps = {t: step_class.inputs(t)[k] for t in step_class.nodes}
            resolved = self._resolve(steps)
            step_class.operands.append(resolved)
            self._checks.extend((resolved, t, n) for t, n in steps.items())
        return operand

    def _resolve(self, steps: Steps) -> Operand:
        """Return the operand for a tuple: a constant, an input, a known class or a new class."""
        computed = {t: n for t, n in steps.items() if n.value is None}
        if not computed:
            return self._constant(steps)
        last_time = max(computed)
        last = computed[last_time]
        if len(computed) == 1 and len(steps) > 2:
            raise TimeVaryingError(
                f"step {last_time} computes '{last.op}', but all other steps use a constant; snnc compiles one step that repeats. "
                "If a signal takes several steps to return, a short file shows it only once; export more steps."
            )
        if len(computed) > 1 and len({n.id for n in steps.values()}) == 1:
            return self._static(last)
        if last.op == "input" and len({n.id for n in steps.values()}) == 1 and last.attrs[0] not in self.timeline.axes:
            return self._static(last)
        read = self.timeline.input_step(last)
        if read is not None:
            if read[1] > last_time:
                raise TimeMixingError(f"step {last_time} reads step {read[1]} of the input '{read[0]}'; snnc reads causal models only.")
            return InputRef(read[0], last_time - read[1], last.shape)
        if len(steps) == 1:  # the value of the last step alone, such as an output without time axis
            if self.timeline.timed and self.timeline.latest(last) < 0:
                return self._static(last)
            if last.id not in self._where:
                steps = trace_back(self.timeline, last_time, last)
                computed = {t: n for t, n in steps.items() if n.value is None}
        for t in sorted(computed, reverse=True):
            known = self._where.get(computed[t].id)
            if known is not None and not self._shared(known, t, computed):
                cls, known_step = known
                ref = Ref(cls, 0 if self.classes[cls].static else t - known_step)
                self._checks.extend((ref, time, node) for time, node in steps.items())
                return ref
        return self._new(steps, last_time, last)

    def _shared(self, known: tuple[int, int], t: int, computed: Steps) -> bool:
        """Return whether a tuple matches a class only in an early step, at which two states still have the same value."""
        step_class, last = self.classes[known[0]], max(computed)
        if step_class.static or t >= _HEAD_STEPS or t == last:
            return False
        later = step_class.nodes.get(last - t + known[1])
        return later is not None and later is not computed[last]

    def _constant(self, steps: Steps) -> Const:
        times = sorted(steps)
        value = steps[times[-1]].value
        for t in times:
            other = steps[t].value
            if other is not value and not _equal(other, value):
                raise TimeVaryingError(
                    f"a parameter of shape {list(value.shape) if value is not None else []} differs between the steps {t} and {times[-1]}; "
                    "snnc compiles one step that repeats. Use the same parameters at every step."
                )
        assert value is not None, "the caller checks that all steps are constant"
        return Const(value, steps[times[-1]])

    def _static(self, node: Node) -> Operand:
        """Return the operand for a value that all steps share."""
        if node.op == "input":
            return InputRef(str(node.attrs[0]), 0, node.shape)
        if self.timeline.latest(node) >= 0:
            raise TimeMixingError(
                f"every step reads the same value of step {self.timeline.latest(node)}; snnc reads models that run step by step."
            )
        known = self._where.get(node.id)
        if known is not None:
            return Ref(known[0])
        step_class = self._register(dict.fromkeys(range(self.timeline.steps), node))
        step_class.static = True
        return Ref(step_class.id)

    def _new(self, steps: Steps, last_time: int, last: Node) -> Ref:
        delay = 0
        latest = self.timeline.latest(last)
        if self.reading == "early" and self.timeline.timed and latest >= 0:
            delay = last_time - latest
            if delay < 0:
                raise TimeMixingError(f"step {last_time} depends on step {latest} of the input; snnc reads causal models only.")
            if all(t in steps and steps[t].signature == last.signature for t in range(delay)):
                delay = 0  # the file computes the value from step 0 on, so it belongs to the step that reads it
        self.moved |= delay > 0
        moved_steps = {t - delay: n for t, n in steps.items()}
        start = last_time - delay  # the first step of the class: all nodes from it on have the same operation
        while start - 1 in moved_steps and start > 0 and moved_steps[start - 1].signature == last.signature:
            if start <= _HEAD_STEPS and not _fits(moved_steps[start - 1], moved_steps[start]):
                break
            start -= 1
        step_class = self._register({t: n for t, n in moved_steps.items() if start <= t <= last_time - delay})
        if len(step_class.nodes) < 2 and len(steps) > 1:
            raise TimeVaryingError(
                f"no two consecutive steps compute '{last.op}' in the same way (step {last_time} of {self.timeline.steps}); "
                "the model changes from step to step."
            )
        ref = Ref(step_class.id, delay)
        self._checks.extend((ref, time, node) for time, node in steps.items() if time - delay not in step_class.nodes)
        return ref

    def _register(self, nodes: Steps) -> StepClass:
        sample = nodes[max(nodes)]
        step_class = StepClass(len(self.classes), sample.op, sample.attrs, sample.shape, nodes)
        self.classes.append(step_class)
        for t in sorted(nodes, reverse=True):
            self._align(step_class, t)
        for t, n in nodes.items():
            if n.value is None:
                self._where.setdefault(n.id, (step_class.id, t))
        self._open.extend((step_class.id, k) for k in range(len(sample.inputs)))
        return step_class

    def _align(self, step_class: StepClass, t: int) -> None:
        """Exchange the operands of an early commutative operation if they then match the operands of the next step better."""
        if t >= _HEAD_STEPS or step_class.op not in _COMMUTATIVE or len(step_class.nodes[t].inputs) != 2 or t + 1 not in step_class.nodes:
            return
        (a, b), (c, d) = step_class.nodes[t].inputs, step_class.inputs(t + 1)
        if _similarity(a, d) + _similarity(b, c) > _similarity(a, c) + _similarity(b, d):
            step_class.swapped.add(t)

    def _unify(self, operand: Operand, t: int, node: Node) -> None:
        """Require that `node` is the value of an operand at step `t`."""
        match operand:
            case Const(value):
                if node.value is None or not _equal(node.value, value):
                    raise TimeVaryingError(f"step {t} uses a different parameter than later steps; snnc compiles one step that repeats.")
            case InputRef(name, delay):
                self._unify_input(name, delay, t, node)
            case Ref(cls, delay):
                self._unify_class(self.classes[cls], t - delay, node)

    def _unify_input(self, name: str, delay: int, t: int, node: Node) -> None:
        if name not in self.timeline.axes:
            if node.op != "input" or node.attrs[0] != name:
                raise TimeVaryingError(f"step {t} does not read the input '{name}', unlike the other steps.")
            return
        read = self.timeline.input_step(node)
        what = f"step {read[1]}" if read else "no single step"
        if read != (name, t - delay) and not (t < delay and node.value is not None and not node.value.any()):
            raise TimeMixingError(
                f"step {t} reads {what} of the input '{name}', but the steps around it read step t - {delay}; "
                "snnc reads the sequence in order."
            )

    def _unify_class(self, step_class: StepClass, t: int, node: Node) -> None:
        """Require that `node` computes a class at step `t`.

        Before step 0, and in early steps with other operations, the node is only recorded; its value is compared later.
        """
        if t < 0 and not step_class.static:
            known = step_class.initial.setdefault(t, [])
            if node not in known:
                known.append(node)
                if node.signature == step_class.signature and self.timeline.latest(node) < 0:
                    self._checks.extend((o, t, node.inputs[k]) for k, o in enumerate(step_class.operands) if isinstance(o, Ref))
            return
        current = step_class.nodes.get(t)
        if current is node or node in step_class.forced.get(t, ()):
            return
        later = step_class.nodes.get(t + 1)
        fits = later is None or t >= _HEAD_STEPS or _fits(node, later)
        if current is None and fits and node.signature == step_class.signature and (later or t - 1 in step_class.nodes):
            step_class.nodes[t] = node
            self._align(step_class, t)
            if node.value is None:
                self._where.setdefault(node.id, (step_class.id, t))
            self._checks.extend((o, t, step_class.inputs(t)[k]) for k, o in enumerate(step_class.operands))
            return
        if current is not None and node.signature == current.signature and _holds_spike(node):
            a = step_class.inputs(t)[0]
            exchanged = node.op in _COMMUTATIVE and node.inputs[0].signature != a.signature and node.inputs[-1].signature == a.signature
            inputs = node.inputs[::-1] if exchanged else node.inputs
            self._checks.extend((o, t, inputs[k]) for k, o in enumerate(step_class.operands))
        if t >= _HEAD_STEPS:
            raise TimeVaryingError(
                f"step {t} computes '{node.op}' of shape {list(node.shape)}, but the steps around it compute "
                f"'{step_class.op}' of shape {list(step_class.shape)}; "
                "snnc compiles one step that repeats."
            )
        step_class.forced.setdefault(t, []).append(node)


def _fits(node: Node, later: Node) -> bool:
    """Return whether an early node may correspond to a later one: at least one of two operands is computed in the same way.

    If an exporter folds ``0 + (a + b)``, the remaining addition does not correspond to that of later steps.
    """
    if len(node.inputs) != 2 or len(later.inputs) != 2:
        return True
    (a, b), (c, d) = node.inputs, later.inputs
    straight = _same_with_operands(a, c) or _same_with_operands(b, d)
    return straight or (node.op in _COMMUTATIVE and (_same_with_operands(a, d) or _same_with_operands(b, c)))


def _holds_spike(node: Node) -> bool:
    """Return whether a value is a comparison, or a multiple of one.

    The operands of two such values must be compared, too, because different comparisons may have equal results on all random inputs.
    """
    return node.op in ("gt", "ge") or (node.op == "mul" and any(n.op in ("gt", "ge") for n in node.inputs))


def _same_with_operands(a: Node, b: Node) -> bool:
    if a.signature != b.signature:
        return False
    computed = [n for n in a.inputs if n.value is None]
    return not computed or a.value is not None or any(n.shape == m.shape and n.op in (m.op, "input") for n in computed for m in b.inputs)


def _similarity(a: Node, b: Node) -> int:
    """Return how similar two nodes are: 1 for the same operation, plus 1 for each operand that is the same or has the same operation."""
    if a.signature != b.signature:
        return 0
    return 1 + sum(
        n is m or (n.value is None and m.value is None and n.signature == m.signature) for n, m in zip(a.inputs, b.inputs, strict=True)
    )


def _equal(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    try:
        return bool((np.asarray(a) == np.asarray(b)).all())
    except ValueError:
        return False
