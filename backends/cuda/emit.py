"""StepProgram to a folder of CUDA sources, tables and weights."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from snnc.backends.cpu.emit import USUAL_BATCH, USUAL_STEPS, initial_values, project_description, rendered
from snnc.backends.cpu.storage import Storage
from snnc.backends.cpu.tables import table_file
from snnc.backends.cuda.build import SOURCES
from snnc.backends.cuda.errors import UnsupportedOnCudaError
from snnc.backends.cuda.network import network_context
from snnc.backends.project import Chunk, whole_folder, write_file
from snnc.backends.safetensors_file import safetensors
from snnc.compiler.plan import Precision
from snnc.compiler.step_program import StepProgram

FIXED: Final = (
    "cuda_on_host.hpp",
    "device.hpp",
    "memory.hpp",
    "uploads.hpp",
    "launch.hpp",
    "teams.hpp",
    "sources.hpp",
    "events.hpp",
    "spikes.hpp",
    "half.hpp",
    "products.hpp",
    "gradients.hpp",
    "wiring.hpp",
    "convolution.hpp",
    "learned.hpp",
    "tensor_cores.hpp",
    "sharing.hpp",
    "cuda_session.hpp",
    "cuda_session.cpp",
)
"""Sources that are the same in every project."""
OWN: Final = ("network.cu", "CMakeLists.txt", "README.txt")


def emit_cuda(
    program: StepProgram, folder: Path, steps: int | None = None, batch: int | None = None, precision: Precision = "float32"
) -> Path:
    """Write the project of `program` to `folder`, whole or not at all; neither nvcc nor a device is needed.

    Parameters
    ----------
    program
        What to emit.
    folder
        Where.
    steps, batch
        What a session starts with; it takes any number of either.
    precision
        ``"bfloat16"``: of the factors of dense backward products; ``"float16"``: of forward products and of what is kept of the past too.
        Sums, running states and parameters are float32.

    Raises
    ------
    ProjectFolderError
        The folder cannot be written.
    UnsupportedOnCudaError
        The program cuts gradients.
    """
    if program.truncate is not None:
        raise UnsupportedOnCudaError(
            f"{program.name!r} cuts gradients every {program.truncate} steps; the CUDA program goes back through all of them."
        )
    storage = Storage(program)
    values = initial_values(program, storage)
    sizes = {"steps": steps or program.steps or USUAL_STEPS, "batch": batch or USUAL_BATCH}
    context, tables = network_context(storage, values, sizes, precision)
    texts = rendered(context | {"sources": SOURCES}, "cuda", (*FIXED, *OWN))
    files: dict[str, Iterable[Chunk]] = {name: (text.encode(),) for name, text in texts.items()}
    files |= {"tables.bin": table_file(tables), "weights.safetensors": safetensors(values)}
    with whole_folder(folder) as beside:
        digests = {name: write_file(beside / name, chunks) for name, chunks in sorted(files.items())}
        description = project_description(storage, sizes, digests, "cuda") | {"bytes_per_step": context["bytes_per_step"]}
        description["memory"] |= context["memory"]
        write_file(beside / "project.json", (json.dumps(description, indent=1).encode(),))
    return folder
