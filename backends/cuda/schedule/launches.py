"""Kernel launches of a training step as data: their work in bytes and multiplications."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from snnc.backends.cuda.kernels.copies import LANES
from snnc.backends.cuda.kernels.steps import Steps
from snnc.backends.cuda.schedule.cores import PROCESSORS
from snnc.backends.native.storage import is_maximum
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.arrays.sizes import FLOAT

Kind = Literal["product", "convolution", "table", "walk", "core", "feedback", "pack", "loss", "update", "prepare", "clear", "sum"]
"""A product, a convolution or a table of wires computes what a connection adds to currents or gradients at all steps; a product or a
convolution also computes the gradient of a weight, and a table also adds the adjoint of a record. A walk, a core and a feedback run all
steps of populations: of one without recurrence, of one with a dense recurrence, and of any other loop. The other kernels pack spikes as
bits or drop those beyond a limit, clear buffers, prepare copies of weights, sum the deltas of biases, compute the loss and update the
parameters."""
Way = Literal["forward", "backward", "gradient", "once"]
"""Pass to which a kernel belongs, "gradient" for the gradients of parameters, or "once" if it belongs to none of these."""
_MOST: Final = 2**48
"""Exclusive upper bound of the numbers in a launch that :func:`read_launches` accepts."""
_ADDED: Final[Mapping[str, object]] = {"during": ""}
"""Fields that the launches of older projects lack, with the values that describe those projects."""
TILE: Final = 128
"""Number of rows, and of columns, in the tile of a product that a block computes."""
NARROW: Final = 32
"""Number of columns in the tile if the product has at most this many columns."""
SPIKE_PARTS: Final = 2
"""Number of 16-bit products for the float32 gradient of a weight that reads spikes: spikes are exact, so only deltas are split."""

_MAX_SLICES: Final = 128
_DEPTH: Final = 32
"""Number of rows that a block multiplies between two barriers; the length of a slice is a multiple of it."""


@dataclass(frozen=True)
class Launch:
    """A kernel of a training step."""

    kind: Kind
    way: Way
    of: str
    """Label of the population or connection, or a description of the data, such as ``"inputs"``."""
    row_bytes: int = 0
    """Bytes read and written per row: one step of one sample."""
    fixed_bytes: int = 0
    """Bytes read and written that do not depend on the number of rows."""
    depth: int = 0
    width: int = 0
    """Of a product: number of summands per result, and number of results per row. Of a convolution: number of summands per result, and
    number of results per position, both rounded up to whole fragments. Of the gradient of a weight: as in the forward pass. Of prepared
    weights: number of weights that a block splits into 16-bit parts, and number that it reads before, to find the largest in each column.
    `depth` of a feedback loop: the largest number of weights of a neuron that are always read."""
    positions: int = 1
    """Of a convolution: number of positions per row; otherwise 1."""
    parts: int = 1
    """Number of 16-bit products that replace a float32 product."""
    neurons: int = 0
    """Of a walk, a core or a feedback loop: number of neurons."""
    levels: int = 0
    """Of a feedback loop: number of barriers per step."""
    weights: int = 0
    """Of a feedback loop: number of weights that a step always reads. Of prepared weights: number of all weights that are split."""
    listed: int = 0
    """Of a feedback loop: number of weights that a step reads only for neurons that spiked."""
    during: str = ""
    """Of a gradient: label of the recurrent core that runs backward at the same time; "" if none does."""


def read_launches(data: object) -> list[Launch] | None:
    """Return the launches in ``project.json``; None if they are missing, empty or invalid."""
    if not isinstance(data, list):
        return None
    complete = [dict(_ADDED) | one if isinstance(one, dict) else one for one in data]
    if not all(_is_launch(one) for one in complete):
        return None
    return [Launch(**one) for one in complete] or None


def _is_launch(data: object) -> bool:
    if not isinstance(data, dict) or set(data) != {field.name for field in fields(Launch)}:
        return False
    kind, way, of, *sizes, during = (data[field.name] for field in fields(Launch))
    named = kind in get_args(Kind) and way in get_args(Way) and isinstance(of, str) and isinstance(during, str)
    return named and all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < _MOST for size in sizes)


def rounded_up(count: int, unit: int) -> int:
    """Return `count` rounded up to a multiple of `unit`."""
    return -(-count // unit) * unit


def columns_of_tile(width: int) -> int:
    """Return the number of columns in the tile of a product that a block computes."""
    return NARROW if width <= NARROW else TILE


def slice_rows(rows: int, inputs: int, outputs: int) -> int:
    """Return the number of rows in a slice of a dense weight's gradient, computed as in ``whole_slice_rows`` (``whole_products.cu``).

    A slice is a range of rows with its own partial sum. The number of slices with the fewest estimated cycles is chosen.
    """
    rows, cycles = max(rows, 1), 350 if outputs <= NARROW else 1100  # for `_DEPTH` rows of a tile, plus 3,000 per tile
    tiles = -(-inputs // TILE) * -(-outputs // columns_of_tile(outputs))
    best, fewest = rows, math.inf
    for slices in range(1, _MAX_SLICES + 1):
        length = rounded_up(-(-rows // slices), _DEPTH)
        count = -(-rows // length)
        products = -(-tiles * count // PROCESSORS) * (length // _DEPTH * cycles + 3000)
        total = products + 8 * count * inputs * outputs / (10 * PROCESSORS)  # slices are written and read at 10 bytes per cycle
        if total < fewest:
            best, fewest = length, total
    return best


def timed(way: Way, number: int) -> str:
    """Return the statement that starts the timer of a kernel, if kernels are timed; `number` counts the kernels with this `way`."""
    return f"timed({way.upper()}_KERNELS + {number});"


class Launches:
    """Describes operations of a program as launches."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def contribution(self, op: ops.ConnectionOp | ops.InputGradient | ops.RecordAdjoint, label: str) -> Launch:
        """Return the launch that adds an operation's contribution to the sum that the population `label` receives from outside its loop.

        Forward, this is the sum of a current; backward, it is the sum of an output's gradients.
        """
        source, target = self._row_bytes(op.source.buffer), FLOAT * self._steps.storage.size(op.target)
        if isinstance(op, ops.DenseProduct):
            parts = self._steps.spike_parts if self._steps.spikes(op.source.buffer) else 6  # 3 x 3 parts, less the 3 smallest products
            return self._product(op.weight, label, "forward", source + target, parts)
        values = FLOAT * self._steps.storage.size(op.source.buffer)
        if isinstance(op, ops.DenseInputGradient):
            return self._product(op.weight, label, "backward", values + target, 1 if self._steps.half else 3)
        if isinstance(op, ops.Convolve):
            return self._convolution(op, label, "forward", source + target, 2)
        if isinstance(op, ops.ConvolveInputGradient):
            return self._convolution(op, label, "backward", values + target, 3)
        way: Way = "forward" if isinstance(op, ops.ConnectionOp) else "backward"
        # In the backward pass, a maximum reads its candidates again.
        again = values if way == "backward" and not isinstance(op, ops.RecordAdjoint) and is_maximum(op) else 0
        return Launch("table", way, label, (source if way == "forward" else values) + target + again)

    def gradient(self, op: object) -> Launch | None:
        """Return the launch of the gradient of a dense weight, or of a convolution's weight or bias; None for other gradients.

        :meth:`sums` describes the gradients of biases of dense layers; the rest are small and not described.
        """
        if isinstance(op, ops.DenseWeightGradient):
            inputs, outputs = self._steps.storage.size(op.source.buffer), self._steps.storage.size(op.target)
            row = self._row_bytes(op.source.buffer) + FLOAT * outputs
            parts = SPIKE_PARTS if self._steps.spikes(op.source.buffer) else 3
            label = self._connection(op.connection)
            return Launch("product", "gradient", label, row, FLOAT * inputs * outputs, inputs, outputs, parts=parts)
        if isinstance(op, ops.ConvolveWeightGradient):
            row = self._row_bytes(op.source.buffer) + FLOAT * self._steps.storage.size(op.target)
            return self._convolution(op, self._connection(op.connection), "gradient", row, 2)
        if isinstance(op, ops.ConvolveBiasGradient):
            return Launch("sum", "gradient", self._connection(op.connection), self._deltas(op.target))
        return None

    def sums(self) -> Launch | None:
        """Return the launch that sums the deltas of all biases of dense layers; None if there are none."""
        biases = [op.target for op in self._steps.program.backward if isinstance(op, ops.BiasGradient)]
        return Launch("sum", "gradient", "biases", sum(map(self._deltas, biases))) if biases else None

    def _product(self, weight: str, label: str, way: Way, row: int, parts: int) -> Launch:
        outputs, inputs = self._steps.program.buffers[weight].shape
        depth, width = (inputs, outputs) if way == "forward" else (outputs, inputs)
        return Launch("product", way, label, row, FLOAT * inputs * outputs, depth, width, parts=parts)

    def _convolution(
        self, op: ops.Convolve | ops.ConvolveInputGradient | ops.ConvolveWeightGradient, label: str, way: Way, row: int, parts: int
    ) -> Launch:
        """Return the launch of a pass of a convolution, as a matrix product with sizes that are multiples of a tensor core's."""
        forward = self._steps.connections.operation(op.connection)
        assert isinstance(forward, ops.Convolve)
        outputs = self._steps.program.buffers[forward.weight].shape[0]
        taps, inputs = math.prod(op.windows.kernel), op.windows.channels // op.groups
        if way == "backward":
            depth, width, positions = outputs // op.groups * taps, rounded_up(inputs, 16), math.prod(op.windows.size)
        else:
            depth, width, positions = inputs * taps, rounded_up(outputs // op.groups, 32), math.prod(op.windows.output)
        return Launch("convolution", way, label, row, 0, rounded_up(depth, 16), op.groups * width, positions, parts)

    def _row_bytes(self, buffer: str) -> int:
        size = self._steps.storage.size(buffer)
        return FLOAT * (-(-size // LANES) if self._steps.spikes(buffer) else size)

    def _deltas(self, current: str) -> int:
        """Return the bytes of a row of deltas."""
        return self._steps.storage.size(current) * (FLOAT // 2 if self._steps.rounds_delta(current) else FLOAT)

    def _connection(self, name: str) -> str:
        return next((c.label for c in self._steps.program.connections if c.id == name), name)
