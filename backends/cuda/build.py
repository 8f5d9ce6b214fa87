"""Build emitted projects: with nvcc for a device, or with the host's C++ compiler to check the kernels on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.cuda.errors import CHECK_ON_HOST, NvccMissingError
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import NVCC_WHEEL, compiler_version, cuda_compiler, digest, first_errors
from snnc.backends.toolchain.objects import LIBRARY, all_of, built_library, headers_of, source_key, sources_in
from snnc.compiler.errors import BuildError

NETWORK_SOURCES: Final = (
    "network_cores_backward.cu",
    "network_cores_forward.cu",
    "network_feedbacks.cu",
    "network_kernels.cu",
    "network.cpp",
)
"""Sources printed for each network, slowest to compile first. A project contains only the ones that its network needs."""
SOURCES: Final = (
    *NETWORK_SOURCES,
    "session_kernels.cu",
    "whole_products.cu",
    "whole_convolutions.cu",
    "whole_tables.cu",
    "cuda_session.cpp",
    "feedback.cpp",
    "timing.cpp",
    "memory.cpp",
    "session_inputs.cpp",
    "session_steps.cpp",
    "session_tensors.cpp",
    "native_session.cpp",
    "snnc_abi.cpp",
    "snnc_files.cpp",
)
ON_HOST: Final = "cuda_on_host.cpp"
"""Source that only checks on the CPU need: the fibers that run kernels."""
ON_HOST_LEVEL: Final = "-O2"
"""Optimisation level of :data:`ON_HOST`, whose code runs whenever a CUDA thread waits for others."""
KERNEL_HEADERS: Final = ("convolution.hpp", "learned.hpp", "limits.hpp", "recurrent_plan.hpp", "tensor_cores.hpp", "wiring.hpp")
"""Headers that a network's kernels include in every project; they are precompiled with g++ for checks on the CPU."""
HEADERS: Final = (
    *KERNEL_HEADERS,
    "cuda_session.hpp",
    "recurrent.hpp",
    "walk.hpp",
    "whole_convolutions.hpp",
    "whole_products.hpp",
    "whole_tables.hpp",
)
"""Headers that ``network.cpp`` includes in every project; they are precompiled with g++ for checks on the CPU."""
FLAGS: Final = ("-std=c++17", "-fmad=false", "-Xcompiler=-fPIC", "-Xptxas=-v")
"""Flags of nvcc. Multiplications and additions are not fused automatically, so equations round as written; the code of matrix products
calls ``fma`` itself."""
LEVEL: Final = "-O3"
"""Optimisation level of host code in sources that are the same in every project; kernels are always optimised fully."""
NETWORK_LEVEL: Final = "-O1"
"""Optimisation level of host code in :data:`NETWORK_SOURCES`, which are compiled while the user waits."""
HOST_FLAGS: Final = ("-O1", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-U_FORTIFY_SOURCE", "-DSNNC_ON_HOST")
"""Compiler flags for checks on the CPU. ``_FORTIFY_SOURCE`` is off, because it would report the fibers' jumps between stacks as errors."""
WARPGROUPS: Final = "SNNC_WARPGROUPS"
"""Environment variable: 0 disables products by warpgroups (four warps that multiply together); 1 enables them in checks on the CPU."""
RESOURCES: Final = "resources.txt"
"""File next to the library with the assembler's report of registers and spills."""


@dataclass(frozen=True)
class KernelResources:
    """Number of registers of a thread of a kernel, and its bytes of spills and stack, as reported by ``ptxas -v``."""

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int


def nvcc() -> list[str]:
    """Return the command of the CUDA compiler; raise an NvccMissingError if this machine has none."""
    command = cuda_compiler()
    if command is not None:
        return command
    chosen = os.environ.get("CUDACXX")
    places = repr(chosen) if chosen else f"nvcc on the PATH and in /usr/local/cuda, and in the package {NVCC_WHEEL}"
    raise NvccMissingError(
        f"no CUDA compiler on this machine: snnc looked for {places}. Install the CUDA toolkit, or its compiler with "
        f"`pip install 'snnc[cuda]'`; set CUDACXX to a compiler elsewhere; or set {CHECK_ON_HOST}=1 to run the kernels on the "
        "processor, which is slow but checks their results."
    )


def build_cuda(folder: Path, architecture: str, flags: Sequence[str] = ()) -> Path:
    """Return the shared library of the project in `folder` for devices of `architecture` (``"sm_90"``), built if necessary.

    Sources are compiled in parallel and cached by content, so a source that is the same in every project is compiled once. With few
    processors, several sources of a network are compiled together, because nvcc reads its own headers again for each compilation.

    Raises an NvccMissingError if this machine has no nvcc, and a BuildError if the project does not compile.
    """
    folder = Path(folder)
    command = [*nvcc(), *FLAGS, *_target(architecture), *flags]
    identity = [*command, compiler_version(command[:1])]
    headers = headers_of(folder)
    extra = _fast_build_flags(identity[-1])
    groups = source_groups(sources_in(folder, SOURCES), os.cpu_count() or 1)
    flags_of = {group: [NETWORK_LEVEL, *extra] if group[0] in NETWORK_SOURCES else [LEVEL] for group in groups}
    keys = {group: digest([source_key(folder / name, headers, [*identity, *flags_of[group]]) for name in group]) for group in groups}

    def build(to: Path) -> None:
        objects = all_of([partial(_object, folder, group, keys[group], [*command, *flags_of[group]]) for group in groups])
        (to / RESOURCES).write_text("".join((one.parent / RESOURCES).read_text() for one in objects))
        _run([*command, "-shared", *map(str, objects), "-o", str(to / LIBRARY)], LIBRARY)

    return cached_file(f"cuda-{digest([*identity, *keys.values()])}", LIBRARY, build)


def source_groups(sources: Sequence[str], processors: int) -> list[tuple[str, ...]]:
    """Return groups of sources, each compiled by one call of nvcc.

    The kernels of a network form at most ``processors - 2`` groups, but at least one; each other source has its own group. Two processors
    are left for the host part of the network and for the other work of the machine.
    """
    kernels = [name for name in sources if name in NETWORK_SOURCES and name.endswith(".cu")]
    count = max(1, min(len(kernels), processors - 2))
    together = [tuple(kernels[first::count]) for first in range(count)] if kernels else []
    return [*together, *((name,) for name in sources if name not in kernels)]


def _object(folder: Path, group: Sequence[str], key: str, command: Sequence[str]) -> Path:
    """Return the object file of a group of sources; the assembler's report is next to it."""
    *before, last = group
    name = f"{Path(last).stem}.o"
    included = [flag for one in before for flag in ("-include", str(folder / one))]

    def build(to: Path) -> None:
        (to / RESOURCES).write_text(_run([*command, *included, "-c", str(folder / last), "-o", str(to / name)], ", ".join(group)))

    return cached_file(f"cuda-object-{key}", name, build)


def _fast_build_flags(version: str) -> list[str]:
    """Return the flag with which nvcc 12.1 and newer optimise the kernels of a source in parallel."""
    release = re.search(r"release (\d+)\.(\d+)", version)
    parallel = release is not None and (int(release.group(1)), int(release.group(2))) >= (12, 1)
    return ["--split-compile=0"] if parallel else []


def _target(architecture: str) -> list[str]:
    """Return the flags for an architecture; on sm_90 they enable warpgroup instructions, unless ``SNNC_WARPGROUPS=0``."""
    if architecture == "sm_90" and os.environ.get(WARPGROUPS) != "0":
        return ["-gencode=arch=compute_90a,code=sm_90a"]
    return [f"-arch={architecture}"]


def build_host_check(folder: Path) -> Path:
    """Return the library of the project in `folder` built for the CPU, where each CUDA thread is a fiber: slow, meant for checks only."""
    flags_of = dict.fromkeys(SOURCES, ()) | {ON_HOST: (ON_HOST_LEVEL,)}
    headers = dict.fromkeys(NETWORK_SOURCES, KERNEL_HEADERS) | {"network.cpp": HEADERS}
    return built_library(Path(folder), "cuda-host", HOST_FLAGS, flags_of, headers)


def resources(library: Path) -> list[KernelResources]:
    """Read the report that the assembler wrote when :func:`build_cuda` built `library`; names of kernels stay mangled."""
    kernels = []
    for part in (library.parent / RESOURCES).read_text().split("Compiling entry function ")[1:]:
        name = re.match(r"'([^']+)'", part)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        if name and memory and registers:
            stack, stores, loads = map(int, memory.groups())
            kernels.append(KernelResources(name.group(1), int(registers.group(1)), stores, loads, stack))
    return kernels


def _run(command: Sequence[str], what: str) -> str:
    """Run nvcc and return its output, which contains the assembler's report."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"{what} does not compile:\n{first_errors(result.stderr)}")
    return result.stdout + result.stderr
