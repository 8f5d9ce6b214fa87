"""Builds an emitted project against the emulator, without CMake; the result is kept under the hash of what it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import compile_program

SOURCES: Final = ("host.cpp", "snnc_abi.cpp")
LIBRARY: Final = "libsnnc_project.so"


def build_poplar(folder: Path) -> Path:
    """Return the shared library of the project in `folder`, building it when it is missing or older than its sources.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    BuildError
        The compiler refuses the project.
    """
    folder = Path(folder)
    output = folder / "build" / LIBRARY
    output.parent.mkdir(exist_ok=True)
    compile_program([folder / name for name in SOURCES], output, shared=True, flags=["-O1"])
    return output
