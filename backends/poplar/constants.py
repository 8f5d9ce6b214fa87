"""Constants that emitted Poplar programs share with the planner."""

from __future__ import annotations

from typing import Final

from snnc.backends.codegen.constants import CppConstant, file_names
from snnc.backends.poplar.build import TABLES
from snnc.compiler.tiles.supersteps.streaming import ROW_BYTES

CONSTANTS: Final = (
    *file_names(TABLES),
    CppConstant(
        "std::size_t", "ROW_BYTES", ROW_BYTES, "Maximum bytes of a row of a remote buffer; longer data is split into several rows."
    ),
)
"""The constants written to ``constants.hpp``."""
