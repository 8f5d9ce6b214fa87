"""Emitter of a step program as a folder of C++ sources, tables and weights for the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from snnc.backends.codegen.constants import CppConstant, file_names
from snnc.backends.cpu.build import EQUATION_FLAGS, FLAGS, LEVEL, SOURCES
from snnc.backends.cpu.needs import CHUNK, LISTED_PART, PACKED, PANEL
from snnc.backends.cpu.network import network_context
from snnc.backends.cpu.pooled import with_pooled_convolutions
from snnc.backends.native.memory import BLOCK_ROWS, FEW_STEPS, ROOM_PART
from snnc.backends.native.project_files import (
    TABLES,
    initial_values,
    rendered,
    runtime_files,
    session_sizes,
    write_project_files,
)
from snnc.backends.native.row_buffers import LINE
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.native.tables import table_file
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.halves import Halves, check_dense, check_history

CONSTANTS: Final = (
    *file_names(TABLES),
    CppConstant("std::size_t", "LINE", LINE, "Float32 values per cache line."),
    CppConstant("std::size_t", "PANEL", PANEL, "Maximum number of outputs in a panel (part of a dense weight)."),
    CppConstant("std::size_t", "MAX_PACKED", PACKED, "Maximum number of columns in a panel of a packed matrix."),
    CppConstant("std::size_t", "MAX_CHUNK", CHUNK, "Maximum number of bfloat16 values in a chunk (part of a panel's row)."),
    CppConstant("std::size_t", "LISTED_PART", LISTED_PART, "An input is stored as lists if at most one in this many values is nonzero."),
    CppConstant("std::size_t", "ROOM_PART", ROOM_PART, "Growing lists reserve 1 / ROOM_PART more memory than they need."),
    CppConstant("int", "BLOCK_ROWS", BLOCK_ROWS, "Intended number of rows of deltas (one per step and sample) in a block of steps."),
    CppConstant("int", "FEW_STEPS", FEW_STEPS, "Minimum number of steps in a block if threads share gradients; see block_length()."),
)
"""Constants shared by the program and snnc, printed into ``constants.hpp``."""
NETWORK_FILES: Final = ("network.cpp", "neurons.hpp", "neurons.cpp", "CMakeLists.txt", "README.txt")
"""Files printed for each network; those of :func:`~snnc.backends.native.project_files.runtime_files` are the same in every project."""
LOSS: Final = "loss.cpp"
TRAINING: Final = ("loss.hpp", "cross_entropy.hpp", "optimizer.hpp", "optimizer.cpp")
"""Sources of projects that train, in addition to the source of the loss."""
HALVES: Final = {"float16": "float16.hpp", "half_weights": "half_weights.hpp", "half_states": "half_states.hpp"}
"""Headers for float16 numbers. A project contains a header if the entry of the template data with its key is true; ``float16.hpp`` is also
in projects with one of the others."""


def emit_cpu(
    program: StepProgram,
    folder: Path,
    steps: int | None = None,
    batch: int | None = None,
    precision: Precision = "float32",
    half: Halves | None = None,
) -> Path:
    """Write the project of `program` to `folder`, completely or not at all.

    `steps` and `batch` are the initial sizes of a session, which can change both. `precision` is the type of the histories, of all layers
    or only of the layers that `half` names. With bfloat16, connections also read a bfloat16 copy of dense weights. Sums are float32.

    Raises an OutputFolderError if the folder cannot be written, and a NothingRoundedError if the program contains nothing that would be
    rounded: no histories and, with bfloat16, no dense weights.
    """
    program, pooled = with_pooled_convolutions(program)
    storage = SequenceStorage(program, pooled, precision, half)
    if precision == "float16":
        check_history(any(storage.rounded.values()), program)
    elif precision == "bfloat16" and not any(storage.rounded.values()):
        check_dense(program)
    values, sizes = initial_values(program), session_sizes(program, steps, batch)
    context, tables, needs = network_context(storage, values, sizes)
    return write_project_files(folder, program, "cpu", sizes, render(context), table_file(tables), values, storage.bytes_per_step(), needs)


def render(context: dict[str, Any]) -> dict[str, str]:
    """Return the contents of all text files, by file name."""
    trains, halves = context["training"], [file for key, file in HALVES.items() if context[key]]
    absent = {*HALVES.values()} - ({HALVES["float16"], *halves} if halves else set())
    names = (*(n for n in runtime_files("cpu", TRAINING) if n not in absent), *NETWORK_FILES, *(TRAINING if trains else ()))
    sources = [name for name in SOURCES if trains or name not in (LOSS, *TRAINING)]
    context = context | {"flags": (LEVEL, "-march=native", *FLAGS), "equation_flags": EQUATION_FLAGS, "sources": sources}
    return rendered(context, "cpu", names, LOSS, CONSTANTS)
