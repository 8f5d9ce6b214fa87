"""Builds an emitted project: with nvcc for a device, or with the C++ compiler at hand for a check on the processor."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.cuda.errors import CHECK_ON_HOST, NvccMissingError
from snnc.backends.emulator.objects import all_of, compiled, headers_of, precompiled, source_key
from snnc.backends.emulator.toolchain import (
    common_flags,
    compiler,
    compiler_version,
    digest,
    first_errors,
    kept,
    machine_id,
    run_compiler,
)
from snnc.compiler.errors import BuildError

SOURCES: Final = ("network.cu", "cuda_session.cpp", "snnc_abi.cpp", "snnc_files.cpp")
HEADERS: Final = ("convolution.hpp", "cuda_session.hpp", "launch.hpp", "learned.hpp", "sharing.hpp", "tensor_cores.hpp", "wiring.hpp")
"""What ``network.cu`` includes in every project: g++ keeps it compiled for checks on the processor."""
FLAGS: Final = ("-O3", "-std=c++17", "-fmad=false", "-Xcompiler=-fPIC", "-Xptxas=-v")
"""Equations round as they are written: products ask for fused multiplications by name."""
HOST_FLAGS: Final = ("-O1", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-U_FORTIFY_SOURCE", "-DSNNC_ON_HOST")
"""Fibers jump from stack to stack, which the library's checks take for an error."""
LIBRARY: Final = "libsnnc_project.so"
RESOURCES: Final = "resources.txt"
"""What the assembler said of registers and spills, beside the library."""
_USUAL_PLACE: Final = Path("/usr/local/cuda/bin/nvcc")


@dataclass(frozen=True)
class KernelResources:
    """What a kernel takes of a multiprocessor, as ``ptxas -v`` tells."""

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int


def nvcc() -> list[str]:
    """Return the command of the CUDA compiler: ``$CUDACXX``, nvcc, or that of ``/usr/local/cuda``.

    Raises
    ------
    NvccMissingError
        When there is none.
    """
    chosen = shlex.split(os.environ.get("CUDACXX", ""))
    candidates = [chosen] if chosen else [["nvcc"], [str(_USUAL_PLACE)]]
    for command in candidates:
        found = shutil.which(command[0])
        if found:
            return [found, *command[1:]]
    raise NvccMissingError(
        f"no CUDA compiler on this machine: snnc looked for {' and '.join(c[0] for c in candidates)}. Install the CUDA tool kit, set "
        f"CUDACXX, or set {CHECK_ON_HOST}=1 to run the kernels on the processor, slowly, as a check of their numbers."
    )


def build_cuda(folder: Path, architecture: str, flags: Sequence[str] = ()) -> Path:
    """Return the shared library of the project in `folder` for devices of `architecture` (``"sm_90"``), built if it never was.

    Raises
    ------
    NvccMissingError
        There is no nvcc.
    BuildError
        nvcc refuses the project.
    """
    folder = Path(folder)
    command = [*nvcc(), *FLAGS, f"-arch={architecture}", *flags]

    def build(to: Path) -> None:
        sources = (str(folder / name) for name in SOURCES)
        (to / RESOURCES).write_text(_run([*command, "-shared", *sources, "-o", str(to / LIBRARY)]))

    return kept(f"cuda-{digest([*command, compiler_version(command[:1]), *_contents(folder)])}", LIBRARY, build)


def build_host_check(folder: Path, flags: Sequence[str] = ()) -> Path:
    """Return the library of the same sources for the processor: each CUDA thread is a fiber. It is slow, and for checks.

    Raises
    ------
    ToolMissingError, BuildError
        There is no C++ compiler, or it refuses the project.
    """
    folder = Path(folder)
    command = compiler()
    every = [*command, *common_flags(command), *HOST_FLAGS, *flags]
    identity = [*every, compiler_version(command), machine_id()]
    headers = headers_of(folder)
    keys = {name: source_key(folder / name, headers, identity) for name in SOURCES}

    def compile_one(name: str) -> Path:
        taken = precompiled(folder, HEADERS, identity, every) if name == "network.cu" else []
        return compiled(folder / name, keys[name], [*every, *taken, "-x", "c++"])

    def build(to: Path) -> None:
        objects = all_of([partial(compile_one, name) for name in SOURCES])
        run_compiler([*every, "-shared", *map(str, objects), "-o", str(to / LIBRARY)], LIBRARY)

    return kept(f"cuda-host-{digest([*identity, *keys.values()])}", LIBRARY, build)


def resources(library: Path) -> list[KernelResources]:
    """Read what the assembler said when `library` was built.

    Parameters
    ----------
    library
        What :func:`build_cuda` returned.
    """
    return read_resources((library.parent / RESOURCES).read_text())


def read_resources(said: str) -> list[KernelResources]:
    """Read the lines of ``ptxas -v``; names stay mangled."""
    found = []
    for part in said.split("Compiling entry function ")[1:]:
        name = re.match(r"'([^']+)'", part)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        if name and memory and registers:
            stack, stores, loads = map(int, memory.groups())
            found.append(KernelResources(name.group(1), int(registers.group(1)), stores, loads, stack))
    return found


def _contents(folder: Path) -> list[str | bytes]:
    return [part for path in sorted(folder.glob("*.[ch]*")) for part in (path.name, path.read_bytes())]


def _run(command: Sequence[str]) -> str:
    """Run nvcc and return what its assembler says, on both streams."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"{LIBRARY} does not compile:\n{first_errors(result.stderr)}")
    return result.stdout + result.stderr
