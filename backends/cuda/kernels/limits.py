"""C++ code for sources with a spike limit: a second buffer of bits contains the spikes that connections receive."""

from __future__ import annotations

from snnc.backends.cuda.kernels.copies import LANES
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import limited_sources, without_returns


def limit_name(buffer: str) -> str:
    """Return the name of a source's limit, a member of ``Net``, and of the phase that chooses the source's spikes."""
    return f"{buffer}_limit"


class Limits:
    """C++ for the spike limits of a program."""

    def __init__(self, program: StepProgram) -> None:
        self.sources = limited_sources(program)
        """Buffers of the limited sources -> names of the parameters for the capacity and the key of the choice."""
        self.masked = without_returns(program)
        """Sources for which dense connections return no gradient to dropped spikes."""
        self._program = program

    def received(self, buffer: str) -> str:
        """Return the member of ``Net`` from which connections read a source: another buffer if the source has a limit."""
        return f"{buffer}_sent" if buffer in self.sources else buffer

    def choose(self, buffer: str) -> str:
        """Return the host statement that chooses the spikes at all steps of a segment, and counts the dropped ones."""
        rows = f"net.{buffer}.row(0, 0), rows, {self.words(buffer)}, net.{limit_name(buffer)}"
        return f"kernels::limit_rows({rows}, first, batch, net.{self.received(buffer)}.row(0, 0), counted());"

    def clear_dropped(self, buffer: str, adjoint: str) -> str:
        """Return the host statement that removes the gradients of dropped spikes from a sum, at all steps of a segment."""
        rows = f"net.{adjoint}.row(0, 0), net.{buffer}.row(0, 0), net.{self.received(buffer)}.row(0, 0)"
        return f"kernels::forget_dropped({rows}, rows, {size(self._program.buffers[buffer].shape)});"

    def dropped(self, buffer: str) -> str:
        """Return a C++ expression that is true if a spike was dropped, for sample ``s`` of a tile of samples at step ``t``."""
        row = "row(t, item.sample + s)"
        return f"is_dropped(net.{buffer}.{row}, net.{self.received(buffer)}.{row}, item.column)"

    def row_bytes(self, buffer: str) -> int:
        """Return the bytes per step and sample that a choice reads and writes."""
        return 2 * 4 * self.words(buffer)

    def words(self, buffer: str) -> int:
        """Return the number of 32-bit words with the spikes of a sample."""
        return -(-size(self._program.buffers[buffer].shape) // LANES)
