"""Handlers of matrix products (MatMul, Gemm, Einsum), means of several values, and reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial, reduce
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import MalformedGraphError, ShapeError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool
from snnc.frontends.onnx.flattening.shaping import elementwise

_MAX_BLOCKS: Final = 256
"""Maximum number of blocks of a product (see `_contract`), each of which becomes a matrix product."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _einsum(call: OperatorCall) -> list[Value]:
    text, nodes = str(call.attribute("equation", "")).replace(" ", ""), call.nodes()
    terms, result = _terms(call, text, [len(n.shape) for n in nodes])
    for term, node in zip(terms, nodes, strict=True):
        if len(set(term)) != len(term):
            raise UnsupportedOperatorError(f"{call.where}: the equation {text!r} reads a diagonal, which snnc does not support.")
        _check_sizes(call, terms, nodes, term, node)
    if len(nodes) > 2:
        raise UnsupportedOperatorError(
            f"{call.where}: the equation {text!r} multiplies {len(nodes)} values; snnc reads one or two. Split it."
        )
    if len(nodes) == 1:
        return [_arranged(call.pool, *_summed(call.pool, nodes[0], terms[0], result), result)]
    (a, b), (x, y) = nodes, terms
    if a.value is not None and b.value is not None:
        return [call.pool.const(np.einsum(f"{x},{y}->{result}", a.value, b.value).astype(a.value.dtype))]
    if a.value is not None:
        a, b, x, y = b, a, y, x
    if b.value is not None:
        return [_contract(call.pool, a, x, b.value, y, result)]
    return [_product(call.pool, a, x, b, y, result)]


