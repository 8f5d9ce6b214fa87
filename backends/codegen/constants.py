"""Constants shared by snnc and the emitted C++, printed into ``constants.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from snnc.backends.codegen.names import c_string

Kind = Literal["int", "std::size_t", "float", "double", "const char *"]

WEIGHTS: Final = "weights.safetensors"
"""File of a project with parameters, initial states and the learning rate."""


@dataclass(frozen=True)
class CppConstant:
    """A constant of emitted C++, with a comment (`meaning`); a text as the value of a numeric `kind` is printed unchanged."""

    kind: Kind
    name: str
    value: int | str
    meaning: str

    @property
    def text(self) -> str:
        """The definition in C++."""
        value = c_string(str(self.value)) if self.kind == "const char *" else str(self.value)
        return f"constexpr {self.kind}{'' if self.kind.endswith('*') else ' '}{self.name} = {value};"


def file_names(tables: str) -> tuple[CppConstant, ...]:
    """Return the names of the files that an emitted program reads; `tables` is the name of the file with its tables of numbers."""
    return (
        CppConstant("const char *", "WEIGHTS_FILE", WEIGHTS, "Parameters and initial states, in the program's folder."),
        CppConstant("const char *", "TABLES_FILE", tables, "Tables of numbers that the program reads when it is opened."),
    )
