"""Objects, precompiled headers and libraries of emitted projects, kept in the cache by what they were made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import include_dir, link_flags, prefix
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, is_clang, kept, machine_id, run_compiler

FIXED_LEVEL: Final = "-O1"
"""How hard sources are optimised that are compiled once for all projects."""
FIRST: Final = "first.hpp"
"""Includes the headers that are compiled before."""


@dataclass(frozen=True)
class Sources:
    """The C++ files of a project that runs on the emulator.

    Attributes
    ----------
    own
        The source that differs between projects.
    header
        What it includes of the others: the same in every project, with a guard, and including nothing that differs.
    fixed
        Sources that are the same in every project: they are compiled once.
    """

    own: str
    header: str
    fixed: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All sources."""
        return (self.own, *self.fixed)


def build_project(
    folder: Path, sources: Sources, library: str, level: str, flags: Sequence[str] = (), link: Sequence[str] = ()
) -> Path:  # fmt: skip
    """Return the shared library of a project, built against the emulator when its sources were never built before on this machine.

    Parameters
    ----------
    folder
        The project.
    sources
        Its files.
    library
        Name of what is built.
    level
        How hard to optimise its own source, such as ``-O0``.
    flags, link
        Further flags for compiling, and for linking.

    Raises
    ------
    ToolMissingError
        There is no C++ compiler.
    BuildError
        The compiler refuses the project.
    """
    command = compiler()
    every = [*command, *common_flags(command), "-isystem", str(include_dir()), *flags]
    identity = [*every, compiler_version(command), machine_id(), str(prefix())]
    headers = headers_of(folder)
    levels = dict.fromkeys(sources.fixed, FIXED_LEVEL) | {sources.own: level}
    keys = {name: source_key(folder / name, headers, [*identity, levels[name]]) for name in sources.all}

    def own() -> Path:
        taken = precompiled(folder, [sources.header], [*identity, level], [*every, level])
        return compiled(folder / sources.own, keys[sources.own], [*every, level, *taken])

    def build(to: Path) -> None:
        fixed = [partial(compiled, folder / name, keys[name], [*every, FIXED_LEVEL]) for name in sources.fixed]
        objects = map(str, all_of([own, *fixed]))
        run_compiler([*command, *common_flags(command), "-shared", *objects, "-o", str(to / library), *link, *link_flags()], library)

    return kept(f"project-{digest([*identity, *keys.values(), library, *link])}", library, build)


def headers_of(folder: Path) -> dict[str, bytes]:
    """Return names and contents of a project's headers."""
    return {path.name: path.read_bytes() for path in sorted((*folder.glob("*.h*"), *folder.glob("*.cuh")))}


def included(source: bytes, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the project's headers that a source includes, directly or not: contents by name."""
    waiting, found = [source], {}
    while waiting:
        text = waiting.pop()
        for name, content in headers.items():
            if name not in found and f'#include "{name}"'.encode() in text:
                found[name] = content
                waiting.append(content)
    return found


def source_key(source: Path, headers: Mapping[str, bytes], identity: Sequence[str]) -> str:
    """Return a digest of a source, the headers that it includes, and `identity`: compiler, flags, machine."""
    content = source.read_bytes()
    return digest([*identity, source.name, content, *_parts(included(content, headers))])


def _parts(files: Mapping[str, bytes]) -> list[str | bytes]:
    return [part for name in sorted(files) for part in (name, files[name])]


def compiled(source: Path, key: str, command: Sequence[str]) -> Path:
    """Return the object of a source, compiled by `command` when there is none for `key`.

    Raises
    ------
    BuildError
        With the compiler's first errors.
    """
    name = f"{source.stem}.o"

    def build(to: Path) -> None:
        run_compiler([*command, "-c", str(source), "-o", str(to / name)], source.name)

    return kept(f"object-{key}", name, build)


def all_of(calls: Sequence[Callable[[], Path]]) -> list[Path]:
    """Run compilations, as many at a time as there are processors, eight at most; return the objects."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda call: call(), calls))


def precompiled(folder: Path, names: Sequence[str], identity: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return flags with which g++ takes a project's headers as compiled before; none for other compilers.

    The headers are then included before the source's first line. Where g++ does not like what was kept it reads copies of them.

    Parameters
    ----------
    folder
        The project.
    names
        Headers with guards that a source includes, all of them the same in every project.
    identity
        Compiler, flags, machine, and what tells the version of the headers from elsewhere.
    command
        The compiler with all flags that change what a header means.
    """
    if is_clang(command[:1]):
        return []
    headers = headers_of(folder)
    text = "".join(f'#include "{name}"\n' for name in names)
    taken = included(text.encode(), headers)

    def build(to: Path) -> None:
        for name, content in taken.items():
            (to / name).write_bytes(content)
        first = to / FIRST
        first.write_text(text)
        run_compiler([*command, "-x", "c++-header", str(first), "-o", f"{first}.gch"], ", ".join(names))

    key = digest([*identity, text, *_parts(taken)])
    return ["-include", str(kept(f"precompiled-{key}", f"{FIRST}.gch", build).with_suffix(""))]
