"""Small networks whose connections are not dense."""

import numpy as np
from nets import join, linear

from snnc.compiler.ir.graph import Conv, Flatten, Graph, Input, Output, Pad, Pool, Population, Reduce, Scale, Slice, Sparse
from snnc.compiler.neurons.library import LI, LIF


def sparse(random, outputs, inputs, density, bias=False, gain=3.0, **options):
    mask = random.random((outputs, inputs)) < density
    mask[0, 0] = True
    indices = [np.flatnonzero(row).astype(np.int32) for row in mask]
    weight = (random.normal(size=mask.sum()) * gain / np.sqrt(density * inputs)).astype(np.float32)
    indptr = np.cumsum([0, *map(len, indices)]).astype(np.int32)
    given = random.normal(size=outputs).astype(np.float32) * 0.1 if bias else None
    return Sparse(weight, np.concatenate(indices), indptr, (outputs, inputs), given, **options)


def conv(random, outputs, inputs, *kernel, bias=False, gain=2.0, **options):
    weight = random.normal(size=(outputs, inputs, *kernel)) * gain / np.sqrt(inputs * np.prod(kernel))
    return Conv(weight.astype(np.float32), random.normal(size=outputs).astype(np.float32) * 0.2 if bias else None, **options)


def read_out(graph, random, *sources):
    """Add a readout of four classes and the records."""
    graph.add("readout", Population(LI(0.9), (4,)))
    for source, width in sources:
        graph.connect(source, graph.add(f"flat {source}", Flatten()))
        join(graph, f"out {source}", linear(random, 4, width, gain=2), f"flat {source}", "readout")
    for name, source in (("y", "readout"), *((f"shown {s}", s) for s, _ in sources)):
        graph.add(name, Output())
        graph.connect(source, name)
    return graph


