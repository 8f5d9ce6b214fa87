"""Build the emulator's library once, and programs against it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from snnc.backends.emulator.toolchain import (
    EMULATOR,
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

__all__ = ["compile_program", "compiler", "include_dir", "library", "prefix"]

LIBRARY_FLAGS = ("-O2", "-Wall", "-Wextra")


def include_dir() -> Path:
    """Return the folder of the headers: the host's and the codelets'."""
    return EMULATOR / "include"


def library() -> Path:
    """Return the path of ``libpoplar.so``, built when it is not there yet."""
    return prefix() / "lib" / "libpoplar.so"


def prefix() -> Path:
    """Return an install prefix with ``include``, ``lib/libpoplar.so`` and ``lib/cmake/poplar``.

    It is built once for each content of the sources, compiler and flags, in the cache folder.
    """
    return _prefix(tuple(compiler()), str(cache_dir()))


@lru_cache(maxsize=8)
def _prefix(command: tuple[str, ...], cache: str) -> Path:
    flags = [*common_flags(command), *LIBRARY_FLAGS]
    key = digest([*_contents(), *command, compiler_version(command), *flags, machine_id(), sys.executable, str(EMULATOR)])
    target = Path(cache) / f"emulator-{key}"
    if not (target / "lib" / "libpoplar.so").exists():
        scratch = scratch_beside(target)
        try:
            _build(scratch, command, flags)
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _contents() -> list[bytes]:
    """Return names and bytes of everything that goes into the prefix."""
    files = sorted(p for folder in ("include", "src", "cmake") for p in (EMULATOR / folder).rglob("*") if p.is_file())
    return [part for p in files for part in (str(p.relative_to(EMULATOR)).encode(), p.read_bytes())]


def _build(folder: Path, command: Sequence[str], flags: Sequence[str]) -> None:
    lib = folder / "lib"
    objects = folder / "objects"
    objects.mkdir()
    shutil.copytree(EMULATOR / "include", folder / "include")
    shutil.copytree(EMULATOR / "cmake", lib / "cmake" / "poplar")
    paths = [
        f'-DSNNC_PYTHON_EXECUTABLE="{sys.executable}"',
        f'-DSNNC_POPC_SCRIPT="{EMULATOR / "popc_script.py"}"',
    ]

    def compile_one(source: Path) -> Path:
        output = objects / f"{source.stem}.o"
        run_compiler([*command, *flags, *paths, f"-I{EMULATOR / 'include'}", "-c", str(source), "-o", str(output)], source.name)
        return output

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        compiled = list(pool.map(compile_one, sorted((EMULATOR / "src").glob("*.cpp"))))
    link = ["-shared", "-Wl,-soname,libpoplar.so", *map(str, compiled), "-o", str(lib / "libpoplar.so"), "-ldl"]
    run_compiler([*command, *flags, *link], "libpoplar.so")
    shutil.rmtree(objects)


def compile_program(
    sources: Sequence[Path], output: Path, shared: bool = False, flags: Sequence[str] = ("-O2",), *, libraries: Sequence[str] = ()
) -> None:
    """Compile and link a host program against the emulator.

    Parameters
    ----------
    sources
        C++ files of the host side (codelets are compiled by ``Graph::addCodelets``).
    output
        Path of the program or shared library.
    shared
        Whether to make a shared library.
    flags
        Compiler flags beside those that every program gets (C++17, include path).
    libraries
        Arguments to put behind the sources, such as ``-ldl``.

    Raises
    ------
    BuildError
        With the compiler's first errors.
    """
    command = compiler()
    lib = library().parent
    link = [f"-L{lib}", "-lpoplar", f"-Wl,-rpath,{lib}", *libraries]
    kind = ["-shared"] if shared else []
    names = [str(s) for s in sources]
    run_compiler(
        [*command, *common_flags(command), *flags, *kind, "-isystem", str(include_dir()), *names, "-o", str(output), *link],
        ", ".join(Path(n).name for n in names),
    )
