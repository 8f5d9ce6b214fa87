"""Builds emitted projects for this processor; objects and libraries are cached by content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, linker_flags, machine_id, run_compiler
from snnc.backends.toolchain.objects import all_of, compiled, headers_of, precompiled, source_key, sources_in

HOT: Final = (
    "products.cpp",
    "network.cpp",
    "convolution.cpp",
    "dense.cpp",
    "values.cpp",
    "wiring.cpp",
    "maximum.cpp",
    "windows.cpp",
    "readout.cpp",
    "neurons.cpp",
    "optimizer.cpp",
    "loss.cpp",
    "lists.cpp",
)
"""Sources in which a step spends its time; the slowest to compile come first."""
PLAIN: Final = (
    "session_tensors.cpp",
    "parameters.cpp",
    "cpu_session.cpp",
    "native_session.cpp",
    "session_inputs.cpp",
    "session_starts.cpp",
    "checkpoints.cpp",
    "threads.cpp",
    "snnc_abi.cpp",
    "snnc_files.cpp",
)
"""All other sources, which projects share."""
SOURCES: Final = (*HOT, *PLAIN)
PROJECT_SOURCES: Final = ("network.cpp", "neurons.cpp", "optimizer.cpp", "loss.cpp")
"""Sources that differ between projects; the last two are the same for all networks that are trained in the same way."""
HEADERS: Final = ("convolution.hpp", "cpu_session.hpp", "dense.hpp", "maximum.hpp", "readout.hpp", "wiring.hpp")
"""Headers that ``network.cpp`` includes in compile_flags project; if the compiler is g++, they are precompiled."""
WITH_HEADERS: Final = ("network.cpp", "optimizer.cpp", "loss.cpp")
"""Sources compiled with the precompiled headers, which contain most of the headers that these sources include."""
FLAGS: Final = ("-fno-math-errno", "-fno-trapping-math")
MARCH: Final = "SNNC_MARCH"
"""Environment variable with the value of ``-march``, such as x86-64-v3; the default is this processor."""
LEVEL: Final = "-O3"
"""Optimisation level of the sources in `HOT`."""
PLAIN_LEVEL: Final = "-O1"
"""Optimisation level of the sources in `PLAIN`."""
PROJECT_LEVEL: Final = LEVEL
"""Optimisation level of the sources in `PROJECT_SOURCES`."""
EQUATION_FLAGS: Final = ("-ffp-contract=off",)
"""Flags of ``neurons.cpp``: without fused multiply-add, equations round as written."""
LIBRARY: Final = "libsnnc_project.so"


def build_cpu(folder: Path, flags: Sequence[str] = (), level: str | None = None) -> Path:
    """Return the shared library of the project in `folder`, built unless the cache contains one of the same sources.

    Sources that projects share are compiled once. Weights and tables are read when the library is opened. `flags` are additional compiler
    flags, for example for a sanitizer; `level` is the optimisation flag of `PROJECT_SOURCES`, by default `PROJECT_LEVEL`.

    Raises
    ------
    ToolMissingError
        This machine has no C++ compiler.
    BuildError
        The project does not compile.
    """
    folder, level = Path(folder), level or PROJECT_LEVEL
    command = compiler()
    compile_flags = (*common_flags(command), f"-march={os.environ.get(MARCH) or 'native'}", *FLAGS, *flags)
    identity = [*command, compiler_version(command), *compile_flags, machine_id()]
    headers = headers_of(folder)
    levels = dict.fromkeys(HOT, LEVEL) | dict.fromkeys(PLAIN, PLAIN_LEVEL) | dict.fromkeys(PROJECT_SOURCES, level)
    further = {"neurons.cpp": EQUATION_FLAGS}
    sources, link = sources_in(folder, SOURCES), linker_flags(command)
    keys = {name: source_key(folder / name, headers, [*identity, levels[name], *further.get(name, ())]) for name in sources}

    def compile_one(name: str) -> Path:
        call = [*command, *compile_flags, levels[name], *further.get(name, ())]
        if name in WITH_HEADERS and not flags:  # with additional flags, precompiling does not pay off
            call += precompiled(folder, HEADERS, [*identity, level], call)
        return compiled(folder / name, keys[name], call)

    def build(to: Path) -> None:
        objects = all_of([partial(compile_one, name) for name in sources])
        run_compiler([*command, *compile_flags, LEVEL, "-shared", *link, *map(str, objects), "-o", str(to / LIBRARY)], LIBRARY)

    return cached_file(f"cpu-{digest([*identity, *link, *keys.values()])}", LIBRARY, build)
