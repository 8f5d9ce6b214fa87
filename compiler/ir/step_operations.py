"""Operations of a step program: a time step, its adjoint, and the update. Each docstring defines the arithmetic.

In forward operations, ``source`` is the value ``source.delay`` steps ago; ``source[t - delay]`` in backward operations is the same value.
See :mod:`snnc.compiler.ir.step_program` for the structure of a program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from snnc.compiler.ir.arrays.sparse import Pattern
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import PoolKind, ReduceKind, Shape


@dataclass(frozen=True)
class BufferValue:
    """Value of a buffer of lifetime "sequence" `delay` steps ago (before step `delay`, its initial value, usually 0)."""

    buffer: str
    delay: int = 0


# ---- fields shared by an operation and its adjoint ---------------------------------------------------------------------


@dataclass(frozen=True)
class _ConnectionFields:
    """Operation of a connection from the values of `source` to the current `target`."""

    connection: str
    source: BufferValue
    target: str


@dataclass(frozen=True)
class _WeightedFields:
    """Operation of a connection with a weight, from the values of `source` to the current `target`."""

    connection: str
    source: BufferValue
    weight: str
    target: str


@dataclass(frozen=True)
class _OneToOneFields:
    """Operation that maps value k of the source to value offset + k of the target."""

    connection: str
    source: BufferValue
    weight: str | None
    target: str
    offset: int = 0


@dataclass(frozen=True)
class _PoolFields(_ConnectionFields):
    windows: Windows
    kind: PoolKind
    count_padding: bool


@dataclass(frozen=True)
class _ReduceFields(_ConnectionFields):
    shape: Shape
    axes: tuple[int, ...]
    kind: ReduceKind


@dataclass(frozen=True)
class _SliceFields(_ConnectionFields):
    shape: Shape
    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class _PadFields(_ConnectionFields):
    shape: Shape
    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _WeightGradientFields(_ConnectionFields):
    """Contribution of a connection to the gradient buffer of its weight."""

    gradient: str


@dataclass(frozen=True)
class _NeuronFields:
    """Buffers of a population, parallel to the names of its kernel."""

    population: str
    currents: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    saved: tuple[str, ...]


@dataclass(frozen=True)
class _RecordFields:
    output: str
    source: BufferValue
    target: str


# ---- forward ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fill:
    """``target[:] = sum of biases`` (0 if `biases` is empty): initialises the current of one input port."""

    target: str
    biases: tuple[str, ...]


@dataclass(frozen=True)
class DenseProduct(_WeightedFields):
    """``target += source @ weight.T``; weight [outputs, inputs]; a product with spikes is event-driven."""


@dataclass(frozen=True)
class SparseProduct(_WeightedFields):
    """``target += source @ W.T``, where W has the values `weight` at the positions of `pattern` and 0 elsewhere."""

    pattern: Pattern


@dataclass(frozen=True)
class AddOneToOne(_OneToOneFields):
    """``target[..., offset : offset + n] += weight * source`` (weight None: 1), n = size of the source."""


@dataclass(frozen=True)
class Convolve(_WeightedFields):
    """``target += correlate(source, weight) + bias``; weight [out, in / groups, *kernel], bias [out] (None: 0) for each channel."""

    windows: Windows
    groups: int
    bias: str | None


@dataclass(frozen=True)
class Pooling(_PoolFields):
    """``target += average, sum or maximum of each window of source``; padding counts as 0, or as minus infinity for a maximum.

    An average divides by the number of taps in the input, with `count_padding` by the number of taps in the padded input.
    """


@dataclass(frozen=True)
class Rescale(_WeightedFields):
    """``target += weight * source + bias`` (bias None: 0), where weight and bias broadcast to `shape`, the shape of the source."""

    shape: Shape
    bias: str | None


@dataclass(frozen=True)
class AddReduced(_ReduceFields):
    """``target += sum, mean or maximum of source over axes``, where source has `shape`; axes are counted from the front."""


@dataclass(frozen=True)
class AddSlice(_SliceFields):
    """``target += source[start:stop]`` along `axis`, where source has `shape`."""


@dataclass(frozen=True)
class AddPadded(_PadFields):
    """``target[before : before + n] += source`` along every axis, where source has size n and target has size n + before + after."""


@dataclass(frozen=True)
class NeuronStep(_NeuronFields):
    """Run ``kernel.forward`` of a population; the tuples are parallel to those of the kernel.

    `states` are sequence buffers (the step reads slot t as ``s*_prev`` and writes slot t + 1); `saved` are sequence buffers that
    store ``kernel.saved``.
    """


@dataclass(frozen=True)
class Record(_RecordFields):
    """``target[t] = source``: stores a result of every step for the host and the loss."""


# ---- backward: adjoint buffers are called d_<buffer> and are 0 where nothing has been added -----------------------------


@dataclass(frozen=True)
class RecordAdjoint(_RecordFields):
    """``d_source[t - delay] += d_target[t]`` (dropped where t < delay)."""


@dataclass(frozen=True)
class NeuronAdjoint(_NeuronFields):
    """Run ``kernel.backward``: reads d_outputs[t] and the state adjoints; writes d_currents[t]; adds to parameter gradients."""

    gradients: tuple[str, ...]
    """Gradient buffers, parallel to ``kernel.learnable``."""


@dataclass(frozen=True)
class DenseInputGradient(_WeightedFields):
    """``d_source[t - delay] += d_target[t] @ weight`` (dropped where t < delay); if `half`, ``d_target`` is first rounded to float16."""

    half: bool = field(default=False, metadata={"optional": True})


@dataclass(frozen=True)
class DenseWeightGradient(_WeightGradientFields):
    """``gradient += d_target[t].T @ source[t - delay]``, summed over the batch."""


@dataclass(frozen=True)
class SparseInputGradient(_WeightedFields):
    """``d_source[t - delay] += d_target[t] @ W`` (dropped where t < delay)."""

    pattern: Pattern


@dataclass(frozen=True)
class SparseWeightGradient(_WeightGradientFields):
    """``gradient[e] += d_target[t][row of e] * source[t - delay][column of e]``, summed over the batch, for each entry e of `pattern`."""

    pattern: Pattern


@dataclass(frozen=True)
class OneToOneInputGradient(_OneToOneFields):
    """``d_source[t - delay] += weight * d_target[t][offset : offset + n]`` (dropped where t < delay)."""


@dataclass(frozen=True)
class OneToOneWeightGradient(_WeightGradientFields):
    """``gradient += sum over the batch of d_target[t][offset : offset + n] * source[t - delay]`` (over neurons too for a scalar)."""

    offset: int = 0


@dataclass(frozen=True)
class BiasGradient:
    """``gradient += sum over the batch of d_target[t]``."""

    target: str
    gradient: str


@dataclass(frozen=True)
class ConvolveInputGradient(_WeightedFields):
    """``d_source[t - delay] += `` the adjoint of :class:`Convolve`, applied to ``d_target[t]`` (dropped where t < delay)."""

    windows: Windows
    groups: int


@dataclass(frozen=True)
class ConvolveWeightGradient(_WeightGradientFields):
    """``gradient += d_target[t]`` times the value that each tap read in ``source[t - delay]``, summed over the batch and the windows."""

    windows: Windows
    groups: int


@dataclass(frozen=True)
class ConvolveBiasGradient:
    """``gradient += d_target[t]``, summed over the batch and the windows of each channel."""

    connection: str
    target: str
    gradient: str


@dataclass(frozen=True)
class PoolingGradient(_PoolFields):
    """``d_source[t - delay] += `` the adjoint of :class:`Pooling`, applied to ``d_target[t]`` (dropped where t < delay).

    The first of equal maxima receives the whole adjoint.
    """


@dataclass(frozen=True)
class RescaleInputGradient(_WeightedFields):
    """``d_source[t - delay] += weight * d_target[t]`` (dropped where t < delay)."""

    shape: Shape


@dataclass(frozen=True)
class RescaleWeightGradient(_WeightGradientFields):
    """``gradient += d_target[t] * source[t - delay]``, summed over the batch and the axes along which the weight is broadcast."""

    shape: Shape


@dataclass(frozen=True)
class RescaleBiasGradient:
    """``gradient += d_target[t]``, summed over the batch and the axes along which the bias is broadcast."""

    connection: str
    target: str
    gradient: str
    shape: Shape


@dataclass(frozen=True)
class ReduceGradient(_ReduceFields):
    """``d_source[t - delay] += `` the adjoint of :class:`AddReduced`, applied to ``d_target[t]`` (dropped where t < delay).

    The first of equal maxima receives the whole adjoint.
    """


@dataclass(frozen=True)
class SliceGradient(_SliceFields):
    """``d_source[t - delay][start:stop] += d_target[t]`` along `axis` (dropped where t < delay)."""


@dataclass(frozen=True)
class PadGradient(_PadFields):
    """``d_source[t - delay] += d_target[t][before : before + n]`` along every axis (dropped where t < delay)."""


# ---- update ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptimizerStep:
    """Change `parameter` by the program's optimizer; its state (moments) belongs to the backend."""

    parameter: str
    gradient: str


ConnectionOp: TypeAlias = DenseProduct | SparseProduct | AddOneToOne | Convolve | Pooling | Rescale | AddReduced | AddSlice | AddPadded
"""Contribution of a connection to a current."""
ForwardOp: TypeAlias = Fill | ConnectionOp | NeuronStep | Record
InputGradient: TypeAlias = (
    DenseInputGradient
    | SparseInputGradient
    | OneToOneInputGradient
    | ConvolveInputGradient
    | PoolingGradient
    | RescaleInputGradient
    | ReduceGradient
    | SliceGradient
    | PadGradient
)
WeightGradient: TypeAlias = (
    DenseWeightGradient | SparseWeightGradient | OneToOneWeightGradient | ConvolveWeightGradient | RescaleWeightGradient
)
AnyBiasGradient: TypeAlias = BiasGradient | ConvolveBiasGradient | RescaleBiasGradient
BackwardOp: TypeAlias = RecordAdjoint | NeuronAdjoint | AnyBiasGradient | InputGradient | WeightGradient
