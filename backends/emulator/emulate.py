"""Build and run a Poplar program that was not written for snnc."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from snnc.backends.emulator.build import compile_program, complete_prefix, fallback_dir, include_dir, library
from snnc.backends.emulator.popc import compile_codelets
from snnc.backends.emulator.sources import NOT_LOCAL, is_codelet, without_capture_defaults
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, machine_id, run_compiler
from snnc.compiler.errors import BuildError

__all__ = ["BuiltProgram", "Checks", "build_program", "run_program"]


FALLBACK_LIBRARIES = ("boost_program_options", "boost_timer", "boost_chrono", "boost_system")
"""Libraries that headers in :func:`fallback_dir` can replace."""


@dataclass(frozen=True)
class Checks:
    """Optional checks and settings of the emulator; checks cost time.

    Attributes
    ----------
    bounds
        A vertex that writes outside a field, or to an input, is an error.
    undefined
        Reading an element that is undefined after ``WriteUndef`` is an error.
    workers
        It is an error if two workers of a MultiVertex write the same 32-bit word.
    lenient_memory
        Exceeding a tile's memory is only a warning, as in Graphcore's model.
    profile
        File for the profile (JSON), written when an engine is destroyed.
    """

    bounds: bool = False
    undefined: bool = False
    workers: bool = False
    lenient_memory: bool = False
    profile: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment variables that libpoplar reads."""
        flags = {
            "SNNC_CHECK_BOUNDS": self.bounds,
            "SNNC_CHECK_UNDEFINED": self.undefined,
            "SNNC_CHECK_WORKERS": self.workers,
            "SNNC_LENIENT_MEMORY": self.lenient_memory,
        }
        chosen = {name: "1" for name, wanted in flags.items() if wanted}
        return chosen if self.profile is None else {**chosen, "SNNC_PROFILE": str(self.profile.resolve())}


@dataclass(frozen=True)
class BuiltProgram:
    """A built program.

    Attributes
    ----------
    path
        The executable, in the cache.
    environment
        Environment variables with which it finds its codelets.
    """

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


def build_program(
    sources: Sequence[Path], *, include: Sequence[Path] = (), define: Sequence[str] = (), flags: Sequence[str] = (), sanitize: str = ""
) -> BuiltProgram:
    """Build a host program, and its codelets, against the emulator; builds are cached.

    Parameters
    ----------
    sources
        C++ files, the host program first. The others are codelets if they include ``poplar/Vertex.hpp`` and build no graph
        (or are ``.gp`` files, written by popc), else further host code.
    include, define
        Folders and macros, for host code and codelets.
    flags
        Further flags for the host code, libraries among them (``-lboost_program_options``).
    sanitize
        Sanitizers for host code and codelets, such as ``address`` or ``undefined``.

    Raises
    ------
    BuildError
        A source does not exist or does not compile; the message contains the compiler's first errors.
    ToolMissingError
        This machine has no C++ compiler.
    """
    for source in sources:
        if not source.is_file():
            raise BuildError(f"{source}: no such file")
    host, codelets = _sort(sources)
    both = [f"-I{folder.resolve()}" for folder in include] + [f"-D{macro}" for macro in define]
    both += [f"-fsanitize={sanitize}", "-g"] if sanitize else []
    codelets = [c if c.suffix == ".gp" else _checked(c, both) for c in codelets]
    environment = {
        "SNNC_CODELETS": ":".join(str(c.resolve()) for c in codelets),
        "SNNC_CODELET_PATH": str(host[0].resolve().parent),
        "SNNC_CODELET_EXTRA_FLAGS": shlex.join(both),
    }
    libraries = [f for f in flags if f.startswith("-l") and not _is_in_headers(f)]
    return BuiltProgram(_built(host, [*both, *(f for f in flags if not f.startswith("-l"))], libraries), environment)


def _is_in_headers(flag: str) -> bool:
    """Return whether a library is missing on this machine and the fallback headers replace it."""
    name = f"lib{flag[2:]}.so"
    if flag[2:] not in FALLBACK_LIBRARIES:
        return False
    found = subprocess.run([*compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout.strip()
    return found in ("", name)


def _sort(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Divide sources into host code and codelets."""
    rest = [(s, s.suffix == ".gp" or is_codelet(s.read_text(errors="replace"))) for s in sources[1:]]
    return [sources[0], *(s for s, codelet in rest if not codelet)], [s for s, codelet in rest if codelet]


def _checked(codelet: Path, flags: Sequence[str]) -> Path:
    """Compile a codelet file, so that its errors are reported before anything runs; return the path of the source."""
    compile_codelets(codelet, library().resolve(), flags)
    return codelet


def _built(sources: Sequence[Path], flags: Sequence[str], libraries: Sequence[str]) -> Path:
    """Return the cached executable of a host program, built if missing."""
    command = compiler()
    options = [*common_flags(command), *flags, "-isystem", str(include_dir()), "-idirafter", str(fallback_dir())]
    texts = [run_compiler([*command, *options, "-E", str(s.resolve())], s.name) for s in sources]
    parts = [*texts, *command, compiler_version(command), *flags, *libraries, machine_id(), str(complete_prefix())]

    def build(to: Path) -> None:
        resolved = [s.resolve() for s in sources]
        try:
            compile_program(resolved, to / "program", flags=["-O2", *flags], libraries=libraries, complete=True)
        except BuildError as error:
            if not NOT_LOCAL.search(str(error)):
                raise
            changed = [_accepted(s, text, to, [*command, *options]) for s, text in zip(resolved, texts, strict=True)]
            compile_program(changed, to / "program", flags=["-O2", *flags], libraries=libraries, complete=True)

    return cached_file(f"programs/{digest(parts)}", "program", build)


def _accepted(source: Path, preprocessed: str, folder: Path, command: Sequence[str]) -> Path:
    """Return a copy of a source in which lambdas outside of functions have no default capture, which older compilers accepted."""
    checked = [*command, "-w", "-fsyntax-only", str(source)]
    errors = subprocess.run(checked, capture_output=True, text=True, check=False).stderr
    changed = Path(tempfile.mkdtemp(dir=folder)) / f"{source.stem}.ii"
    changed.write_text(without_capture_defaults(preprocessed, errors))
    return changed


def run_program(program: BuiltProgram, arguments: Sequence[str] = (), *, ipu: str = "ipu2", checks: Checks | None = None) -> int:
    """Run a program with this process's streams; return its exit code, or 128 + n if signal n ended it.

    Parameters
    ----------
    program
        The result of `build_program`.
    arguments
        Arguments of the program.
    ipu
        The emulated machine: ``ipu1``, ``ipu2``, ``ipu21``, or ``none``.
    checks
        The optional checks.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, **program.environment, "SNNC_EMULATED_IPU": ipu, **(checks or Checks()).environment()}
    code = subprocess.run([str(program.path), *arguments], env=environment, check=False).returncode
    return code if code >= 0 else 128 - code
