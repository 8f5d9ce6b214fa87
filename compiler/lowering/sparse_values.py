"""Detection of dense connections that read values of which most are 0, such as poolings of spikes: tile programs skip their zeros."""

from __future__ import annotations

from snnc.compiler.ir.step_operations import AddPadded, AddReduced, AddSlice, Fill, Pooling
from snnc.compiler.ir.step_program import ConnectionInfo, StepProgram
from snnc.compiler.neurons.library import Quotient, Relay

_SUMS = Pooling | AddReduced | AddSlice | AddPadded


def reads_sparse_values(program: StepProgram, connection: ConnectionInfo) -> bool:
    """Return whether `connection` is dense and reads only sums, averages, slices or padded copies of spikes, without biases and maxima."""
    if connection.kind != "dense":
        return False
    source = next((p for p in program.populations if p.id == connection.source), None)
    if source is None or source.model not in (Relay(), Quotient()) or program.buffers[connection.source_buffer].kind != "values":
        return False
    incoming = [op for op in program.forward if getattr(op, "target", None) in source.ports]
    sums = [op for op in incoming if not isinstance(op, Fill)]
    biased = any(isinstance(op, Fill) and op.biases for op in incoming)
    return (
        bool(sums)
        and not biased
        and all(
            isinstance(op, _SUMS) and getattr(op, "kind", "") != "max" and program.buffers[op.source.buffer].kind == "spikes" for op in sums
        )
    )
