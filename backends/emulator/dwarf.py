"""Read the vertex classes of compiled codelets from the debug information (DWARF) of their library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

CLASS_TAGS = ("DW_TAG_class_type", "DW_TAG_structure_type")
WRAPPERS = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type")
DIRECTIONS = {"poplar::Input": "input", "poplar::Output": "output", "poplar::InOut": "inout"}
CODE_BYTES = "code_bytes"
"""Static constant in which a class states the bytes of its code; those of functions that classes share are in ``code_bytes_NAME``."""
BASES = {"poplar::Vertex": "vertex", "poplar::MultiVertex": "multi", "poplar::SupervisorVertex": "supervisor"}
# Poplar's names of base types, by DWARF's encoding and the size in bytes; `char` is recognised by its name.
SCALARS = {
    (2, 1): "bool", (4, 2): "half", (4, 4): "float", (6, 1): "signed char", (8, 1): "unsigned char",
    (5, 2): "short", (7, 2): "unsigned short", (5, 4): "int", (7, 4): "unsigned int",
    (5, 8): "long long", (7, 8): "unsigned long long",
}  # fmt: skip

SHORT_NAMES = {
    "half": "half", "float": "float", "int": "int", "unsigned int": "uint", "short": "short", "unsigned short": "ushort",
    "signed char": "char", "char": "char", "unsigned char": "uchar", "long long": "longlong", "unsigned long long": "ulonglong",
}  # fmt: skip
"""Prefixes of the names of short vectors, by element type."""


COMPILER_NAMES = {
    "short unsigned int": "unsigned short", "short int": "short", "long unsigned int": "unsigned long long", "long int": "long long",
    "long long unsigned int": "unsigned long long", "long long int": "long long", "_Float16": "half", "const": "",
}  # fmt: skip
"""Poplar's name of each type, by GCC's spelling."""
COMPILER_NAME = re.compile(r"\b(?:" + "|".join(COMPILER_NAMES) + r")\b")
COMPILER_VECTOR = re.compile(r"__vector\((\d+)\) ([\w ]+)")


def poplar_spelling(arguments: str) -> str:
    """Rewrite template arguments from the compiler's spelling to Poplar's; enumerators stay numbers.

    Examples
    --------
    >>> poplar_spelling("<__vector(4) _Float16, Pair<short unsigned int, float const*>, (Kind)1>")
    '<half4,Pair<unsigned short,float*>,1>'
    """
    text = COMPILER_NAME.sub(lambda match: COMPILER_NAMES[match.group()], arguments)
    text = COMPILER_VECTOR.sub(lambda match: f"{SHORT_NAMES.get(match.group(2).strip(), '')}{match.group(1)}", text)
    return re.sub(r"\([\w:]+\)|\s*([<>,*&])\s*", lambda match: match.group(1) or "", text)


@dataclass(frozen=True)
class VertexField:
    """A field of a vertex; `offset` and `alignment` are in bytes."""

    name: str
    offset: int
    kind: str
    """``value`` (a plain member), ``state`` (a vector without direction), or tensor data: ``scalar``, ``vector``, ``list`` (of vectors)."""
    direction: str
    """``input``, ``output``, ``inout`` or ``none``."""
    type: str
    """Type of the elements."""
    layout: str
    """The ``VectorLayout`` of a vector."""
    alignment: int


@dataclass(frozen=True)
class VertexType:
    """A vertex class, by its name for ``addVertex``; `size` is in bytes, and `address` is that of ``compute``."""

    name: str
    kind: str
    size: int
    address: int
    code_bytes: int
    """Value of the constant ``code_bytes``, else the size of ``compute`` as compiled for the host."""
    fields: list[VertexField] = field(default_factory=list)
    shared_code: dict[str, int] = field(default_factory=dict)
    """Values of the constants ``code_bytes_NAME``: bytes of each function that several classes call and a tile stores once."""


def vertex_types(library: Path) -> list[VertexType]:
    """Return the vertex classes of a shared library, sorted by name."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        symbols = _symbols(elf)
        by_name: dict[str, VertexType] = {}
        for unit in elf.get_dwarf_info().iter_CUs():
            reader = _DwarfReader()
            reader.walk(unit.get_top_DIE(), "")
            for die in reader.classes:
                vertex = reader.vertex(die, symbols)
                if vertex is not None:
                    by_name.setdefault(vertex.name, vertex)
    return [by_name[name] for name in sorted(by_name)]


def _symbols(elf: ELFFile) -> dict[str, tuple[int, int]]:
    table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return {}
    return {s.name: (s["st_value"], s["st_size"]) for s in table.iter_symbols() if s["st_value"]}


def _text(die: DIE, attribute: str) -> str:
    value = die.attributes.get(attribute)
    return value.value.decode() if value is not None else ""


def _number(die: DIE, attribute: str) -> int:
    value = die.attributes.get(attribute)
    return int(value.value) if value is not None and not isinstance(value.value, bytes) else 0


