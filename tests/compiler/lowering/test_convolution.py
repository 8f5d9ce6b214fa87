"""Convolution, pooling and related operations: shapes, kinds, refusals, lowering, and folding."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snnc.compiler import errors
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import Conv, Flatten, Graph, Input, Linear, Output, Pool, Population, Reduce, Reshape, Scale, Slice, StateRef
from snnc.compiler.ir.shapes import Port, port_map
from snnc.compiler.ir.step_operations import AddOneToOne as OneToOneStep
from snnc.compiler.ir.step_operations import (
    AddReduced,
    AddSlice,
    Convolve,
    ConvolveBiasGradient,
    ConvolveInputGradient,
    ConvolveWeightGradient,
    Fill,
    Pooling,
    PoolingGradient,
    Rescale,
)
from snnc.compiler.ir.verify import verify
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.passes.flow import run_flow
from snnc.compiler.passes.fold_scale import fold_scale
from snnc.compiler.tiles import make_plan


def chain(*operations, shape=(2, 6, 5), kind="spikes", delays=None):
    """x -> n0 -> n1 -> … -> y."""
    graph, before = Graph("chain"), "x"
    graph.add("x", Input(shape, kind))
    for number, operation in enumerate(operations):
        graph.connect(before, graph.add(f"n{number}", operation), delay=(delays or {}).get(number, 0))
        before = f"n{number}"
    graph.connect(before, graph.add("y", Output()))
    return graph


def conv(*shape, bias=False, **options):
    random = np.random.default_rng(sum(shape))
    weight = random.normal(size=shape).astype(np.float32)
    return Conv(weight, random.normal(size=shape[0]).astype(np.float32) if bias else None, **options)


def fire(*shape):
    return Population(LIF(0.9, 0.5), shape)


# ---- shapes and kinds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "port"),
    [
        (conv(4, 2, 3, 3), Port((4, 4, 3), "values")),
        (conv(4, 1, 3, 3, groups=2, padding=((1, 1), (0, 2)), dilation=(2, 1)), Port((4, 4, 5), "values")),
        (Pool("max", (2, 2)), Port((2, 3, 2), "spikes")),
        (Pool("max", (2, 2), ceil=True), Port((2, 3, 3), "spikes")),
        (Pool("average", (2, 2), (1, 1)), Port((2, 5, 4), "values")),
        (Pool("sum", (3, 3), padding=((1, 1), (1, 1))), Port((2, 2, 2), "values")),
        (Scale(np.ones((2, 1, 1))), Port((2, 6, 5), "values")),
        (Reshape((4, 15)), Port((4, 15), "spikes")),
        (Reduce("max", (-1, -2)), Port((2,), "spikes")),
        (Reduce("mean", (1, 2), keepdims=True), Port((2, 1, 1), "values")),
        (Reduce("sum", (0, 1, 2)), Port((), "values")),
        (Slice(1, 2, 5), Port((2, 3, 5), "spikes")),
        (Slice(-1, 0, 1), Port((2, 6, 1), "spikes")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_operation_gives_a_shape_and_a_kind(operation, port):
    graph = chain(operation)
    verify(graph)
    assert port_map(graph)["y", "in"] == port


NUMBERS = st.integers(1, 5)


@settings(max_examples=300, deadline=None)
@given(length=st.integers(1, 12), kernel=NUMBERS, stride=NUMBERS, pad=st.integers(0, 2), dilation=st.integers(1, 3), ceil=st.booleans())
def test_there_are_as_many_windows_as_in_pytorch(length, kernel, stride, pad, dilation, ceil):
    pad = min(pad, kernel // 2)
    graph = chain(Pool("max", (kernel,), (stride,), ((pad, pad),), (dilation,), ceil), shape=(1, length))
    try:
        pooled = torch.nn.functional.max_pool1d(torch.zeros(1, 1, length), kernel, stride, pad, dilation, ceil)
    except RuntimeError:
        pooled = None
    if pooled is None or pooled.isinf().any():  # no window fits, or one lies in the padding as a whole
        with pytest.raises(errors.WindowError):
            port_map(graph)
    else:
        assert port_map(graph)["n0", "out"].shape == (1, pooled.shape[2])


@settings(max_examples=500, deadline=None)
@given(
    length=st.integers(1, 8),
    kernel=NUMBERS,
    stride=NUMBERS,
    pads=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    dilation=st.integers(1, 9),
    ceil=st.booleans(),
)
def test_a_window_in_the_padding_is_found_without_looking_at_all_windows(length, kernel, stride, pads, dilation, ceil):
    operation = Pool("sum", (kernel,), (stride,), (pads,), (dilation,), ceil)
    try:
        windows = windows_of("op", operation, (1, length))
    except errors.WindowError:
        return
    if windows.taps_inside(False)[0].min() == 0:
        with pytest.raises(errors.WindowError, match="covers only padding"):
            windows_of("op", dataclasses.replace(operation, kind="max"), (1, length))
    else:
        windows_of("op", dataclasses.replace(operation, kind="max"), (1, length))


# ---- what is refused -------------------------------------------------------------------------------------------------

E = errors
IMAGE = (2, 6, 5)


@pytest.mark.parametrize(
    ("operation", "shape", "error", "text"),
    [
        (conv(4, 2, 3, 3), (60,), E.WindowError, r"needs an input \(channels, height, width\).*\(60,\); reshape"),
        (conv(4, 2, 3), IMAGE, E.WindowError, r"needs an input \(channels, length\)"),
        (conv(4, 2, 7, 3), IMAGE, E.WindowError, r"no window of 'n0' fits: kernel \(7, 3\).*\(6, 5\)"),
        (conv(4, 2, 3, 3, stride=(1,)), IMAGE, E.WindowError, r"the stride of 'n0' is \(1,\); give 2 numbers"),
        (conv(4, 2, 3, 3, stride=(1, 0)), IMAGE, E.WindowError, r"stride.*\(1, 0\)"),
        (conv(4, 2, 3, 3, dilation=(0, 1)), IMAGE, E.WindowError, "dilation"),
        (conv(4, 2, 3, 3, padding=((1, 1),)), IMAGE, E.WindowError, "give 2 pairs"),
        (conv(4, 2, 3, 3, padding=((1, 1), (-1, 1))), IMAGE, E.WindowError, "of 0 or more"),
        (conv(4, 3, 3, 3), IMAGE, E.ChannelError, r"'n0' expects 3 channels.*\(2, 6, 5\) has 2"),
        (conv(4, 2, 3, 3, groups=2), IMAGE, E.ChannelError, "expects 4 channels"),
        (conv(3, 1, 3, 3, groups=2), IMAGE, E.ChannelError, "3 output channels in 2 groups"),
        (conv(3, 1, 3, 3, groups=0), IMAGE, E.ChannelError, "0 groups"),
        (Conv(np.ones((4, 2), np.float32)), IMAGE, E.ParameterShapeError, r"\[outputs, inputs / groups, \*kernel\]"),
        (Conv(np.ones((4, 2, 1, 1)), np.ones(3)), IMAGE, E.ParameterShapeError, "bias of 'n0'"),
        (Conv(np.full((4, 2, 1, 1), np.nan)), IMAGE, E.NotFiniteError, "weight of 'n0' is nan"),
        (Pool("max", (2, 2, 2)), (1, 4, 4, 4), E.WindowError, "1 or 2 dimensions"),
        (Pool("max", ()), (4,), E.WindowError, "1 or 2 dimensions"),
        (Pool("max", (0, 2)), IMAGE, E.WindowError, "kernel"),
        (Pool("max", (2, 2), padding=((2, 0), (0, 0))), IMAGE, E.WindowError, "covers only padding.*reduce the padding"),
        (Pool("average", (2, 2), padding=((0, 0), (0, 3))), IMAGE, E.WindowError, "covers only padding"),
        (Pool("max", (2,), (1,), ((2, 3),), (5,)), (1, 2), E.WindowError, "covers only padding"),
        (Pool("sum", (1, 1), (1, 1), ((2**40, 0), (0, 0))), IMAGE, E.TooLargeError, "addressed"),
        (Pool("median", (2, 2)), IMAGE, E.InvalidValueError, "'median'; it must be one of average, sum, max"),
        (Reduce("median", (1,)), IMAGE, E.InvalidValueError, "'median'; it must be one of sum, mean, max"),
        (Pool("max", (3,), (4,), ((6, 2),), (4,)), (1, 2), E.WindowError, "covers only padding"),
        (Scale(np.ones(3)), IMAGE, E.ParameterShapeError, r"weight of 'n0' has shape \(3,\).*\(2, 6, 5\)"),
        (Scale(np.ones(()), np.ones((2, 1, 1, 1))), IMAGE, E.ParameterShapeError, "bias of 'n0'"),
        (Scale(np.ones(()), np.full((2, 1, 1), np.inf)), IMAGE, E.NotFiniteError, "bias of 'n0'"),
        (Reshape((7, 9)), IMAGE, E.ReshapeError, r"'n0' reshapes 'x' from .*\(60 values\) to \(7, 9\) \(63 values\)"),
        (Reshape((-1, 5)), IMAGE, E.EmptyShapeError, r"\(-1, 5\)"),
        (Reduce("sum", ()), IMAGE, E.AxisError, "one or more"),
        (Reduce("sum", (3,)), IMAGE, E.AxisError, r"\(3,\)"),
        (Reduce("sum", (2, -1)), IMAGE, E.AxisError, "each once"),
        (Slice(3, 0, 1), IMAGE, E.AxisError, "axis 3"),
        (Slice(1, 2, 2), IMAGE, E.AxisError, "2 to 2 of axis 1, which is 6 long"),
        (Slice(1, 0, 7), IMAGE, E.AxisError, "0 to 7"),
        (Slice(1, -2, 3), IMAGE, E.AxisError, "-2 to 3"),
    ],
    ids=lambda value: value.code if isinstance(value, type) else "",
)
def test_an_operation_that_does_not_fit_is_refused(operation, shape, error, text):
    with pytest.raises(error, match=text):
        verify(chain(operation, shape=shape))


# ---- lowering --------------------------------------------------------------------------------------------------------


def of(kind, operations):
    return [op for op in operations if isinstance(op, kind)]


def relays(graph):
    return sorted(name for name, p in graph.of_type(Population) if p.model.name == "Relay")


@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (chain(conv(3, 2, 3, 3), fire(3, 4, 3), Pool("max", (2, 1)), fire(3, 2, 3)), []),
        (chain(conv(3, 2, 3, 3), Pool("max", (2, 1)), fire(3, 2, 3)), ["n0.relay"]),
        (chain(conv(3, 2, 3, 3), Scale(np.ones((3, 1, 1))), fire(3, 4, 3)), ["n0.relay"]),
        (chain(conv(3, 2, 3, 3), fire(3, 4, 3), Flatten(), Linear(np.ones((4, 36))), fire(4)), []),
        (chain(fire(2, 6, 5), Reshape((60,)), Linear(np.ones((4, 60))), fire(4)), []),
        (chain(fire(2, 6, 5), Reshape((4, 15)), conv(2, 4, 3), fire(2, 13)), ["n1.relay"]),
        (chain(fire(2, 6, 5), Reshape((4, 15)), fire(4, 15)), []),
        (chain(fire(2, 6, 5), Reshape((4, 15))), []),
        (chain(Pool("max", (2, 2))), ["n0.relay"]),
        (chain(Slice(0, 0, 1), Reduce("sum", (1,))), ["n0.relay", "n1.relay"]),
        (chain(conv(3, 2, 3, 3), fire(3, 4, 3), delays={1: 2}), []),
        (chain(conv(3, 2, 3, 3, bias=True), fire(3, 4, 3), delays={1: 2}), ["n0.relay"]),
    ],
)
def test_operations_in_a_row_become_relays(graph, names):
    flown = run_flow(graph)
    assert relays(flown) == names
    assert relays(run_flow(flown)) == names


def test_a_delay_in_front_of_a_pool_is_added_to_that_behind_it():
    (op,) = of(Pooling, lower(chain(fire(2, 6, 5), Pool("max", (2, 2)), fire(2, 3, 2), delays={1: 1, 2: 2})).forward)
    assert op.source.delay == 3


def test_a_value_before_the_first_step_is_not_moved_over_a_delay():
    graph = chain(fire(2, 6, 5), Pool("max", (2, 2)), fire(2, 3, 2), delays={1: 1, 2: 2})
    graph.state_inputs["s"] = StateRef("n0", "s")
    assert [op.source.delay for op in of(Pooling, lower(graph).forward)] == [1]


def test_pooled_spikes_stay_spikes_and_drive_what_follows():
    program = lower(chain(fire(2, 6, 5), Pool("max", (2, 2)), conv(3, 2, 2, 2), fire(3, 2, 1)))
    relay, convolution = (c for c in program.connections if c.kind in ("pooling", "convolution"))
    assert program.buffers[convolution.source_buffer].kind == "spikes"
    assert convolution.event_driven
    assert not relay.event_driven


def test_a_convolution_keeps_its_weight_and_adds_its_bias_itself():
    program = lower(chain(conv(3, 2, 3, 3, bias=True, padding=((1, 0), (2, 1))), fire(3, 5, 6)))
    (op,) = of(Convolve, program.forward)
    assert (program.buffers[op.weight].shape, program.buffers[op.bias].shape) == ((3, 2, 3, 3), (3,))
    assert {p.label for p in program.parameters.values()} >= {"n0.weight", "n0.bias"}
    assert of(Fill, program.forward)[0].biases == ()
    assert (op.windows.stride, op.windows.padding, op.windows.output) == ((1, 1), ((1, 0), (2, 1)), (5, 6))
    assert {b.shape for b in program.buffers.values() if b.lifetime == "sequence"} == {(60,), (90,)}


@pytest.mark.parametrize(
    ("scale", "kind"),
    [
        (Scale(np.ones(()), None, True), OneToOneStep),
        (Scale(np.ones((1, 1, 1)), np.ones(()), False), OneToOneStep),
        (Scale(np.ones((2, 6, 5)), np.ones((2, 6, 5)), True), OneToOneStep),
        (Scale(np.ones((2, 1, 1)), None, False), Rescale),
        (Scale(np.ones(()), np.ones(()), True), Rescale),
    ],
)
def test_a_scale_with_one_number_a_value_is_one_to_one(scale, kind):
    program = lower(chain(scale, fire(2, 6, 5)))
    (op,) = of((OneToOneStep, Rescale), program.forward)
    assert isinstance(op, kind)
    assert of(Fill, program.forward)[0].biases == (("c0_b",) if kind is OneToOneStep and scale.bias is not None else ())


def test_reductions_and_slices_count_their_axes_from_the_front():
    program = lower(chain(Reduce("mean", (-1,)), Slice(-1, 1, 4), fire(2, 3)))
    assert [op.axes for op in of(AddReduced, program.forward)] == [(2,)]
    assert [(op.axis, op.start, op.stop) for op in of(AddSlice, program.forward)] == [(1, 1, 4)]


def trained(*, learnable):
    graph = chain(
        conv(3, 2, 3, 3, bias=True, learnable=learnable),
        fire(3, 4, 3),
        Pool("max", (2, 1)),
        conv(2, 3, 2, 3, bias=True),
        Population(LI(0.9), (2,)),
    )
    return lower(graph, loss=parse_loss("mean membrane"), optimizer=Adam())


def test_each_operation_has_its_adjoint():
    program = trained(learnable=True)
    assert [op.gradient for op in of(ConvolveWeightGradient, program.backward)] == ["d_c2_w", "d_c0_w"]
    assert len(of(ConvolveBiasGradient, program.backward)) == 2
    assert [op.source.buffer for op in of(ConvolveInputGradient, program.backward)] == ["p1_o0"], "the network's input gets no gradient"
    assert len(of(PoolingGradient, program.backward)) == 1
    assert {program.parameters[op.parameter].label for op in program.update} == {"n0.weight", "n0.bias", "n3.weight", "n3.bias"}


def test_what_learns_nothing_gets_no_gradient():
    program = trained(learnable=False)
    assert len(of(ConvolveWeightGradient, program.backward)) == 1
    assert not of((ConvolveInputGradient, PoolingGradient), program.backward)


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        (conv(3, 2, 3, 3), (3, 4, 3)),
        (Pool("max", (2, 2)), (2, 3, 2)),
        (Pool("average", (2, 2)), (2, 3, 2)),
        (Scale(np.ones((2, 1, 1))), (2, 6, 5)),
        (Reduce("sum", (1,)), (2, 5)),
        (Slice(0, 0, 1), (1, 6, 5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_operation_is_mapped_and_its_tables_are_counted(operation, after):
    plan = make_plan(lower(chain(operation, fire(*after))), load_target("gc200"), steps=4, batch=2)
    assert [c.target for c in plan.connections] == ["p0"]
    assert max(plan.memory["tables"]) > 0


def test_a_plain_scale_is_mapped():
    program = lower(chain(Scale(np.full((), 0.5), np.ones(60).reshape(2, 6, 5)), fire(2, 6, 5), Reshape((60,)), fire(60)))
    make_plan(program, load_target("gc200"), steps=4, batch=2)


# ---- folding ---------------------------------------------------------------------------------------------------------


def scale(*shape, bias=True, learnable=False):
    random = np.random.default_rng(len(shape))
    return Scale(random.uniform(0.5, 1.5, shape), random.normal(size=shape) if bias else None, learnable)


def linear(outputs, inputs, bias=True):
    random = np.random.default_rng(outputs)
    return Linear(random.normal(size=(outputs, inputs)), random.normal(size=outputs) if bias else None)


def double(operation):
    bias = None if operation.bias is None else operation.bias.astype(float)
    return Conv(operation.weight.astype(float), bias, operation.stride, operation.padding, operation.dilation, operation.groups)


PADDED = double(conv(4, 1, 3, 3, bias=True, groups=2, padding=((1, 1), (0, 2)), stride=(2, 1)))
PLAIN = double(conv(4, 2, 3, 3))


@pytest.mark.parametrize(
    "operations",
    [
        (linear(4, 60), scale(4), fire(4)),
        (linear(4, 60, bias=False), scale(4, bias=False), fire(4)),
        (linear(4, 60), scale(), fire(4)),
        (PADDED, scale(4, 1, 1), fire(4, 3, 5)),
        (PLAIN, scale(1), fire(4, 4, 3)),
        (scale(), PLAIN, fire(4, 4, 3)),
        (scale(1, 1, 1, bias=False), PADDED, fire(4, 3, 5)),
        (scale(), linear(4, 60), fire(4)),
        (scale(), linear(4, 60, bias=False), fire(4)),
        (scale(), PLAIN, scale(4, 1, 1), fire(4, 4, 3)),
    ],
)
def test_a_frozen_scale_becomes_part_of_the_weights(operations):
    graph = chain(*operations, kind="values")
    folded = fold_scale(graph)
    verify(folded)
    assert not list(folded.of_type(Scale))
    assert run_forward(folded) == pytest.approx(run_forward(graph), rel=1e-12, abs=1e-12)
    assert len(list(graph.of_type(Scale))) == len(operations) - 2, "the argument stays as it is"


def run_forward(graph):
    """The membranes' currents, computed in float64 by the formulas of the operations."""
    x = torch.tensor(np.random.default_rng(3).normal(size=(1, 2, 6, 5)))
    for name in graph.names:
        match graph.operation(name):
            case Linear(weight=weight, bias=bias):
                x = torch.nn.functional.linear(x.flatten(1), torch.tensor(weight), None if bias is None else torch.tensor(bias))
            case Conv(weight=weight, bias=bias) as op:
                wide = torch.nn.functional.pad(x, [n for pair in reversed(op.padding) for n in pair])
                bias = None if bias is None else torch.tensor(bias)
                x = torch.nn.functional.conv2d(wide, torch.tensor(weight), bias, op.stride or 1, 0, op.dilation or 1, op.groups)
            case Scale(weight=weight, bias=bias):
                x = x * torch.tensor(weight) + (0 if bias is None else torch.tensor(bias))
    return x.numpy()


