"""Cached objects and precompiled headers of emitted projects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import (
    common_flags,
    compiler,
    compiler_version,
    digest,
    is_clang,
    linker_flags,
    machine_id,
    run_compiler,
)

LIBRARY: Final = "libsnnc_project.so"
"""File of the shared library of a project for a CPU or GPU."""
FIRST: Final = "first.hpp"
"""Source file that includes the headers to precompile."""
_INCLUDE: Final = re.compile(rb'#include "([^"\n]+)"')


def headers_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of a project's headers by name."""
    return {path.name: path.read_bytes() for path in sorted((*folder.glob("*.h*"), *folder.glob("*.cuh")))}


def included(source: bytes, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return those of the project's headers that a source includes directly or indirectly."""
    waiting, reached = [source], {}
    while waiting:
        for name in (included_name.decode(errors="replace") for included_name in _INCLUDE.findall(waiting.pop())):
            if name in headers and name not in reached:
                reached[name] = headers[name]
                waiting.append(headers[name])
    return reached


def source_key(source: Path, headers: Mapping[str, bytes], identity: Sequence[str]) -> str:
    """Return a digest of a source, the headers that it includes, and `identity`: compiler, flags, machine."""
    content = source.read_bytes()
    return digest([*identity, source.name, content, *_names_and_contents(included(content, headers))])


def _names_and_contents(files: Mapping[str, bytes]) -> list[str | bytes]:
    return [part for item in sorted(files.items()) for part in item]


def compiled(source: Path, key: str, command: Sequence[str]) -> Path:
    """Return the object file of a source, compiled as C++ (also ``.cu``, for checks on the CPU) unless the cache has one for `key`."""
    name = f"{source.stem}.o"
    language = ["-x", "c++"] if source.suffix == ".cu" else []

    def build(to: Path) -> None:
        run_compiler([*command, *language, "-c", str(source), "-o", str(to / name)], source.name)

    return cached_file(f"object-{key}", name, build)


def sources_in(folder: Path, names: Sequence[str]) -> list[str]:
    """Return those of the files `names` that a project contains; one that another version of snnc wrote may lack some."""
    return [name for name in names if (folder / name).exists()]


def all_of(calls: Sequence[Callable[[], Path]]) -> list[Path]:
    """Run compilations in parallel, at most eight at a time and at most one per processor; return their results in the order of `calls`."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda call: call(), calls))


def precompiled(folder: Path, names: Sequence[str], identity: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return flags with which g++ includes precompiled headers of a project before the first line; an empty list for clang.

    `names` are headers with include guards that the source includes, the same in every project. `command` is the compiler with all flags
    that affect the meaning of a header. The cache key contains `identity`: everything but the project's headers that affects the result,
    such as the version of the compiler.
    """
    if is_clang(compiler()):
        return []
    headers = headers_of(folder)
    text = "".join(f'#include "{name}"\n' for name in names)
    chosen = included(text.encode(), headers)

    def build(to: Path) -> None:
        for name, content in chosen.items():
            (to / name).write_bytes(content)
        first = to / FIRST
        first.write_text(text)
        run_compiler([*command, "-x", "c++-header", str(first), "-o", f"{first}.gch"], ", ".join(names))

    key = digest([*identity, text, *_names_and_contents(chosen)])
    return ["-include", str(cached_file(f"precompiled-{key}", f"{FIRST}.gch", build).with_suffix(""))]


def built_library(
    folder: Path,
    kind: str,
    flags: Sequence[str],
    flags_of: Mapping[str, Sequence[str]],
    headers_of_source: Mapping[str, Sequence[str]],
    library: str = LIBRARY,
    link: Sequence[str] = (),
) -> Path:
    """Return the shared library of a project for this processor, built unless the cache contains one of the same sources.

    `kind` is the first word of the name of its cache entry, and `library` the name of its file. `flags` are those of all compilations;
    `flags_of` lists possible sources, slowest to compile first, with further flags of each. `headers_of_source` lists headers that g++
    precompiles for a source. `link` are further arguments of the linker.

    Raises a ToolMissingError if this machine has no C++ compiler, and a BuildError if the project does not compile.
    """
    command = compiler()
    base, link = [*command, *common_flags(command), *flags], [*linker_flags(command), *link]
    identity, headers = [*base, compiler_version(command), machine_id()], headers_of(folder)
    sources = sources_in(folder, list(flags_of))
    keys = {name: source_key(folder / name, headers, [*identity, *flags_of[name]]) for name in sources}

    def compile_one(name: str) -> Path:
        call = [*base, *flags_of[name]]
        if name in headers_of_source:
            call += precompiled(folder, headers_of_source[name], [*identity, *flags_of[name]], call)
        return compiled(folder / name, keys[name], call)

    def build(to: Path) -> None:
        objects = map(str, all_of([partial(compile_one, name) for name in sources]))
        run_compiler([*base, "-shared", *objects, "-o", str(to / library), *link], library)

    return cached_file(f"{kind}-{digest([*identity, *keys.values(), library, *link])}", library, build)
