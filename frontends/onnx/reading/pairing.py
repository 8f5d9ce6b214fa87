"""Pair the state inputs of a single-step file with the outputs that continue the states.

A state is continued by the output that is computed from it most directly: a membrane decays (a product and a sum), while the membrane of
another population reaches it through weights or a spike only. The pairing with the best sum of ratings is taken
(:mod:`snnc.frontends.onnx.recovery.paths`). Names break ties, then other properties of the
paths, then the order in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from snnc.frontends.onnx.errors import StatePairError
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.recovery.paths import ways

_AFFIX: Final = re.compile(r"(^|_)(in|out|input|output|prev|previous|next|new|old|init|initial|final|last|state|h|n|t|t0|t1|0|1)(?=_|$)")
_Costs: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Pairs:
    """State input -> output; and the states whose output is determined only by the order in the file."""

    outputs: dict[str, str]
    guessed: tuple[str, ...] = ()


def pair_states(inputs: dict[str, Node], outputs: dict[str, Node]) -> Pairs:
    """Return which output continues which state input; empty if the file has no state inputs.

    The first input is data; every other input that has the shape of an output is a state.

    Raises
    ------
    StatePairError
        There is no output of the same shape for each state.
    """
    shapes = {node.shape for node in outputs.values()}
    states = {n: node for n, node in list(inputs.items())[1:] if node.shape in shapes}
    if not states:
        return Pairs({})
    names, first = list(outputs), len(outputs) - len(states)
    foreign = np.array([[o.shape != s.shape for o in outputs.values()] for s in states.values()])
    misnamed = np.array([[_stem(o) != _stem(n) for o in outputs] for n in states])
    rated, several = ways(states, outputs), len(states) + 1.0
    likeness = (rated.near * several + misnamed) * (3 * several) + rated.far
    likeness[foreign] = np.inf
    moved = np.abs(np.subtract.outer(np.arange(len(states)) + first, np.arange(len(outputs))))
    found = _assigned(likeness * (moved.sum() + 1.0) + moved)
    if found is None:
        raise StatePairError(
            f"the inputs {', '.join(states)} look like states of a single step, but the outputs {', '.join(names)} do not pair with them; "
            "return for each state its new value, in the shape of the input."
        )
    same = np.equal.outer(*[[n.id for n in outputs.values()]] * 2)
    guessed = tuple(n for k, n in enumerate(states) if _open(likeness, found, k, same))
    return Pairs({n: names[m] for n, m in zip(states, found, strict=True)}, guessed)


def guess_said(pairs: Pairs) -> list[str]:
    """Return a sentence on the pairs that are a guess."""
    if not pairs.guessed:
        return []
    listed = ", ".join(f"{n} -> {pairs.outputs[n]}" for n in pairs.guessed)
    return [
        f"The pairs {listed} are a guess by their order in the file: what they are computed from and their names allow others too; "
        "where they are wrong, name each output after its input, with '_out'."
    ]


def _assigned(costs: _Costs) -> list[int] | None:
    """Return the output of each state, all different, with the lowest sum of costs; None if there are too few."""
    try:
        return [int(m) for m in linear_sum_assignment(costs)[1]] if costs.shape[0] <= costs.shape[1] else None
    except ValueError:  # no assignment without an infinite cost
        return None


def _open(costs: _Costs, found: list[int], state: int, same: _Costs) -> bool:
    """Return whether another value could continue `state` at the same sum of costs."""
    others = costs.copy()
    others[state, same[found[state]]] = np.inf
    changed = _assigned(others)
    rows = np.arange(len(found))
    return changed is not None and bool(others[rows, changed].sum() == costs[rows, found].sum())


def _stem(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    while True:
        shorter = _AFFIX.sub("", plain).strip("_")
        if shorter in ("", plain):
            return plain
        plain = shorter