def _terms(call: OperatorCall, text: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with ellipses replaced by letters."""
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise MalformedGraphError(f"{call.where}: the equation {text!r} has {len(terms)} operands, but the node has {len(ranks)}.")
    replaced = max((r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True) if "..." in t), default=0)
    unused = [c for c in _LETTERS if c not in text][: max(0, replaced)]
    terms = [t.replace("...", "".join(unused[len(unused) - (r - len(t.replace("...", ""))) :])) for t, r in zip(terms, ranks, strict=True)]
    letters = "".join(terms)
    if not arrow:
        result = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in unused))
    result = result.replace("...", "".join(unused))
    if [len(t) for t in terms] != ranks or not set(result) <= set(letters) or not letters.isalpha():
        raise MalformedGraphError(f"{call.where}: the equation {text!r} does not fit operands of {ranks} axes.")
    return terms, result


def _check_sizes(call: OperatorCall, terms: list[str], nodes: list[Node], term: str, node: Node) -> None:
    for letter, size in zip(term, node.shape, strict=True):
        for other, n in zip(terms, nodes, strict=True):
            if letter in other and n.shape[other.index(letter)] != size:
                raise ShapeError(f"{call.where}: the axis '{letter}' has {size} entries, but also {n.shape[other.index(letter)]}.")


def _summed(pool: NodePool, x: Node, letters: str, remaining: str) -> tuple[Node, str]:
    """Return `x` summed over the axes whose letters are not in `remaining`, and its letters."""
    axes = tuple(k for k, c in enumerate(letters) if c not in remaining)
    if not axes:
        return x, letters
    return shaping.reduce(pool, x, "sum", axes, False), "".join(c for c in letters if c in remaining)


def _arranged(pool: NodePool, x: Node, letters: str, result: str) -> Node:
    """Return `x`, whose axes are `letters`, with the axes in the order of `result`."""
    return shaping.transpose(pool, x, tuple(letters.index(c) for c in result))


def _product(pool: NodePool, a: Node, x: str, b: Node, y: str, result: str) -> Node:
    """Return the product of two values of the network, multiplied elementwise and then summed."""
    a, x = _summed(pool, a, x, y + result)
    b, y = _summed(pool, b, y, x + result)
    union = "".join(dict.fromkeys(x + y))
    factors = []
    for node, letters in ((a, x), (b, y)):
        ordered = "".join(c for c in union if c in letters)
        moved = _arranged(pool, node, letters, ordered)
        factors.append(shaping.reshape(pool, moved, tuple(moved.shape[ordered.index(c)] if c in ordered else 1 for c in union)))
    return _arranged(pool, *_summed(pool, elementwise(pool, "mul", *factors), union, result), result)


def _contract(pool: NodePool, x: Node, letters: str, weight: Array, axes: str, result: str) -> Node:
    """Return ``einsum("letters,axes->result", x, weight)`` for a constant weight.

    Axes that occur in both operands and in the result divide the product into blocks; each block has its own part of the weight.
    """
    x, letters = _summed(pool, x, letters, axes + result)
    extra = tuple(k for k, c in enumerate(axes) if c not in letters + result)
    if extra:
        weight, axes = weight.sum(extra), "".join(c for c in axes if c in letters + result)
    blocks = [c for c in letters if c in axes and c in result]
    inner = [c for c in letters if c in axes and c not in result]
    outer = [c for c in axes if c not in letters]
    if not inner and not outer:
        shared = "".join(c for c in letters if c in axes)
        shape = tuple(weight.shape[axes.index(c)] if c in shared else 1 for c in letters)
        factor = np.transpose(weight, tuple(axes.index(c) for c in shared)).reshape(shape)
        return _arranged(pool, elementwise(pool, "mul", x, pool.const(np.ascontiguousarray(factor))), letters, result)
    free = [c for c in letters if c not in axes]
    size = dict(zip(letters, x.shape, strict=True)) | dict(zip(axes, weight.shape, strict=True))
    x = _arranged(pool, x, letters, "".join([*blocks, *free, *inner]))
    ordered = np.transpose(weight, tuple(axes.index(c) for c in (*blocks, *outer, *inner)))
    count = math.prod(size[c] for c in blocks)
    if count > _MAX_BLOCKS:
        raise UnsupportedOperatorError(
            f"a product with {count} blocks of weights exceeds the maximum of {_MAX_BLOCKS}. Use a convolution with groups."
        )
    rows, columns = math.prod(size[c] for c in outer), math.prod(size[c] for c in inner)
    middle = tuple(size[c] for c in free)
    parts = []
    stacked = shaping.reshape(pool, x, (count, *middle, columns))
    for k, block in enumerate(ordered.reshape(count, rows, columns)):
        part = shaping.at_index(pool, stacked, 0, k) if count > 1 else shaping.drop_axis(pool, stacked, 0)
        product = shaping.linear(pool, part, pool.const(np.ascontiguousarray(block, np.float32)))
        parts.append(shaping.reshape(pool, product, (1, *product.shape)))
    joined = shaping.concat(pool, tuple(parts), 0)
    spread = shaping.reshape(pool, joined, (*(size[c] for c in blocks), *middle, *(size[c] for c in outer)))
    return _arranged(pool, spread, "".join([*blocks, *free, *outer]), result)


def _tensor_product(call: OperatorCall, a: Node, b: Node) -> Node | None:
    """Return the product of a value with a constant, both of any rank; None unless exactly one of them is constant."""
    if (a.value is None) == (b.value is None):
        return None
    left, right = a.shape, b.shape
    rank = max(len(left), len(right), 2)
    names = _LETTERS[: rank - 2]
    x = ("" if len(left) < 2 else names[rank - len(left) :] + "y") + "z"
    y = "z" if len(right) < 2 else names[rank - len(right) :] + "zw"
    if left[-1] != right[-1 if len(right) < 2 else -2]:
        raise ShapeError(f"{call.where}: the shapes {list(left)} and {list(right)} cannot be multiplied.")
    result = names + ("" if len(left) < 2 else "y") + ("" if len(right) < 2 else "w")
    node, letters, value, axes = (a, x, b.value, y) if b.value is not None else (b, y, a.value, x)
    if value is None:
        return None
    shape = dict(zip(letters, node.shape, strict=True))
    kept = [k for k, c in enumerate(axes) if not (c in names and value.shape[k] == 1)]
    value, axes = value.reshape([value.shape[k] for k in kept]), "".join(axes[k] for k in kept)
    ones = [k for k, c in enumerate(letters) if c in names and shape[c] == 1 and c in axes]
    node = shaping.reshape(call.pool, node, tuple(d for k, d in enumerate(node.shape) if k not in ones))
    letters = "".join(c for k, c in enumerate(letters) if k not in ones)
    sizes = dict(zip(axes, value.shape, strict=True))
    if any(c in axes and shape[c] != sizes[c] for c in letters):
        raise ShapeError(f"{call.where}: the shapes {list(left)} and {list(right)} cannot be multiplied.")
    present = "".join(c for c in result if c in letters + axes)
    product = _contract(call.pool, node, letters, value, axes, present)
    size = dict(zip(present, product.shape, strict=True))
    return shaping.reshape(call.pool, product, tuple(size.get(c, 1) for c in result))


def _matmul(call: OperatorCall) -> list[Value]:
    a, b = call.node(0), call.node(1)
    if b.value is not None and b.value.ndim == 2:
        return [shaping.linear(call.pool, a, call.pool.derived("T", b, np.transpose))]
    if a.value is not None and a.value.ndim == 2 and len(b.shape) == 2:
        flipped = shaping.linear(call.pool, shaping.transpose(call.pool, b, (1, 0)), a)
        return [shaping.transpose(call.pool, flipped, (1, 0))]
    product = _tensor_product(call, a, b)
    if product is not None:
        return [product]
    raise UnsupportedOperatorError(
        f"{call.where}: it multiplies {list(a.shape)} by {list(b.shape)}; snnc reads products of a value with a constant matrix."
    )


def _gemm(call: OperatorCall) -> list[Value]:
    a, b = call.node(0), call.node(1)
    if b.value is None and a.value is not None:
        raise UnsupportedOperatorError(
            f"{call.where}: it multiplies a constant {list(a.shape)} by values {list(b.shape)} from the left, which mixes the entries of "
            "their first axis (time, in a parallel spiking neuron); snnc runs step by step. Use a neuron that computes one step at a time, "
            "or export one step."
        )
    if b.value is None or len(b.shape) != 2 or len(a.shape) != 2:
        raise UnsupportedOperatorError(f"{call.where}: snnc reads Gemm of a matrix with a constant matrix.")
    if call.flag("transA"):
        a = shaping.transpose(call.pool, a, (1, 0))
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    w = b if call.flag("transB") else call.pool.derived("T", b, np.transpose)
    if alpha != 1.0:
        w = call.pool.derived(f"*{alpha!r}", w, lambda array: np.float32(alpha) * array)
    if not call.has(2):
        return [shaping.linear(call.pool, a, w)]
    c = call.node(2)
    if c.value is None:
        product = shaping.linear(call.pool, a, w)
        scaled = c if beta == 1.0 else call.elementwise("mul", c, beta)
        return [call.elementwise("add", product, scaled)]
    bias = c.value if beta == 1.0 else np.float32(beta) * c.value
    if bias is c.value and bias.shape == (w.shape[0],):
        return [shaping.linear(call.pool, a, w, c)]
    if bias.ndim == 2 and bias.shape[0] == 1:
        bias = bias[0]
    if bias.ndim == 0 or bias.shape == (1,):
        bias = np.broadcast_to(bias.reshape(-1), (w.shape[0],))
    if bias.shape != (w.shape[0],):
        raise ShapeError(f"{call.where}: a bias of shape {list(c.shape)} does not fit {w.shape[0]} outputs.")
    return [shaping.linear(call.pool, a, w, call.pool.const(bias))]


def _reduce(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axes = call.axes(len(x.shape), 1)
    if axes is None or (not axes and not call.flag("noop_with_empty_axes")):
        axes = tuple(range(len(x.shape)))
    kind = call.operation.op.removeprefix("Reduce").lower()
    return [shaping.reduce(call.pool, x, kind, tuple(sorted(axes)), call.flag("keepdims", 1))]


def _mean(call: OperatorCall) -> list[Value]:
    total = reduce(partial(call.elementwise, "add"), call.nodes())
    return [call.elementwise("div", total, len(call.arguments))]


HANDLERS: Final[Mapping[str, Handler]] = {
    "Einsum": _einsum,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Mean": _mean,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"), _reduce),
}
