"""Builds an emitted project against the emulator, without CMake; what was built is kept by its content."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import compile_program, compiler, prefix
from snnc.backends.emulator.toolchain import cache_dir, compiler_version, digest, machine_id, publish, scratch_beside

SOURCES: Final = ("host.cpp", "snnc_abi.cpp")
LIBRARY: Final = "libsnnc_project.so"
TABLES: Final = "plan.bin"
SMALL_TABLES: Final = 64 * 1024
"""Bytes of tables up to which a graph is put together sooner by code that was compiled in half the time than by faster code."""


def build_poplar(folder: Path) -> Path:
    """Return the shared library of the project in `folder`, built when its sources were never built before on this machine.

    Weights and tables are read when the library is opened, so projects that differ in nothing else share it.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    BuildError
        The compiler refuses the project.
    """
    folder = Path(folder)
    command = compiler()
    flags = ["-O0" if (folder / TABLES).stat().st_size <= SMALL_TABLES else "-O1"]
    sources = [path.read_bytes() for path in (*(folder / name for name in SOURCES), *sorted(folder.glob("*.h*")))]
    key = digest([*sources, *command, compiler_version(command), *flags, machine_id(), str(prefix())])
    target = cache_dir() / f"project-{key}"
    if not (target / LIBRARY).exists():
        scratch = scratch_beside(target)
        try:
            compile_program([folder / name for name in SOURCES], scratch / LIBRARY, shared=True, flags=flags)
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target / LIBRARY