def sparse_recurrent(random):
    """Learnable sparse weights, with biases, some frozen, some so few that rows are found by key; two share a target."""
    graph = Graph("sparse_recurrent")
    graph.add("x", Input((24,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (40,)))
    graph.add("second", Population(LIF(0.8), (15,)))
    join(graph, "in", sparse(random, 40, 24, 0.3, bias=True), "x", "hidden")
    join(graph, "loop", sparse(random, 40, 40, 0.06), "hidden", "hidden", delay=1)
    join(graph, "fixed", sparse(random, 15, 40, 0.2, learnable=False), "hidden", "second")
    join(graph, "late", sparse(random, 15, 40, 0.1), "hidden", "second", delay=2)
    return read_out(graph, random, ("hidden", 40), ("second", 15))


def convolutional(random):
    """Convolution, average, grouped and strided convolutions, a depthwise loop."""
    graph = Graph("convolutional")
    graph.add("x", Input((2, 6, 6), "spikes"))
    graph.add("first", Population(LIF(0.9), (4, 6, 6)))
    join(graph, "conv", conv(random, 4, 2, 3, 3, bias=True, padding=((1, 1), (1, 1))), "x", "first")
    join(graph, "depthwise", conv(random, 4, 1, 3, 3, groups=4, padding=((1, 1), (1, 1))), "first", "first", delay=1)
    graph.add("pooled", Population(LIF(0.9, 0.5), (4, 3, 3)))
    join(graph, "average", Pool("average", (2, 2)), "first", "pooled")
    graph.add("grouped", Population(LIF(0.9, 0.7), (6, 3, 3)))
    join(graph, "groups", conv(random, 6, 2, 2, 2, bias=True, groups=2, padding=((1, 0), (0, 1))), "pooled", "grouped")
    graph.add("strided", Population(LIF(0.9, 0.7), (3, 3, 2)))
    join(graph, "strides", conv(random, 3, 4, 2, 3, stride=(2, 2), padding=((0, 0), (1, 0)), dilation=(1, 2)), "first", "strided")
    return read_out(graph, random, ("grouped", 54), ("strided", 18))


def pooled(random):
    """Max pooling that skips inputs, overlaps, pads and extends past the edge; groups, strides, dilation, a loop, value inputs."""
    graph = Graph("pooled")
    graph.add("x", Input((2, 9, 8)))

    def layer(name, source, convolution, pool, shape, delay=0):
        if name not in graph.names:
            graph.add(name, Population(LIF(0.9, 0.4), shape))
        weights = graph.add(f"{name} from {source}", convolution)
        graph.connect(source, weights, delay=delay)
        join(graph, f"{name} maxima of {source}", pool, weights, name)

    layer("a", "x", conv(random, 18, 2, 3, 3, bias=True, padding=((1, 1), (1, 1))), Pool("max", (2, 2)), (18, 4, 4))
    layer(
        "a",
        "a",
        conv(random, 18, 9, 3, 3, groups=2, padding=((1, 1), (1, 1))),
        Pool("max", (3, 3), (1, 1), ((1, 1), (1, 1))),
        (18, 4, 4),
        1,
    )
    layer("b", "a", conv(random, 5, 18, 2, 2, stride=(2, 1), bias=True), Pool("max", (2, 2), (1, 2), ceil=True), (5, 1, 2))
    layer("b", "x", conv(random, 5, 2, 3, 2, dilation=(1, 3)), Pool("max", (6, 2)), (5, 1, 2), 2)
    graph.add("c", Population(LIF(0.9, 0.4), (3, 3, 3)))
    join(graph, "plain", conv(random, 3, 18, 2, 2), "a", "c")
    return read_out(graph, random, ("b", 10), ("c", 27))


def shaping(random):
    """Values that are scaled, sliced, padded, summed and averaged."""
    graph = Graph("shaping")
    graph.add("x", Input((2, 4, 5)))
    graph.add("scaled", Population(LIF(0.9), (2, 4, 5)))
    scale = Scale(random.uniform(1, 3, (2, 1, 1)).astype(np.float32), random.normal(size=(4, 1)).astype(np.float32) * 0.1, learnable=True)
    join(graph, "scale", scale, "x", "scaled")
    for name, operation, shape in (
        ("cut", Slice(1, 1, 3), (2, 2, 5)),
        ("padded", Pad(((0, 1), (1, 0), (0, 2))), (3, 5, 7)),
        ("mean", Reduce("mean", (1, 2)), (2,)),
        ("sum", Reduce("sum", (0,)), (4, 5)),
        ("windows", Pool("sum", (2, 3), (1, 2), ((1, 1), (1, 1))), (2, 5, 3)),
    ):
        graph.add(name, Population(LI(0.8), shape))
        join(graph, f"to {name}", operation, "scaled", name)
    graph.connect("x", graph.add("row", Slice(1, 0, 1)))
    graph.connect("row", graph.add("rows", Population(LI(0.5), (2, 1, 5))))
    join(graph, "back", Scale(random.normal(size=(2, 1, 1)).astype(np.float32), None, learnable=True), "cut", "cut", delay=1)
    return read_out(graph, random, ("cut", 20), ("padded", 105), ("mean", 2), ("sum", 20), ("windows", 30), ("rows", 10))


def choosing(random):
    """Maxima of spikes and of values, over windows that overlap and over whole axes."""
    graph = Graph("choosing")
    graph.add("x", Input((2, 5, 6), "spikes"))
    graph.add("first", Population(LIF(0.9), (3, 5, 6)))
    join(graph, "conv", conv(random, 3, 2, 3, 3, bias=True, padding=((1, 1), (1, 1))), "x", "first")
    for name, source, port, operation, shape in (
        ("largest", "first", "s", Pool("max", (2, 2)), (3, 2, 3)),
        ("overlapping", "first", "s", Pool("max", (3, 2), (1, 1), ((1, 1), (0, 1))), (3, 5, 6)),
        ("of values", "first", "v", Pool("max", (2, 3), (2, 1), ((1, 0), (0, 0))), (3, 3, 4)),
        ("channel", "first", "s", Reduce("max", (1, 2)), (3,)),
        ("of inputs", "x", None, Pool("max", (2, 2)), (2, 2, 3)),
    ):
        graph.add(name, Population(LI(0.8), shape))
        join(graph, f"to {name}", operation, source, name, **({"source_port": port} if port else {}))
    widths = {"largest": 18, "overlapping": 90, "of values": 36, "channel": 3, "of inputs": 12}
    return read_out(graph, random, *widths.items())
