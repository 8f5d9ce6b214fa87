"""Find time in a flattened graph: its axis and steps, the step that each value depends on, and the same value one step earlier."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import NoTimeError, OnnxLimitError, StateLossError, TimeMixingError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, MAX_TRIPS, Node, NodePool, Shape, check_size

_MAX_DEPTH: Final = 100


@dataclass(frozen=True)
class GraphTimeline:
    """Time of one flattened graph.

    Parameters
    ----------
    steps
        Number of steps.
    axes
        Time axis of each input that has one.
    latest
        For each node, by id, the latest input step that it depends on; -1 where it depends on none.
    """

    steps: int
    axes: Mapping[str, int]
    latest: list[int]

    @property
    def timed(self) -> bool:
        """Whether any input changes in time."""
        return bool(self.axes)

    def input_step(self, node: Node) -> tuple[str, int] | None:
        """Return (input, step) where `node` is one step of an input."""
        if node.op != "slice" or node.inputs[0].op != "input":
            return None
        name = str(node.inputs[0].attrs[0])
        axis, start = node.attrs
        if self.axes.get(name) != axis or node.shape[self.axes[name]] != 1:
            return None
        return name, start


def find_axes(outputs: Iterable[Node]) -> dict[str, int]:
    """Return the time axis of each input that `outputs` depend on: the first axis whose entries are read one at a time."""
    seen: dict[str, dict[int, set[int]]] = {}
    sizes: dict[tuple[str, int], int] = {}
    for _, node in sorted(ancestors(outputs).items()):
        if node.op == "slice" and node.inputs[0].op == "input":
            axis, start = node.attrs
            if node.shape[axis] == 1:
                name = str(node.inputs[0].attrs[0])
                seen.setdefault(name, {}).setdefault(axis, set()).add(start)
                sizes[name, axis] = node.inputs[0].shape[axis]
    found: dict[str, int] = {}
    for name, axes in seen.items():
        full = [a for a, starts in sorted(axes.items()) if len(starts) == sizes[name, a] > 1]
        partial = [a for a, starts in sorted(axes.items()) if len(starts) > 1]
        if full or partial:
            found[name] = (full or partial)[0]
    return found


def check_extent(shapes: Mapping[str, Shape], axes: Mapping[str, int]) -> None:
    """Refuse inputs of more steps, or larger ones, than are unrolled and compared.

    Raises
    ------
    TooLargeError
        There are too many steps, or too many values in a step.
    """
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
    found = {n.id: n for n in outputs}
    stack = list(found.values())
    while stack:
        new = {n.id: n for n in stack.pop().inputs if n.id not in found}
        found |= new
        stack.extend(new.values())
    return found


def timeline(pool: NodePool, axes: Mapping[str, int], steps: int) -> GraphTimeline:
    """Compute what each node depends on.

    Raises
    ------
    TimeMixingError
        Two inputs have different numbers of steps.
    """
    lengths = {n.shape[axes[str(n.attrs[0])]] for n in pool.nodes if n.op == "input" and n.attrs[0] in axes}
    if len(lengths) > 1:
        raise TimeMixingError(f"the inputs have different numbers of time steps: {sorted(lengths)}.")
    total = lengths.pop() if lengths else steps
    made = GraphTimeline(total, axes, [])
    extend(made, pool)
    return made


def extend(line: GraphTimeline, pool: NodePool) -> None:
    """Add the nodes that the pool got since."""
    latest = line.latest
    for node in pool.nodes[len(latest) :]:
        step = line.input_step(node)
        if step is not None:
            latest.append(step[1])
        elif node.op == "input":
            latest.append(line.steps - 1 if node.attrs[0] in line.axes else -1)
        else:
            latest.append(max((latest[n.id] for n in node.inputs), default=-1))


@dataclass(frozen=True)
class StepWindow:
    """Consecutive steps of one value: those from `start` on, one node a step."""

    start: int
    rows: tuple[Node, ...]


def stacked(pool: NodePool, line: GraphTimeline, output: Node, axis: int) -> list[Node] | None:
    """Return the values of all steps where `axis` of `output` is time, else None.

    It is time where no entry depends on a later step than its own, the last one on the last, and entries rise.
    """
    if output.shape[axis] != line.steps or output.value is not None:
        return None
    first = shaping.at_index(pool, output, axis, 0)
    extend(line, pool)
    if line.latest[first.id] > 0:
        return None
    rows = [shaping.at_index(pool, output, axis, t) for t in range(line.steps)]
    extend(line, pool)
    if line.timed:
        last = line.latest[rows[-1].id]
        late = [line.latest[n.id] for n in rows]
        if any(k > t for t, k in enumerate(late)) or late[-1] < 0:
            return None
        rising = all(b - a == 1 for a, b in pairwise(late[line.steps // 2 :]))
        return rows if rising and last > late[0] else None
    depths = [n.depth for n in rows]
    return rows if all(b > a for a, b in pairwise(depths[1:])) and line.steps > 2 else None


def windowed(pool: NodePool, line: GraphTimeline, output: Node, axis: int) -> StepWindow | None:
    """Return the steps that `axis` of `output` stands for: all of them, or some that follow one another; else None."""
    rows = stacked(pool, line, output, axis)
    if rows is not None:
        return StepWindow(0, tuple(rows))
    count = output.shape[axis]
    if not 1 < count < line.steps or not line.timed or output.value is not None or not _leads_to_stack(line, output, axis):
        return None
    found = tuple(shaping.at_index(pool, output, axis, t) for t in range(count))
    extend(line, pool)
    late = [line.latest[n.id] for n in found]
    if late[0] < 0 or any(b - a != 1 for a, b in pairwise(late)):
        return None
    return StepWindow(late[0], found)


def _leads_to_stack(line: GraphTimeline, node: Node, axis: int) -> bool:
    """Return whether `axis` leads down to a stack of values of different steps, without making slices of the nodes between."""
    for _ in range(_MAX_DEPTH):
        if node.value is not None:
            return False
        if node.op == "concat" and node.attrs[0] == axis:
            return line.latest[node.inputs[0].id] < line.latest[node.inputs[-1].id]
        below = _axis_below(node, axis)
        if below is None:
            return False
        node, axis = below
    return False


def _axis_below(node: Node, axis: int) -> tuple[Node, int] | None:
    """Return the operand that `axis` comes from, and where it stands there."""
    source = next((n for n in node.inputs if n.value is None), None)
    if node.op in ELEMENTWISE:
        offset = {n: axis - (len(node.shape) - len(n.shape)) for n in node.inputs if n.value is None}
        return next(((n, k) for n, k in offset.items() if k >= 0 and n.shape[k] == node.shape[axis]), None)
    if source is None:
        return None
    match node.op:
        case "transpose":
            return source, node.attrs[axis]
        case "reshape":
            outer = math.prod(node.shape[:axis])
            same = (k for k, d in enumerate(source.shape) if d == node.shape[axis] and math.prod(source.shape[:k]) == outer)
            source_axis = next(same, None)
            return None if source_axis is None else (source, source_axis)
        case "linear" if axis < len(node.shape) - 1:
            return source, axis
        case "conv" | "pool" if axis == 0:
            return source, axis
        case "concat" | "reduce" | "slice" if source.shape[axis] == node.shape[axis]:
            return source, axis
    return None


def static_timeline(pool: NodePool, outputs: Mapping[str, Node]) -> GraphTimeline:
    """Find the number of steps from an output that stacks them or adds them up.

    Raises
    ------
    StateLossError
        There are spikes, but nothing is carried from step to step.
    NoTimeError
        There are no time steps at all.
    """
    for node in outputs.values():
        inner = node.inputs[0] if node.op == "reshape" else node
        for value in (node, inner.inputs[0] if inner.op == "reduce" else inner):
            for axis, size in enumerate(value.shape):
                if size < 2:
                    continue
                line = timeline(pool, {}, size)
                if stacked(pool, line, value, axis) is not None:
                    return line
    for node in outputs.values():
        parts = summands(node)[0]
        if parts:
            return timeline(pool, {}, len(parts))
    if any(n.op in ("gt", "ge") and n.value is None for n in ancestors(outputs.values()).values()):
        raise StateLossError(
            "the file has spiking neurons but carries no state from step to step: the export lost it (snnTorch's init_hidden=True, "
            "a neuron of SpikingJelly or Norse that hides its state). "
            "Export the whole loop over time, or a step with its states as inputs and outputs."
        )
    raise NoTimeError(
        "no spiking neuron and no time step found: the file is a stateless network. Convert it to a spiking one first (snnc compiles "
        "networks that run in time)."
    )


def summands(output: Node) -> tuple[list[Node], float]:
    """Return the values that an output adds up, one after the other, and the factor of the sum; no values where it is none."""
    node, scale = unscaled(output)
    found: list[Node] = []
    while node.op == "add" and all(n.value is None for n in node.inputs):
        a, b = node.inputs
        found.append(b)
        node = a
    found.append(_without_zero_start(node))
    found.reverse()
    same_operation = len({n.signature for n in found}) == 1
    later = all(b.depth > a.depth for a, b in pairwise(found))
    return (found, scale) if len(found) > 2 and same_operation and later else ([], 1.0)


def _without_zero_start(node: Node) -> Node:
    """Return the first value of a sum that starts at zero."""
    if node.op == "add":
        for start, rest in (node.inputs, node.inputs[::-1]):
            if start.value is not None and not start.value.any() and rest.value is None:
                return rest
    return node


def unscaled(node: Node) -> tuple[Node, float]:
    """Return what a value is a constant multiple of, and the factor."""
    if node.op in ("div", "mul"):
        a, b = node.inputs
        if b.value is not None and b.value.size == 1:
            factor = float(b.value.reshape(-1)[0])
            return a, (1 / factor if node.op == "div" and factor else factor)
        if node.op == "mul" and a.value is not None and a.value.size == 1:
            return b, float(a.value.reshape(-1)[0])
    return node, 1.0


_MAX_SEARCH: Final = 2000
_MAX_CANDIDATES: Final = 20


def trace_back(line: GraphTimeline, time: int, node: Node) -> dict[int, Node]:
    """Return the values of the steps up to `time` that `node` continues; only itself where there are none.

    The nearest ancestor of the same operation and shape that depends on one input step less is a candidate; the way
    to it is followed as far as it goes, and the candidate with the longest chain wins.
    """
    best = {time: node}
    for k, path in enumerate(_candidates(line, node)):
        found = _follow(line, time, node, path)
        if len(found) > len(best):
            best = found
        if k >= _MAX_CANDIDATES or len(best) >= time:
            break
    return best


def _candidates(line: GraphTimeline, node: Node) -> Iterator[tuple[int, ...]]:
    seen = {node.id}
    queue: deque[tuple[Node, tuple[int, ...]]] = deque([(node, ())])
    while queue and len(seen) < _MAX_SEARCH:
        n, path = queue.popleft()
        for k, operand in enumerate(n.inputs):
            if operand.id in seen or operand.value is not None:
                continue
            seen.add(operand.id)
            if _continues(operand, node) and line.latest[operand.id] == line.latest[node.id] - 1:
                yield (*path, k)
            queue.append((operand, (*path, k)))


def _follow(line: GraphTimeline, time: int, node: Node, path: tuple[int, ...]) -> dict[int, Node]:
    """Follow a path of operands from step to step as far as it leads to the same operation."""
    found = {time: node}
    current = node
    while time > 0:
        following = current
        for k in path:
            if k >= len(following.inputs):
                return found
            following = following.inputs[k]
        if following.value is None and (line.latest[following.id] != line.latest[current.id] - 1 or _differs(following, node)):
            return found
        time -= 1
        found[time] = following
        if following.value is not None or following.signature != node.signature:
            return found
        current = following
    return found


def _continues(earlier: Node, node: Node) -> bool:
    return earlier.signature == node.signature and all(
        a is b or (a.value is None and b.value is None and (a.op, a.shape) == (b.op, b.shape))
        for a, b in zip(earlier.inputs, node.inputs, strict=True)
    )


def _differs(earlier: Node, node: Node) -> bool:
    """Return whether two values are computed with different parameters."""
    if earlier.signature != node.signature:
        return False
    return any(a.value is not None and b.value is not None and a is not b for a, b in zip(earlier.inputs, node.inputs, strict=True))
