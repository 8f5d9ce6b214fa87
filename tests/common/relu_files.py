"""Random ONNX files of ReLU networks, and their results in ONNX Runtime."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx_files import F, File


def drawn(rng, *shape, scale=None):
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    return (rng.standard_normal(shape) * (scale or 1.5 / np.sqrt(fan))).astype(F)


def named(f, source, name="y"):
    """Name the last value of a file as its output."""
    f.nodes[-1].output[0] = name
    assert source


def mlp(rng, path, sizes=(6, 8, 5), batch="batch", ceiling=None, matmul=False):
    """``sizes`` with a ReLU (or a Clip) between the layers."""
    f, x = File(), "x"
    for k, (n, m) in enumerate(pairwise(sizes)):
        if k:
            x = f("Relu", x) if ceiling is None else f("Clip", x, np.array(0, F), np.array(ceiling, F))
        w, b = drawn(rng, m, n), drawn(rng, m, scale=0.3)
        x = f("Add", b, f("MatMul", x, np.ascontiguousarray(w.T))) if matmul else f("Gemm", x, w, b, transB=1)
    named(f, x)
    return f.save(path, {"x": [batch, sizes[0]]}, ["y"])


def norm(f, rng, x, channels):
    values = [rng.uniform(0.5, 1.5, channels), drawn(rng, channels), drawn(rng, channels), rng.uniform(0.3, 2, channels)]
    return f("BatchNormalization", x, *(v.astype(F) for v in values))


def conv(f, rng, x, n, m, kernel=3, **attributes):
    attributes = {"pads": [kernel // 2] * 4, **attributes}
    return f("Conv", x, drawn(rng, m, n, kernel, kernel), drawn(rng, m, scale=0.2), **attributes)


def block(f, rng, x, channels):
    """Add one random block of a convolutional network; return its output, with the same number of channels."""
    match rng.integers(8):
        case 0:
            return f("Relu", norm(f, rng, conv(f, rng, x, channels, channels), channels))
        case 1:
            return f("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
        case 2:
            return f("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], count_include_pad=int(rng.integers(2)))
        case 3:
            return f("Relu", f("Add", x, conv(f, rng, f("Relu", conv(f, rng, x, channels, channels)), channels, channels)))
        case 4:
            half = channels // 2
            parts = [f("Relu", conv(f, rng, x, channels, half)), f("Relu", conv(f, rng, x, channels, channels - half, 1))]
            return f("Concat", *parts, axis=1)
        case 5:
            return f("Clip", norm(f, rng, x, channels), np.array(0, F), np.array(6, F))
        case 6:
            return f("Relu", f("MaxPool", conv(f, rng, x, channels, channels), kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]))
    return f("Relu", f("Sub", f("Mul", f("Dropout", x), np.array(0.7, F)), drawn(rng, channels, 1, 1)))


def cnn(rng, path, blocks=3, batch="batch", size=5):
    """A random convolutional network over [batch, 2, size, size] with 4 outputs."""
    f = File()
    x = f("Relu", conv(f, rng, "x", 2, 4))
    for _ in range(blocks):
        x = block(f, rng, x, 4)
    if rng.integers(2):
        x, width = f("Flatten", f("GlobalMaxPool" if rng.integers(2) else "GlobalAveragePool", x)), 4
    else:
        x, width = f("Reshape", x, np.array([0, -1])), 4 * size * size
    named(f, f("Gemm", x, drawn(rng, 4, width), drawn(rng, 4), transB=1))
    return f.save(path, {"x": [batch, 2, size, size]}, ["y"])


def runtime(path, x, name="x"):
    """Run a file in ONNX Runtime, in as many batches as necessary."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    size = session.get_inputs()[0].shape[0]
    x = np.asarray(x, F)
    parts = [x] if not isinstance(size, int) else [x[k : k + size] for k in range(0, len(x), size)]
    return np.concatenate([session.run(None, {name: part})[0] for part in parts])
