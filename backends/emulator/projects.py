"""Build emitted projects with the emulator's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from snnc.backends.emulator.build import link_flags, prefix
from snnc.backends.toolchain.objects import built_library

FIXED_LEVEL: Final = "-O1"
"""Optimisation flag of sources that are compiled once for all projects."""
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

    `library` is the name of the built file, and `level` the optimisation flag of the project's own source, such as ``-O0``. `flags` and
    `link` are further flags for compiling this source, and for linking.
    """
    # The folder prefix() is named after the contents of its headers, so a changed header changes a flag, and cached objects do not match.
    flags_of = {sources.own: (*flags, level), **dict.fromkeys(sources.fixed, (FIXED_LEVEL,))}
    of_emulator = [LEAN_HEADERS, "-isystem", str(prefix() / "include")]
    return built_library(folder, "project", of_emulator, flags_of, {sources.own: [sources.header]}, library, [*link, *link_flags()])
