"""Pair the state inputs of a single-step file with the outputs that are the states' new values.

A state's new value is the output that is computed most directly from the state: a membrane potential decays (a product and a sum), while
the potentials of other populations affect it only through weights or spikes. :func:`_rate_paths` rates each pair; the pairing with
the lowest sum of ratings is chosen. Names, then other properties of the paths, then the order in the file decide between equal sums.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from snnc.frontends.common.functions import COMPARISONS, ELEMENTWISE
from snnc.frontends.onnx.errors import StatePairError
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.reroll.timeline import ancestors

_AFFIX: Final = re.compile(r"(^|_)(in|out|input|output|prev|previous|next|new|old|init|initial|final|last|state|h|n|t|t0|t1|0|1)(?=_|$)")
"""Words in names that distinguish a state from its new value."""
_Costs: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Pairs:
    """States and their new values."""

    outputs: dict[str, str]  # output with the new value of a state, by the state's input
    guessed: tuple[str, ...] = ()  # inputs of states whose output was chosen by its place in the file alone


def pair_states(inputs: dict[str, Node], outputs: dict[str, Node]) -> Pairs:
    """Return the output with the new value of each state; empty if the file has no state inputs.

    The first input is data; every other input with the shape of an output is a state. If the states cannot each be paired with a different
    output of the same shape, raise a StatePairError.
    """
    shapes = {node.shape for node in outputs.values()}
    states = {n: node for n, node in list(inputs.items())[1:] if node.shape in shapes}
    if not states:
        return Pairs({})
    names = list(outputs)
    foreign = np.array([[o.shape != s.shape for o in outputs.values()] for s in states.values()])
    misnamed = np.array([[_stem(o) != _stem(n) for o in outputs] for n in states])
    # Pairs are compared by their direct rating, then by name, then by indirect rating, then by the order in the file.
    (direct, indirect), base = _rate_paths(states, outputs), len(states) + 1.0
    cost = (direct * base + misnamed) * (3 * base) + indirect
    cost[foreign] = np.inf
    # In the file's order, the last outputs belong to the states.
    distance = np.abs(np.subtract.outer(np.arange(len(states)) + len(outputs) - len(states), np.arange(len(outputs))))
    chosen = _cheapest_assignment(cost * (distance.sum() + 1.0) + distance)
    if chosen is None:
        raise StatePairError(
            f"the inputs {', '.join(states)} look like states of a single step, but the outputs {', '.join(names)} do not pair with them; "
            "for each state, return its new value in the shape of the input."
        )
    same = np.equal.outer(*[[n.id for n in outputs.values()]] * 2)
    guessed = tuple(n for k, n in enumerate(states) if _is_ambiguous(cost, chosen, k, same))
    return Pairs({n: names[m] for n, m in zip(states, chosen, strict=True)}, guessed)


def guess_notes(pairs: Pairs) -> list[str]:
    """Return a sentence for the user about pairs that are guessed, if any."""
    if not pairs.guessed:
        return []
    listed = ", ".join(f"{n} -> {pairs.outputs[n]}" for n in pairs.guessed)
    return [
        f"The pairs {listed} are a guess based on their order in the file; names and computations also allow other pairs. "
        "If a pair is wrong, name each output after its input, with the suffix '_out'."
    ]


def _cheapest_assignment(costs: _Costs) -> list[int] | None:
    """Return a different output for each state, with the lowest sum of costs; None if there are too few outputs."""
    try:
        return [int(m) for m in linear_sum_assignment(costs)[1]] if costs.shape[0] <= costs.shape[1] else None
    except ValueError:  # no assignment without an infinite cost
        return None


def _is_ambiguous(costs: _Costs, chosen: list[int], state: int, same: _Costs) -> bool:
    """Return whether `state` could have another output without changing the sum of the costs.

    `same` tells which outputs have the same value, so that a choice between them does not matter.
    """
    others = costs.copy()
    others[state, same[chosen[state]]] = np.inf
    changed = _cheapest_assignment(others)
    rows = np.arange(len(chosen))
    return changed is not None and bool(others[rows, changed].sum() == costs[rows, chosen].sum())


def _stem(name: str) -> str:
    """Return a name in lower case without the words that :data:`_AFFIX` matches."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    while True:
        shorter = _AFFIX.sub("", plain).strip("_")
        if shorter in ("", plain):
            return plain
        plain = shorter


