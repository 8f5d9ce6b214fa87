"""Float16 weights: statements that round them after an update."""

from __future__ import annotations

from typing import Final

from snnc.compiler.ir.step_operations import DenseProduct
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses.weight_rounding import parameter_key

CHANGED: Final = "CHANGED"
"""Placeholder for the update itself, which the template prints."""


def rounded_update(program: StepProgram, name: str) -> list[str]:
    """Return the statements that update element `i` of a parameter and round it; empty if the parameter is float32 or is not updated.

    Values are representable in float16, but stored as float32.
    """
    rounding = program.rounding
    if not program.parameters[name].half or rounding is None:
        return []
    value, rest = f"net.{name}_learned.value[i]", f"net.{name}_learned.remainder[i]"
    match rounding.kind:
        case "nearest":
            return [CHANGED, f"{value} = nearest_half({value});"]
        case "master":
            store_remainder = ["const float exact = " + value + ";", f"{value} = nearest_half(exact);", f"{rest} = exact - {value};"]
            return [f"{value} += {rest};", CHANGED, *store_remainder]
        case "stochastic":
            number = [op.parameter for op in program.update].index(name)
            random = f"drawn(scrambled({parameter_key(rounding.seed, number)}u ^ number), {_place(program, name)})"
            return [CHANGED, f"{value} = rounded_at_random({value}, {random});"]


def _place(program: StepProgram, name: str) -> str:
    """Return the C++ index of element `i` in the model's array; dense weights are stored transposed, [inputs][outputs]."""
    if not any(isinstance(op, DenseProduct) and op.weight == name for op in program.forward):
        return "static_cast<unsigned>(i)"
    outputs, inputs = program.buffers[name].shape
    return f"static_cast<unsigned>(i % {outputs} * {inputs} + i / {outputs})"


def keeps_remainder(program: StepProgram, name: str) -> bool:
    """Return whether the rounding errors of a parameter are stored."""
    return program.parameters[name].half and program.rounding is not None and program.rounding.kind == "master"


def rounds_at_random(program: StepProgram) -> bool:
    """Return whether an update needs its number, which seeds the stochastic rounding."""
    return program.rounding is not None and program.rounding.kind == "stochastic"
