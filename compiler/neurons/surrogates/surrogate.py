"""A surrogate derivative as an expression of ``x``, the argument of ``spike``.

The library of surrogates is in :mod:`snnc.compiler.neurons.surrogates.library`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from snnc.compiler.errors import SurrogateValueError
from snnc.compiler.neurons.expression import Expression, Symbol, call
from snnc.compiler.neurons.surrogates.support import support


@dataclass(frozen=True)
class Surrogate:
    """The derivative that replaces that of the Heaviside step in the backward pass.

    Parameters
    ----------
    name
        Name in messages and reports, for example ``"atan"``.
    derivative
        Expression in the single symbol ``x`` (membrane minus threshold, in the units of the membrane).
    parameters
        The numbers of the derivative, for reports.
    """

    name: str
    derivative: Expression
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def support(self) -> tuple[float, float] | None:
        """``(low, high)``, in units of x, outside which the derivative is exactly 0; None if it has no such bound on either side."""
        found = support(self.derivative)
        return None if found == (-math.inf, math.inf) else found

    def windowed(self, low: float, high: float = math.inf) -> Surrogate:
        """Return the surrogate with derivative ``derivative(x)`` where ``low < x < high``, else 0.

        ``low`` is th2 - th1 of the two-threshold scheme (Finkbeiner et al. 2023, "Harnessing manycore processors with distributed
        memory"): neurons whose membrane lies between the two thresholds, and those that spike, take gradient.

        Parameters
        ----------
        low, high
            In units of x, the membrane minus the threshold.

        Raises
        ------
        SurrogateValueError
            ``low < high`` does not hold, or ``low`` is not finite.

        Examples
        --------
        >>> from snnc.compiler.neurons.surrogates.library import straight_through
        >>> str(straight_through().windowed(-0.1))
        'windowed_straight_through(low=-0.1)'
        """
        if not (math.isfinite(low) and low < high):
            raise SurrogateValueError(f"the gradient window ({low:g}, {high:g}) is empty or has no lower end; give low < high, low finite.")
        x = Symbol("x")
        inside = call("where", call("gt", x, low), self.derivative, 0)
        parameters = {**self.parameters, "low": float(low)}
        if high < math.inf:
            inside = call("where", call("gt", high, x), inside, 0)
            parameters["high"] = float(high)
        return Surrogate(self.name if self.name.startswith("windowed_") else f"windowed_{self.name}", inside, parameters)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})"
