"""Emitter of a step program as a folder of CUDA sources, tables and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from snnc.backends.codegen.constants import CppConstant, file_names
from snnc.backends.cuda.build import NETWORK_SOURCES, SOURCES
from snnc.backends.cuda.network import network_context
from snnc.backends.cuda.schedule.launches import NARROW, TILE
from snnc.backends.native.project_files import TABLES, initial_values, rendered, runtime_files, session_sizes, write_project_files
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.native.tables import table_file
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.halves import check_dense

CONSTANTS: Final = (
    *file_names(TABLES),
    CppConstant("int", "TILE_COLUMNS", TILE, "Columns of the tile of a product that a thread block computes."),
    CppConstant("int", "FEW_COLUMNS", NARROW, "Columns of the tile if the result has at most this many columns."),
)
NETWORK_FILES: Final = ("network.hpp", "network_neurons.cuh", "network_loops.cuh", *NETWORK_SOURCES, "CMakeLists.txt", "README.txt")
LOSS: Final = "loss.hpp"
TRAINING: Final = ("cross_entropy.hpp", "optimizer.hpp")


def emit_cuda(
    program: StepProgram, folder: Path, steps: int | None = None, batch: int | None = None, precision: Precision = "float32"
) -> Path:
    """Write the project of `program` to `folder`, completely or not at all; needs neither nvcc nor a device.

    `steps` and `batch` are the initial sizes of a session, which can change both. In precision ``"tf32"``, the weights of
    forward products of spikes outside the time loop are rounded to 11 significant bits. In ``"bfloat16"``, the factors of dense backward
    products and the deltas have 16 bits; in ``"float16"``, also the factors of forward products and the histories. Sums, running states
    and parameters are float32.

    Raises an OutputFolderError if the folder cannot be written. Raises a NothingRoundedError if nothing would be rounded: in tf32, or in
    float16 without training, if the program contains no dense weight.
    """
    if precision == "tf32" or (precision == "float16" and program.optimizer is None):
        check_dense(program)
    storage = SequenceStorage(program)
    values, sizes = initial_values(program), session_sizes(program, steps, batch)
    context, tables = network_context(storage, values, sizes, precision)
    absent = _absent(context)
    sources = [name for name in SOURCES if name not in absent]
    files = (*runtime_files("cuda", TRAINING), *NETWORK_FILES, *(TRAINING if context["training"] else ()))
    names = [name for name in files if name not in absent]
    texts = rendered(context | {"sources": sources}, "cuda", names, LOSS, CONSTANTS)
    memory, more = (context["bytes_per_step"], context["memory"]), {"launches": context["launches"]}
    return write_project_files(folder, program, "cuda", sizes, texts, table_file(tables), values, *memory, more)


def _absent(context: Mapping[str, Any]) -> set[str]:
    """Return the files that a network does not need; even an empty source of kernels takes compile time."""
    cores, feedbacks = context["cores"], context["feedbacks"]
    absent = set() if feedbacks else {"network_feedbacks.cu"}
    absent |= set() if context["half_states"] else {"half_states.hpp"}
    absent |= set() if cores else {"network_loops.cuh", "network_cores_forward.cu"}
    return absent if any(core.goes_back for core in cores) else absent | {"network_cores_backward.cu"}
