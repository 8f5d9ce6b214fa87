"""Loops of vertices: trip counts and cycles per trip, as formulas that the mapper evaluates and backends print.

A formula consists of numbers, of functions of this module, and of amounts: fields of the vertex, such as ``count``, and numbers known at
run time, such as ``events``. A prediction contains expected amounts, emitted code contains a C++ expression for each amount::

    >>> sweep = Loop("sweeps", Amount("samples") * sweeps(Amount("count"), 6), as_formula(5))
    >>> sweep.total.value({"samples": 4, "count": 13})
    40
    >>> sweep.total.text({"samples": "samples", "count": "count"})
    '5ul * samples * sweeps(count, 6)'
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from snnc.compiler.tiles.vertices.cost import column_pairs, column_sweeps, dot_sweeps, joined_columns

Values: TypeAlias = Mapping[str, Any]
"""Values by amount: numbers, or NumPy arrays of one shape."""
Texts: TypeAlias = Mapping[str, str]
"""C++ expressions by amount."""
Sign: TypeAlias = Literal["+", "*", "/", "%"]
Place: TypeAlias = (
    tuple[Literal["incoming", "partials", "returned", "outgoing", "alone"], int]
    | Literal["lists", "copied", "counted", "joined", "request", "sums"]
)
"""The part of a vertex that a loop belongs to; each part has its own amounts.

In blocks, with an index: an ``incoming`` connection, its ``partials`` (partial products for its source), a ``returned`` window, an
``outgoing`` connection (``alone`` on tiles with one sample). In relays: ``lists`` of samples, words ``copied`` or ``counted`` in
them, pieces that workers merge (``joined``), the ``request`` for further windows. In updates: ``sums`` of gradients. Vertices that copy
weights use the names of relays.
"""


class Formula:
    """A number that depends on amounts."""

    def __add__(self, other: Formula | int) -> Formula:
        return _operation("+", self, as_formula(other))

    def __mul__(self, other: Formula | int) -> Formula:
        return _operation("*", self, as_formula(other))

    def __floordiv__(self, other: int) -> Formula:
        return Operation("/", self, Constant(other))

    def __mod__(self, other: int) -> Formula:
        return Operation("%", self, Constant(other))

    @cached_property
    def value(self) -> Callable[[Values], Any]:
        """Function that evaluates the formula; compiled once, because the search calls it thousands of times."""
        return self._compiled()

    def _compiled(self) -> Callable[[Values], Any]:
        raise NotImplementedError

    def text(self, texts: Texts) -> str:
        """Return a C++ expression, with `texts` for the amounts."""
        raise NotImplementedError


@dataclass(frozen=True)
class Constant(Formula):
    """An integer."""

    number: int

    def _compiled(self) -> Callable[[Values], int]:
        return lambda values: self.number

    def text(self, texts: Texts) -> str:
        """See :meth:`Formula.text`."""
        return f"{self.number}ul"


@dataclass(frozen=True)
class Amount(Formula):
    """A field of the vertex, or a number known only at run time."""

    name: str

    def _compiled(self) -> Callable[[Values], Any]:
        return operator.itemgetter(self.name)

    def text(self, texts: Texts) -> str:
        """See :meth:`Formula.text`."""
        return texts[self.name]


@dataclass(frozen=True)
class Operation(Formula):
    """A sum, a product, an integer division or its remainder."""

    sign: Sign
    left: Formula
    right: Formula

    def _compiled(self) -> Callable[[Values], Any]:
        operate, left, right = _OPERATORS[self.sign], self.left.value, self.right.value
        if isinstance(self.left, Constant):
            first = self.left.number
            return lambda values: operate(first, right(values))
        if isinstance(self.right, Constant):
            second = self.right.number
            return lambda values: operate(left(values), second)
        return lambda values: operate(left(values), right(values))

    def text(self, texts: Texts) -> str:
        """See :meth:`Formula.text`; a factor that is printed as 1 is left out."""
        left, right = self._side(self.left, texts), self._side(self.right, texts)
        if self.sign == "*" and "1" in (left, right):
            return right if left == "1" else left
        return f"{left} {self.sign} {right}"

    def _side(self, part: Formula, texts: Texts) -> str:
        enclosed = isinstance(part, Operation) and (self.sign, part.sign) not in (("+", "+"), ("+", "*"), ("*", "*"))
        return f"({part.text(texts)})" if enclosed else part.text(texts)


@dataclass(frozen=True)
class FunctionCall(Formula):
    """A call of a function of this module that is also defined in emitted programs."""

    name: str
    of: Formula
    most: int | None = None

    def _compiled(self) -> Callable[[Values], Any]:
        function, of, most = FUNCTIONS[self.name], self.of.value, self.most
        if most is None:
            return lambda values: function(of(values))
        return lambda values: function(of(values), most)

    def text(self, texts: Texts) -> str:
        """See :meth:`Formula.text`."""
        return f"{self.name}({self.of.text(texts)}{'' if self.most is None else f', {self.most}'})"


_OPERATORS: Final[Mapping[Sign, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
}
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "pairs": column_pairs,
    "sweeps": column_sweeps,
    "joined": joined_columns,
    "dot_sweeps": dot_sweeps,
}
"""Functions of formulas; ``templates/poplar/runtime/codelets/columns.hpp`` defines them in C++."""


def pairs(of: Formula) -> Formula:
    """Return the number of pairs of columns; a last single column counts as a pair."""
    return FunctionCall("pairs", of)


def sweeps(of: Formula, most: int) -> Formula:
    """Return how many times a list is read for `of` columns, if one read (a sweep) serves at most `most` pairs of columns."""
    return FunctionCall("sweeps", of, most)


def joined(of: Formula, most: int) -> Formula:
    """Return 1 if the last sweep has both pairs and a single column, else 0."""
    return FunctionCall("joined", of, most)


def as_formula(value: Formula | int) -> Formula:
    """Return `value` as a formula."""
    return Constant(value) if isinstance(value, int) else value


def _operation(sign: Sign, left: Formula, right: Formula) -> Formula:
    neutral = Constant(0 if sign == "+" else 1)
    if sign == "*" and Constant(0) in (left, right):
        return Constant(0)
    return right if left == neutral else left if right == neutral else Operation(sign, left, right)


@dataclass(frozen=True)
class Loop:
    """A loop of a vertex."""

    name: str
    """The work of a trip, such as "weights of a spike"."""
    trips: Formula
    cycles: Formula
    """Number of trips in a run of the vertex, and the worker cycles of a trip."""
    place: Place | None = None
    """The part of the vertex that the loop belongs to; None: the vertex itself."""

    @cached_property
    def total(self) -> Formula:
        """Worker cycles in a run of the vertex."""
        return self.cycles * self.trips


def looping(name: str, trips: Formula, cycles: Formula | int, place: Place | None = None) -> Iterator[Loop]:
    """Yield a loop, unless its trips cost nothing."""
    if cycles != 0:
        yield Loop(name, trips, as_formula(cycles), place)


class LoopsByPlace(dict[Place | None, tuple[Loop, ...]]):
    """Loops by the part of the vertex that they belong to; parts without cost have none."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        for loop in loops:
            self[loop.place] = (*self[loop.place], loop)

    def __missing__(self, place: Place | None) -> tuple[Loop, ...]:
        return ()


def cycles_of(loops: Iterable[Loop], values: Values, start: int = 0) -> Any:
    """Return `start` and the worker cycles of `loops` in a run of their vertex; amounts are numbers or NumPy arrays of one shape."""
    cycles: Any = start
    for loop in loops:
        cycles = cycles + loop.total.value(values)
    return cycles
