"""Find constants of an exported PyTorch module that are trainable parameters, or are computed from them.

In files exported by snnc, parameters of neurons have names. A value that the module computes from parameters normally stays an expression
in the neuron's equations, so that the parameters get the same gradients as in the module. Exception: if the value is sigmoid(p) or
1 - sigmoid(p) of one parameter p, the network trains this value itself instead of p, under a name such as ``fc.sigmoid_beta``.
"""

from __future__ import annotations

import numpy as np

from snnc.frontends.onnx.flattening.node import Node


def is_learned(node: Node) -> bool:
    """Return whether a constant is a trainable parameter, or computed from one."""
    return node.op == "parameter" or any(is_learned(operand) for operand in node.inputs)


def label_of(node: Node) -> str:
    """Return the name of a parameter (``fc.beta``), its sigmoid (``fc.sigmoid_beta``), or 1 minus the sigmoid; "" for other constants."""
    inner, prefix = _unclipped(node), ""
    one = inner.inputs[0] if inner.op == "sub" else None
    if one and one.value is not None and not is_learned(one) and (one.value == 1.0).all() and inner.inputs[1].op == "sigmoid":
        inner, prefix = inner.inputs[1], "one_minus_"
    if inner.op == "sigmoid":
        inner, prefix = inner.inputs[0], f"{prefix}sigmoid_"
    if inner.op != "parameter":
        return ""
    owner, _, last = str(inner.attrs[0]).rpartition(".")
    return ".".join(part for part in (owner, prefix + last) if part)


def _unclipped(node: Node) -> Node:
    """Skip clips that change neither value nor gradient, because the value is strictly within their bounds."""
    while node.op in ("min", "max"):
        inner, bound = sorted(node.inputs, key=is_learned, reverse=True)
        value, limit = np.asarray(inner.value), np.asarray(bound.value)
        if not is_learned(inner) or is_learned(bound) or not (value < limit if node.op == "min" else value > limit).all():
            break
        node = inner
    return node
