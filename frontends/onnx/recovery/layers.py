"""Convert layers between populations to operations of the graph; each layer is a *class*: the nodes of all steps that compute one value."""

from __future__ import annotations

import math

import numpy as np

from snnc.compiler.ir.arrays.sparse import row_pointer
from snnc.compiler.ir.graph import Add, Concat, Conv, Flatten, Linear, Operation, Pad, Pool, Reduce, Reshape, Scale, Shape, Slice, Sparse
from snnc.compiler.neurons.expression import Call, Symbol
from snnc.frontends.onnx.errors import NotYetError
from snnc.frontends.onnx.flattening.node import Array, GatherMap
from snnc.frontends.onnx.recovery.naming import NamedEquations
from snnc.frontends.onnx.reroll.rearrange import aligned, padding_of
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep


def layer_of(step: RecoveredStep, cls: int, bias: Array | None) -> tuple[str, Operation, list[Operand], Shape | None]:
    """Return the base of a layer's name, its operation, its operands, and the input shape that it requires (None for any shape).

    `cls` is the index of the layer's class, and `bias` a constant that another class adds to its result. A part of the step for which a
    graph has no operation raises a NotYetError.
    """
    step_class = step.classes[cls]
    operands = step_class.operands
    read = operands[:1]
    if isinstance(read[0], Const):
        raise NotYetError(f"a layer ('{step_class.op}') reads a constant instead of a value of the network; fold it into the layer's bias.")
    read_shape = step.full_shape(read[0])
    match step_class.op:
        case "gather":
            return _gather(step, cls, operands)
        case "linear":
            return "linear", Linear(*_weights(operands, bias)), read, (int(np.prod(read_shape)),)
        case "conv":
            return "conv", Conv(*_weights(operands, bias), *step_class.attrs), read, step.image(read[0])
        case "pool":
            return "pool", Pool(*step_class.attrs), read, step.image(read[0])
        case "reduce":
            kind, axes = step_class.attrs
            if kind == "min":
                raise NotYetError("a minimum over the values of a layer is not supported yet.")
            sample_axes = tuple(step.inner_axis(read[0], a) for a in axes)
            return "reduce", Reduce(kind, sample_axes, keepdims=True), read, read_shape
        case "slice":
            axis, start = step_class.attrs
            return "slice", Slice(step.inner_axis(read[0], axis), start, start + step_class.shape[axis]), read, read_shape
        case "concat":
            return "concat", Concat(step.inner_axis(read[0], step_class.attrs[0])), operands, None
        case "add":
            return "sum", Add(), operands, step.graph_shape(cls)
    return (*reshape_to(step.graph_shape(cls)), read, None)


def reshape_to(shape: Shape) -> tuple[str, Operation]:
    """Return the base of the name and the operation of a Flatten or Reshape."""
    return ("flat", Flatten()) if len(shape) == 1 else ("reshape", Reshape(shape))


def _gather(step: RecoveredStep, cls: int, operands: list[Operand]) -> tuple[str, Operation, list[Operand], Shape | None]:
    """Convert a gather from one source to a Reshape, a Pad, or a sparse matrix with at most one 1 per row."""
    gather, source = step.classes[cls].attrs[0], step.full_shape(operands[0])
    if gather.plain and gather.index.size == math.prod(source):
        return (*reshape_to(step.graph_shape(cls)), operands, None)
    result = step.full_shape(Ref(cls))
    padding = padding_of(gather, source, result)
    if padding is not None:
        return "pad", Pad(padding), operands, aligned(source, len(result))
    return "pick", selection(gather, math.prod(source)), operands, (math.prod(source),)


def selection(gather: GatherMap, size: int) -> Sparse:
    """Return a gather from `size` values as a sparse matrix."""
    chosen = gather.index[gather.index >= 0].astype(np.int32)
    indptr = row_pointer(gather.index >= 0)
    return Sparse(np.ones(len(chosen), np.float32), chosen, indptr, (len(gather.index), size), gather.fill, learnable=False)


def _weights(operands: list[Operand], bias: Array | None) -> tuple[Array, Array | None]:
    weight = operands[1]
    assert isinstance(weight, Const), "products and convolutions have constant weights"
    if bias is None and len(operands) > 2 and isinstance(operands[2], Const):
        bias = operands[2].value
    return np.ascontiguousarray(weight.value, np.float32), None if bias is None else np.array(bias, np.float32)


def scale_of(named: NamedEquations, shape: Shape) -> Scale | None:
    """Return equations of the form ``a*x + b`` with constant a and b as a Scale; None for other equations."""
    if named.states or len(named.lines) != 1 or len(named.ports) != 1:
        return None
    match named.lines[0].value:
        case Call("add", (Call("mul", (Symbol() as x, Symbol(weight))), Symbol(bias))):
            pass
        case Call("mul", (Symbol() as x, Symbol(weight))):
            bias = ""
        case _:
            return None
    if x.name != named.ports[0] or weight not in named.parameters or (bias and bias not in named.parameters):
        return None
    return Scale(_compact(named.parameters[weight], shape), _compact(named.parameters[bias], shape) if bias else None)


def _compact(value: Array, shape: Shape) -> Array:
    """Return a constant with size 1 along the axes on which it does not vary."""
    array = np.asarray(value, np.float32)
    if array.ndim:
        array = array.reshape(shape)
        for axis in range(array.ndim):
            first = array.take([0], axis)
            array = first if (array == first).all() else array
    return array
