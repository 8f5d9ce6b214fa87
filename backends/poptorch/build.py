"""Builds the stand-in of PopART, and custom operations against it; what was built is kept by its content."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import compile_program, compiler, library
from snnc.backends.emulator.toolchain import cache_dir, compiler_version, digest, machine_id, publish, scratch_beside
from snnc.backends.poplar.build import SMALL_TABLES, TABLES

POPART: Final = Path(__file__).resolve().parent / "popart"
"""The stand-in: headers and sources."""
RUNTIME: Final = "libpopart.so"
OPERATION: Final = "libspiking_network.so"
RUNTIME_FLAGS: Final = ("-O1", "-Wall", "-Wextra", "-Wl,-soname,libpopart.so")
OPERATION_FLAGS: Final = ("-DONNX_NAMESPACE=onnx",)


def include_dir() -> Path:
    """Return the folder of the stand-in's headers."""
    return POPART / "include"


def popart_library() -> Path:
    """Return ``libpopart.so``: registers operations and runs them on the emulator.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    """
    sources = sorted((POPART / "src").glob("*.cpp"))
    target = _place("popart", [*sources, *_headers()], RUNTIME_FLAGS)
    return _built(target, RUNTIME, sources, (*RUNTIME_FLAGS, f"-I{include_dir()}"), ())


def build_operation(folder: Path) -> Path:
    """Return the custom operation of the package in `folder`, built when its sources were never built before on this machine.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    BuildError
        The compiler refuses the operation.
    """
    folder = Path(folder)
    runtime = popart_library()
    flags = ("-O0" if (folder / TABLES).stat().st_size <= SMALL_TABLES else "-O1", *OPERATION_FLAGS)
    target = _place("operation", [*sorted(folder.glob("*.hpp")), folder / "operation.cpp", *_headers()], flags)
    link = (str(runtime), f"-Wl,-rpath,{runtime.parent}")
    return _built(target, OPERATION, [folder / "operation.cpp"], (*flags, f"-I{include_dir()}"), link)


def _headers() -> list[Path]:
    return sorted(include_dir().rglob("*.hpp"))


def _place(kind: str, files: list[Path], flags: tuple[str, ...]) -> Path:
    command = compiler()
    parts = [path.read_bytes() for path in files]
    key = digest([*parts, *command, compiler_version(command), *flags, machine_id(), str(library())])
    return cache_dir() / f"{kind}-{key}"


def _built(target: Path, name: str, sources: list[Path], flags: tuple[str, ...], link: tuple[str, ...]) -> Path:
    if not (target / name).exists():
        scratch = scratch_beside(target)
        try:
            compile_program(sources, scratch / name, shared=True, flags=flags, libraries=link)
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target / name
