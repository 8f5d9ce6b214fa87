"""Shapes of the values that each node of a NIR graph reads and returns, for the interpreter.

:mod:`snnc.frontends.nir.reading.infer` infers them for the import; the code is separate, so that comparing the two is meaningful.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from snnc.compiler.ir.graph import Array, Shape
from snnc.frontends.nir.errors import NirSimulationError
from snnc.frontends.nir.interpreter.wired_graph import Unfolded
from snnc.frontends.nir.reading.fields import NEURONS, NirNode

_WINDOWS: Final = {"Conv1d": 1, "Conv2d": 2, "SumPool2d": 2, "AvgPool2d": 2}
"""Number of spatial axes of each type of node with windows."""


def entering_shapes(unfolded: Unfolded) -> dict[str, Shape]:
    """Return the input shape of each node; a shape that cannot be determined raises a NirSimulationError.

    A weight matrix, or the shape that an Input declares, fixes the shape of its node. An Input that declares none gets the shape of its
    first target with a known shape. Any other node gets the output shape of its source with the most axes or, without a source of known
    shape, the shape of its largest field (a convolution: its declared input shape). Leading axes of size 1 that an Input declares (the
    exporter's batch) are removed if its targets agree on the other axes.
    """
    sources, targets = unfolded.sources(), unfolded.targets()
    entering: dict[str, Shape] = {}
    outputs: dict[str, Shape] = {}

    def fix_shape(name: str, shape: Shape) -> None:
        entering[name] = shape
        outputs[name] = leaving_shape(unfolded.nodes[name], shape)
        waiting.extend(targets[name])

    waiting: deque[str] = deque()
    for name, node in unfolded.nodes.items():
        if (fixed := _declared_shape(node)) is not None:
            readable = {_readable_shape(unfolded.nodes[t], fixed) for t in targets[name]} if node.type == "Input" else set()
            without_batch = readable.pop() if len(readable) == 1 else None
            fix_shape(name, without_batch if without_batch and math.prod(without_batch) == math.prod(fixed) else fixed)
    for name, node in unfolded.nodes.items():
        if node.type == "Input" and name not in entering:
            of_targets = [s for s in (entering.get(t) or _fields_shape(unfolded.nodes[t]) for t in targets[name]) if s is not None]
            if of_targets:
                fix_shape(name, of_targets[0])
    fixed_names = set(entering)
    reserve = deque(unfolded.nodes)
    while waiting or reserve:
        while waiting:
            name = waiting.popleft()
            arriving = [outputs[s] for s in sources[name] if s in outputs]
            if name not in fixed_names and (name not in entering or max(map(len, arriving)) > len(entering[name])):
                fix_shape(name, max(arriving, key=len))
        if reserve and (name := reserve.popleft()) not in entering and (shape := _fields_shape(unfolded.nodes[name])):
            fix_shape(name, shape)
    unknown = [name for name in unfolded.nodes if name not in entering]
    if unknown:
        raise NirSimulationError(f"neither fields nor sources define the shape of {', '.join(map(repr, unknown[:6]))}.")
    return entering


def _declared_shape(node: NirNode) -> Shape | None:
    """Return the only shape that `node` can read; None if it accepts any."""
    if node.type in ("Linear", "Affine"):
        return (node.fields["weight"].shape[1],)
    if node.type == "Input" and "shape" in node.fields:
        return tuple(int(n) for n in node.fields["shape"].reshape(-1))
    return None


def _readable_shape(node: NirNode, declared: Shape) -> Shape | None:
    """Return the last axes of `declared` that `node` reads; None if its fields do not determine them."""
    if node.type in ("Linear", "Affine"):
        required: Shape | None = _declared_shape(node)
    elif node.type in ("Conv1d", "Conv2d"):
        channels = node.fields["weight"].shape[1] * int(node.fields["groups"].reshape(-1)[0])
        required = (channels, *declared[len(declared) - _WINDOWS[node.type] :])
    else:
        required = _fields_shape(node) or None
    return required if required and declared[len(declared) - len(required) :] == required else None


def leaving_shape(node: NirNode, shape: Shape) -> Shape:
    """Return the output shape of `node` for the input shape `shape`, or raise a NirSimulationError if no window fits."""
    if node.type in ("Linear", "Affine"):
        return (node.fields["weight"].shape[0],)
    if node.type == "Flatten":
        first, last = _joined(node, len(shape))
        return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
    if node.type not in _WINDOWS:
        return shape
    window = Window(node)
    if len(shape) != len(window.kernel) + 1:
        raise NirSimulationError(f"{node.path!r} ({node.type}) reads {list(shape)} instead of channels and {len(window.kernel)} axes.")
    channels = node.fields["weight"].shape[0] if "weight" in node.fields else shape[0]
    sizes = [
        (size + sum(pad) - dilation * (kernel - 1) - 1) // stride + 1
        for size, pad, dilation, kernel, stride in zip(
            shape[1:], window.padding, window.dilation, window.kernel, window.stride, strict=True
        )
    ]
    if min(sizes) < 1:
        raise NirSimulationError(f"no window of {node.path!r} ({node.type}) fits into {list(shape)}.")
    return (channels, *sizes)


def _joined(node: NirNode, axes: int) -> tuple[int, int]:
    """Return the first and last axis that a Flatten joins, counted within one sample."""
    if axes < 2:
        return 0, 0
    first, last = (int(node.fields[f].reshape(-1)[0]) % axes for f in ("start_dim", "end_dim"))
    return first, last


class Window:
    """Settings of a convolution or pooling, one value per axis."""

    def __init__(self, node: NirNode) -> None:
        axes = _WINDOWS[node.type]
        weight = node.fields.get("weight")

        def numbers(name: str) -> tuple[int, ...]:
            values = [int(n) for n in node.fields[name].reshape(-1)] if name in node.fields else [1]
            return tuple(values * axes if len(values) == 1 else values)

        self.kernel = numbers("kernel_size") if weight is None else tuple(weight.shape[2:])
        self.stride, self.dilation = numbers("stride"), numbers("dilation")
        word = node.words.get("padding")
        totals = [d * (k - 1) if word == "same" else 0 for d, k in zip(self.dilation, self.kernel, strict=True)]
        pairs = [(n // 2, n - n // 2) for n in totals] if word else [(n, n) for n in numbers("padding")]
        self.padding = tuple(pairs)

    def spans(self) -> tuple[int, ...]:
        """Return the extent of a window on each axis, including dilation."""
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))

    def windows_of(self, x: Array) -> Array:
        """Return the windows of [B, C, *axes] as [B, C, *positions, *kernel]."""
        padded = np.pad(x, ((0, 0), (0, 0), *self.padding))
        axes = tuple(range(2, x.ndim))
        windows: Array = sliding_window_view(padded, self.spans(), axis=axes)
        positions = tuple(slice(None, None, s) for s in self.stride)
        taps = tuple(slice(None, None, d) for d in self.dilation)
        return windows[(slice(None), slice(None), *positions, *taps)]


def _fields_shape(node: NirNode) -> Shape | None:
    """Return the shape of a node's largest field with one value per neuron, or a convolution's declared shape; else None."""
    if node.type in ("Conv1d", "Conv2d") and node.fields.get("input_shape", np.zeros(0)).size:
        channels = node.fields["weight"].shape[1] * int(node.fields["groups"].reshape(-1)[0])
        return (channels, *(int(n) for n in node.fields["input_shape"].reshape(-1)))
    if node.type not in NEURONS | {"Threshold", "Scale", "Delay"}:
        return None
    largest = max(node.fields.values(), key=lambda array: (array.size, array.ndim))
    return tuple(largest.shape)
