"""Build emitted projects for the emulator, without CMake."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snnc.backends.emulator.projects import Sources, build_project

PARTS: Final = ("populations", "layout", "gradient_windows", "indexed", "packing", "poplar_session", "streaming", "vertices")
"""Network-independent parts of the host program, each with a header and a source."""
SOURCES: Final = Sources("host.cpp", "program.hpp", (*(f"{part}.cpp" for part in PARTS), "snnc_abi.cpp", "snnc_files.cpp"))
LIBRARY: Final = "libsnnc_project.so"
TABLES: Final = "plan.bin"
SMALL_TABLES: Final = 64 * 1024
"""Size of the tables, in bytes, up to which the network's own source is compiled without optimisation, which takes half the time."""


def build_poplar(folder: Path) -> Path:
    """Return the shared library of the project in `folder`, built unless the cache contains a build of the same sources.

    Projects that differ only in weights and tables share it, because it reads them when it is opened.
    """
    folder = Path(folder)
    return build_project(folder, SOURCES, LIBRARY, own_level(folder))


def own_level(folder: Path) -> str:
    """Return the optimisation flag of a project's own source."""
    return "-O0" if (folder / TABLES).stat().st_size <= SMALL_TABLES else "-O1"
