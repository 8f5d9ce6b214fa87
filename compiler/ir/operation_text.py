"""Short descriptions of operations, and the number of values that they store."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Operation, Population


def parameter_counts(operation: Operation) -> tuple[int, int]:
    """Return the number of stored values of an operation, and of those that training may change."""
    if isinstance(operation, Population):
        sizes = {n: int(np.size(operation.parameters.get(n, default))) for n, default in operation.model.parameters.items()}
        return sum(sizes.values()), sum(sizes[n] for n in operation.learnable if n in sizes)
    weight = getattr(operation, "weight", None)
    bias = getattr(operation, "bias", None)
    total = sum(int(array.size) for array in (weight, bias) if array is not None)
    return total, total if getattr(operation, "learnable", False) else 0


def description(operation: Operation) -> str:
    """Describe an operation with the numbers that define it: ``conv 5x5 s2 p1, 1 to 12 channels, bias``.

    s is the stride, p the padding, d the dilation, g the number of groups.
    """
    match operation:
        case ir.Input(kind=what):
            return f"input of {what}"
        case Population(model=model, shape=shape):
            return f"{model.name}, {math.prod(shape):,} neurons"
        case ir.Linear(weight=weight):
            return _with_bias(f"dense {weight.shape[1]}x{weight.shape[0]}", operation)
        case ir.Sparse(weight=weight, shape=shape):
            return _with_bias(f"sparse {shape[1]}x{shape[0]}, {weight.size:,} weights", operation)
        case ir.Conv(weight=weight, groups=groups):
            windows = _windows(weight.shape[2:], operation.stride, operation.padding, operation.dilation, (1,) * (weight.ndim - 2))
            grouped = f" g{groups}" if groups > 1 else ""
            return _with_bias(f"conv {windows}{grouped}, {weight.shape[1] * groups} to {weight.shape[0]} channels", operation)
        case ir.Pool(kind=what):
            return f"{what} pool {_windows(operation.kernel, operation.stride, operation.padding, operation.dilation, operation.kernel)}"
        case ir.Scale():
            return _with_bias("scale", operation)
        case ir.OneToOne(weight=weight):
            return "one to one" if weight is not None else "one to one, no weights"
        case ir.Reduce(kind=what, axes=axes):
            return f"{what} over axes {', '.join(map(str, axes))}"
        case ir.Slice(axis=axis, start=start, stop=stop):
            return f"slice {start}:{stop} of axis {axis}"
        case ir.Concat(axis=axis):
            return f"concat, axis {axis}"
        case ir.Pad(padding=padding):
            return f"pad {', '.join(f'{a}+{b}' for a, b in padding)}"
    return {ir.Add: "add", ir.Flatten: "flatten", ir.Reshape: "reshape"}.get(type(operation), type(operation).__name__.lower())


def _with_bias(text: str, operation: Operation) -> str:
    return text if getattr(operation, "bias", None) is None else f"{text}, bias"


def _windows(
    kernel: Iterable[int], stride: tuple[int, ...], padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], usual: tuple[int, ...]
) -> str:
    """Return the size, stride, padding and dilation of windows as text; `usual` is the stride if none is set."""
    words = ["x".join(map(str, kernel))]
    words += [f"s{_numbers(stride or usual)}"]
    if any(any(pair) for pair in padding):
        pairs = [str(a) if a == b else f"{a}+{b}" for a, b in padding]
        words.append(f"p{pairs[0] if len(set(pairs)) == 1 else 'x'.join(pairs)}")
    if any(d != 1 for d in dilation):
        words.append(f"d{_numbers(dilation)}")
    return " ".join(words)


def _numbers(values: tuple[int, ...]) -> str:
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))
