"""Convolution and pooling by PyTorch, on arrays [batch, channels, *spatial]."""

import math

import torch
from torch.nn import functional

CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d}
MAXIMA = {1: functional.max_pool1d, 2: functional.max_pool2d}
AVERAGES = {1: functional.avg_pool1d, 2: functional.avg_pool2d}


def padded(x, padding, value=0.0):
    return functional.pad(x, [n for pair in reversed(padding) for n in pair], value=value)


def convolve(operation, x, weight, bias=None):
    dimensions = weight.ndim - 2
    options = {"stride": operation.stride or 1, "dilation": operation.dilation or 1, "groups": operation.groups}
    return CONVOLUTIONS[dimensions](padded(x, operation.padding), weight, bias, **options)


def pool(operation, x):
    dimensions = len(operation.kernel)
    padding = operation.padding or ((0, 0),) * dimensions
    native = all(before == after for before, after in padding) and (operation.kind == "max" or not any(d > 1 for d in operation.dilation))
    return native_pool(operation, x, [before for before, _ in padding]) if native else composed_pool(operation, x, padding)


def native_pool(operation, x, padding):
    """Pool with torch's own function, whose padding is the same on both sides."""
    dimensions = len(operation.kernel)
    stride = operation.stride or operation.kernel
    if operation.kind == "max":
        options = {"dilation": operation.dilation or 1, "ceil_mode": operation.ceil}
        return MAXIMA[dimensions](x, operation.kernel, stride, padding, **options)
    if operation.kind == "average":
        return AVERAGES[dimensions](x, operation.kernel, stride, padding, operation.ceil, operation.count_padding)
    wide = x if dimensions == 2 else x[..., None]  # only the 2-d form accepts a divisor
    ones = (1,) * (2 - dimensions)
    kernel, stride, padding = (*operation.kernel, *ones), (*stride, *ones), (*padding, *(0,) * (2 - dimensions))
    summed = functional.avg_pool2d(wide, kernel, stride, padding, operation.ceil, divisor_override=1)
    return summed if dimensions == 2 else summed[..., 0]


def composed_pool(operation, x, padding):
    """Pad separately, because padding may differ on both sides; `ceil` pads further and leaves out windows that start in the padding."""
    stride = operation.stride or operation.kernel
    dilation = operation.dilation or (1,) * len(stride)
    extent = [(k - 1) * d + 1 for k, d in zip(operation.kernel, dilation, strict=True)]
    more = [(before, after + (s - 1 if operation.ceil else 0)) for (before, after), s in zip(padding, stride, strict=True)]
    counts = []
    for n, (before, after), e, s in zip(x.shape[2:], padding, extent, stride, strict=True):
        room = n + before + after - e
        count = room // s + 1
        counts.append(count + (operation.ceil and room % s > 0 and count * s < n + before))
    crop = (slice(None), slice(None), *(slice(0, c) for c in counts))
    if operation.kind == "max":
        return MAXIMA[len(stride)](padded(x, more, -math.inf), operation.kernel, stride, 0, dilation)[crop]

    def summed(values):
        weight = torch.ones(values.shape[1], 1, *operation.kernel, dtype=x.dtype)
        return CONVOLUTIONS[len(stride)](padded(values, more), weight, None, stride, 0, dilation, values.shape[1])[crop]

    if operation.kind == "sum":
        return summed(x)
    counted = padded(torch.ones_like(x), padding, 1.0) if operation.count_padding else torch.ones_like(x)
    if operation.count_padding:
        weight = torch.ones(x.shape[1], 1, *operation.kernel, dtype=x.dtype)
        behind = [(0, after - inner) for (_, after), (_, inner) in zip(more, padding, strict=True)]
        divisor = CONVOLUTIONS[len(stride)](padded(counted, behind), weight, None, stride, 0, dilation, x.shape[1])[crop]
    else:
        divisor = summed(counted)
    return summed(x) / divisor