_ARITHMETIC: Final = frozenset({"add", "sub", "neg", "mul", "max", "min"})
_LAYERS: Final = frozenset({"linear", "conv", "pool", "reduce"})
# Ratings of a path from a state to an output, by its highest-rated operation; sums, products, minima, maxima, reshapes and slices rate 0.
_CURVED: Final = 2
"""A nonlinear function."""
_LAYER: Final = 4
"""Weights, a pooling or a reduction."""
_COMPARED: Final = 5
"""A comparison, as for a spike."""
_NONE: Final = 6
"""No path."""
_SAME: Final = 7
"""The output is the state itself."""


def _rate_paths(states: Mapping[str, Node], outputs: Mapping[str, Node]) -> tuple[_Costs, _Costs]:
    """Rate how directly each output is computed from each state.

    Return the direct and the indirect ratings [states, outputs]; low if the output is probably the new value of the state.

    The direct rating is that of the lowest-rated path. Paths through weights or a spike count as no path, because they lead to all
    populations alike. If the state is compared with a threshold, the rating of an output that is a spike is one higher.

    The indirect rating is for outputs without a direct path: 0 for a path through weights, or an output that passes on another state; 1 for
    a path through a spike; 2 for no path; 3 for the unchanged state.
    """
    leaves = list(states.values())
    nodes = [node for _, node in sorted(ancestors(outputs.values()).items())]
    ratings = {n.id: np.array([0 if n is leaf else _NONE for leaf in leaves], np.int64) for n in nodes if not n.inputs}
    sources = {n.id: frozenset([n.id] if n.op == "input" else []) for n in nodes if not n.inputs}
    compared: set[int] = set()
    for node in nodes:
        if not node.inputs:
            continue
        paths = [np.where(ratings[n.id] == _NONE, _NONE, np.maximum(ratings[n.id], _rating(node, k))) for k, n in enumerate(node.inputs)]
        ratings[node.id] = np.min(paths, axis=0)
        sources[node.id] = frozenset().union(*(sources[n.id] for n in node.inputs))
        if node.op in COMPARISONS and len(sources[node.id]) == 1:
            compared |= sources[node.id]
    rated = np.array([ratings[o.id] for o in outputs.values()], np.int64).T
    spiking = np.array([_fires(o) for o in outputs.values()])
    passes_on = np.array([o.id in {s.id for s in leaves} for o in outputs.values()])
    same = np.equal.outer([s.id for s in leaves], [o.id for o in outputs.values()])
    direct = np.where(same, _LAYER, np.minimum(rated, _LAYER)) + np.outer([s.id in compared for s in leaves], spiking)
    indirect = np.where(passes_on, _LAYER, np.maximum(rated, _LAYER))
    return direct, np.where(same, _SAME, indirect) - _LAYER


def _rating(node: Node, operand: int) -> int:
    """Return the rating of `node` on a path that enters it through operand number `operand`."""
    if node.op in COMPARISONS or (node.op == "where" and operand == 0):
        return _COMPARED
    if node.op in _LAYERS:
        return _LAYER
    if node.op in _ARITHMETIC or node.op not in ELEMENTWISE or node.op == "where" or (node.op == "div" and operand == 0):
        return 0
    return _CURVED


def _fires(node: Node) -> bool:
    """Return whether a value is the result of a comparison, possibly multiplied by a constant."""
    while node.op not in COMPARISONS:
        moving = [n for n in node.inputs if n.value is None]
        if len(moving) != 1 or (node.op in ELEMENTWISE and node.op != "mul") or node.op in _LAYERS:
            return False
        node = moving[0]
    return True
