"""Which operations of a step program can be mapped onto a machine."""

from __future__ import annotations

from typing import Final

from snnc.compiler.errors import NotOnMachineError
from snnc.compiler.step_operations import Convolve, Cut, Pooling, Reduction, Rescale, SparseProduct, Surround
from snnc.compiler.step_program import StepProgram

REFERENCE_ONLY: Final = {
    Convolve: "a convolution",
    Pooling: "a pooling",
    Rescale: "a scale that is broadcast over several values",
    Reduction: "a reduction",
    Cut: "a slice",
    Surround: "a padding",
    SparseProduct: "a sparse connection that learns",
}


def check_supported(program: StepProgram) -> None:
    """Refuse a program with operations that only the reference runs.

    Raises
    ------
    NotOnMachineError
        With the first of them, and how many there are.
    """
    found = [op for op in program.forward if isinstance(op, Convolve | Pooling | Rescale | Reduction | Cut | Surround | SparseProduct)]
    if found:
        label = next(c.label for c in program.connections if c.id == found[0].connection)
        what = REFERENCE_ONLY[type(found[0])]
        raise NotOnMachineError(
            f"{label!r} of the network {program.name!r} is {what}, which snnc does not map onto a machine yet "
            f"(as {len(found)} of its {len(program.connections)} connections); compile it with --target reference."
        )
