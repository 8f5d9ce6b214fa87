"""Evaluate the nodes of a flattened file, each value dropped after its last use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from snnc.frontends.onnx.flattening.evaluate import compute
from snnc.frontends.onnx.flattening.node import Array, Node
from snnc.frontends.onnx.flattening.sample import Feed


class FileReplay:
    """One run of a file's own operations in float64.

    Parameters
    ----------
    roots
        All nodes for which :meth:`value` will be called, repeated for each call.
    feed
        The inputs.
    """

    def __init__(self, roots: Sequence[Node], feed: Feed) -> None:
        self._feed = feed
        self._known: dict[int, Array] = {}
        self._constants: dict[int, Array] = {}
        self._left = {k: uses for k, (_, uses) in needed(roots).items()}

    def value(self, root: Node) -> Array:
        """Return the value of one of the roots."""
        known, constants, left = self._known, self._constants, self._left
        stack = [root]
        while stack:
            n = stack[-1]
            if n.id in known or n.id in constants:
                stack.pop()
                continue
            if n.value is not None:
                constants[n.id] = np.asarray(n.value, np.float64)
                continue
            if n.op == "slice" and n.inputs[0].op == "input" and n.inputs[0].id not in known and self._is_step(n):
                known[n.id] = self._feed.draw(str(n.inputs[0].attrs[0]), cast("int", n.attrs[1]))
                continue
            missing = [i for i in n.inputs if i.id not in known and i.id not in constants]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if n.op == "input":
                known[n.id] = self._feed.whole(str(n.attrs[0]))
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

    def _is_step(self, n: Node) -> bool:
        axis = self._feed.inputs.axes.get(str(n.inputs[0].attrs[0]))
        return n.attrs[0] == axis and axis is not None and n.shape[axis] == 1


def needed(roots: Sequence[Node]) -> dict[int, tuple[Node, int]]:
    """Return all nodes that `roots` need, with the number of their uses."""
    found: dict[int, tuple[Node, int]] = {}
    stack = list(roots)
    while stack:
        n = stack.pop()
        known = found.get(n.id)
        found[n.id] = (n, 1 if known is None else known[1] + 1)
        if known is None and n.value is None:
            stack.extend(n.inputs)
    return found
