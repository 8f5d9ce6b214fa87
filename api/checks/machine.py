"""Detect compilers, SDKs, memory and the cache on this machine, for ``snnc doctor``."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from snnc.backends.native.processors import processors
from snnc.backends.toolchain.compilers import cuda_compiler
from snnc.compiler.errors import CacheFolderError
from snnc.compiler.files.cache import cache_folder
from snnc.compiler.ir.arrays.sizes import machine_memory


@dataclass(frozen=True)
class Finding:
    """A tool or resource of this machine; `hint` is how to install or fix it."""

    name: str
    found: bool
    detail: str
    hint: str = ""


def examine() -> list[Finding]:
    """Return the tools and resources of this machine, without changing or loading anything."""
    return [
        Finding("Python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        _package("snnc", "the compiler itself", "pip install snnc"),
        _compiler(),
        _cuda(),
        _poplar(),
        _package("poptorch", "training with PyTorch on IPUs", "comes with the Poplar SDK, https://www.graphcore.ai/downloads"),
        _package("torch", "needed only to train in PyTorch and export models", "pip install torch"),
        _package("onnxruntime", "needed only by snnc verify of ONNX files and by tests", "pip install onnxruntime"),
        Finding("cores", True, str(processors())),
        _memory(),
        _cache(),
    ]


def _tool(name: str, detail: str | None, purpose: str, hint: str, missing: str = "none") -> Finding:
    found = detail is not None
    return Finding(name, found, f"{detail if found else missing} ({purpose})", "" if found else hint)


def _package(name: str, purpose: str, hint: str) -> Finding:
    detail = None
    if find_spec(name) is not None:
        try:
            detail = version(name)
        except PackageNotFoundError:
            detail = "importable"
    return _tool(name, detail, purpose, hint, "not installed")


def _compiler() -> Finding:
    names = filter(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "clang++", "c++")))
    detail = next((_first_line([name, "--version"]) for name in names), None if find_spec("ziglang") is None else "ziglang")
    hint = "apt-get install g++, or pip install 'snnc[compiler]' for a compiler from PyPI"
    return _tool("C++ compiler", detail, "builds emitted programs and the emulator", hint)


def _cuda() -> Finding:
    command, detail = cuda_compiler(), None
    if command is not None:
        detail = next((line for line in _output([*command, "--version"]).splitlines() if "release" in line), command[0])
    hint = "the CUDA toolkit, or pip install 'snnc[cuda]' for its compiler alone"
    return _tool("CUDA compiler", detail, "builds programs for NVIDIA GPUs", hint)


def _poplar() -> Finding:
    detail = _first_line(["popc", "--version"]) if shutil.which("popc") else None
    hint = "unpack it and source its enable.sh; https://www.graphcore.ai/downloads"
    return _tool("Poplar SDK", detail, "runs emitted programs on IPUs; without it they run on the emulator", hint, "not enabled")


def _memory() -> Finding:
    try:
        memory = machine_memory()
    except (ValueError, OSError):
        return Finding("memory", True, "unknown")
    return Finding("memory", True, f"{memory / 2**30:.1f} GiB")


def _cache() -> Finding:
    purpose = "stores what snnc builds"
    try:
        folder = cache_folder()
    except CacheFolderError:
        return Finding("cache", False, f"no home folder ({purpose})", "name a folder: SNNC_CACHE=FOLDER")
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        return Finding("cache", False, f"{folder} cannot be written ({purpose})", "name a different folder: SNNC_CACHE=FOLDER")
    return Finding("cache", True, f"{folder} ({purpose})")


def _first_line(command: list[str]) -> str:
    lines = _output(command).splitlines()
    return lines[0] if lines else command[0]


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
