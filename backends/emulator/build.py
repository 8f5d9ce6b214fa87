"""Build the emulator's libraries, once per machine, and programs that are linked with them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from snnc.backends.emulator.sources import EMULATOR
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, machine_id, run_compiler
from snnc.compiler.files.cache import cache_dir

DEFAULT_FLAGS = "-O2 -Wall -Wextra"
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
"""Compiler launcher: if a compilation fails on a construct that older compilers accepted, it is repeated on an adapted source."""
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


FALLBACK = EMULATOR / "fallback"
"""Headers that replace those of libraries that this machine may lack; the compiler searches them last (``-idirafter``)."""


def include_dir() -> Path:
    """Return the folder of the headers of host code and codelets."""
    return EMULATOR / "include"


def library_flags() -> tuple[str, ...]:
    """Return the compiler flags of the emulator's libraries: ``$SNNC_LIBRARY_FLAGS``, by default :data:`DEFAULT_FLAGS`."""
    return tuple(shlex.split(os.environ.get("SNNC_LIBRARY_FLAGS", DEFAULT_FLAGS)))


def library() -> Path:
    """Return the path of ``libpoplar.so``, built if missing."""
    return prefix() / "lib" / "libpoplar.so"


def prefix() -> Path:
    """Return a folder of the cache with ``include``, ``lib/libpoplar.so`` and ``lib/cmake/poplar``, built if missing.

    The cache has one such folder for each combination of sources, compiler and flags.
    """
    return _prefix(tuple(compiler()), library_flags(), str(cache_dir()))


@lru_cache(maxsize=8)
def _prefix(command: tuple[str, ...], chosen: tuple[str, ...], _cache: str) -> Path:
    """Return :func:`prefix` for a compiler, flags and cache folder, checked once per process for each combination of these."""
    flags = [*common_flags(command), *chosen]
    key = digest(
        [*_contents("include", "src", "cmake"), *command, compiler_version(command), *flags, machine_id(), sys.executable, str(EMULATOR)]
    )
    return cached_file(f"emulator-{key}", "lib/libpoplar.so", lambda scratch: _build(scratch, command, flags)).parents[1]


def complete_prefix() -> Path:
    """Return a folder like :func:`prefix` that also has PopLibs (``lib/libpopops.so`` and others) and ``bin/popc``."""
    return _complete_prefix(tuple(compiler()), library_flags(), str(cache_dir()))


@lru_cache(maxsize=8)
def _complete_prefix(command: tuple[str, ...], chosen: tuple[str, ...], cache: str) -> Path:
    base = _prefix(command, chosen, cache)
    flags = [*common_flags(command), *chosen]
    texts: list[str | bytes] = [*_contents("include", "src", "poplibs", "cmake", "fallback"), LAUNCHER, ENABLE, POPC, COMPILER]
    name = f"emulator-poplibs-{digest([*texts, *command, compiler_version(command), *flags, machine_id(), str(base)])}"
    return cached_file(name, "lib/libpoplibs.so", lambda scratch: _build_libraries(scratch, base, command, flags)).parents[1]


def _build_libraries(folder: Path, base: Path, command: Sequence[str], flags: Sequence[str]) -> None:
    """Build PopLibs with the ``libpoplar.so`` in `base`, and write the commands and CMake files of :func:`complete_prefix`."""
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
    shutil.copytree(FALLBACK, folder / "fallback")
    binaries.mkdir()
    python, popc, launcher = (
        shlex.quote(str(path)) for path in (sys.executable, EMULATOR / "popc_script.py", EMULATOR / "launcher_script.py")
    )
    commands = {
        "popc": POPC.format(python=python, script=popc, library=shlex.quote(str(base / "lib" / "libpoplar.so"))),
        "launcher": LAUNCHER.format(python=python, script=launcher),
        **{name: COMPILER.format(name=name) for name in filter(shutil.which, COMPILERS)},
    }
    for name, text in commands.items():
        (binaries / name).write_text(f"#!/bin/sh\n{text}")
        (binaries / name).chmod(0o755)
    (folder / "enable.sh").write_text(ENABLE)


def _contents(*folders: str) -> list[bytes]:
    files = sorted(p for folder in folders for p in (EMULATOR / folder).rglob("*") if p.is_file())
    return [part for p in files for part in (str(p.relative_to(EMULATOR)).encode(), p.read_bytes())]


def _build(folder: Path, command: Sequence[str], flags: Sequence[str]) -> None:
    lib = folder / "lib"
    shutil.copytree(include_dir(), folder / "include")
    shutil.copytree(EMULATOR / "cmake", lib / "cmake" / "poplar")
    paths = [f'-DSNNC_PYTHON_EXECUTABLE="{sys.executable}"', f'-DSNNC_POPC_SCRIPT="{EMULATOR / "popc_script.py"}"']
    compiled = _compile_all(folder / "objects", EMULATOR / "src", command, [*flags, *paths])
    link = ["-shared", "-Wl,-soname,libpoplar.so", *map(str, compiled), "-o", str(lib / "libpoplar.so"), "-ldl"]
    run_compiler([*command, *flags, *link], "libpoplar.so")
    shutil.rmtree(folder / "objects")


def _compile_all(objects: Path, sources: Path, command: Sequence[str], flags: Sequence[str]) -> list[Path]:
    """Compile the sources of a folder as two files, so that the compiler reads the headers only twice; return the two object files."""
    objects.mkdir()
    (objects.parent / "lib").mkdir(exist_ok=True)

    def compile_half(number: int, half: Sequence[Path]) -> Path:
        unit, output = objects / f"half{number}.cpp", objects / f"half{number}.o"
        unit.write_text("".join(f'#include "{source}"\n' for source in half))
        include = [f"-I{include_dir()}", f"-I{sources}"]
        run_compiler([*command, *flags, *include, "-DSNNC_EMULATOR_SOURCES", "-c", str(unit), "-o", str(output)], sources.name)
        return output

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(compile_half, (0, 1), _halves(sorted(sources.glob("*.cpp")))))


def _halves(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
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
    """Compile a host program and link it with the emulator.

    `sources` are C++ files of host code; codelets are not among them, because ``Graph::addCodelets`` compiles them. `output` is the path
    of the program or, if `shared`, of the shared library. `flags` are compiler flags besides the usual ones (C++17, include path), and
    `libraries` are arguments after the sources, such as ``-ldl``. If `complete`, PopLibs is linked too.

    Raises a BuildError with the compiler's first errors if the program does not compile.
    """
    command = compiler()
    base = [*command, *common_flags(command), *flags, *(["-shared"] if shared else []), "-isystem", str(include_dir())]
    files = [*(["-idirafter", str(FALLBACK)] if complete else []), *map(str, sources), "-o", str(output)]
    run_compiler([*base, *files, *link_flags(complete), *libraries], ", ".join(Path(source).name for source in sources))
