"""C++ code for sources with a spike limit: a second buffer of bits contains the spikes that connections receive."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.cuda.kernels.copies import LANES
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import limited_sources, without_returns


@dataclass(frozen=True)
class LimitPhase:
    """The phase of a step of a feedback loop that chooses the spikes of a source; one warp processes one sample.

    `words` is the number of 32-bit words with the spikes of a sample.
    """

    name: str
    buffer: str
    words: int


def limit_name(buffer: str) -> str:
    """Return the name of the phase that chooses the spikes of a buffer."""
    return f"{buffer}_limit"


class Limits:
    """C++ for the spike limits of a program."""

    def __init__(self, program: StepProgram) -> None:
        self.sources = limited_sources(program)
        """Buffers of the limited sources -> names of their parameters."""
        self.masked = without_returns(program)
        """Sources for which dense connections return no gradient to dropped spikes."""
        self._program = program

    def received(self, buffer: str) -> str:
        """Return the member of ``Net`` from which connections read a source: another buffer if the source has a limit."""
        return f"{buffer}_sent" if buffer in self.sources else buffer

    def phase(self, buffer: str) -> LimitPhase:
        """Return the phase of a source that populations of its own feedback loop read."""
        return LimitPhase(limit_name(buffer), buffer, self._words(buffer))

    def fields(self) -> list[str]:
        """Return the declarations of the limits, which are members of ``Net``."""
        return [f"SpikeLimit {limit_name(b)};" for b in self.sources]

    def binding(self) -> list[str]:
        """Return the statements that set the members of :meth:`fields`."""
        return [f"net.{limit_name(b)} = {{{s.capacity}.value.data(), {s.key}.value.data()}};" for b, s in self.sources.items()]

    def setup(self) -> list[str]:
        """Return the statements that register the buffers of sent spikes and the counter of dropped ones."""
        return [*(f"add_sent({self.received(b)}, {b});" for b in self.sources), *(["add_dropped();"] if self.sources else [])]

    def choose(self, buffer: str) -> str:
        """Return the host statement that chooses the spikes at all steps of a segment, and counts the dropped ones."""
        rows = f"net.{buffer}.row(0, 0), rows, {self._words(buffer)}, net.{limit_name(buffer)}"
        return f"kernels::limit_rows({rows}, first, batch, net.{self.received(buffer)}.row(0, 0), counted());"

    def clear_dropped(self, buffer: str, adjoint: str) -> str:
        """Return the host statement that removes the gradients of dropped spikes from a sum, at all steps of a segment."""
        rows = f"net.{adjoint}.row(0, 0), net.{buffer}.row(0, 0), net.{self.received(buffer)}.row(0, 0)"
        return f"kernels::forget_dropped({rows}, rows, {self._size(buffer)});"

    def dropped(self, buffer: str) -> str:
        """Return a C++ expression that is true if a spike was dropped, for sample ``s`` of a tile at step ``t``."""
        row = "row(t, item.sample + s)"
        return f"is_dropped(net.{buffer}.{row}, net.{self.received(buffer)}.{row}, item.column)"

    def row_bytes(self, buffer: str) -> int:
        """Return the bytes per step and sample that a choice reads and writes."""
        return 2 * 4 * self._words(buffer)

    def _size(self, buffer: str) -> int:
        return size(self._program.buffers[buffer].shape)

    def _words(self, buffer: str) -> int:
        return -(-self._size(buffer) // LANES)
