"""Kernels that compute the gradients of parameters from the deltas of all steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from snnc.backends.cuda.kernels.connections import WiredGradient
from snnc.backends.cuda.kernels.copies import LANES
from snnc.backends.cuda.kernels.steps import Steps
from snnc.backends.cuda.schedule.launches import Launches, timed
from snnc.backends.cuda.schedule.sequence_calls import SequenceCalls, slices_of
from snnc.compiler.ir import step_operations as ops


@dataclass
class Gradients:
    """Collects the statements that compute gradients."""

    steps: Steps
    sequence_calls: SequenceCalls
    overlaps: Mapping[str, str] = field(default_factory=dict)
    """Gradient -> label of the recurrent population whose backward kernel (*core*) runs at the same time."""
    calls: list[str] = field(default_factory=list)
    """Host statements after the backward pass."""
    beside: dict[str, list[str]] = field(default_factory=dict)
    """Label of a core -> host statements that run during it."""
    lines: list[str] = field(default_factory=list)
    """Statements of the emitted kernel: it computes the gradients that no kernel of the shared runtime computes."""
    layout: list[str] = field(default_factory=list)
    """Statements that divide the rows (samples at all steps) into slices, each with its own partial sum."""
    sums: dict[str, int] = field(default_factory=dict)
    """Buffers that sum gradients of population parameters over time -> number of neurons."""
    sum_timer: str = "timed(OTHER_KERNELS);"
    """Statement that starts the timer of the kernel of :attr:`lines`."""

    def add_all(self) -> None:
        """Add the statements of every operation of the backward pass."""
        launches, number = Launches(self.steps), 0
        for op in self.steps.program.backward:
            call_and_layout = self.sequence_calls.gradient(op)
            has_launch = launches.gradient(op) is not None
            timer = timed("gradient", number) if has_launch else "timed(OTHER_KERNELS);"
            number += has_launch
            if call_and_layout is not None:
                call, layout = call_and_layout
                core = self.overlaps.get(getattr(op, "gradient", ""))
                calls = self.calls if core is None else self.beside.setdefault(core, [])
                calls += [timer, call]
                self.layout.append(layout)
                continue
            match op:
                case ops.ConvolveWeightGradient() | ops.ConvolveBiasGradient():
                    self._convolution(op)
                case ops.SparseWeightGradient() | ops.OneToOneWeightGradient() | ops.RescaleWeightGradient() | ops.RescaleBiasGradient():
                    self._wired(op)
                case ops.BiasGradient(target, gradient):
                    size = self.steps.storage.size(target)
                    self._slice(gradient, -(-size // LANES))
                    self.lines.append(f"column_sums(net.d_{target}.matrix(), {size}, rows, {slices_of(gradient)}, warp);")
                case ops.NeuronAdjoint():
                    self._neurons(op)
        if launches.sums() is not None:
            self.sum_timer = timed("gradient", number)

    def _convolution(self, op: ops.ConvolveWeightGradient | ops.ConvolveBiasGradient) -> None:
        forward = self.steps.connections.operation(op.connection)
        assert isinstance(forward, ops.Convolve)
        shape = self.steps.program.buffers[forward.weight].shape
        expression = self.steps.connections.windows(forward)
        if isinstance(op, ops.ConvolveBiasGradient):
            self._slice(op.gradient, shape[0])
            self.lines.append(f"window_bias_gradient({expression}, net.d_{op.target}.matrix(), rows, {slices_of(op.gradient)}, warp);")
            return
        self._slice(op.gradient, int(np.prod(shape)))
        source = f"net.{self.steps.limits.received(op.source.buffer)}, {self._lead(op.source)}"
        arguments = f"{source}, net.d_{op.target}.matrix(), rows, {slices_of(op.gradient)}, warp"
        self.lines.append(f"window_gradient({expression}, {arguments});")

    def _wired(self, op: WiredGradient) -> None:
        """Add a gradient over the table of a connection's entries: `wired_gradient` in the runtime."""
        elements = max(1, self.steps.storage.size(op.gradient))
        table, few = self.steps.connections.by_parameter(op)
        source, lead = "Ones()", "0"
        if not isinstance(op, ops.RescaleBiasGradient):
            source, lead = f"net.{self.steps.limits.received(op.source.buffer)}", self._lead(op.source)
        self._slice(op.gradient, -(-elements // LANES) if few else elements)
        arguments = f"{table}, {source}, {lead}, net.d_{op.target}.matrix(), rows, {slices_of(op.gradient)}, warp"
        self.lines.append(f"wired_gradient<{'true' if few else 'false'}>({arguments});")

    def _neurons(self, op: ops.NeuronAdjoint) -> None:
        for gradient in op.gradients:
            size = self.steps.storage.size((op.currents or op.states)[0])
            self.sums[f"{gradient}_sums"] = size
            scalar = self.steps.program.buffers[gradient].shape == ()
            summed = f"whole_sum(net.{gradient}_sums.data" if scalar else f"column_sums(net.{gradient}_sums.matrix()"
            self._slice(gradient, 1 if scalar else -(-size // LANES), "static_cast<std::size_t>(batch)")
            self.lines.append(f"{summed}, {size}, run.batch, {slices_of(gradient)}.whole(), warp);")

    def _slice(self, gradient: str, items: int, rows: str = "rows") -> None:
        self.layout.append(f"{gradient.removeprefix('d_')}.slice({items}, {rows}, NOMINAL_WARPS);")

    def _lead(self, source: ops.BufferValue) -> str:
        """Return the number of stored rows before the row that is read at step 0 of the first sample."""
        before = self.steps.storage.stored(source.buffer).past - source.delay
        return f"{before} * run.batch" if before else "0"
