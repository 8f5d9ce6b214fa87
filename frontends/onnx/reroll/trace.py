"""Follow a value of the last step back through time: find the same value one step earlier."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.reroll.timeline import GraphTimeline

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
