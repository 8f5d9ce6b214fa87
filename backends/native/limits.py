"""Operations that native programs do not support on sources that drop spikes."""

from __future__ import annotations

from snnc.backends.native.storage import is_maximum
from snnc.backends.runtime.errors import SpikeLimitError
from snnc.compiler.ir.step_operations import AddReduced
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import limited_sources


def check_limits(program: StepProgram) -> None:
    """Refuse maxima over whole axes of limited sources: they read rows of all spikes, where others read lists of those that are sent.

    Raises
    ------
    SpikeLimitError
        With the connection.
    """
    limited = limited_sources(program)
    for op in program.forward:
        if isinstance(op, AddReduced) and is_maximum(op) and op.source.buffer in limited:
            label = next(c.label for c in program.connections if c.id == op.connection)
            raise SpikeLimitError(
                f"the connection {label!r} takes the maximum over axes of spikes, here of all spikes and not only of those that are "
                "sent; compile with mode 'exact', or for the target 'reference'."
            )
