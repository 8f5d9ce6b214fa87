"""The C++ and CUDA compilers of this machine, and calls of the C++ compiler."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from snnc.compiler.errors import BuildError, ToolMissingError

NVCC_WHEEL: Final = "nvidia-cuda-nvcc"
NATIVE_NAMES: Final = ("g++", "clang++", "c++")
"""Commands of compilers for this machine, in the order in which they are looked for."""
_USUAL_NVCC: Final = "/usr/local/cuda/bin/nvcc"


def compiler() -> list[str]:
    """Return the command of a C++17 compiler.

    It is ``$CXX`` or, if that is not set, the first found of g++, clang++, c++ and the ziglang wheel.

    Raises a ToolMissingError if the command in ``$CXX`` is not on this machine, or it is not set and no compiler was found.
    """
    named = compiler_named_by("CXX")
    if named is not None:
        return named
    for name in NATIVE_NAMES:
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "c++"]
    raise ToolMissingError(
        "no C++ compiler on this machine: snnc looked for $CXX, g++, clang++, c++ and the ziglang wheel. "
        "Install one of them (`pip install 'snnc[compiler]'` installs ziglang), or set CXX"
    )


def cuda_compiler() -> list[str] | None:
    """Return the command of the CUDA compiler; None if there is none.

    It is ``$CUDACXX`` or, if that is not set, the first nvcc found on the PATH, in ``/usr/local/cuda`` or in NVIDIA's wheel.
    """
    chosen = shlex.split(os.environ.get("CUDACXX", ""))
    candidates = [chosen] if chosen else [["nvcc"], [_USUAL_NVCC], *([path] for path in _nvcc_of_the_wheel())]
    for command in candidates:
        if path := shutil.which(command[0]):
            return [path, *command[1:]]
    return None


def _nvcc_of_the_wheel() -> list[str]:
    """Return the path of nvcc in the wheel that ``pip install 'snnc[cuda]'`` installs, if any; it is not on the PATH."""
    from importlib import metadata  # takes as long as starting Python; popc does not need it

    try:
        files = metadata.files(NVCC_WHEEL) or []
    except metadata.PackageNotFoundError:
        return []
    return [str(file.locate()) for file in files if file.parts[-2:] == ("bin", "nvcc")]


def compiler_named_by(variable: str) -> list[str] | None:
    """Return the command in an environment variable, None if it is empty; raise a ToolMissingError if it is not on this machine."""
    chosen = os.environ.get(variable)
    if not chosen:
        return None
    command = shlex.split(chosen)
    if shutil.which(command[0]) is None:
        raise ToolMissingError(f"the C++ compiler named by {variable} is not on this machine: {chosen!r}")
    return command


def compiler_version(command: Sequence[str]) -> str:
    """Return the compiler's version text."""
    return _version(tuple(command))


@lru_cache(maxsize=8)
def _version(command: tuple[str, ...]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def is_clang(command: Sequence[str]) -> bool:
    """Return whether the compiler accepts clang's options."""
    return "clang" in compiler_version(command).lower()


def common_flags(command: Sequence[str]) -> list[str]:
    """Return the flags of every compilation."""
    flags = ["-std=c++17", "-fPIC", "-pthread"]
    if is_clang(command):
        flags += ["-fno-sanitize=all"]  # zig, a clang, turns sanitizers on by default
    return flags


def linker_flags(command: Sequence[str]) -> list[str]:
    """Return the flag that selects the linker gold, which takes half the time of the usual linker, if it is installed.

    The list is empty unless the command is one of :data:`NATIVE_NAMES` alone: cross compilers and zig have their own linkers.
    """
    plain = len(command) == 1 and Path(command[0]).name in NATIVE_NAMES
    return ["-fuse-ld=gold"] if plain and shutil.which("ld.gold") else []


def machine_id() -> str:
    """Return the architecture of this processor and its instruction set extensions, as text.

    Machine code that one processor compiled for itself runs on another if both have the same text.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return os.uname().machine + next((line for line in lines if line.startswith(("flags", "Features"))), "")


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a short hash of texts and bytes."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(str(len(data)).encode() + b":" + data)
    return total.hexdigest()[:20]


def run_compiler(command: Sequence[str], what: str) -> str:
    """Run a compiler and return its standard output; if it fails, raise a BuildError with its first errors, about `what` it compiles."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"{what} does not compile:\n{first_errors(result.stderr)}")
    return result.stdout


def first_errors(output: str, limit: int = 20) -> str:
    """Return at most `limit` lines of a compiler's output, from the first error on."""
    lines = output.splitlines()
    signs = ("error:", "undefined reference", "cannot find")
    start = next((i for i, line in enumerate(lines) if any(sign in line for sign in signs)), 0)
    return "\n".join(lines[start : start + limit])
