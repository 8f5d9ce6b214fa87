"""Description of a vertex: its fields with their contents, its loops and its cost.

The mapper counts bytes and cycles from it; backends print the class and its cycle counts from it, and connect its fields by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Loop, LoopsByPlace, Values, cycles_of

FieldKind: TypeAlias = Literal["input", "output", "inout", "constant"]
"""Access of the vertex: it reads, writes or modifies elements of a variable, or reads a constant set by the host."""
Element: TypeAlias = Literal["float", "int", "unsigned", "unsigned short", "bool", "half"]
"""Type of an element in C++."""


@dataclass(frozen=True)
class FieldSpec:
    """A field of a vertex; it takes a word of tile memory.

    `contents` describes its elements in words. If it is `many`, it points to several elements, which begin at a multiple of `align` bytes
    (0: the alignment of an element).
    """

    name: str
    kind: FieldKind
    type: Element
    contents: str
    many: bool = False
    align: int = 0


@dataclass(frozen=True)
class VertexSpec:
    """A class of vertices; `name`, in lower case with underscores, determines the names of classes in backends.

    A run in an iteration in which the vertex has a step to process takes ``cost.start`` plus the cycles of all `loops`, a run in any other
    iteration ``cost.idle``.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    cost: CodeletCost
    loops: tuple[Loop, ...] = ()

    @property
    def title(self) -> str:
        """Name of the vertex, with spaces."""
        return self.name.replace("_", " ")

    @cached_property
    def by_place(self) -> LoopsByPlace:
        """Loops of the vertex, by the part of the vertex to which they belong (:data:`~snnc.compiler.tiles.vertices.loops.Place`)."""
        return LoopsByPlace(self.loops)

    def cycles(self, amounts: Values) -> Any:
        """Return the worker cycles of a run with a step; the `amounts` of the loops' formulas are numbers or NumPy arrays of one shape.

        Examples
        --------
        >>> from snnc.compiler.tiles.vertices.loops import Amount, looping
        >>> VertexSpec("total", (), CodeletCost(start=16), tuple(looping("numbers", Amount("count"), 2))).cycles({"count": 10})
        36
        """
        return cycles_of(self.loops, amounts, self.cost.start)

    def trip(self, name: str, amounts: Values | None = None) -> Any:
        """Return the worker cycles of one trip of the loop `name`; 0 if its trips cost nothing."""
        return sum(loop.cycles.value(amounts or {}) for loop in self.loops if loop.name == name)


def many(kind: FieldKind, element: Element, name: str, contents: str, align: int = 0) -> FieldSpec:
    """Return a field that points to several consecutive elements."""
    return FieldSpec(name, kind, element, contents, many=True, align=align)


def one(kind: FieldKind, element: Element, name: str, contents: str) -> FieldSpec:
    """Return a field that points to a single element."""
    return FieldSpec(name, kind, element, contents)


def constant(name: str, contents: str, element: Element = "unsigned") -> FieldSpec:
    """Return a field with a number set by the host."""
    return FieldSpec(name, "constant", element, contents)
