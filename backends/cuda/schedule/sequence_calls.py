"""Calls of network-independent kernels, which process all steps and samples at once, outside the time loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Literal

from snnc.backends.cuda.kernels.connections import WiredGradient
from snnc.backends.cuda.kernels.copies import LANES
from snnc.backends.cuda.kernels.steps import Steps
from snnc.backends.cuda.schedule.launches import TILE, Launch, rounded_up
from snnc.backends.native.storage import is_maximum
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Precision

Use = Literal["SPIKES", "NUMBERS", "BACK"]
"""The product that reads a weight: a forward product of spikes or of values, or the backward product."""
_FORWARD: Final[dict[tuple[Use, Precision], str]] = {
    ("SPIKES", "tf32"): "TF32",
    ("SPIKES", "float16"): "ROUNDED",
    ("NUMBERS", "float16"): "HALF_WEIGHTS",
}
"""Form of the factors of forward products (``Factors`` in ``whole_products.hpp``), by use and precision; in other cases, factors are split
into 16-bit parts (``SPLIT``)."""
_BACKWARD: Final[dict[Precision, str]] = {"float32": "SPLIT", "tf32": "SPLIT", "bfloat16": "ROUNDED", "float16": "HALF_WEIGHTS"}
"""Form of the factors of products that return gradients to sources, by precision."""

_MAX_BLOCKS: Final = 264
_WARPS: Final = 16
"""Maximum number of blocks that split a weight, and warps of such a block (``whole_products.cu``)."""


@dataclass(frozen=True)
class PreparedWeight:
    """A dense weight in the layout that a product reads."""

    weight: str
    use: Use
    factors: str
    """Form of the factors (``whole_products.hpp``)."""
    inputs: int
    outputs: int

    @property
    def name(self) -> str:
        """Name of the session's member that stores the copy."""
        return f"{self.weight}_{self.use.lower()}"

    @property
    def layout(self) -> str:
        """C++ expressions of the form and the size of the copy."""
        return f"WholeUse::{self.use}, Factors::{self.factors}, {self.inputs}, {self.outputs}"

    @property
    def argument(self) -> str:
        """C++ argument for products."""
        return f"PreparedWeights{{{self.layout}, {self.name}.data()}}"

    @property
    def bytes(self) -> int:
        """Bytes that an update of the copy moves: each weight is read, and stored as 16-bit parts."""
        is_single = self.factors == "ROUNDED" or (self.use == "SPIKES" and self.factors == "TF32")
        parts = 1 if is_single else 3 if self.use == "NUMBERS" and self.factors != "HALF_WEIGHTS" else 2
        return self.inputs * self.outputs * (FLOAT + 2 * parts)

    @property
    def block_work(self) -> tuple[int, int]:
        """Number of weights that a block splits (``whole_products.cu``), and that it reads before, to find the largest in each column."""
        if self.use != "SPIKES":
            return -(-self.inputs * self.outputs // _MAX_BLOCKS), 0
        items, chunks = 4 * (rounded_up(self.inputs, 2 * LANES) // LANES), rounded_up(self.outputs, TILE) // LANES
        shares = max(1, min(-(-items // _WARPS), _MAX_BLOCKS // chunks))
        return -(-items // (_WARPS * shares)) * _WARPS * LANES * 8, LANES * self.inputs * (self.factors != "ROUNDED")


def preparation_launch(prepared: Collection[PreparedWeight]) -> Launch:
    """Return the launch that updates all copies."""
    split, first = zip(*(one.block_work for one in prepared), strict=True)
    numbers = sum(one.inputs * one.outputs for one in prepared)
    return Launch(
        "prepare", "once", "weights", fixed_bytes=sum(one.bytes for one in prepared), depth=max(split), width=max(first), weights=numbers
    )


@dataclass
class SequenceCalls:
    """Creates calls, and collects the weights and temporary memory that they need."""

    steps: Steps
    precision: Precision
    prepared: dict[str, PreparedWeight] = field(default_factory=dict)
    """Prepared weights that products read, by name."""
    scratch_sizes: dict[str, None] = field(default_factory=dict)
    """C++ expressions of the temporary memory of each call, as a number of floats; ``rows`` is the number of rows of a segment, one for
    each step and sample."""

    def forward_call(self, op: ops.ConnectionOp, to: str, *, first: bool) -> str | None:
        """Return the call that adds the currents of `op` at all steps to the member `to` of ``Net``.

        None: a network-specific kernel is needed, because the current has several biases. The `first` call that writes `to` stores sums
        and biases instead of adding.
        """
        biases = self.steps.biases(op.target) if first else ()
        if len(biases) > 1:
            return None
        start = f"net.{biases[0]}" if biases else "nullptr"
        add = "false" if first else "true"
        if isinstance(op, ops.DenseProduct):
            outputs, inputs = self.steps.program.buffers[op.weight].shape
            use: Use = "SPIKES" if self.steps.spikes(op.source.buffer) else "NUMBERS"
            weights = self._prepared(op.weight, use, _FORWARD.get((use, self.precision), "SPLIT"), inputs, outputs)
            return f"whole_forward({self._first(op.source)}, rows, {weights}, {{net.{to}.row(0, 0), {start}, {add}}});"
        source = self._rows(op.source)
        sums = f"{{net.{to}.row(0, 0), rows, {add}, %s, {start}}}"
        if isinstance(op, ops.Convolve):
            windows = self.steps.connections.windows(op)
            self.scratch_sizes[f"convolution_scratch({windows}, rows)"] = None
            bias = f"net.{op.bias}" if op.bias is not None else "nullptr"
            return f"convolve({windows}, {source}, net.{op.weight}, {sums % bias}, work.data());"
        ends, tables = self._ends(op), self.steps.connections.by_target(op)
        if is_maximum(op):
            return f"gather_largest({ends}, {tables.by_target}, {source}, {sums % 'nullptr'});"
        bias = f"net.{op.bias}" if isinstance(op, ops.Rescale) and tables.bias_of is not None else "nullptr"
        return f"gather_wired({ends}, {tables.by_target}, {source}, {tables.weight}, {tables.bias_of or 'nullptr'}, {sums % bias});"

    def backward_call(self, op: ops.InputGradient, to: str, *, first: bool) -> str | None:
        """Return the call that adds gradients to the rows of `to`; None if a network-specific kernel is needed."""
        delay = op.source.delay
        add = "false" if first else "true"
        # Two arguments: the number of rows by which a gradient moves back, and that of rows to the end of the sequence.
        reach = f"{f'{delay} * batch' if delay else '0'}, net.left * batch"
        deltas = f"net.d_{op.target}.row(0, 0)"
        if isinstance(op, ops.DenseInputGradient):
            outputs, inputs = self.steps.program.buffers[op.weight].shape
            weights = self._prepared(op.weight, "BACK", _BACKWARD[self.precision], inputs, outputs)
            return f"whole_back({deltas}, rows, {reach}, {weights}, {{net.{to}.row(0, 0), nullptr, {add}}});"
        if self.steps.rounds_delta(op.target):
            return None
        sums = f"{{net.{to}.row(0, 0), rows, {add}, nullptr, nullptr}}"
        if isinstance(op, ops.ConvolveInputGradient):
            windows = self.steps.connections.windows(op)
            self.scratch_sizes[f"convolution_scratch({windows}, rows)"] = None
            return f"convolve_back({windows}, {deltas}, {reach}, net.{op.weight}, {sums}, work.data());"
        forward = self.steps.connections.operation(op.connection)
        ends, tables = self._ends(forward), self.steps.connections.by_target(forward)
        if is_maximum(op):
            # The maximum is found again from the values of the forward pass.
            read, (disjoint, complete) = self._rows(ops.BufferValue(op.source.buffer)), self.steps.connections.windows_partition(forward)
            if disjoint:
                size = self.steps.storage.size(op.source.buffer)
                clear = f"device::clear(net.{to}.row(0, 0), sizeof(float) * {size} * static_cast<std::size_t>(rows)); "
                spread = f"spread_largest({ends}, {tables.by_target}, {read}, {deltas}, {reach}, {sums});"
                return spread if complete or not first else clear + spread
            by_source = self.steps.connections.by_source(forward)
            return f"gather_largest_back({ends}, {tables.by_target}, {by_source}, {read}, {deltas}, {reach}, {sums});"
        by_source = self.steps.connections.by_source(forward)
        return f"gather_wired_back({ends}, {by_source}, {deltas}, {reach}, {tables.weight}, {sums});"

    def gradient(self, op: object) -> tuple[str, str] | None:
        """Return the call for a gradient and the statement that allocates its slices (partial sums); None for a network-specific kernel."""
        if isinstance(op, ops.DenseWeightGradient):
            outputs, inputs = self.steps.storage.size(op.target), self.steps.storage.size(op.source.buffer)
            arguments = f"{self._first(op.source)}, net.d_{op.target}.row(0, 0), rows, {inputs}, {outputs}, Factors::SPLIT"
            slices = f"whole_slice_rows(static_cast<int>(rows), {inputs}, {outputs})"
            call = f"whole_gradient({arguments}, {slices_of(op.gradient)});"
        elif isinstance(op, ops.ConvolveWeightGradient | ops.ConvolveBiasGradient) and not self.steps.rounds_delta(op.target):
            call, slices = self._convolution_gradient(op), "0"
        elif isinstance(op, WiredGradient) and not self.steps.rounds_delta(op.target):
            call, slices = self._wired_gradient(op), "0"
        else:
            return None
        return call, f"{op.gradient.removeprefix('d_')}.slice_by({slices}, rows);"

    def _convolution_gradient(self, op: ops.ConvolveWeightGradient | ops.ConvolveBiasGradient) -> str:
        forward = self.steps.connections.operation(op.connection)
        assert isinstance(forward, ops.Convolve)
        windows = self.steps.connections.windows(forward)
        self.scratch_sizes[f"convolution_scratch({windows}, rows)"] = None
        deltas = f"net.d_{op.target}.row(0, 0)"
        if isinstance(op, ops.ConvolveBiasGradient):
            return f"convolve_bias_gradient({windows}, {deltas}, rows, {slices_of(op.gradient)}, work.data());"
        arguments = f"{self._rows(op.source)}, {deltas}, rows, {slices_of(op.gradient)}, Slices{{}}, work.data()"
        return f"convolve_gradient({windows}, {arguments});"

    def _wired_gradient(self, op: WiredGradient) -> str:
        numbers = max(1, self.steps.storage.size(op.gradient))
        table, all_short = self.steps.connections.by_parameter(op)
        source = "{nullptr, nullptr, 0}" if isinstance(op, ops.RescaleBiasGradient) else self._rows(op.source)
        self.scratch_sizes[f"wired_scratch({numbers}, rows)"] = None
        ends = self._ends(self.steps.connections.operation(op.connection))
        arguments = f"{source}, net.d_{op.target}.row(0, 0), rows, {slices_of(op.gradient)}, work.data()"
        return f"wired_gradients({ends}, {table}, {'true' if all_short else 'false'}, {arguments});"

    def _prepared(self, weight: str, use: Use, factors: str, inputs: int, outputs: int) -> str:
        prepared = PreparedWeight(weight, use, factors, inputs, outputs)
        self.prepared[prepared.name] = prepared
        return prepared.argument

    def _first(self, source: ops.BufferValue) -> str:
        """Return the C++ expression of the row that is read at step 0 of the first sample."""
        return f"net.{self.steps.limits.received(source.buffer)}.row({-source.delay}, 0)"

    def _rows(self, source: ops.BufferValue) -> str:
        """Return the C++ initialiser of the rows that a connection reads: of bits for spikes, else of floats."""
        first = self._first(source)
        return f"{{{first}, nullptr, 0}}" if self.steps.spikes(source.buffer) else f"{{nullptr, {first}, 0}}"

    def _ends(self, op: ops.ConnectionOp) -> str:
        return f"{{{self.steps.storage.size(op.source.buffer)}, {self.steps.storage.size(op.target)}}}"


def slices_of(gradient: str) -> str:
    """Return the C++ expression of the slices (partial sums) of a gradient."""
    return f"net.{gradient.removeprefix('d_')}_learned.gradient"
