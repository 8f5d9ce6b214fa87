"""Builds an emitted project for the processor at hand; objects and libraries are kept by their content."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.emulator.objects import all_of, compiled, headers_of, precompiled, source_key
from snnc.backends.emulator.toolchain import (
    cache_dir,
    common_flags,
    compiler,
    compiler_version,
    digest,
    kept,
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
    "snnc_files.cpp",
    "products.cpp",
    "dense.cpp",
    "values.cpp",
    "wiring.cpp",
    "maximum.cpp",
    "windows.cpp",
    "convolution.cpp",
    "readout.cpp",
)
OWN: Final = ("network.cpp", "neurons.cpp")
"""Those that differ between projects."""
HEADERS: Final = ("convolution.hpp", "cpu_session.hpp", "dense.hpp", "maximum.hpp", "readout.hpp", "wiring.hpp")
"""What ``network.cpp`` includes in every project: g++ keeps it compiled."""
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
    headers = headers_of(folder)
    keys = {name: source_key(folder / name, headers, identity) for name in SOURCES}

    def compile_one(name: str) -> Path:
        own = [*command, *every, *(EQUATION_FLAGS if name == "neurons.cpp" else ())]
        own += precompiled(folder, HEADERS, identity, own) if name == "network.cpp" else []
        return compiled(folder / name, keys[name], own, shared=name not in OWN)

    def build(to: Path) -> None:
        objects = all_of([partial(compile_one, name) for name in SOURCES])
        run_compiler([*command, *every, "-shared", *map(str, objects), "-o", str(to / LIBRARY)], LIBRARY)

    return kept(f"cpu-{digest([*identity, *keys.values()])}", LIBRARY, build)


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
