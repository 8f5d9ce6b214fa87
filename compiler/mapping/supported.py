"""Which operations of a step program can be mapped onto a machine."""

from __future__ import annotations

from snnc.compiler.errors import NotOnMachineError
from snnc.compiler.step_operations import Pooling, Reduction
from snnc.compiler.step_program import StepProgram


def check_supported(program: StepProgram) -> None:
    """Refuse a program with operations that only the reference runs.

    Raises
    ------
    NotOnMachineError
        With the first of them, and how many there are.
    """
    found = [op for op in program.forward if isinstance(op, Pooling | Reduction) and op.kind == "max"]
    if found:
        label = next(c.label for c in program.connections if c.id == found[0].connection)
        what = "a pooling by maximum" if isinstance(found[0], Pooling) else "a reduction by maximum"
        raise NotOnMachineError(
            f"{label!r} of the network {program.name!r} is {what}, which snnc does not map onto a machine yet "
            f"(as {len(found)} of its {len(program.connections)} connections); compile it with --target reference."
        )
