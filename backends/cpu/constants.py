"""What emitted programs for a processor and the count of their memory agree on."""

from __future__ import annotations

from typing import Final

from snnc.backends.codegen.constants import Constant, file_names
from snnc.backends.cpu.needs import CHUNK, LISTED_PART, PACKED, PANEL
from snnc.backends.native.memory import BLOCK_ROWS, FEW_STEPS, ROOM_PART
from snnc.backends.native.project_files import TABLES
from snnc.backends.native.row_buffers import LINE

CONSTANTS: Final = (
    *file_names(TABLES),
    Constant("std::size_t", "LINE", LINE, "Numbers of a cache line."),
    Constant("std::size_t", "PANEL", PANEL, "Outputs of a panel of a dense weight at most."),
    Constant("std::size_t", "MOST_PACKED", PACKED, "Columns of a packed matrix at most."),
    Constant("std::size_t", "MOST_CHUNK", CHUNK, "Numbers of a chunk of bfloat16 at most."),
    Constant("std::size_t", "LISTED_PART", LISTED_PART, "Inputs are listed up to this part (one in so many) of numbers that are not 0."),
    Constant("std::size_t", "ROOM_PART", ROOM_PART, "Growing lists make this part (one in so many) more room than they need."),
    Constant("int", "BLOCK_ROWS", BLOCK_ROWS, "Rows of deltas of a block: those of a panel of neurons should stay in the second cache."),
    Constant("int", "FEW_STEPS", FEW_STEPS, "Steps of a block all the same where threads share gradients."),
)
"""Of ``constants.hpp``."""
