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
from snnc.backends.emulator.toolchain import (
    common_flags,
    compiler,
    compiler_version,
    digest,
    is_clang,
    kept,
    machine_id,
    run_compiler,
)

FIXED_LEVEL: Final = "-O1"
"""How hard sources are optimised that are compiled once for all projects."""


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
        taken = precompiled(folder / sources.header, headers, [*identity, level], [*every, level])
        return compiled(folder / sources.own, keys[sources.own], [*every, level, *taken])

    def build(to: Path) -> None:
        fixed = [partial(compiled, folder / name, keys[name], [*every, FIXED_LEVEL], shared=True) for name in sources.fixed]
        objects = map(str, all_of([own, *fixed]))
        run_compiler([*command, *common_flags(command), "-shared", *objects, "-o", str(to / library), *link, *link_flags()], library)

    return kept(f"project-{digest([*identity, *keys.values(), library, *link])}", library, build)


def headers_of(folder: Path) -> dict[str, bytes]:
    """Return names and contents of a project's headers."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.h*"))}


def included(source: Path, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the project's headers that a source includes, directly or not: contents by name."""
    waiting, found = [source.read_bytes()], {}
    while waiting:
        text = waiting.pop()
        for name, content in headers.items():
            if name not in found and f'#include "{name}"'.encode() in text:
                found[name] = content
                waiting.append(content)
    return found


def source_key(source: Path, headers: Mapping[str, bytes], identity: Sequence[str]) -> str:
    """Return a digest of a source, the headers that it includes, and `identity`: compiler, flags, machine."""
    taken = (part for name, content in sorted(included(source, headers).items()) for part in (name, content))
    return digest([*identity, source.name, source.read_bytes(), *taken])


def compiled(source: Path, key: str, command: Sequence[str], *, shared: bool = False) -> Path:
    """Return the object of a source, compiled by `command` when there is none for `key`; see `kept` for `shared`.

    Raises
    ------
    BuildError
        With the compiler's first errors.
    """
    name = f"{source.stem}.o"

    def build(to: Path) -> None:
        run_compiler([*command, "-c", str(source), "-o", str(to / name)], source.name)

    return kept(f"object-{key}", name, build, shared)


def all_of(calls: Sequence[Callable[[], Path]]) -> list[Path]:
    """Run compilations, as many at a time as there are processors, four at most; return the objects."""
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda call: call(), calls))


def precompiled(header: Path, headers: Mapping[str, bytes], identity: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return flags with which g++ takes a project's header as compiled before; none for other compilers.

    The header is then included before the source's first line. Where g++ does not like what was kept it reads the copy beside it.

    Parameters
    ----------
    header
        A header with a guard.
    headers
        All headers of the project.
    identity
        Compiler, flags, machine, and what tells the version of the headers from elsewhere.
    command
        The compiler with all flags that change what a header means.
    """
    if is_clang(command[:1]):
        return []

    def build(to: Path) -> None:
        for name, content in included(header, headers).items():
            (to / name).write_bytes(content)
        copy = to / header.name
        copy.write_bytes(header.read_bytes())
        run_compiler([*command, "-x", "c++-header", str(copy), "-o", f"{copy}.gch"], header.name)

    made = kept(f"precompiled-{source_key(header, headers, identity)}", f"{header.name}.gch", build, shared=True)
    return ["-include", str(made.with_suffix(""))]