@pytest.mark.parametrize(
    ("operations", "delays"),
    [
        ((linear(4, 60), scale(4, learnable=True), fire(4)), {}),
        ((linear(4, 60), scale(4), fire(4)), {1: 1}),
        ((PLAIN, scale(4, 4, 1), fire(4, 4, 3)), {}),
        ((PLAIN, scale(3), fire(4, 4, 3)), {}),
        ((scale(), PADDED, fire(4, 3, 5)), {}),
        ((scale(2, 1, 1), PLAIN, fire(4, 4, 3)), {}),
        ((scale(), linear(4, 60), fire(4)), {1: 1}),
        ((scale(), fire(2, 6, 5)), {}),
    ],
)
def test_other_scales_stay(operations, delays):
    graph = chain(*operations, delays=delays)
    assert len(list(fold_scale(graph).of_type(Scale))) == 1


def test_a_linear_that_others_read_too_is_not_changed():
    graph = chain(linear(4, 60), scale(4), fire(4))
    graph.connect("n0", graph.add("z", Output()))
    assert list(fold_scale(graph).of_type(Scale))


def test_products_are_rounded_once():
    weight, factor = np.float32([[1 / 3, 3e-8]]), np.float64([1 + 1e-9])
    folded = fold_scale(chain(Linear(weight), Scale(factor), fire(1), shape=(2,)))
    assert folded.operation("n0").weight.dtype == np.float32
    np.testing.assert_array_equal(folded.operation("n0").weight, (weight.astype(float) * factor).astype(np.float32))
