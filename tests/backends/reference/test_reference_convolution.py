"""Convolution, pooling, scales, reductions and slices of the reference backend, compared with PyTorch."""

import numpy as np
import pytest
import snntorch
import snntorch.functional
import torch
from gradients import compare_gradients, relative_error
from graph_oracle import TorchGraph, reduced
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch_windows import composed_pool, convolve, native_pool, pool
from wide import examples, sampled

from snnc.backends.reference import convolution, pooling, scaling
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.errors import WindowError
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
    Flatten,
    Graph,
    Input,
    Linear,
    Output,
    Pad,
    Pool,
    Population,
    Reduce,
    Reshape,
    Scale,
    Slice,
    Sparse,
    source_ports,
)
from snnc.compiler.ir.shapes import port_map, reduced_axes
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.passes.fold_scale import fold_scale


def vary(tensor_shape, seed, levels=None):
    random = np.random.default_rng(seed)
    values = random.normal(size=tensor_shape) if levels is None else random.integers(0, levels, tensor_shape)
    return np.asarray(values, np.float64)


def numbers(draw, dimensions, least, most):
    return tuple(draw(st.integers(least, most)) for _ in range(dimensions))


@st.composite
def convolutions(draw):
    """An operation and its input [B, channels, *spatial]."""
    dimensions, groups = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 1, 2, 3]))
    shape = (groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2)))
    weight = vary((shape[0], shape[1] // groups, *numbers(draw, dimensions, 1, 3)), draw(st.integers(0, 999)))
    operation = Conv(
        weight,
        vary(shape[:1], 1) if draw(st.booleans()) else None,
        draw(st.sampled_from([(), numbers(draw, dimensions, 1, 3)])),
        draw(st.sampled_from([(), tuple(zip(numbers(draw, dimensions, 0, 2), numbers(draw, dimensions, 0, 2), strict=True))])),
        draw(st.sampled_from([(), numbers(draw, dimensions, 1, 3)])),
        groups,
    )
    return operation, vary((draw(st.integers(1, 3)), shape[1], *numbers(draw, dimensions, 1, 8)), draw(st.integers(0, 999)))


@st.composite
def pools(draw):
    dimensions = draw(st.sampled_from([1, 2]))
    operation = Pool(
        draw(st.sampled_from(["average", "sum", "max"])),
        numbers(draw, dimensions, 1, 4),
        draw(st.sampled_from([(), numbers(draw, dimensions, 1, 4)])),
        draw(st.sampled_from([(), tuple(zip(numbers(draw, dimensions, 0, 2), numbers(draw, dimensions, 0, 2), strict=True))])),
        draw(st.sampled_from([(), numbers(draw, dimensions, 1, 2)])),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    levels = draw(st.sampled_from([None, 2, 3]))  # few levels make ties
    return operation, vary((draw(st.integers(1, 2)), 2, *numbers(draw, dimensions, 1, 9)), draw(st.integers(0, 999)), levels)


def windows_or_skip(operation, x):
    try:
        return windows_of("op", operation, x.shape[1:])
    except WindowError:
        assume(False)


@settings(max_examples=examples(60, 300), deadline=None)
@given(convolutions())
def test_convolutions_and_their_gradients_are_those_of_pytorch(case):
    operation, x = case
    windows = windows_or_skip(operation, x)
    ours = x.reshape(len(x), -1)
    found = convolution.convolve(ours, operation.weight, windows, operation.groups)
    tensor, weight = torch.tensor(x, requires_grad=True), torch.tensor(operation.weight, requires_grad=True)
    wanted = convolve(operation, tensor, weight)
    assert wanted.shape[1:] == (len(operation.weight), *windows.output)
    np.testing.assert_allclose(found, wanted.detach().flatten(1), rtol=1e-11, atol=1e-11)
    d_y = vary(found.shape, 3)
    wanted.backward(torch.tensor(d_y).reshape(wanted.shape))
    d_x = convolution.convolve_input_gradient(d_y, operation.weight, windows, operation.groups)
    d_w = convolution.convolve_weight_gradient(d_y, ours, windows, operation.groups)
    np.testing.assert_allclose(d_x, tensor.grad.flatten(1), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(d_w.reshape(operation.weight.shape), weight.grad, rtol=1e-11, atol=1e-11)


def compare_pool(operation, x, torch_pool):
    windows = windows_of("op", operation, x.shape[1:])
    ours = x.reshape(len(x), -1)
    found = pooling.pool(ours, windows, operation.kind, operation.count_padding)
    tensor = torch.tensor(x, requires_grad=True)
    wanted = torch_pool(tensor)
    assert wanted.shape[1:] == (x.shape[1], *windows.output)
    np.testing.assert_allclose(found, wanted.detach().flatten(1), rtol=1e-12, atol=1e-12)
    d_y = vary(found.shape, 3)
    wanted.backward(torch.tensor(d_y).reshape(wanted.shape))
    d_x = pooling.pool_gradient(d_y, ours, windows, operation.kind, operation.count_padding)
    np.testing.assert_allclose(d_x, tensor.grad.flatten(1), rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(60, 250), deadline=None)
@given(pools())
def test_pools_and_their_gradients_are_those_of_pytorch(case):
    operation, x = case
    windows_or_skip(operation, x)
    padding = operation.padding or ((0, 0),) * len(operation.kernel)
    half = all(max(pair) <= k // 2 for pair, k in zip(padding, operation.kernel, strict=True))  # torch refuses more
    compare_pool(operation, x, lambda v: pool(operation, v) if half else composed_pool(operation, v, padding))


@pytest.mark.parametrize(("kind", "counted"), [("average", True), ("average", False), ("sum", True), ("max", True)])
@pytest.mark.parametrize("length", sampled(range(11, 0, -1), 6))
def test_every_rounding_up_is_that_of_pytorch(kind, counted, length):
    for kernel in range(1, 6):
        for stride in range(1, 7):
            for pad in range(kernel // 2 + 1):
                operation = Pool(kind, (kernel,), (stride,), ((pad, pad),), (), True, counted)
                x = vary((1, 2, length), kernel, 3)
                if windows_fit(operation, x):
                    compare_pool(operation, x, lambda v, o=operation, p=pad: native_pool(o, v, [p]))


def windows_fit(operation, x):
    try:
        windows_of("op", operation, x.shape[1:])
    except WindowError:
        with pytest.raises(RuntimeError):  # torch refuses it too
            pool(operation, torch.tensor(x))
        return False
    return True


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.data())
def test_reductions_and_their_gradients_are_those_of_pytorch(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axes = tuple(data.draw(st.sets(st.integers(-len(shape), -1), min_size=1)))
    operation = Reduce(data.draw(st.sampled_from(["sum", "mean", "max"])), axes)
    x = vary((2, *shape), data.draw(st.integers(0, 99)), data.draw(st.sampled_from([None, 2])))
    ours, axes = x.reshape(2, -1), reduced_axes("op", operation, shape)
    tensor = torch.tensor(x, requires_grad=True)
    wanted = reduced(operation, tensor)
    found = pooling.reduce(ours, shape, axes, operation.kind)
    np.testing.assert_allclose(found, wanted.detach().reshape(2, -1), rtol=1e-12, atol=1e-12)
    d_y = vary(found.shape, 3)
    wanted.backward(torch.tensor(d_y).reshape(wanted.shape))
    d_x = pooling.reduce_gradient(d_y, ours, shape, axes, operation.kind)
    np.testing.assert_allclose(d_x, tensor.grad.reshape(2, -1), rtol=1e-12, atol=1e-12)


def test_a_global_maximum_gives_its_gradient_as_global_max_pooling_does():
    x = torch.tensor(vary((2, 3, 4, 4), 0, 2), requires_grad=True)
    torch.nn.functional.adaptive_max_pool2d(x, 1).sum().backward()
    ours = x.detach().numpy().reshape(2, -1)
    found = pooling.reduce_gradient(np.ones((2, 3)), ours, (3, 4, 4), (1, 2), "max")
    np.testing.assert_array_equal(found, x.grad.flatten(1))


@pytest.mark.parametrize("wanted", [(), (1,), (4,), (3, 1), (2, 1, 1), (2, 3, 4), (1, 1, 4)])
def test_what_is_broadcast_gets_the_sum_of_its_gradients(wanted):
    weight = torch.tensor(vary(wanted, 0), requires_grad=True)
    x, d_y = vary((5, 2, 3, 4), 1), vary((5, 2, 3, 4), 2)
    (torch.tensor(x) * weight).backward(torch.tensor(d_y))
    found = scaling.sum_to((x * d_y).reshape(5, -1), (2, 3, 4), wanted)
    assert found.shape == wanted
    np.testing.assert_allclose(found, weight.grad, rtol=1e-12)


# ---- whole networks --------------------------------------------------------------------------------------------------


def chain(*operations, shape=(2, 7, 6), kind="values", delays=None, classes=None):
    """x -> n0 -> n1 … -> a readout of leaky integrators behind a Linear -> y."""
    graph, before, random = Graph("chain"), "x", np.random.default_rng(2)
    graph.add("x", Input(shape, kind))
    for number, operation in enumerate(operations):
        name = graph.add(f"n{number}", operation)
        graph.connect(before, name, delay=(delays or {}).get(number, 0))
        before = name
    graph.add("y", Output())
    if classes:
        graph.add("fc", Linear(np.asarray(random.normal(size=(4, classes)), np.float32)))
        graph.add("readout", Population(LI(0.9), (4,)))
        graph.connect(before, "fc")
        graph.connect("fc", "readout")
        before = "readout"
    graph.connect(before, "y")
    return graph


def conv(out, inputs, *kernel, bias=True, seed=0, **options):
    random = np.random.default_rng(seed)
    weight = random.normal(size=(out, inputs, *kernel)) * 1.5 / np.sqrt(inputs)
    return Conv(weight.astype(np.float32), random.normal(size=out).astype(np.float32) * 0.2 if bias else None, **options)


def scale(*shape, learnable=True, bias=True):
    random = np.random.default_rng(7)
    weight = random.uniform(0.5, 1.5, shape).astype(np.float32)
    return Scale(weight, random.normal(size=shape).astype(np.float32) * 0.1 if bias else None, learnable)


def fire(*shape):
    return Population(LIF(0.9, 0.5), shape)


NETS = {
    "spikes, pooled": chain(conv(3, 2, 3, 3), fire(3, 5, 4), Pool("max", (2, 2)), conv(2, 3, 2, 1), fire(2, 1, 2), classes=4),
    "no neurons between": chain(
        conv(4, 2, 3, 3, padding=((1, 1), (1, 1)), bias=False),
        scale(4, 1, 1),
        Pool("average", (2, 2), padding=((1, 0), (0, 1)), ceil=True, count_padding=False),
        conv(6, 2, 2, 2, groups=2, dilation=(2, 1)),
        fire(6, 2, 2),
        Flatten(),
        classes=24,
    ),
    "one dimension": chain(
        conv(4, 3, 3, stride=(2,)), fire(4, 5), Pool("sum", (2,), (1,)), fire(4, 4), Reduce("mean", (1,)), shape=(3, 11), classes=4
    ),
    "late": chain(
        conv(2, 2, 2, 2), Pool("max", (2, 2)), scale(2, 3, 2), fire(2, 3, 2), shape=(2, 7, 5), delays={0: 1, 1: 2, 2: 1}, classes=12
    ),
    "global": chain(conv(5, 2, 3, 3), fire(5, 5, 4), Reduce("max", (-1, -2), True), Reshape((5,)), classes=5),
    "slices": chain(
        Slice(0, 1, 3), conv(2, 2, 3, 3), fire(2, 5, 4), Slice(-1, 1, 3), scale(learnable=True), fire(2, 5, 2), shape=(4, 7, 6), classes=20
    ),
    "reshaped": chain(
        Reshape((3, 4, 5)), conv(2, 3, 2, 2), fire(2, 3, 4), Reshape((4, 6)), conv(3, 4, 3), fire(3, 4), shape=(60,), classes=12
    ),
    "frozen": chain(conv(3, 2, 3, 3, learnable=False), scale(3, 1, 1, learnable=False), fire(3, 5, 4), Pool("sum", (3, 2)), classes=6),
}


def parallel():
    """Two branches that meet in a sum and in a concatenation, one convolution in a loop."""
    graph = Graph("parallel")
    graph.add("x", Input((2, 5, 5), "spikes"))
    for name, operation in {
        "a": conv(3, 2, 3, 3, padding=((1, 1), (1, 1))),
        "b": conv(3, 2, 1, 1, seed=1),
        "sum": Add(),
        "neurons": fire(3, 5, 5),
        "pool": Pool("max", (2, 2), ceil=True),
        "narrow": Pool("average", (3, 3), (2, 2), ((1, 1), (1, 1))),
        "both": Concat(0),
        "loop": conv(3, 3, 3, 3, seed=2, padding=((1, 1), (1, 1))),
        "late": conv(2, 6, 2, 2, seed=3),
        "readout": Population(LI(0.9), (8,)),
        "y": Output(),
    }.items():
        graph.add(name, operation)
    for source, target in ("xa", "xb"):
        graph.connect(source, target)
    for source, target in [("a", "sum"), ("b", "sum"), ("sum", "neurons"), ("neurons", "pool"), ("neurons", "narrow"), ("pool", "both")]:
        graph.connect(source, target)
    graph.connect("narrow", "both")
    graph.connect("both", "late")
    graph.connect("late", "readout")
    graph.connect("readout", "y")
    graph.connect("neurons", "loop", delay=1)
    graph.connect("loop", "neurons")
    return graph


NETS["parallel"] = parallel()


@pytest.mark.representative("float64-*", "float32-parallel")
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize(("dtype", "limit"), [pytest.param(np.float32, 1e-4, id="float32"), pytest.param(np.float64, 1e-9, id="float64")])
def test_gradients_of_networks_match_pytorch(name, dtype, limit):
    errors = compare_gradients(NETS[name], parse_loss("max membrane"), dtype, steps=6)
    assert errors
    assert max(errors.values()) < limit, errors


@pytest.mark.parametrize("name", NETS)
def test_steps_one_by_one_give_the_whole_sequence(name):
    program = lower(NETS[name])
    engine = ReferenceEngine(program)
    x = np.random.default_rng(0).normal(size=(6, 2, *program.inputs[0].shape)).astype(np.float32)
    whole = engine.forward({"x0": x}, {})["y0"]
    for t in range(6):
        np.testing.assert_allclose(engine.step({"x0": x[t]})["y0"], whole[t], rtol=1e-6)


@pytest.mark.parametrize(
    "operations",
    [
        (conv(3, 2, 3, 3),),
        (Pool("max", (3, 2), ceil=True),),
        (scale(2, 1, 1),),
        (scale(),),
        (scale(6),),
        (scale(2, 7, 6),),
        (scale(1, 1, 1, learnable=False),),
        (Reshape((6, 14)),),
        (Reduce("mean", (0, 1, 2)),),
        (Reduce("sum", (0,), True), Slice(2, 2, 5)),
    ],
    ids=lambda operations: type(operations[0]).__name__,
)
@pytest.mark.parametrize("delay", [0, 2])
def test_an_output_may_record_any_operation(operations, delay):
    graph = chain(*operations, delays={0: delay})
    x = np.random.default_rng(0).normal(size=(4, 2, 2, 7, 6))
    program = lower(graph)
    found = ReferenceEngine(program, np.float64).forward({"x0": x}, {})["y0"]
    wanted = TorchGraph(graph)({"x": torch.tensor(x)})["y"].detach().numpy()
    assert found.shape == wanted.shape
    assert relative_error(found, wanted) < 1e-12


# ---- training --------------------------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    """Convolution, batch normalisation of a trained network, neurons, maximum, convolution, neurons, readout."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        grad = snntorch.surrogate.atan(2.0)
        self.conv1, self.conv2 = torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.Conv2d(4, 6, 3, stride=2, groups=2)
        self.norm, self.fc = torch.nn.BatchNorm2d(4).eval(), torch.nn.Linear(24, 3)
        for values in (self.norm.running_mean, self.norm.running_var, self.norm.weight.data, self.norm.bias.data):
            values.uniform_(0.3, 0.6)
        for layer in (self.conv1, self.conv2, self.fc):
            layer.weight.data *= 3
        self.lif1, self.lif2 = snntorch.Leaky(0.9, spike_grad=grad), snntorch.Leaky(0.8, spike_grad=grad)
        self.lif3 = snntorch.Leaky(0.7, spike_grad=grad)

    def forward(self, x):
        m1, m2, m3, out = self.lif1.init_leaky(), self.lif2.init_leaky(), self.lif3.init_leaky(), []
        for step in x:
            s, m1 = self.lif1(self.norm(self.conv1(step)), m1)
            s, m2 = self.lif2(self.conv2(torch.nn.functional.max_pool2d(s, 2, 2, ceil_mode=True)), m2)
            s, m3 = self.lif3(self.fc(s.flatten(1)), m3)
            out.append(s)
        return torch.stack(out)


def as_graph(net):
    def numbers_of(tensor):
        return tensor.detach().numpy().copy()

    spread = torch.sqrt(net.norm.running_var + net.norm.eps)
    factor = net.norm.weight / spread
    graph, before = Graph("net"), "x"
    graph.add("x", Input((2, 9, 9), "spikes"))
    for name, operation in {
        "conv1": Conv(numbers_of(net.conv1.weight), numbers_of(net.conv1.bias), padding=((1, 1), (1, 1))),
        "norm": Scale(numbers_of(factor)[:, None, None], numbers_of(net.norm.bias - factor * net.norm.running_mean)[:, None, None]),
        "lif1": Population(LIF(0.9), (4, 9, 9)),
        "pool": Pool("max", (2, 2), ceil=True),
        "conv2": Conv(numbers_of(net.conv2.weight), numbers_of(net.conv2.bias), (2, 2), groups=2),
        "lif2": Population(LIF(0.8), (6, 2, 2)),
        "flat": Flatten(),
        "fc": Linear(numbers_of(net.fc.weight), numbers_of(net.fc.bias)),
        "lif3": Population(LIF(0.7), (3,)),
        "y": Output(),
    }.items():
        graph.connect(before, graph.add(name, operation))
        before = name
    return graph


@pytest.mark.wide
def test_the_loss_curve_of_a_convolutional_network_is_that_of_snntorch():
    net, random = Net(), np.random.default_rng(7)
    engine = ReferenceEngine(lower(as_graph(net), loss=parse_loss("ce_count"), optimizer=Adam(1e-2)))
    optimizer = torch.optim.Adam([*net.conv1.parameters(), *net.conv2.parameters(), *net.fc.parameters()], 1e-2)
    x, target = (random.random((10, 8, 2, 9, 9)) < 0.4).astype(np.float32), random.integers(0, 3, 8)
    curves = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = snntorch.functional.ce_count_loss()(net(torch.tensor(x)), torch.tensor(target))
        loss.backward()
        optimizer.step()
        curves.append((loss.item(), engine.train_batch({"x0": x}, target, 1e-2)))
    wanted, found = np.array(curves).T
    assert np.abs(found / wanted - 1).max() < 1e-3
    assert found[-1] < 0.9 * found[0]


def test_folding_the_normalisation_changes_no_result():
    graph = as_graph(Net())
    x = (np.random.default_rng(1).random((10, 4, 2, 9, 9)) < 0.4).astype(float)
    whole, folded = (ReferenceEngine(lower(g), np.float64).forward({"x0": x}, {})["y0"] for g in (graph, fold_scale(graph)))
    assert "norm" not in fold_scale(graph).names
    np.testing.assert_array_equal(whole, folded)
    assert whole.any()


# ---- any network -----------------------------------------------------------------------------------------------------


def random_operation(draw, shape):
    """An operation that fits `shape`."""
    kind = draw(st.sampled_from(["conv", "pool", "scale", "reduce", "slice", "pad", "reshape", "linear", "sparse", "flatten", "neurons"]))
    dimensions = len(shape) - 1
    if kind in ("conv", "pool") and dimensions in (1, 2):
        kernel = tuple(draw(st.integers(1, min(3, n))) for n in shape[1:])
        padding = tuple((draw(st.integers(0, k // 2)), draw(st.integers(0, k // 2))) for k in kernel)
        stride = numbers(draw, dimensions, 1, 2)
        if kind == "conv":
            return conv(draw(st.integers(1, 3)), shape[0], *kernel, bias=draw(st.booleans()), stride=stride, padding=padding)
        return Pool(draw(st.sampled_from(["average", "sum", "max"])), kernel, stride, padding, (), draw(st.booleans()), draw(st.booleans()))
    if kind == "scale":
        return scale(*(draw(st.sampled_from([1, n])) for n in shape), bias=draw(st.booleans()), learnable=draw(st.booleans()))
    if kind == "reduce" and len(shape) > 1:
        axes = (draw(st.integers(-len(shape), len(shape) - 1)),)
        return Reduce(draw(st.sampled_from(["sum", "mean", "max"])), axes, draw(st.booleans()))
    if kind == "slice":
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        start = draw(st.integers(0, shape[axis] - 1))
        return Slice(axis, start, draw(st.integers(start + 1, shape[axis])))
    if kind == "reshape":
        return Reshape(draw(st.sampled_from([shape[::-1], (1, *shape), (int(np.prod(shape)),)])))
    if kind == "linear":
        return Linear(np.asarray(vary((4, int(np.prod(shape))), 1), np.float32), np.ones(4, np.float32) if draw(st.booleans()) else None)
    if kind == "pad":
        return Pad(tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape))
    if kind == "sparse":
        inputs, bias = int(np.prod(shape)), np.ones(4, np.float32) if draw(st.booleans()) else None
        columns = [sorted(draw(st.sets(st.integers(0, inputs - 1), max_size=3))) for _ in range(3)] + [[draw(st.integers(0, inputs - 1))]]
        indptr = np.cumsum([0, *map(len, columns)], dtype=np.int32)
        indices = np.concatenate([np.array(c, np.int32) for c in columns])
        return Sparse(np.asarray(vary(len(indices), 1), np.float32), indices, indptr, (4, inputs), bias)
    return fire(*shape) if kind == "neurons" else Flatten()


@st.composite
def images(draw):
    """A row of operations with delays, branches of it recorded, and a readout."""
    graph = Graph("random")
    graph.add("x", Input((2, 5, 4), draw(st.sampled_from(["spikes", "values"]))))
    before = "x"
    for number in range(draw(st.integers(1, 6))):
        shape = port_map(graph)[before, source_ports(graph.operation(before))[0]].shape
        name = graph.add(f"n{number}", random_operation(draw, shape))
        graph.connect(before, name, delay=draw(st.sampled_from([0, 0, 0, 1, 2])))
        if draw(st.integers(0, 3)) == 0:
            graph.connect(name, graph.add(f"y{number}", Output()), delay=draw(st.integers(0, 1)))
        before = name
    shape = port_map(graph)[before, source_ports(graph.operation(before))[0]].shape
    graph.add("fc", Linear(np.asarray(vary((3, int(np.prod(shape))), 2), np.float32)))
    graph.add("readout", Population(LI(0.9), (3,)))
    graph.add("y", Output())
    graph.connect(before, "fc")
    graph.connect("fc", "readout")
    graph.connect("readout", "y")
    return graph


@settings(max_examples=examples(30, 120), deadline=None)
@given(images())
def test_any_row_of_operations_gives_what_a_step_by_step_simulation_gives(graph):
    program = lower(graph)
    x = (np.random.default_rng(0).random((6, 2, 2, 5, 4)) < 0.5).astype(float)
    found = ReferenceEngine(program, np.float64).forward({"x0": x}, {})
    wanted = TorchGraph(graph)({"x": torch.tensor(x)})
    for output in program.outputs:
        assert found[output.id].shape == wanted[output.label].shape
        np.testing.assert_allclose(found[output.id], wanted[output.label].detach().numpy(), rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(15, 60), deadline=None)
@given(images())
def test_gradients_of_any_row_of_operations_match_pytorch(graph):
    errors = compare_gradients(graph, parse_loss("mean membrane"), np.float64, output="y", steps=6)
    assert max(errors.values(), default=0) < 1e-8, errors
