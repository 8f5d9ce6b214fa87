"""Build emitted projects with the emulator's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import include_dir, link_flags, prefix
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, linker_flags, machine_id, run_compiler
from snnc.backends.toolchain.objects import FIXED_LEVEL, all_of, compiled, headers_of, precompiled, source_key

LEAN_HEADERS: Final = "-DSNNC_LEAN_HEADERS"
"""Macro with which the emulator's headers include only what they use themselves; programs not written by snnc rely on further headers."""


@dataclass(frozen=True)
class Sources:
    """The C++ files of a project."""

    own: str
    """The source that differs between projects."""
    header: str
    """A header that this source includes; it has an include guard. It and the headers that it includes are the same in every project."""
    fixed: tuple[str, ...]
    """Sources that are the same in every project and are compiled once."""

    @property
    def all(self) -> tuple[str, ...]:
        """All sources."""
        return (self.own, *self.fixed)


def build_project(
    folder: Path, sources: Sources, library: str, level: str, flags: Sequence[str] = (), link: Sequence[str] = ()
) -> Path:  # fmt: skip
    """Return the shared library of a project, built unless the cache contains a build of the same sources.

    Parameters
    ----------
    folder, sources
        The project and its files.
    library
        Name of the built file.
    level
        Optimisation flag of the project's own source, such as ``-O0``.
    flags, link
        Further flags for compiling the project's own source, and for linking.

    Raises
    ------
    ToolMissingError, BuildError
        This machine has no C++ compiler, or the project does not compile.
    """
    command = compiler()
    base = [*command, *common_flags(command), LEAN_HEADERS, "-isystem", str(include_dir())]
    linking = [*linker_flags(command), *link]
    identity = [*base, compiler_version(command), machine_id(), str(prefix())]
    headers = headers_of(folder)
    own_flags = [*flags, level]
    keys = {
        name: source_key(folder / name, headers, [*identity, *(own_flags if name == sources.own else [FIXED_LEVEL])])
        for name in sources.all
    }

    def compile_own() -> Path:
        header_flags = precompiled(folder, [sources.header], [*identity, *own_flags], [*base, *own_flags])
        return compiled(folder / sources.own, keys[sources.own], [*base, *own_flags, *header_flags])

    def build(to: Path) -> None:
        compile_fixed = [partial(compiled, folder / name, keys[name], [*base, FIXED_LEVEL]) for name in sources.fixed]
        objects = map(str, all_of([compile_own, *compile_fixed]))
        run_compiler([*command, *common_flags(command), "-shared", *objects, "-o", str(to / library), *linking, *link_flags()], library)

    return cached_file(f"project-{digest([*identity, *keys.values(), library, *linking])}", library, build)
