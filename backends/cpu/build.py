"""Builds an emitted project for the processor at hand; objects and libraries are kept by their content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from snnc.backends.emulator.toolchain import (
    cache_dir,
    common_flags,
    compiler,
    compiler_version,
    digest,
    machine_id,
    publish,
    run_compiler,
    scratch_beside,
)

SOURCES: Final = (
    "network.cpp",
    "neurons.cpp",
    "cpu_session.cpp",
    "snnc_abi.cpp",
    "products.cpp",
    "dense.cpp",
    "values.cpp",
    "wiring.cpp",
    "maximum.cpp",
    "windows.cpp",
    "convolution.cpp",
    "readout.cpp",
)
FLAGS: Final = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math")
EQUATION_FLAGS: Final = ("-ffp-contract=off",)
LIBRARY: Final = "libsnnc_project.so"


def build_cpu(folder: Path, flags: Sequence[str] = ()) -> Path:
    """Return the shared library of the project in `folder`, built when its sources were never built before on this machine.

    Sources that projects share are compiled once. Weights and tables are read when the library is opened.

    Parameters
    ----------
    folder
        An emitted project.
    flags
        Further compiler flags, such as a sanitizer.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    BuildError
        The compiler refuses the project.
    """
    folder = Path(folder)
    command = compiler()
    every = (*common_flags(command), *FLAGS, *_openmp(command), *flags)
    identity = [*command, compiler_version(command), *every, *EQUATION_FLAGS, machine_id()]
    headers = {path.name: path.read_bytes() for path in sorted(folder.glob("*.h*"))}
    keys = {name: digest([*identity, name, (folder / name).read_bytes(), *included(folder / name, headers)]) for name in SOURCES}
    library = cache_dir() / f"cpu-{digest([*identity, *keys.values()])}"
    if not (library / LIBRARY).exists():
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            objects = list(pool.map(lambda name: _object(folder / name, keys[name], command, every), SOURCES))
        scratch = scratch_beside(library)
        try:
            run_compiler([*command, *every, "-shared", *map(str, objects), "-o", str(scratch / LIBRARY)], LIBRARY)
            publish(scratch, library)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return library / LIBRARY


def included(source: Path, headers: dict[str, bytes]) -> list[str | bytes]:
    """Names and contents of the project's headers that a source includes, directly or not."""
    waiting, found = [source.read_bytes()], {}
    while waiting:
        text = waiting.pop()
        for name, content in headers.items():
            if name not in found and f'#include "{name}"'.encode() in text:
                found[name] = content
                waiting.append(content)
    return [part for name in sorted(found) for part in (name, found[name])]


def _object(source: Path, key: str, command: Sequence[str], flags: Sequence[str]) -> Path:
    """Return the object of a source, compiled when it was never compiled before."""
    target = cache_dir() / f"object-{key}"
    output = target / f"{source.stem}.o"
    if not output.exists():
        own = EQUATION_FLAGS if source.name == "neurons.cpp" else ()
        scratch = scratch_beside(target)
        try:
            run_compiler([*command, *flags, *own, "-c", str(source), "-o", str(scratch / output.name)], source.name)
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return output


def _openmp(command: Sequence[str]) -> tuple[str, ...]:
    """The flag of OpenMP where a program with it links; std::thread takes its place elsewhere."""
    target = cache_dir() / f"openmp-{digest([*command, compiler_version(command), machine_id()])}"
    if not target.exists():
        scratch = scratch_beside(target)
        try:
            (scratch / "probe.cpp").write_text("#include <omp.h>\nint threads() { return omp_get_max_threads(); }\n")
            from snnc.compiler.errors import BuildError

            try:
                run_compiler(
                    [*command, "-fPIC", "-fopenmp", "-shared", str(scratch / "probe.cpp"), "-o", str(scratch / "probe.so")], "OpenMP"
                )
            except BuildError:
                pass
            else:
                (scratch / "found").touch()
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return ("-fopenmp",) if (target / "found").exists() else ()
