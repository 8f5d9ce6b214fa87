"""Final check of an import: the recovered graph and the file must compute the same values on random inputs.

If comparing all steps would take too long, only the first steps are compared. Hidden populations are compared, too: otherwise a
neuron that does not affect the outputs for these inputs would not be checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Graph, Input, Output
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.common.functions import difference, largest_magnitude, reduce_over
from snnc.frontends.common.work import MAX_WORK
from snnc.frontends.onnx.errors import SelfCheckError
from snnc.frontends.onnx.flattening.evaluate import Feed, FileReplay, Inputs, Sample, use_counts
from snnc.frontends.onnx.flattening.node import Array, Node
from snnc.frontends.onnx.proof.traces import Trace

_MIN_CHECKED: Final = 8
"""Minimum number of steps to compare, however large the network is."""
_TOLERANCE: Final = 1e-4
"""Maximum difference of an output or state, as a share of its largest value. Spikes must be equal."""
_SEEDS: Final = 3
"""Number of random inputs if scales and normalisations were folded into weights; graph and file must agree on one of them."""
_ROUNDS: Final = 4
"""Number of random inputs for small files; graph and file must agree on all of them."""
_SMALL_WORK: Final = 1e6
"""Number of multiplications below which a file is small, and more inputs are needed for its few neurons to fire."""


@dataclass(frozen=True)
class CheckedOutput:
    """An output of the file."""

    name: str
    node: Node | None
    """The whole output; None if the file describes a single step."""
    rows: tuple[Node, ...]  # the output's values at all steps, if the file computes them separately
    time_axis: int | None  # axis of `node` along which the steps are stacked

    def nodes(self, steps: int | None) -> tuple[Node, ...]:
        """Return the node of the whole output, or the nodes of its values in the first `steps` steps (None: all steps)."""
        return (self.node,) if self.node is not None and steps is None else self.rows[:steps]

    def stack(self, values: list[Array], steps: int | None) -> Array:
        """Arrange the values of :meth:`nodes` as in the file."""
        return values[0] if self.node is not None and steps is None else np.stack(values, self.time_axis or 0)


def verify(graph: Graph, outputs: Sequence[CheckedOutput], traces: Sequence[Trace], inputs: Inputs, folded: bool) -> list[str]:
    """Compare `graph` with the file; return a sentence for the user if comparing all steps would take too long, else no sentence.

    If there is such a sentence, only the first steps were compared, without outputs that the file does not compute step by step.

    If weights were `folded`, the membrane potentials of graph and file differ by rounding, and one that is close to its threshold may
    cause a different spike. After a difference, other inputs are then tried.

    Raises
    ------
    SelfCheckError
        A hidden population or an output differs in its values, or an output in its shape, or the graph cannot run.
    """
    limit: int | None = None
    work = _work([n for o in outputs for n in o.nodes(None)])
    affordable = max(_MIN_CHECKED, int(MAX_WORK / work * inputs.steps)) if work > MAX_WORK else inputs.steps
    if affordable < inputs.steps:
        limit = affordable
        outputs = [o for o in outputs if o.rows]
    failure: SelfCheckError | None = None
    for seed in range(_SEEDS if folded else _ROUNDS if work < _SMALL_WORK else 1):
        try:
            with np.errstate(all="ignore"):
                _run(graph, outputs, traces, Sample(seed, inputs), limit)
        except SelfCheckError as error:
            if not folded:
                raise
            failure = failure or error
        else:
            if folded:
                failure = None
                break
    if failure is not None:
        raise failure
    if limit is None:
        return []
    return [f"The network was compared with the file over the first {limit} steps only; comparing all of them would take too long."]


def _work(roots: list[Node]) -> int:
    products = [n for n, _ in use_counts(roots).values() if n.op in ("linear", "conv") and n.value is None]
    return sum(math.prod(n.shape) * math.prod(n.inputs[1].shape[1:]) for n in products)


def _run(graph: Graph, outputs: Sequence[CheckedOutput], traces: Sequence[Trace], feed: Feed, limit: int | None) -> None:
    """Run graph and file together, step by step, so that hidden values can be dropped as soon as they are compared."""
    steps = limit or feed.inputs.steps
    hidden = [_Hidden(trace, steps) for trace in traces]
    replay = FileReplay([n for h in hidden for n in h.nodes.values()] + [n for o in outputs for n in o.nodes(limit)], feed)
    network = _Network(graph, feed)
    for t in range(steps):
        network.step(t)
        for h in hidden:
            if t in h.nodes:
                h.compare(t, replay.value(h.nodes[t]), network.runner.ports)
    _check_hidden(hidden)
    results = network.outputs()
    for output in outputs:
        _compare(output, output.stack([replay.value(n) for n in output.nodes(limit)], limit), results[output.name])


class _Network:
    """The recovered graph, running on the feed's batch."""

    def __init__(self, graph: Graph, feed: Feed) -> None:
        self._graph, self._feed = graph, feed
        self._inputs = dict(graph.of_type(Input))
        shapes = feed.inputs.shapes
        batches = {shapes[n][op.layout.batch_axis] for n, op in self._inputs.items() if op.layout.batch_axis is not None}
        if len(batches) > 1:
            raise SelfCheckError(f"the inputs have the batch sizes {sorted(batches)}; they must share one batch size.")
        self._batch = batches.pop() if batches else 1
        self._records: dict[str, list[Array]] = {n: [] for n, _ in graph.of_type(Output)}
        """Values of each output, step by step."""
        with _refusing_to_run():
            self.runner = GraphRunner(graph, self._batch, {n: feed.full(n) for n in graph.state_inputs})
            self._fixed = {n: self._arranged(n, 0) for n, op in self._inputs.items() if op.layout.time_axis is None}
            """Inputs without time axis, by name."""

    def step(self, t: int) -> None:
        with _refusing_to_run():
            moving = {n: self._arranged(n, t) for n in self._inputs if n not in self._fixed}
            for name, value in self.runner.step({**self._fixed, **moving}).items():
                self._records[name].append(value)

    def outputs(self) -> dict[str, Array]:
        with _refusing_to_run():
            return {n: _read_out(op, self._records[n]) for n, op in self._graph.of_type(Output)}

    def _arranged(self, name: str, t: int) -> Array:
        operation = self._inputs[name]
        layout = operation.layout
        front = [a for a in (layout.time_axis, layout.batch_axis) if a is not None]
        return np.moveaxis(self._feed.draw(name, t), front, range(len(front))).reshape(self._batch, *operation.shape)


