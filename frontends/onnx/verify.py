"""The last check of an import: the recovered graph and the file compute the same, at every step of a random input."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.graph import Graph, Input, Output
from snnc.frontends.onnx.errors import SelfCheckError
from snnc.frontends.onnx.evaluate import compute
from snnc.frontends.onnx.execute import Runner
from snnc.frontends.onnx.node import Array, Node, Shape
from snnc.frontends.onnx.shaping import summary

MIN_CHECKED: Final = 8
_TOLERANCE: Final = 1e-4
_SEEDS: Final = 3
_ROUNDS: Final = 4
_SMALL_WORK: Final = 1e6
"""Files with fewer multiplications run on more inputs, so that their few neurons fire."""
MAX_WORK: Final = 4e10
"""Multiplications that the check may take; longer files are checked over their first steps."""


@dataclass(frozen=True)
class Wanted:
    """An output of the file: its node (None for a replicated single step), its values of all steps, and where they are stacked."""

    name: str
    node: Node | None
    rows: tuple[Node, ...]
    time_axis: int | None

    def nodes(self, steps: int | None) -> tuple[Node, ...]:
        """Return the whole output, or its first `steps`."""
        return (self.node,) if self.node is not None and steps is None else self.rows[:steps]

    def stack(self, values: list[Array], steps: int | None) -> Array:
        """Arrange the values of :meth:`nodes` as the file does."""
        return values[0] if self.node is not None and steps is None else np.stack(values, self.time_axis or 0)


@dataclass(frozen=True)
class Inputs:
    """The inputs of the file: time axes, shapes, and the number of steps."""

    axes: Mapping[str, int]
    shapes: Mapping[str, Shape]
    steps: int


@dataclass(frozen=True)
class Sample:
    """Random inputs, drawn step by step, the same wherever they are asked for."""

    seed: int
    inputs: Inputs

    def draw(self, name: str, t: int) -> Array:
        """Return one step of an input, its time axis of size 1; the whole of an input without time."""
        shape, axis = self.inputs.shapes[name], self.inputs.axes.get(name)
        if axis is not None:
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode()), t if axis is not None else 0])
        return 1.5 * rng.standard_normal(shape)

    def whole(self, name: str) -> Array:
        """Return a whole input."""
        axis = self.inputs.axes.get(name)
        if axis is None:
            return self.draw(name, 0)
        return np.concatenate([self.draw(name, t) for t in range(self.inputs.shapes[name][axis])], axis)


def verify(graph: Graph, wanted: Sequence[Wanted], inputs: Inputs, folded: bool) -> list[str]:
    """Compare `graph` with the file over all steps; return sentences about what could not be compared.

    Where weights were `folded`, a membrane may lie within rounding of its threshold; only then are other inputs tried.

    Raises
    ------
    SelfCheckError
        An output differs in its values or its shape.
    """
    said: list[str] = []
    limit: int | None = None
    work = _work([n for w in wanted for n in w.nodes(None)])
    share = MAX_WORK / max(1, work)
    if share < 1:
        limit = max(MIN_CHECKED, int(share * inputs.steps))
        said.append(f"The network was compared with the file over the first {limit} steps only; all of them take too long.")
        wanted = [w for w in wanted if w.rows]
    failure: SelfCheckError | None = None
    for seed in range(_SEEDS if folded else _ROUNDS if work < _SMALL_WORK else 1):
        sample = Sample(seed, inputs)
        with np.errstate(all="ignore"):
            expected = _file(wanted, sample, limit)
            found = _graph(graph, sample, limit or inputs.steps)
        try:
            for w in wanted:
                _compare(w, expected[w.name], found[w.name])
        except SelfCheckError as error:
            if not folded:
                raise
            failure = failure or error
            continue
        if folded:
            return said
    if failure is not None:
        raise failure
    return said


def _needed(roots: list[Node]) -> dict[int, tuple[Node, int]]:
    """Return all nodes that `roots` need, with the number of their uses."""
    found: dict[int, tuple[Node, int]] = {}
    stack = list(roots)
    while stack:
        n = stack.pop()
        known = found.get(n.id)
        found[n.id] = (n, 1 if known is None else known[1] + 1)
        if known is None:
            stack.extend(_reads(n))
    return found


def _work(roots: list[Node]) -> int:
    """Return the number of multiplications of all products and convolutions."""
    products = [n for n, _ in _needed(roots).values() if n.op in ("linear", "conv") and n.value is None]
    return sum(math.prod(n.shape) * math.prod(n.inputs[1].shape[1:]) for n in products)


def _file(wanted: Sequence[Wanted], sample: Sample, limit: int | None) -> dict[str, Array]:
    """Evaluate the file's own nodes; each value is dropped after its last use."""
    left = {k: uses for k, (_, uses) in _needed([n for w in wanted for n in w.nodes(limit)]).items()}
    known: dict[int, Array] = {}
    constants: dict[int, Array] = {}
    return {w.name: w.stack([_value(n, sample, known, constants, left) for n in w.nodes(limit)], limit) for w in wanted}


