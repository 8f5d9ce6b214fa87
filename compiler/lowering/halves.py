"""What a training program keeps as float16, by its precision. Sums, running states and parameters are float32."""

from __future__ import annotations

from typing import Literal, TypeAlias

from snnc.compiler.ir.plan import Precision

Half: TypeAlias = Literal["history"]
"""``"history"``: states and values of all steps that the adjoint reads."""


def halves_of(precision: Precision) -> tuple[Half, ...]:
    """Return what a program of that precision keeps as float16."""
    return ("history",) if precision == "float16" else ()
