"""What the templates of a Poplar program print: codelets with their fields, variables, loops that add vertices, and statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX
from snnc.compiler.tiles.vertices.vertex_spec import FieldSpec, VertexSpec

Body: TypeAlias = dict[str, Any]
"""Context of a template."""
Values: TypeAlias = dict[str, object]
"""Field of a vertex -> C++ expression that the host program connects to it."""
_ACCESS: Final = {"input": "Input", "output": "Output", "inout": "InOut"}


def cpp_type(spec: FieldSpec) -> str:
    """Return the C++ type of a field."""
    if spec.kind == "constant":
        return spec.type
    aligned = f", {spec.align}" if spec.align else ""
    element = f"Vector<{spec.type}, VectorLayout::ONE_PTR{aligned}>" if spec.many else spec.type
    return f"{_ACCESS[spec.kind]}<{element}>"


def connecting_function(spec: FieldSpec) -> str:
    """Return the C++ function that connects a field: ``edge`` for data in the tile's memory, the others for constants."""
    return "edge" if spec.kind != "constant" else "integer" if spec.type == "int" else "number"


def class_name(vertex: VertexSpec) -> str:
    """Return the C++ class name of a vertex; classes with several variants add a number to it."""
    return "".join(word.capitalize() for word in vertex.name.split("_"))


def connected(vertex: VertexSpec, values: Mapping[str, object]) -> dict[str, str]:
    """Return the C++ expressions for the fields of a vertex.

    Raises a ValueError if a field has no expression, or an expression has no field.
    """
    names = [spec.name for spec in vertex.fields]
    if sorted(names) != sorted(values):
        differ = sorted({*names} ^ {*values})
        raise ValueError(f"the fields of {vertex.name} are {', '.join(names)}; these lack an expression or a field: {', '.join(differ)}.")
    return {name: str(values[name]) for name in names}


@dataclass(frozen=True)
class Codelet:
    """A class of ``codelets.cpp``: its template, comment (`title`) and template data (`body`).

    `serves` lists the populations and buses that use it.
    """

    name: str
    template: str
    title: str
    serves: list[str]
    vertex: VertexSpec
    body: Body


@dataclass(frozen=True)
class Variable:
    """A member of the network class in ``host.cpp``."""

    type: str
    name: str
    value: str
    comment: str = ""


@dataclass(frozen=True)
class VertexLoop:
    """An emitted loop ``for (item : range)`` that adds vertices of a codelet; without a range, it adds a single vertex.

    `tile` and the `values` of fields are C++ expressions that may use the item.
    """

    comment: str
    item_type: str
    item: str
    range: str
    compute_set: str
    codelet: str
    tile: str
    vertex: VertexSpec
    values: Mapping[str, str]


def clock(compute_set: str, source: str, target: str, add: int | str) -> VertexLoop:
    """Return vertices that set the iteration counter `target` of each IPU to the counter `source` plus `add`."""
    values = connected(CLOCK_VERTEX, {"from": f"{source}[p.tile]", "to": f"{target}[p.tile]", "add": add})
    name = class_name(CLOCK_VERTEX)
    return VertexLoop(compute_set, "auto", "p", f"{target}.places", compute_set, name, "p.tile", CLOCK_VERTEX, values)


Items: TypeAlias = tuple[str, str, str]
"""C++ type, name and range of the items of an emitted loop."""
ONCE: Final[Items] = ("", "", "")
"""No loop: a single vertex."""


