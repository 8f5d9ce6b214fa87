"""Paths from one value of a step to another: by products and sums, through other functions, weights, a comparison, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.frontends.common.functions import COMPARISONS, ELEMENTWISE
from snnc.frontends.onnx.flattening.node import Node

_ARITHMETIC: Final = frozenset({"add", "sub", "neg", "mul", "max", "min"})
_LAYERS: Final = frozenset({"linear", "conv", "pool", "reduce"})
_CURVED: Final = 2
_LAYER: Final = 4
_COMPARED: Final = 5
_NONE: Final = 6
_SAME: Final = 7


@dataclass(frozen=True)
class Ways:
    """Ratings [states, outputs], low where the output is likely the new value of the state.

    Attributes
    ----------
    near
        The hardest operation on the easiest way. A way through weights or a spike says as little as none: it leads to the state's own
        population as well as to others. A spike hardly continues a state that the step itself compares with a threshold.
    far
        Which of those that are not near is likelier: weights, or an output that hands another state on; a spike; nothing at all; and
        last a state that comes out as it went in, so that it would never change.
    """

    near: npt.NDArray[np.int64]
    far: npt.NDArray[np.int64]


def ways(states: Mapping[str, Node], outputs: Mapping[str, Node]) -> Ways:
    """Rate how each output is computed from each state."""
    leaves = list(states.values())
    nodes = _nodes(list(outputs.values()))
    found = {n.id: _start(n, leaves) for n in nodes if not n.inputs}
    sources = {n.id: frozenset([n.id] if n.op == "input" else []) for n in nodes if not n.inputs}
    compared: set[int] = set()
    for node in nodes:
        if not node.inputs:
            continue
        found[node.id] = np.min([_through(found[n.id], _hardness(node, k)) for k, n in enumerate(node.inputs)], axis=0)
        sources[node.id] = frozenset().union(*(sources[n.id] for n in node.inputs))
        if node.op in COMPARISONS and len(sources[node.id]) == 1:
            compared |= sources[node.id]
    rated = np.array([found[o.id] for o in outputs.values()], np.int64).T
    spiking = np.array([_fires(o) for o in outputs.values()])
    handed = np.array([o.id in {s.id for s in leaves} for o in outputs.values()])
    same = np.equal.outer([s.id for s in leaves], [o.id for o in outputs.values()])
    near = np.where(same, _LAYER, np.minimum(rated, _LAYER)) + np.outer([s.id in compared for s in leaves], spiking)
    far = np.where(handed, _LAYER, np.maximum(rated, _LAYER))
    return Ways(near, np.where(same, _SAME, far) - _LAYER)


def _nodes(outputs: Sequence[Node]) -> list[Node]:
    """Return what `outputs` are computed from, each node after its operands."""
    found = {n.id: n for n in outputs}
    stack = list(found.values())
    while stack:
        new = {n.id: n for n in stack.pop().inputs if n.id not in found}
        found |= new
        stack.extend(new.values())
    return [found[k] for k in sorted(found)]


def _start(node: Node, leaves: Sequence[Node]) -> npt.NDArray[np.int64]:
    return np.array([0 if node is leaf else _NONE for leaf in leaves], np.int64)


def _through(way: npt.NDArray[np.int64], hardness: int) -> Any:
    return np.where(way == _NONE, _NONE, np.maximum(way, hardness))


def _hardness(node: Node, operand: int) -> int:
    if node.op in COMPARISONS or (node.op == "where" and operand == 0):
        return _COMPARED
    if node.op in _LAYERS:
        return _LAYER
    if node.op in _ARITHMETIC or node.op not in ELEMENTWISE or node.op == "where" or (node.op == "div" and operand == 0):
        return 0
    return _CURVED


def _fires(node: Node) -> bool:
    """Return whether a value is the result of a comparison, times a constant at most."""
    while node.op not in COMPARISONS:
        moving = [n for n in node.inputs if n.value is None]
        if len(moving) != 1 or (node.op in ELEMENTWISE and node.op != "mul") or node.op in _LAYERS:
            return False
        node = moving[0]
    return True
