"""Find the constants of an exported PyTorch module that are trainable parameters, or computed from parameters.

snnc's exports name the parameters of neurons. A value that the module computes from parameters stays an expression in the
neuron's equations, so that the parameters have the same gradients as in the module. If the expression is the sigmoid of one parameter, or
1 minus it, its value becomes the parameter.
"""

from __future__ import annotations

import numpy as np

from snnc.frontends.onnx.flattening.node import Node


def learned(node: Node) -> bool:
    """Return whether a constant is a trainable parameter, or computed from one."""
    return node.op == "parameter" or any(learned(operand) for operand in node.inputs)


def label_of(node: Node) -> str:
    """Return the name of a constant that is a parameter (``fc.beta``), its sigmoid (``fc.sigmoid_beta``) or 1 minus it; "" for others."""
    inner = _unclipped(node)
    if inner.op == "parameter":
        return str(inner.attrs[0])
    for function in ("one_minus_sigmoid", "sigmoid"):
        found = _argument(inner, function)
        if found is not None and found.op == "parameter":
            owner, _, last = str(found.attrs[0]).rpartition(".")
            return ".".join(part for part in (owner, f"{function}_{last}") if part)
    return ""


def _argument(node: Node, function: str) -> Node | None:
    """Return the operand to which `node` applies `function`; None for other nodes."""
    if function == "sigmoid":
        return node.inputs[0] if node.op == "sigmoid" else None
    if node.op == "sub" and _is(node.inputs[0], 1.0):
        return _argument(node.inputs[1], "sigmoid")
    return None


def _is(node: Node, value: float) -> bool:
    """Return whether a node is the constant `value`."""
    return node.value is not None and not learned(node) and bool((node.value == value).all())


def _unclipped(node: Node) -> Node:
    """Skip clips that change neither value nor gradient, because all values are strictly within the bounds."""
    while node.op in ("min", "max"):
        inner = [n for n in node.inputs if learned(n)]
        bounds = [n for n in node.inputs if not learned(n)]
        if len(inner) != 1 or len(bounds) != 1 or inner[0].value is None or bounds[0].value is None:
            break
        value, bound = np.asarray(inner[0].value), np.asarray(bounds[0].value)
        if not (value < bound if node.op == "min" else value > bound).all():
            break
        node = inner[0]
    return node
