"""What a surrogate derivative is: an expression of ``x``, the argument of ``spike``.

The library of surrogates stands in :mod:`snnc.compiler.surrogates`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snnc.compiler.expression import Expression


@dataclass(frozen=True)
class Surrogate:
    """The derivative that stands for that of the Heaviside step in the backward pass.

    Parameters
    ----------
    name
        How messages and reports call it, for example ``"atan"``.
    derivative
        Expression in the single symbol ``x`` (membrane minus threshold, in the units of the membrane).
    parameters
        The numbers that the derivative was made with, for reports.
    """

    name: str
    derivative: Expression
    parameters: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})"
