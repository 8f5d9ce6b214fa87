"""What emitted programs for a GPU and the schedule of their kernels agree on."""

from __future__ import annotations

from typing import Final

from snnc.backends.codegen.constants import Constant, file_names
from snnc.backends.cuda.schedule.launches import NARROW, TILE
from snnc.backends.native.project_files import TABLES

CONSTANTS: Final = (
    *file_names(TABLES),
    Constant("int", "TILE_COLUMNS", TILE, "Columns of a block's tile of a product."),
    Constant("int", "FEW_COLUMNS", NARROW, "Its columns where the result has at most so many."),
)
"""Of ``constants.hpp``."""
