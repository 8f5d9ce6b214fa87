"""Terms of the sums of currents or gradients: initial values, and contributions of connections. ``sums.jinja`` prints the loops.

A block of threads computes the sums for a *tile*: the samples for which it reads each weight once. A *port* is an input of a neuron or, in
the backward pass, an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from snnc.compiler.ir.step_operations import BufferValue


@dataclass(frozen=True)
class Begin:
    """Sets the sums of a port to an expression of sample ``s``; if `existing`, only for the samples of the tile that exist in the batch."""

    port: int
    value: str
    existing: bool = False
    kind: ClassVar = "begin"


@dataclass(frozen=True)
class AddEach:
    """Adds an expression of sample ``s``."""

    port: int
    value: str
    kind: ClassVar = "add each"


@dataclass(frozen=True)
class AddLargest:
    """Adds the largest value of a window; `values`: expression of the values of sample ``s``; `windows`: that of the table of windows."""

    port: int
    values: str
    windows: str
    kind: ClassVar = "add largest"


@dataclass(frozen=True)
class AddProduct:
    """Adds a product in float32: `left`, a row of `depth` numbers for each sample, times the columns of a matrix."""

    port: int
    left: str
    depth: int
    columns: str
    kind: ClassVar = "add product"


@dataclass(frozen=True)
class SumCall:
    """A call of a function that adds to the sums."""

    statement: str
    kind: ClassVar = "call"


@dataclass(frozen=True)
class FromLater:
    """Adds a gradient from `delay` steps later, if that step exists."""

    delay: int
    term: Term
    kind: ClassVar = "from later"


@dataclass(frozen=True)
class ToSent:
    """Adds a gradient, except to neurons whose spikes were dropped; `dropped` is an expression of sample ``s``."""

    port: int
    dropped: str
    term: Term
    kind: ClassVar = "to sent"


Term: TypeAlias = Begin | AddEach | AddLargest | AddProduct | SumCall | FromLater | ToSent


def step_expression(source: BufferValue, *, back: bool) -> str:
    """Return the C++ expression of the step that is read: an earlier one for a source, a later one for an adjoint."""
    return f"t {'+' if back else '-'} {source.delay}" if source.delay else "t"
