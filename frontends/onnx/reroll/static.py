"""Networks whose input is constant in time: only the outputs show the number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from snnc.frontends.onnx.errors import NoTimeError, StateLossError
from snnc.frontends.onnx.flattening.node import Node, NodePool
from snnc.frontends.onnx.reroll.timeline import GraphTimeline, alive_from, stacked, timeline


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
    alive = alive_from(list(outputs.values()))
    if any(n.id in alive and n.op in ("gt", "ge") and n.value is None for n in pool.nodes):
        raise StateLossError(
            "the file holds spiking neurons but carries no state from step to step: the export has lost it (snnTorch's init_hidden=True, "
            "a neuron of SpikingJelly or Norse that keeps its state to itself). "
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
    found.append(_unstarted(node))
    found.reverse()
    alike = len({n.signature for n in found}) == 1
    later = all(b.depth > a.depth for a, b in pairwise(found))
    return (found, scale) if len(found) > 2 and alike and later else ([], 1.0)


def _unstarted(node: Node) -> Node:
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