@contextmanager
def _refusing_to_run() -> Iterator[None]:
    """Turn an error raised in the block into a SelfCheckError."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, SnncError) as error:
        raise SelfCheckError(f"the network read from the file cannot run: {str(error)[:200]}") from None


def _read_out(operation: Output, values: list[Array]) -> Array:
    stack = np.stack(values[operation.start : operation.stop])
    if operation.readout == "last":
        stack = stack[-1]
    elif operation.readout != "all":
        stack = reduce_over(operation.readout, stack, (0,))[0]
    front = [] if operation.layout.time_axis is None else [operation.layout.time_axis]
    if operation.layout.batch_axis is None:
        stack = stack[:, 0] if front else stack[0]
    else:
        front.append(operation.layout.batch_axis)
    return np.moveaxis(stack, range(len(front)), front)


@dataclass(eq=False)
class _Hidden:
    """Differences of a population's port from the file, by step: number of different spikes, or largest difference of other values."""

    trace: Trace
    steps: int
    nodes: Mapping[int, Node] = field(init=False)
    by_step: dict[int, float] = field(default_factory=dict)
    largest: float = 0.0

    def __post_init__(self) -> None:
        self.nodes = {t: n for t, n in self.trace.nodes.items() if t < self.steps}

    def compare(self, t: int, value: Array, ports: Mapping[tuple[str, str], Array]) -> None:
        computed, expected = ports[self.trace.population, self.trace.port], self.trace.arrange(value)
        if self.trace.fires:
            self.by_step[t] = float(np.count_nonzero(computed != expected))
            return
        gap = float(difference(computed, expected).max(initial=0.0))
        self.by_step[t] = gap if math.isfinite(gap) else math.inf
        self.largest = max(self.largest, largest_magnitude(expected))

    def first(self) -> int | None:
        allowed = 0.0 if self.trace.fires else _TOLERANCE * self.largest
        return min((t for t, gap in self.by_step.items() if gap > allowed), default=None)


def _check_hidden(hidden: Sequence[_Hidden]) -> None:
    """Refuse differences. The error names the first step and its first population, because later differences may follow from it."""
    wrong = [(first, order, h) for order, h in enumerate(hidden) if (first := h.first()) is not None]
    if not wrong:
        return
    t, _, h = min(wrong, key=lambda w: w[:2])
    how = f"{h.by_step[t]:,.0f} spikes" if h.trace.fires else f"up to {h.by_step[t]:.3g}, with a largest value of {h.largest:.3g}"
    raise SelfCheckError(
        f"the population '{h.trace.population}' of the network read from the file differs from the file's own neurons at step {t}, "
        f"in '{h.trace.port}', by {how}. Export a single step with its states as inputs and outputs."
    )


def _compare(output: CheckedOutput, expected: Array, computed: Array) -> None:
    if computed.shape != expected.shape:
        raise SelfCheckError(
            f"the output '{output.name}' has the shape {list(expected.shape)} in the file and {list(computed.shape)} "
            "in the network read from it."
        )
    gap, scale = difference(computed, expected), largest_magnitude(expected)
    spikes = bool(((expected == 0) | (expected == 1)).all())
    wrong = ~(gap <= (0.0 if spikes else _TOLERANCE * scale))
    if not wrong.any():
        return
    where = np.argwhere(wrong)
    when = "" if output.time_axis is None else f" at step {where[:, output.time_axis].min()}"
    raise SelfCheckError(
        f"the output '{output.name}' of the network read from the file differs from the file's own{when}: {len(where):,} of {wrong.size:,} "
        f"values, by up to {largest_magnitude(gap):.3g}, with a largest value of {scale:.3g}. Export a single step with its states as "
        "inputs and outputs."
    )
