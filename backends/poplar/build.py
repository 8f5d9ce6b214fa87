"""Builds emitted projects against the emulator, without CMake; results are cached by content."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snnc.backends.emulator.projects import Sources, build_project

SOURCES: Final = Sources(
    "host.cpp",
    "program.hpp",
    (
        "populations.cpp",
        "layout.cpp",
        "gradient_windows.cpp",
        "indexed.cpp",
        "packing.cpp",
        "poplar_session.cpp",
        "streaming.cpp",
        "vertices.cpp",
        "snnc_abi.cpp",
        "snnc_files.cpp",
    ),
)
LIBRARY: Final = "libsnnc_project.so"
TABLES: Final = "plan.bin"
SMALL_TABLES: Final = 64 * 1024
"""Size of the tables, in bytes, up to which the network's own source is compiled without optimisation.

The graph is then small, and compiling without optimisation takes half the time, so the program starts sooner.
"""


def build_poplar(folder: Path) -> Path:
    """Return the shared library of the project in `folder`, built unless the cache contains a build of the same sources.

    Weights and tables are read when the library is opened, so projects that differ only in these share it.

    Raises
    ------
    ToolMissingError
        This machine has no C++ compiler.
    BuildError
        The project does not compile.
    """
    folder = Path(folder)
    return build_project(folder, SOURCES, LIBRARY, own_level(folder))


def own_level(folder: Path) -> str:
    """Return the optimisation flag of a project's own source."""
    return "-O0" if (folder / TABLES).stat().st_size <= SMALL_TABLES else "-O1"
