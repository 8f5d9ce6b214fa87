"""Builds emitted projects for this processor; objects and libraries are cached by content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from snnc.backends.toolchain.objects import built_library

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
"""Headers that ``network.cpp`` includes in every project; if the compiler is g++, they are precompiled."""
WITH_HEADERS: Final = ("network.cpp", "optimizer.cpp", "loss.cpp")
"""Sources compiled with the precompiled headers, which contain most of the headers that these sources include."""
FLAGS: Final = ("-fno-math-errno", "-fno-trapping-math")
MARCH: Final = "SNNC_MARCH"
"""Environment variable with the value of ``-march``, such as x86-64-v3; the default is this processor."""
LEVEL: Final = "-O3"
"""Optimisation level of the sources in `HOT`."""
PLAIN_LEVEL: Final = "-O1"
PROJECT_LEVEL: Final = LEVEL
EQUATION_FLAGS: Final = ("-ffp-contract=off",)
"""Flags of ``neurons.cpp``: without fused multiply-add, equations round as written."""


def build_cpu(folder: Path, flags: Sequence[str] = (), level: str | None = None) -> Path:
    """Return the shared library of the project in `folder`, built unless the cache contains one of the same sources.

    Sources that projects share are compiled once. Weights and tables are read when the library is opened. `flags` are additional compiler
    flags, for example for a sanitizer; `level` is the optimisation flag of `PROJECT_SOURCES`, by default `PROJECT_LEVEL`.
    """
    levels = dict.fromkeys(HOT, LEVEL) | dict.fromkeys(PLAIN, PLAIN_LEVEL) | dict.fromkeys(PROJECT_SOURCES, level or PROJECT_LEVEL)
    flags_of = {name: (level, *(EQUATION_FLAGS if name == "neurons.cpp" else ())) for name, level in levels.items()}
    # With additional flags, precompiling does not pay off.
    headers = {} if flags else dict.fromkeys(WITH_HEADERS, HEADERS)
    return built_library(Path(folder), "cpu", [f"-march={os.environ.get(MARCH) or 'native'}", *FLAGS, *flags], flags_of, headers)
