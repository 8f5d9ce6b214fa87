"""Pair the state inputs of a single-step file with the outputs that carry the states on."""

from __future__ import annotations

import re
from typing import Final

from snnc.frontends.onnx.errors import StatePairError
from snnc.frontends.onnx.node import Node
from snnc.frontends.onnx.timeline import alive_from

_AFFIX: Final = re.compile(r"(^|_)(in|out|input|output|prev|previous|next|new|old|init|initial|final|last|state|h|n|t|t0|t1|0|1)(?=_|$)")


def pair_states(inputs: dict[str, Node], outputs: dict[str, Node]) -> dict[str, str]:
    """Return state input name -> output name; empty where the file has no state inputs.

    An input carries state when an output has its shape and, by name or by position at the end of both lists, continues it.
    The first input is data.

    Raises
    ------
    StatePairError
        There is more than one input, an output could continue one of them, and no pairing is unambiguous.
    """
    names = list(inputs)[1:]
    candidates = {n: [o for o, node in outputs.items() if node.shape == inputs[n].shape] for n in names}
    states = [n for n in names if candidates[n]]
    if not states:
        return {}
    by_name = {n: [o for o in candidates[n] if _stem(o) == _stem(n)] for n in states}
    if all(len(found) == 1 for found in by_name.values()):
        pairs = {n: found[0] for n, found in by_name.items()}
        if len(set(pairs.values())) == len(pairs):
            return pairs
    tail = list(outputs)[-len(states) :]
    if len(outputs) >= len(states) and all(outputs[o].shape == inputs[n].shape for n, o in zip(states, tail, strict=True)):
        return dict(zip(states, tail, strict=True))
    raise StatePairError(
        f"the inputs {', '.join(states)} look like states of a single step, but the outputs {', '.join(outputs)} do not pair with them; "
        "return each new state under the name of its input with '_out', in the same order, after the other outputs."
    )


def _stem(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    while True:
        shorter = _AFFIX.sub("", plain).strip("_")
        if shorter in ("", plain):
            return plain
        plain = shorter


def dead_inputs(inputs: dict[str, Node], outputs: dict[str, Node]) -> list[str]:
    """Return the inputs that no output depends on."""
    alive = alive_from(list(outputs.values()))
    return [name for name, node in inputs.items() if node.id not in alive]