@dataclass
class Assembly:
    """Collects the parts of a program; codelets with equal structure are stored once.

    `loops` are grouped by section of the program. Three fields are statements of the C++ function ``add_tensors``: `tensors` expose tensors
    to the host; `start` adds inputs, initial states and rows of streaming memory; `refresh` adds the copies made after parameters change.
    """

    codelets: list[Codelet] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    loops: dict[str, list[VertexLoop]] = field(default_factory=dict)
    tensors: list[str] = field(default_factory=list)
    refresh: list[str] = field(default_factory=list)
    start: list[str] = field(default_factory=list)
    forgotten: dict[str, list[str]] = field(default_factory=dict)
    """Part of the program -> variables whose contents are not needed at its start."""
    _by_key: dict[str, Codelet] = field(default_factory=dict)

    def variable(self, kind: str, name: str, value: str, comment: str = "") -> str:
        """Declare a member, if it does not exist, and return its name."""
        self.variables.setdefault(name, Variable(kind, name, value, comment))
        return name

    def on_tile(self, kind: str, name: str, comment: str = "", *, shape: str = "{1}", tile: str = "0") -> str:
        """Declare an array on one tile."""
        return self.variable("Tensor", name, f'layout.on_tile(poplar::{kind}, {shape}, "{name}", {tile})', comment)

    def relay_rows(self, relays: str, kind: str, name: str, elements: object, comment: str) -> str:
        """Declare an array for each relay, with `elements` values per sample; `kind` is the Poplar type."""
        return self.variable("Parts", name, f'layout.kept({relays}, {kind}, "{name}", {elements})', comment)

    def window(self, relays: str, kind: str, name: str, elements: object, comment: str = "") -> str:
        """Declare an array [samples][elements] that relays write; `kind` is the Poplar type."""
        return self.variable("Tensor", name, f'layout.window({relays}, {kind}, "{name}", {elements})', comment)

    def relay_numbers(self, relays: str, kind: str, name: str, elements: int | None = None, comment: str = "") -> str:
        """Declare an array [elements] for each relay, by default of one element."""
        count = "" if elements is None else f", {elements}"
        return self.variable("Parts", name, f'layout.relay_numbers({relays}, poplar::{kind}, "{name}"{count})', comment)

    def cells(self, population: str, name: str, slots: object, comment: str) -> str:
        """Declare a float array for each block of a population, with `slots` values per neuron and sample."""
        return self.variable("Parts", name, f'layout.cells({population}, poplar::FLOAT, "{name}", {slots})', comment)

    def half_cells(self, population: str, name: str, slots: object, comment: str) -> str:
        """Declare a half array for each block of a population, like :meth:`cells`, with an even number of neurons (rounded up)."""
        return self.variable("Parts", name, f'layout.half_cells({population}, "{name}", {slots})', comment)

    def tensor(self, role: str, name: str, shape: str, on_device: str, order: str, writable: bool) -> None:
        """Expose a tensor to the host.

        All arguments but the last are C++ or go into it: `role` without ``SNNC_``, `shape` of the host's array, `on_device`: the stored
        elements, `order`: their positions in the host's array (``{}``: in order).
        """
        self.tensors.append(f'tensor("{name}", SNNC_{role}, {shape}, {on_device}, {order}, {str(writable).lower()});')

    def forget(self, part: str, name: str) -> str:
        """Add a variable to :attr:`forgotten`, and return its name."""
        names = self.forgotten.setdefault(part, [])
        if f"{name}.all" not in names:
            names.append(f"{name}.all")
        return name

    def loop(self, group: str, loop: VertexLoop) -> None:
        """Add vertices to the section `group`."""
        self.loops.setdefault(group, []).append(loop)

    def add(
        self, group: str, comment: str, items: Items, compute_set: str, vertex: VertexSpec, values: Mapping[str, object], tile: str = ""
    ) -> None:
        """Add a vertex for each item to the section `group`, on `tile`, by default the item's."""
        place = tile or f"{items[1]}.tile"
        self.loop(group, VertexLoop(comment, *items, compute_set, class_name(vertex), place, vertex, connected(vertex, values)))

    def add_codelet(
        self,
        group: str,
        comment: str,
        items: Items,
        compute_sets: Sequence[str],
        vertex: VertexSpec,
        values: Mapping[str, object],
        title: str,
        serves: str,
        body: Body | None = None,
    ) -> None:
        """Add a codelet, unless one with the same structure exists, and its vertex for each item and compute set, on the item's tile."""
        structure = [vertex.name, [(f.name, cpp_type(f)) for f in vertex.fields], asdict(vertex.cost), repr(vertex.loops), body or {}]
        key = json.dumps(structure, sort_keys=True)
        if key not in self._by_key:
            number = sum(c.template == vertex.name for c in self.codelets)
            self._by_key[key] = Codelet(f"{class_name(vertex)}{number}", vertex.name, title, [], vertex, body or {})
            self.codelets.append(self._by_key[key])
        codelet = self._by_key[key]
        if serves not in codelet.serves:
            codelet.serves.append(serves)
        for compute_set in compute_sets:
            self.loop(group, VertexLoop(comment, *items, compute_set, codelet.name, f"{items[1]}.tile", vertex, connected(vertex, values)))
