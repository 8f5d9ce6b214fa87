"""Build the emulator's library once, and programs against it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from snnc.backends.emulator.sources import EMULATOR
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, machine_id, run_compiler
from snnc.compiler.files.cache import cache_dir

__all__ = ["compile_program", "compiler", "complete_prefix", "include_dir", "library", "prefix"]

DEFAULT_FLAGS = "-O2 -Wall -Wextra"
PREFIX = ("include", "src", "cmake")
"""Folders of the emulator that determine the contents of its install prefix without PopLibs."""
LIBRARIES = ("poputil", "popops", "poplin", "popnn", "poprand", "popsparse", "popfloat", "gcl")
"""The libraries of PopLibs; one shared library contains them all."""
WITHIN_POPLAR = ("pva", "pvti")
"""Libraries whose functions are in ``libpoplar.so``."""
LAUNCHER = """\
said=$(mktemp) || exit 1
"$@" 2>"$said"
code=$?
if [ $code -ne 0 ] && grep -q 'non-local lambda expression cannot have a capture-default' "$said"; then
  {python} {script} "$@"
  code=$?
else
  cat "$said" >&2
fi
rm -f "$said"
exit $code
"""
"""Compiler launcher for CMake: if a compilation fails on a construct that older compilers accepted, it is repeated on an adapted source."""


ENABLE = """\
# Source this file (bash, zsh): compilers, CMake and the loader then find the emulator as they find the Poplar SDK.
POPLAR_SDK_ENABLED=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
export POPLAR_SDK_ENABLED
export PATH="$POPLAR_SDK_ENABLED/bin:$PATH"
export CPATH="$POPLAR_SDK_ENABLED/include${CPATH:+:$CPATH}"
export LIBRARY_PATH="$POPLAR_SDK_ENABLED/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
export LD_LIBRARY_PATH="$POPLAR_SDK_ENABLED/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CMAKE_PREFIX_PATH="$POPLAR_SDK_ENABLED${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
"""
POPC = 'exec {python} {script} --library {library} "$@"\n'
"""Command ``popc``, which links codelets with the ``libpoplar.so`` of this prefix."""
COMPILERS = ("c++", "g++", "clang++")
"""Compiler commands in ``bin`` that use the launcher, for builds without CMake."""
COMPILER = """\
here=${{0%/*}}
PATH=$(printf %s "$PATH" | tr : '\\n' | grep -vxF "$here" | tr '\\n' :)
case " $*" in
*" -lpop"*) exec "$here/launcher" {name} -Wl,--no-as-needed "$@" ;;
esac
exec "$here/launcher" {name} "$@"
"""
"""Compiler command in ``bin``: runs the machine's compiler, found without this folder, through the launcher.

Build files may name libraries before the sources; the linkers of some systems would drop these libraries.
"""


def include_dir() -> Path:
    """Return the folder of the headers of host code and codelets."""
    return EMULATOR / "include"


def fallback_dir() -> Path:
    """Return the folder of fallback headers for libraries that this machine may lack: searched last (``-idirafter``)."""
    return EMULATOR / "fallback"


def library_flags() -> tuple[str, ...]:
    """Return the compiler flags of the emulator's libraries: ``$SNNC_LIBRARY_FLAGS``, else those for optimisation and warnings."""
    return tuple(shlex.split(os.environ.get("SNNC_LIBRARY_FLAGS", DEFAULT_FLAGS)))


def _fallback(complete: bool) -> list[str]:
    return ["-idirafter", str(fallback_dir())] if complete else []


def library() -> Path:
    """Return the path of ``libpoplar.so``, built if missing."""
    return prefix() / "lib" / "libpoplar.so"


def prefix() -> Path:
    """Return an install prefix with ``include``, ``lib/libpoplar.so`` and ``lib/cmake/poplar``.

    It is built once for each content of the sources, compiler and flags, in the cache folder.
    """
    return _prefix(tuple(compiler()), library_flags(), str(cache_dir()))


@lru_cache(maxsize=8)
def _prefix(command: tuple[str, ...], chosen: tuple[str, ...], _cache: str) -> Path:
    flags = [*common_flags(command), *chosen]
    key = digest([*_contents(*PREFIX), *command, compiler_version(command), *flags, machine_id(), sys.executable, str(EMULATOR)])
    return _cached_library(f"emulator-{key}", "libpoplar.so", lambda scratch: _build(scratch, command, flags))


def complete_prefix() -> Path:
    """Return an install prefix that also has PopLibs (``lib/libpopops.so`` and others) and ``bin/popc``.

    It is built once, like :func:`prefix`, whose ``libpoplar.so`` it links to.
    """
    return _complete_prefix(tuple(compiler()), library_flags(), str(cache_dir()))


@lru_cache(maxsize=8)
def _complete_prefix(command: tuple[str, ...], chosen: tuple[str, ...], cache: str) -> Path:
    """Return the cached prefix with PopLibs, built if missing."""
    base = _prefix(command, chosen, cache)
    flags = [*common_flags(command), *chosen]
    key = digest(
        [
            *_contents("include", "src", "poplibs", "cmake", "fallback"),
            LAUNCHER,
            ENABLE,
            POPC,
            COMPILER,
            *command,
            compiler_version(command),
            *flags,
            machine_id(),
            str(base),
        ]
    )
    return _cached_library(f"emulator-poplibs-{key}", "libpoplibs.so", lambda scratch: _build_libraries(scratch, base, command, flags))


def _cached_library(name: str, library: str, build: Callable[[Path], None]) -> Path:
    """Return the cached prefix `name`; it is complete if it contains `library`."""
    return cached_file(name, f"lib/{library}", build).parents[1]


def _build_libraries(folder: Path, base: Path, command: Sequence[str], flags: Sequence[str]) -> None:
    """Build PopLibs with the ``libpoplar.so`` of the prefix `base`, and write the commands and CMake files of a complete prefix."""
    lib, binaries = folder / "lib", folder / "bin"
    shutil.copytree(base / "include", folder / "include")
    compiled = _compile_all(folder / "objects", EMULATOR / "poplibs", command, flags)
    (lib / "libpoplar.so").symlink_to(base / "lib" / "libpoplar.so")
    link = ["-shared", "-Wl,-soname,libpoplibs.so", *map(str, compiled), "-o", str(lib / "libpoplibs.so")]
    run_compiler([*command, *flags, *link, str(base / "lib" / "libpoplar.so"), f"-Wl,-rpath,{base / 'lib'}"], "libpoplibs.so")
    shutil.rmtree(folder / "objects")
    for name in LIBRARIES:
        (lib / f"lib{name}.so").symlink_to("libpoplibs.so")
    for name in WITHIN_POPLAR:
        (lib / f"lib{name}.so").symlink_to("libpoplar.so")
    for name in ("poplar", "poplibs", *LIBRARIES, *WITHIN_POPLAR):
        (lib / "cmake" / name).mkdir(parents=True)
        shutil.copy(EMULATOR / "cmake" / "poplarConfig.cmake", lib / "cmake" / name / f"{name}Config.cmake")
    shutil.copytree(fallback_dir(), folder / "fallback")
    binaries.mkdir()
    python = shlex.quote(sys.executable)
    script = shlex.quote(str(EMULATOR / "popc_script.py"))
    _write_command(binaries / "popc", POPC.format(python=python, script=script, library=shlex.quote(str(base / "lib" / "libpoplar.so"))))
    _write_command(binaries / "launcher", LAUNCHER.format(python=python, script=shlex.quote(str(EMULATOR / "launcher_script.py"))))
    for name in filter(shutil.which, COMPILERS):
        _write_command(binaries / name, COMPILER.format(name=name))
    (folder / "enable.sh").write_text(ENABLE)


def _write_command(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def _contents(*folders: str) -> list[bytes]:
    """Return names and contents of all files in some folders of the emulator."""
    files = sorted(p for folder in folders for p in (EMULATOR / folder).rglob("*") if p.is_file())
    return [part for p in files for part in (str(p.relative_to(EMULATOR)).encode(), p.read_bytes())]


def _build(folder: Path, command: Sequence[str], flags: Sequence[str]) -> None:
    """Build ``libpoplar.so`` in a folder, and copy headers and CMake files."""
    lib = folder / "lib"
    shutil.copytree(EMULATOR / "include", folder / "include")
    shutil.copytree(EMULATOR / "cmake", lib / "cmake" / "poplar")
    paths = [
        f'-DSNNC_PYTHON_EXECUTABLE="{sys.executable}"',
        f'-DSNNC_POPC_SCRIPT="{EMULATOR / "popc_script.py"}"',
    ]
    compiled = _compile_all(folder / "objects", EMULATOR / "src", command, [*flags, *paths])
    link = ["-shared", "-Wl,-soname,libpoplar.so", *map(str, compiled), "-o", str(lib / "libpoplar.so"), "-ldl"]
    run_compiler([*command, *flags, *link], "libpoplar.so")
    shutil.rmtree(folder / "objects")


def _compile_all(objects: Path, sources: Path, command: Sequence[str], flags: Sequence[str]) -> list[Path]:
    """Compile the sources of a folder as two translation units, so headers are read only twice; return the objects."""
    objects.mkdir()
    (objects.parent / "lib").mkdir(exist_ok=True)

    def compile_half(number: int, half: Sequence[Path]) -> Path:
        unit, output = objects / f"half{number}.cpp", objects / f"half{number}.o"
        unit.write_text("".join(f'#include "{source}"\n' for source in half))
        include = [f"-I{EMULATOR / 'include'}", f"-I{sources}"]
        run_compiler([*command, *flags, *include, "-DSNNC_EMULATOR_SOURCES", "-c", str(unit), "-o", str(output)], sources.name)
        return output

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(compile_half, (0, 1), _halves(sorted(sources.glob("*.cpp")))))


def _halves(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Split sources into two groups of about equal size."""
    halves: tuple[list[Path], list[Path]] = ([], [])
    sizes = [0, 0]
    for source in sorted(sources, key=lambda path: (-path.stat().st_size, path.name)):
        lesser = sizes.index(min(sizes))
        halves[lesser].append(source)
        sizes[lesser] += source.stat().st_size
    return halves


def link_flags(complete: bool = False) -> list[str]:
    """Return the link flags of the emulator, with PopLibs if `complete`."""
    lib = (complete_prefix() if complete else prefix()) / "lib"
    return [f"-L{lib}", *(["-lpoplibs"] if complete else []), "-lpoplar", f"-Wl,-rpath,{lib}"]


def compile_program(
    sources: Sequence[Path], output: Path, shared: bool = False, flags: Sequence[str] = ("-O2",), *,
    libraries: Sequence[str] = (), complete: bool = False,
) -> None:  # fmt: skip
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
        Compiler flags in addition to the usual ones (C++17, include path).
    libraries
        Arguments after the sources, such as ``-ldl``.
    complete
        Whether PopLibs are linked too.

    Raises
    ------
    BuildError
        The program does not compile; the message contains the compiler's first errors.
    """
    command = compiler()
    link = [*link_flags(complete), *libraries]
    kind = ["-shared"] if shared else []
    names = [str(s) for s in sources]
    run_compiler(
        [
            *command,
            *common_flags(command),
            *flags,
            *kind,
            "-isystem",
            str(include_dir()),
            *_fallback(complete),
            *names,
            "-o",
            str(output),
            *link,
        ],
        ", ".join(Path(n).name for n in names),
    )
