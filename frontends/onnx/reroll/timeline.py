"""Find time in a flattened graph: time axes, the number of steps, and for each value its latest input step and its earlier values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import NoTimeError, OnnxLimitError, StateLossError, TimeMixingError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, MAX_TRIPS, Node, NodePool, Shape, check_size

_MAX_DEPTH: Final = 100
"""Maximum number of operations through which an axis is followed back."""


@dataclass(frozen=True, eq=False)
class GraphTimeline:
    """The time steps of one flattened graph."""

    pool: NodePool
    steps: int
    axes: Mapping[str, int]
    """Time axis of each input that has one."""
    _latest: list[int] = field(default_factory=list)
    """Result of :meth:`latest` by node id, for the nodes that were asked for so far and all before them."""

    def latest(self, node: Node) -> int:
        """Return the latest input step on which a node depends; -1 if there is none."""
        for new in self.pool.nodes[len(self._latest) : node.id + 1]:
            step = self.input_step(new)
            if step is not None:
                self._latest.append(step[1])
            elif new.op == "input":
                self._latest.append(self.steps - 1 if new.attrs[0] in self.axes else -1)
            else:
                self._latest.append(max((self._latest[n.id] for n in new.inputs), default=-1))
        return self._latest[node.id]

    @property
    def timed(self) -> bool:
        """Whether any input has a time axis."""
        return bool(self.axes)

    def input_step(self, node: Node) -> tuple[str, int] | None:
        """Return the name of an input and a step if `node` is that step of the input; else None."""
        if node.op != "slice" or node.inputs[0].op != "input":
            return None
        name, (axis, start) = str(node.inputs[0].attrs[0]), node.attrs
        return (name, start) if self.axes.get(name) == axis and node.shape[axis] == 1 else None


def find_axes(outputs: Iterable[Node]) -> dict[str, int]:
    """Return the time axis of each input that has one and that `outputs` depend on.

    This is the first axis whose entries are all read one by one; if there is none, the first axis of which several entries are read one by
    one.
    """
    starts: dict[Node, dict[int, set[int]]] = {}
    for _, node in sorted(ancestors(outputs).items()):
        source = sliced_input(node)
        if source is not None and node.shape[node.attrs[0]] == 1:
            axis, start = node.attrs
            starts.setdefault(source, {}).setdefault(axis, set()).add(start)
    time_axes: dict[str, int] = {}
    for node, read in starts.items():
        several = [axis for axis, entries in sorted(read.items()) if len(entries) > 1]
        complete = [axis for axis in several if len(read[axis]) == node.shape[axis]]
        if several:
            time_axes[str(node.attrs[0])] = (complete or several)[0]
    return time_axes


def sliced_input(node: Node) -> Node | None:
    """Return the input of which `node` is a slice or a slice of slices; None for other nodes."""
    if node.op != "slice":
        return None
    while node.op == "slice":
        node = node.inputs[0]
    return node if node.op == "input" else None


def steps_of_parts(outputs: Iterable[Node], axes: Mapping[str, int]) -> bool:
    """Return whether `outputs` depend on steps that are read from a part of an input, such as one channel of all steps."""
    for node in ancestors(outputs).values():
        source = sliced_input(node)
        if source is not None and source not in node.inputs and axes.get(str(source.attrs[0])) == node.attrs[0]:
            return True
    return False


def check_extent(shapes: Mapping[str, Shape], axes: Mapping[str, int]) -> None:
    """Refuse, by an OnnxLimitError, inputs with too many steps to unroll, or with too many values in a step."""
    for name, shape in shapes.items():
        axis = axes.get(name)
        steps = 1 if axis is None else shape[axis]
        if steps > MAX_TRIPS:
            raise OnnxLimitError(
                f"the input '{name}' of shape {list(shape)} has {steps:,} time steps; snnc unrolls at most {MAX_TRIPS:,}. Export fewer "
                "steps, or a single step with its states as inputs and outputs."
            )
        check_size(tuple(n for a, n in enumerate(shape) if a != axis), f"a step of the input '{name}'", MAX_CONSTANT)


def ancestors(outputs: Iterable[Node]) -> dict[int, Node]:
    """Return `outputs` and all nodes that they depend on, by id."""
    nodes = {n.id: n for n in outputs}
    stack = list(nodes.values())
    while stack:
        new = {n.id: n for n in stack.pop().inputs if n.id not in nodes}
        nodes |= new
        stack.extend(new.values())
    return nodes


def input_timeline(pool: NodePool, axes: Mapping[str, int], steps: int) -> GraphTimeline:
    """Return the timeline of the nodes in a pool; without inputs that have a time axis, it has `steps` steps.

    Inputs with different numbers of steps raise a TimeMixingError.
    """
    lengths = {n.shape[axes[str(n.attrs[0])]] for n in pool.nodes if n.op == "input" and n.attrs[0] in axes}
    if len(lengths) > 1:
        raise TimeMixingError(f"the inputs have different numbers of time steps: {sorted(lengths)}.")
    total = lengths.pop() if lengths else steps
    return GraphTimeline(pool, total, axes)


@dataclass(frozen=True)
class StepWindow:
    """Consecutive steps of one value: the first step, and one node per step."""

    start: int
    rows: tuple[Node, ...]


def stacked(timeline: GraphTimeline, output: Node, axis: int) -> list[Node] | None:
    """Return the values of all steps if `axis` of `output` is time; else None.

    If an input has a time axis, `axis` is time if no entry depends on an input step after its own, and if the latest input step increases
    by one from entry to entry in the second half. Otherwise, it is time if the depth of the entries in the graph increases from the second
    entry on.
    """
    if output.shape[axis] != timeline.steps or output.value is not None:
        return None
    first = shaping.at_index(timeline.pool, output, axis, 0)
    if timeline.latest(first) > 0:
        return None
    rows = [shaping.at_index(timeline.pool, output, axis, t) for t in range(timeline.steps)]
    if timeline.timed:
        latest = [timeline.latest(n) for n in rows]
        if any(step > t for t, step in enumerate(latest)) or latest[-1] < 0:
            return None
        consecutive = all(b - a == 1 for a, b in pairwise(latest[timeline.steps // 2 :]))
        return rows if consecutive and latest[-1] > latest[0] else None
    depths = [n.depth for n in rows]
    return rows if all(b > a for a, b in pairwise(depths[1:])) and timeline.steps > 2 else None


def windowed(timeline: GraphTimeline, output: Node, axis: int) -> StepWindow | None:
    """Return the steps along `axis` of `output`, which may be a range of consecutive steps; None if `axis` is not time."""
    rows = stacked(timeline, output, axis)
    if rows is not None:
        return StepWindow(0, tuple(rows))
    count = output.shape[axis]
    if not 1 < count < timeline.steps or not timeline.timed or not _comes_from_stack(timeline, output, axis):
        return None
    entries = tuple(shaping.at_index(timeline.pool, output, axis, t) for t in range(count))
    latest = [timeline.latest(n) for n in entries]
    if latest[0] < 0 or any(b - a != 1 for a, b in pairwise(latest)):
        return None
    return StepWindow(latest[0], entries)


def _comes_from_stack(timeline: GraphTimeline, node: Node, axis: int) -> bool:
    """Return whether `axis` comes from a concatenation of values of different steps, without adding nodes to the pool."""
    for _ in range(_MAX_DEPTH):
        if node.value is not None:
            return False
        if node.op == "concat" and node.attrs[0] == axis:
            return timeline.latest(node.inputs[0]) < timeline.latest(node.inputs[-1])
        source = _source_axis(node, axis)
        if source is None:
            return False
        node, axis = source
    return False


def _source_axis(node: Node, axis: int) -> tuple[Node, int] | None:
    """Return the operand that `axis` comes from, and the position of the axis there; None if there is none."""
    source = next((n for n in node.inputs if n.value is None), None)
    if node.op in ELEMENTWISE:
        positions = {n: axis - (len(node.shape) - len(n.shape)) for n in node.inputs if n.value is None}
        return next(((n, k) for n, k in positions.items() if k >= 0 and n.shape[k] == node.shape[axis]), None)
    if source is None:
        return None
    match node.op:
        case "transpose":
            return source, node.attrs[axis]
        case "reshape":
            outer = math.prod(node.shape[:axis])
            same = (k for k, d in enumerate(source.shape) if d == node.shape[axis] and math.prod(source.shape[:k]) == outer)
            position = next(same, None)
            return None if position is None else (source, position)
        case "linear" if axis < len(node.shape) - 1:
            return source, axis
        case "conv" | "pool" if axis == 0:
            return source, axis
        case "concat" | "reduce" | "slice" if source.shape[axis] == node.shape[axis]:
            return source, axis
    return None


def static_timeline(pool: NodePool, outputs: Mapping[str, Node]) -> GraphTimeline:
    """Find the steps of a graph whose inputs have no time axis, from an output that stacks or sums the values of all steps.

    A file without time steps raises a NoTimeError, or a StateLossError if it contains spikes.
    """
    for node in outputs.values():
        inner = node.inputs[0] if node.op == "reshape" else node
        for value in (node, inner.inputs[0] if inner.op == "reduce" else inner):
            for axis, size in enumerate(value.shape):
                if size < 2:
                    continue
                timeline = input_timeline(pool, {}, size)
                if stacked(timeline, value, axis) is not None:
                    return timeline
    for node in outputs.values():
        if parts := summands(node)[0]:
            return input_timeline(pool, {}, len(parts))
    if any(n.op in ("gt", "ge") and n.value is None for n in ancestors(outputs.values()).values()):
        raise StateLossError(
            "the file has spiking neurons but carries no state from step to step: the export lost it (snnTorch's init_hidden=True, or "
            "neurons of SpikingJelly or Norse that store their state). "
            "Export the whole loop over time, or a single step with its states as inputs and outputs."
        )
    raise NoTimeError(
        "no spiking neuron and no time step found: the file is a stateless network. Convert it to a spiking one first (snnc compiles "
        "networks that run in time)."
    )


def summands(output: Node) -> tuple[list[Node], float]:
    """Return the values that an output sums over the steps, in time order, and the factor of the sum; no values for other outputs."""
    node, scale = unscaled(output)
    terms: list[Node] = []
    while node.op == "add" and all(n.value is None for n in node.inputs):
        node, term = node.inputs
        terms.append(term)
    terms.append(_without_zero_start(node))
    terms.reverse()
    same_operation = len({n.signature for n in terms}) == 1
    deeper = all(b.depth > a.depth for a, b in pairwise(terms))
    return (terms, scale) if len(terms) > 2 and same_operation and deeper else ([], 1.0)


def _without_zero_start(node: Node) -> Node:
    """Return the first term of a sum, without a constant zero to which it may be added."""
    if node.op == "add":
        for start, rest in (node.inputs, node.inputs[::-1]):
            if start.value is not None and not start.value.any() and rest.value is None:
                return rest
    return node


def unscaled(node: Node) -> tuple[Node, float]:
    """Return the value of which `node` is a constant multiple, and the factor; else `node` and 1."""
    if node.op in ("div", "mul"):
        a, b = node.inputs
        if b.value is not None and b.value.size == 1:
            factor = float(b.value.reshape(-1)[0])
            return a, (1 / factor if node.op == "div" and factor else factor)
        if node.op == "mul" and a.value is not None and a.value.size == 1:
            return b, float(a.value.reshape(-1)[0])
    return node, 1.0


_MAX_SEARCH: Final = 2000
"""Maximum number of nodes that are searched for candidates (see :func:`trace_back`)."""
_MAX_CANDIDATES: Final = 20
"""Number of candidates after which the search stops."""


def trace_back(timeline: GraphTimeline, time: int, node: Node) -> dict[int, Node]:
    """Return the values of `node` in the steps up to `time`, by step; only `node` itself if no earlier values are found.

    Candidates for the previous value are the nodes on which `node` depends that have the same operation and shape, and whose latest input
    step is one earlier. The path of operands to a candidate is followed back as far as possible. The longest chain is returned.
    """
    best = {time: node}
    for k, path in enumerate(_candidates(timeline, node)):
        chain = _follow(timeline, time, node, path)
        if len(chain) > len(best):
            best = chain
        if k >= _MAX_CANDIDATES or len(best) >= time:
            break
    return best


def _candidates(timeline: GraphTimeline, node: Node) -> Iterator[tuple[int, ...]]:
    """Yield the paths of operand numbers from `node` to nodes that may be the same value one step earlier, nearest first."""
    seen = {node.id}
    queue: deque[tuple[Node, tuple[int, ...]]] = deque([(node, ())])
    while queue and len(seen) < _MAX_SEARCH:
        n, path = queue.popleft()
        for k, operand in enumerate(n.inputs):
            if operand.id in seen or operand.value is not None:
                continue
            seen.add(operand.id)
            if _is_same_value(operand, node) and timeline.latest(operand) == timeline.latest(node) - 1:
                yield (*path, k)
            queue.append((operand, (*path, k)))


def _follow(timeline: GraphTimeline, time: int, node: Node, path: tuple[int, ...]) -> dict[int, Node]:
    """Follow a path of operands from step to step as long as it leads to the same operation, or to a constant as the first value."""
    chain = {time: node}
    current = node
    while time > 0:
        earlier = current
        for k in path:
            if k >= len(earlier.inputs):
                return chain
            earlier = earlier.inputs[k]
        if earlier.value is None and (timeline.latest(earlier) != timeline.latest(current) - 1 or _constants_differ(earlier, node)):
            return chain
        time -= 1
        chain[time] = earlier
        if earlier.value is not None or earlier.signature != node.signature:
            return chain
        current = earlier
    return chain


def _is_same_value(earlier: Node, node: Node) -> bool:
    """Return whether two nodes have the same operation, and operands that are equal constants or alike in operation and shape."""
    return earlier.signature == node.signature and all(
        a is b or (a.value is None and b.value is None and (a.op, a.shape) == (b.op, b.shape))
        for a, b in zip(earlier.inputs, node.inputs, strict=True)
    )


def _constants_differ(earlier: Node, node: Node) -> bool:
    return earlier.signature == node.signature and any(
        a.value is not None and b.value is not None and a is not b for a, b in zip(earlier.inputs, node.inputs, strict=True)
    )
