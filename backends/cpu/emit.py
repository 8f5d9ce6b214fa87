"""StepProgram to a folder of C++ sources, tables and weights for a processor."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from snnc.backends.cpu.build import EQUATION_FLAGS, FLAGS, LEVEL, SOURCES
from snnc.backends.cpu.network import network_context
from snnc.backends.cpu.pooled import with_pooled_convolutions
from snnc.backends.cpu.storage import Storage
from snnc.backends.cpu.tables import table_file
from snnc.backends.moments import moments
from snnc.backends.sized_project import MemoryNeeds, initial_values, rendered, session_sizes, write_sized_project
from snnc.compiler.plan import Precision
from snnc.compiler.step_operations import ConvolveInputGradient, Dense, DenseInputGradient
from snnc.compiler.step_program import StepProgram

FIXED: Final = (
    "bfloat16.hpp",
    "vectors.hpp",
    "threads.hpp",
    "values.hpp",
    "values.cpp",
    "products.hpp",
    "products.cpp",
    "parameters.hpp",
    "dense.hpp",
    "dense.cpp",
    "wiring.hpp",
    "wiring.cpp",
    "maximum.hpp",
    "maximum.cpp",
    "windows.hpp",
    "windows.cpp",
    "convolution.hpp",
    "convolution.cpp",
    "readout.hpp",
    "readout.cpp",
    "cpu_session.hpp",
    "cpu_session.cpp",
    "math.hpp",
)
"""Sources that are the same in every project: they are compiled once."""
OWN: Final = ("network.cpp", "neurons.hpp", "neurons.cpp", "CMakeLists.txt", "README.txt")


def emit_cpu(
    program: StepProgram, folder: Path, steps: int | None = None, batch: int | None = None, precision: Precision = "float32"
) -> Path:
    """Write the project of `program` to `folder`, whole or not at all.

    Parameters
    ----------
    program
        What to emit.
    folder
        Where.
    steps, batch
        What a session starts with; it takes any number of either.
    precision
        Of what the backward pass reads of all steps, and of dense weights as connections read them; sums are float32.

    Raises
    ------
    ProjectFolderError
        The folder cannot be written.
    """
    program, pooled = with_pooled_convolutions(program)
    storage = Storage(program, pooled, precision)
    values, sizes = initial_values(program), session_sizes(program, steps, batch)
    context, tables = network_context(storage, values, sizes)
    return write_sized_project(folder, program, "cpu", sizes, render(context), table_file(tables), values, _memory(storage))


def render(context: dict[str, Any]) -> dict[str, str]:
    """Return all text files by name."""
    whole = context | {"flags": (LEVEL, *FLAGS), "equation_flags": EQUATION_FLAGS, "sources": SOURCES}
    return rendered(whole, "cpu", (*FIXED, *OWN))


def _memory(storage: Storage) -> MemoryNeeds:
    """What a sequence takes."""
    parts = {
        "fixed": _fixed_bytes(storage),
        "history": storage.history_bytes,
        "checkpoint": storage.checkpoint_bytes,
        "listed": storage.listed_neurons,
        "record": 4 * sum(math.prod(o.shape) for o in storage.program.outputs),
    }
    return MemoryNeeds(storage.bytes_per_step(), parts)


def _fixed_bytes(storage: Storage) -> int:
    """Bytes of parameters, their moments, one gradient each, and the copies that the passes read."""
    program = storage.program
    learned = {u.parameter for u in program.update}
    copies = {op.weight: 4 for op in program.backward if isinstance(op, DenseInputGradient | ConvolveInputGradient)}
    if storage.precision == "bfloat16":
        packed = {op.weight for op in program.backward if isinstance(op, DenseInputGradient)}
        copies |= {op.weight: 2 + 2 * (op.weight in packed) for op in program.forward if isinstance(op, Dense)}
    return sum(
        p.value.size * (4 * (1 + (name in learned) * (1 + len(moments(program.optimizer)))) + copies.get(name, 0))
        for name, p in program.parameters.items()
    )