class _DwarfReader:
    """The classes of a compilation unit, as debugging information entries (DIE), and the scopes of types by their offsets."""

    def __init__(self) -> None:
        self.classes: list[DIE] = []
        self.scopes: dict[int, str] = {}

    def walk(self, parent: DIE, scope: str) -> None:
        """Collect the classes in `parent`, a namespace or class whose name is `scope`; those of the C++ library are left out."""
        for die in parent.iter_children():
            name = _text(die, "DW_AT_name")
            if die.tag == "DW_TAG_namespace":
                if name not in ("std", "__gnu_cxx"):
                    self.walk(die, f"{scope}{name}::" if name else scope)
            elif die.tag in CLASS_TAGS:
                self.scopes[die.offset] = scope
                if "DW_AT_declaration" not in die.attributes:
                    self.classes.append(die)
                    if die.has_children:
                        self.walk(die, f"{scope}{name}::")
            elif die.tag == "DW_TAG_enumeration_type":
                self.scopes[die.offset] = scope

    def vertex(self, die: DIE, symbols: dict[str, tuple[int, int]]) -> VertexType | None:
        """Return the vertex type of a class; None if it is not a vertex or has no ``compute``."""
        kind = self.base_kind(die)
        link = self.compute_name(die)
        if kind is None or link not in symbols:
            return None
        address, size = symbols[link]
        stated = dict(self.code_bytes(die))
        bytes_, fields = stated.pop(CODE_BYTES, size), list(self.fields(die, 0))
        return VertexType(self.name(die), kind, _number(die, "DW_AT_byte_size"), address, bytes_, fields, stated)

    def code_bytes(self, die: DIE) -> Iterator[tuple[str, int]]:
        for child in die.iter_children():
            name = _text(child, "DW_AT_name")
            if (
                child.tag in ("DW_TAG_member", "DW_TAG_variable")
                and name.startswith(CODE_BYTES)
                and "DW_AT_const_value" in child.attributes
            ):
                yield name, _number(child, "DW_AT_const_value")

    def base_kind(self, die: DIE) -> str | None:
        """Return the kind of vertex that a class derives from: "vertex", "multi" or "supervisor"; None if it is not a vertex."""
        kinds = (BASES.get(self.name(base)) or self.base_kind(base) for base in self.bases(die))
        return next((kind for kind in kinds if kind is not None), None)

    def bases(self, die: DIE) -> Iterator[DIE]:
        for child in die.iter_children():
            if child.tag == "DW_TAG_inheritance":
                yield self.resolved(child)

    def compute_name(self, die: DIE) -> str:
        """Return the symbol of a class's own or inherited ``compute``."""
        for child in die.iter_children():
            if child.tag == "DW_TAG_subprogram" and _text(child, "DW_AT_name") == "compute":
                return _text(child, "DW_AT_linkage_name")
        return next(filter(None, map(self.compute_name, self.bases(die))), "")

    def fields(self, die: DIE, start: int) -> Iterator[VertexField]:
        """Yield the fields of a class and of its bases; the class begins at byte `start` of the vertex."""
        for child in die.iter_children():
            static = "DW_AT_external" in child.attributes or "DW_AT_declaration" in child.attributes
            if child.tag == "DW_TAG_inheritance":
                yield from self.fields(self.resolved(child), start + _number(child, "DW_AT_data_member_location"))
            elif child.tag == "DW_TAG_member" and not static:
                vertex_field = self.field(child, start + _number(child, "DW_AT_data_member_location"))
                if vertex_field is not None:
                    yield vertex_field

    def field(self, member: DIE, offset: int) -> VertexField | None:
        """Return the field of a member; None if its type is none that Poplar knows, such as a pointer."""
        name = _text(member, "DW_AT_name")
        outer = self.resolved(member)
        if self.is_class(outer):
            return self.edge_field(name, offset, outer)
        scalar = self.scalar(outer)
        return VertexField(name, offset, "value", "none", scalar, "SPAN", 1) if scalar else None

    def edge_field(self, name: str, offset: int, outer: DIE) -> VertexField | None:
        """Return the field of an ``Input``, ``Output``, ``InOut``, ``Vector`` or ``VectorList``; None for other classes."""
        direction = DIRECTIONS.get(self.plain_name(outer))
        inner = outer if direction is None else self.type_arguments(outer)[0]
        if not self.is_class(inner):
            return VertexField(name, offset, "scalar", direction or "none", self.scalar(inner), "SPAN", 1)
        template = self.plain_name(inner)
        if template not in ("poplar::Vector", "poplar::VectorList"):
            return None
        element, values = self.type_arguments(inner)[0], self.value_arguments(inner)
        layout, alignment = values[0].rpartition("::")[2], int(values[1])
        if template == "poplar::VectorList":
            return VertexField(name, offset, "list", direction or "none", self.scalar(element), layout, alignment)
        if self.is_class(element):
            row = self.edge_field("", 0, element)
            return None if row is None else VertexField(name, offset, "list", row.direction, row.type, row.layout, row.alignment)
        kind = "state" if direction is None else "vector"
        return VertexField(name, offset, kind, direction or "none", self.scalar(element), layout, alignment)

    def resolved(self, die: DIE) -> DIE:
        """Return the type of an entry, without typedefs and qualifiers."""
        while True:
            die = die.get_DIE_from_attribute("DW_AT_type")
            if die.tag not in WRAPPERS:
                return die

    def is_class(self, die: DIE) -> bool:
        """Return whether a type is a class; ``quarter``, the class of 8-bit floats, counts as an element type."""
        return die.tag in CLASS_TAGS and not self.is_quarter(die)

    def is_quarter(self, die: DIE) -> bool:
        return die.tag in CLASS_TAGS and self.plain_name(die) == "quarter"

    def scalar(self, die: DIE) -> str:
        """Return Poplar's name of a base or enumeration type, or of a quarter; empty for others."""
        if self.is_quarter(die):
            return "quarter"
        if die.tag == "DW_TAG_enumeration_type":
            size = _number(die, "DW_AT_byte_size")
            return {1: "unsigned char", 2: "unsigned short", 4: "int"}.get(size, "")
        if die.tag != "DW_TAG_base_type":
            return ""
        if _text(die, "DW_AT_name") == "char":
            return "char"
        return SCALARS.get((_number(die, "DW_AT_encoding"), _number(die, "DW_AT_byte_size")), "")

    def plain_name(self, die: DIE) -> str:
        return self.scopes.get(die.offset, "") + _text(die, "DW_AT_name").partition("<")[0]

    def name(self, die: DIE) -> str:
        """Return a class's name with its template arguments, without spaces, in a spelling that does not depend on the compiler."""
        arguments = [self.argument(a) for a in self.arguments(die)]
        plain = self.plain_name(die)
        if not arguments and "<" in (text := _text(die, "DW_AT_name")):
            return plain + poplar_spelling(text[text.index("<") :])  # DWARF lists arguments only for classes that the file defines
        return f"{plain}<{','.join(arguments)}>" if arguments else plain

    def arguments(self, die: DIE) -> Iterator[DIE]:
        for child in die.iter_children():
            if child.tag in ("DW_TAG_template_type_param", "DW_TAG_template_value_param"):
                yield child
            elif child.tag == "DW_TAG_GNU_template_parameter_pack":
                yield from self.arguments(child)

    def type_arguments(self, die: DIE) -> list[DIE]:
        return [self.resolved(a) for a in self.arguments(die) if a.tag == "DW_TAG_template_type_param"]

    def value_arguments(self, die: DIE) -> list[str]:
        return [self.argument(a) for a in self.arguments(die) if a.tag == "DW_TAG_template_value_param"]

    def argument(self, argument: DIE) -> str:
        if "DW_AT_type" not in argument.attributes:
            return "void"
        kind = self.resolved(argument)
        if argument.tag == "DW_TAG_template_type_param":
            return self.type_name(kind)
        value = _number(argument, "DW_AT_const_value")
        if kind.tag == "DW_TAG_enumeration_type":
            return self.enumerator(kind, value)
        if self.scalar(kind) == "bool":
            return "true" if value else "false"
        return str(value)

    def type_name(self, kind: DIE) -> str:
        """Return the spelling of a type without typedefs, also in template arguments and in the targets of pointers."""
        if kind.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type"):
            target = self.type_name(self.resolved(kind)) if "DW_AT_type" in kind.attributes else "void"
            return target + ("*" if kind.tag == "DW_TAG_pointer_type" else "&")
        if kind.tag in CLASS_TAGS:
            return self.vector_class(kind) or self.name(kind)
        if kind.tag == "DW_TAG_enumeration_type":
            return self.plain_name(kind)
        return self.scalar(kind) or self.short_vector(kind) or _text(kind, "DW_AT_name")

    def short_vector(self, kind: DIE) -> str:
        """Return Poplar's name of a compiler's vector type, such as ``float2``; empty for other types."""
        if kind.tag != "DW_TAG_array_type" or "DW_AT_GNU_vector" not in kind.attributes:
            return ""
        bounds = [c for c in kind.iter_children() if c.tag == "DW_TAG_subrange_type"]
        count = _number(bounds[0], "DW_AT_upper_bound") + 1
        return f"{SHORT_NAMES.get(self.scalar(self.resolved(kind)), '')}{count}"

    def vector_class(self, kind: DIE) -> str:
        """Return Poplar's name of a class that replaces a vector type (``snnc_vector<float, 2>``); empty for other classes."""
        if self.plain_name(kind) != "snnc_vector":
            return ""
        (element,), (count,) = self.type_arguments(kind), self.value_arguments(kind)
        return f"{SHORT_NAMES.get(self.scalar(element), '')}{count}"

    def enumerator(self, kind: DIE, value: int) -> str:
        scope = self.scopes.get(kind.offset, "")
        scoped = "DW_AT_enum_class" in kind.attributes
        for child in kind.iter_children():
            if child.tag == "DW_TAG_enumerator" and _number(child, "DW_AT_const_value") == value:
                return scope + (f"{_text(kind, 'DW_AT_name')}::" if scoped else "") + _text(child, "DW_AT_name")
        return str(value)
