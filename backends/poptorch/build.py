"""Build of snnc's substitute for PopART, which runs custom operations on the emulator, and of custom operations against it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import compile_program, library, link_flags
from snnc.backends.emulator.projects import Sources, build_project
from snnc.backends.poplar.build import PARTS, own_level
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import compiler, compiler_version, digest, machine_id

POPART: Final = Path(__file__).resolve().parent / "popart"
"""Headers and sources of the PopART substitute."""
RUNTIME: Final = "libpopart.so"
INCLUDE: Final = "include"
"""Folder of the headers."""
SHARED_PARTS: Final = tuple(part for part in PARTS if part != "poplar_session")
"""Parts of a Poplar project that a package also contains."""
SOURCES: Final = Sources(
    "operation.cpp", "program.hpp", ("operation_graph.cpp", *(f"{part}.cpp" for part in SHARED_PARTS), "snnc_files.cpp")
)
STATISTICS: Final = "batch_statistics.hpp"
"""Additional header of packages that train batch normalisations; it uses PopLibs."""
OPERATION: Final = "libspiking_network.so"
RUNTIME_FLAGS: Final = ("-O1", "-Wall", "-Wextra", "-Wl,-soname,libpopart.so")
OPERATION_FLAGS: Final = ("-DONNX_NAMESPACE=onnx",)


def include_dir() -> Path:
    """Return the folder of the substitute's headers."""
    return POPART / INCLUDE


def popart_library() -> Path:
    """Return ``libpopart.so`` of the substitute, which registers operations and runs them on the emulator.

    Its folder also contains the headers (:data:`INCLUDE`).
    """
    sources, command = sorted((POPART / "src").glob("*.cpp")), compiler()
    files = [*sources, *sorted(include_dir().rglob("*.hpp"))]
    contents = [part for path in files for part in (str(path.relative_to(POPART)), path.read_bytes())]
    key = digest([*contents, *command, compiler_version(command), *RUNTIME_FLAGS, machine_id(), str(library())])

    def build(to: Path) -> None:
        shutil.copytree(include_dir(), to / INCLUDE)
        compile_program(sources, to / RUNTIME, shared=True, flags=(*RUNTIME_FLAGS, f"-I{include_dir()}"))

    return cached_file(f"popart-{key}", RUNTIME, build)


def operation_flags(runtime: Path) -> tuple[str, ...]:
    """Return the compiler flags of custom operations that are linked with `runtime`, the result of :func:`popart_library`."""
    # The name of the library's folder depends on the contents of the headers, so a changed header changes a flag, and cached objects do
    # not match.
    return (*OPERATION_FLAGS, f"-I{runtime.parent / INCLUDE}")


def build_operation(folder: Path) -> Path:
    """Return the library of the custom operation of the package in `folder`, built unless it is in the cache."""
    folder = Path(folder)
    runtime = popart_library()
    # Building the emulator's PopLibs takes a minute, so only packages that use them link them.
    libraries = link_flags(complete=True) if (folder / STATISTICS).exists() else []
    link = (str(runtime), f"-Wl,-rpath,{runtime.parent}", *libraries)
    return build_project(folder, SOURCES, OPERATION, own_level(folder), operation_flags(runtime), link)