def _reads(n: Node) -> tuple[Node, ...]:
    return () if n.value is not None else n.inputs


def _value(root: Node, sample: Sample, known: dict[int, Array], constants: dict[int, Array], left: dict[int, int]) -> Array:
    stack = [root]
    while stack:
        n = stack[-1]
        if n.id in known or n.id in constants:
            stack.pop()
            continue
        if n.value is not None:
            constants[n.id] = np.asarray(n.value, np.float64)
            continue
        if n.op == "slice" and n.inputs[0].op == "input" and n.inputs[0].id not in known and _is_step(n, sample):
            known[n.id] = sample.draw(str(n.inputs[0].attrs[0]), cast("int", n.attrs[1]))
            continue
        missing = [i for i in n.inputs if i.id not in known and i.id not in constants]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if n.op == "input":
            known[n.id] = sample.whole(str(n.attrs[0]))
            continue
        known[n.id] = compute(n.op, n.attrs, n.shape, [known[i.id] if i.id in known else constants[i.id] for i in n.inputs])
        for i in n.inputs:
            left[i.id] -= 1
            if not left[i.id]:
                known.pop(i.id, None)
    value = constants[root.id] if root.id in constants else known[root.id]
    left[root.id] -= 1
    if not left[root.id]:
        known.pop(root.id, None)
    return value


def _is_step(n: Node, sample: Sample) -> bool:
    axis = sample.inputs.axes.get(str(n.inputs[0].attrs[0]))
    return n.attrs[0] == axis and axis is not None and n.shape[axis] == 1


def _graph(graph: Graph, sample: Sample, steps: int) -> dict[str, Array]:
    inputs = dict(graph.of_type(Input))
    batches = {sample.inputs.shapes[n][op.layout.batch_axis] for n, op in inputs.items() if op.layout.batch_axis is not None}
    if len(batches) > 1:
        raise SelfCheckError(f"the inputs have the batch sizes {sorted(batches)}; snnc takes one batch at a time.")
    batch = batches.pop() if batches else 1
    records: dict[str, list[Array]] = {n: [] for n, _ in graph.of_type(Output)}
    try:
        runner = Runner(graph, batch, {n: sample.whole(n) for n in graph.state_inputs})
        fixed = {n: _arranged(sample.draw(n, 0), op, batch) for n, op in inputs.items() if op.layout.time_axis is None}
        for t in range(steps):
            moving = {n: _arranged(sample.draw(n, t), op, batch) for n, op in inputs.items() if n not in fixed}
            for name, value in runner.step({**fixed, **moving}).items():
                records[name].append(value)
        return {n: _read_out(op, records[n]) for n, op in graph.of_type(Output)}
    except (ValueError, KeyError, IndexError, TypeError, SnncError) as error:
        raise SelfCheckError(f"the network that was read from the file cannot be run: {str(error)[:200]}") from None


def _arranged(x: Array, operation: Input, batch: int) -> Array:
    layout = operation.layout
    front = [a for a in (layout.time_axis, layout.batch_axis) if a is not None]
    return np.moveaxis(x, front, range(len(front))).reshape(batch, *operation.shape)


def _read_out(operation: Output, values: list[Array]) -> Array:
    stack = np.stack(values)
    if operation.readout == "last":
        stack = stack[-1]
    elif operation.readout != "all":
        stack = summary(operation.readout, stack, (0,))[0]
    front = [] if operation.layout.time_axis is None else [operation.layout.time_axis]
    if operation.layout.batch_axis is None:
        stack = stack[:, 0] if front else stack[0]
    else:
        front.append(operation.layout.batch_axis)
    return np.moveaxis(stack, range(len(front)), front)


def _compare(wanted: Wanted, expected: Array, found: Array) -> None:
    if found.shape != expected.shape:
        raise SelfCheckError(
            f"the output '{wanted.name}' has the shape {list(expected.shape)} in the file and {list(found.shape)} "
            "in the network that was read from it."
        )
    finite = np.isfinite(expected)
    same = (finite & np.isfinite(found)) | (expected == found) | (np.isnan(expected) & np.isnan(found))
    with np.errstate(all="ignore"):
        gap = np.where(finite & same, np.abs(found - expected), 0.0)
    largest = float(np.abs(expected[finite]).max(initial=0.0))
    spikes = bool(((expected == 0) | (expected == 1)).all())
    wrong = ~same | (gap > (0.0 if spikes else _TOLERANCE * largest))
    if not wrong.any():
        return
    where = np.argwhere(wrong)
    axis = wanted.time_axis
    when = "" if axis is None else f" at step {where[:, axis].min()}"
    raise SelfCheckError(
        f"the output '{wanted.name}' of the network read from the file differs from the file's own{when}: {len(where):,} of {wrong.size:,} "
        f"values, by up to {gap.max():.3g} where the largest is {largest:.3g}. Export a single step with its states as inputs and outputs."
    )
