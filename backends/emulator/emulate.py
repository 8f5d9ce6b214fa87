"""Build and run any Poplar program with the emulator: ``snnc emulate``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from snnc.backends.emulator.build import FALLBACK, compile_program, complete_prefix, include_dir, library
from snnc.backends.emulator.popc import compile_codelets
from snnc.backends.emulator.sources import NOT_LOCAL, accepted_copy, is_codelet
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, digest, machine_id, run_compiler
from snnc.compiler.errors import BuildError

FALLBACK_LIBRARIES = ("boost_program_options", "boost_timer", "boost_chrono", "boost_system")
"""Libraries that headers in :data:`~snnc.backends.emulator.build.FALLBACK` can replace."""


@dataclass(frozen=True)
class Checks:
    """Checks and settings of an emulated run; by default, all checks that cost time are off."""

    bounds: bool = False
    """Report a vertex that writes outside a field, or to an input, as an error."""
    undefined: bool = False
    """Report reads of elements that ``WriteUndef`` made undefined as errors."""
    workers: bool = False
    """Report an error if two workers of a MultiVertex write the same 32-bit word."""
    lenient_memory: bool = False
    """Only warn if a tile needs more memory than it has, as with the engine option ``debug.allowOutOfMemory``."""
    profile: Path | None = None
    """JSON file for the profile, written when an engine is destroyed."""

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
    """A built program: its executable in the cache, and the environment variables with which it finds its codelets."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


def build_program(
    sources: Sequence[Path], *, include: Sequence[Path] = (), define: Sequence[str] = (), flags: Sequence[str] = (), sanitize: str = ""
) -> BuiltProgram:
    """Build a host program and its codelets, or find them in the cache.

    `sources` are the C++ file of the host program, then further host code and codelets. Codelets are files ``.gp``, which popc writes, and
    sources for which :func:`~snnc.backends.emulator.sources.is_codelet` is true. The folders `include`, the macros `define` and the
    sanitizers `sanitize`, such as ``address`` or ``undefined``, are for host code and codelets; `flags` are further flags for the host
    code, libraries among them (``-lboost_program_options``).

    Raises a BuildError, with the compiler's first errors, if a source does not exist or does not compile, and a ToolMissingError if this
    machine has no C++ compiler.
    """
    for source in sources:
        if not source.is_file():
            raise BuildError(f"{source}: no such file")
    codelets = [s for s in sources[1:] if s.suffix == ".gp" or is_codelet(s.read_text(errors="replace"))]
    host = [sources[0], *(s for s in sources[1:] if s not in codelets)]
    common = [f"-I{folder.resolve()}" for folder in include] + [f"-D{macro}" for macro in define]
    common += [f"-fsanitize={sanitize}", "-g"] if sanitize else []
    for codelet in codelets:
        if codelet.suffix != ".gp":
            compile_codelets(codelet, library().resolve(), common)  # so that its errors are reported before anything runs
    environment = {
        "SNNC_CODELETS": ":".join(str(c.resolve()) for c in codelets),
        "SNNC_CODELET_PATH": str(host[0].resolve().parent),
        "SNNC_CODELET_EXTRA_FLAGS": shlex.join(common),
    }
    libraries = [f for f in flags if f.startswith("-l") and not _is_in_headers(f)]
    return BuiltProgram(_build_host(host, [*common, *(f for f in flags if not f.startswith("-l"))], libraries), environment)


def _is_in_headers(flag: str) -> bool:
    """Return whether a library is missing on this machine and the fallback headers replace it."""
    name = f"lib{flag[2:]}.so"
    if flag[2:] not in FALLBACK_LIBRARIES:
        return False
    path = subprocess.run([*compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout.strip()
    return path in ("", name)  # compilers print the name alone if they do not find the file


def _build_host(sources: Sequence[Path], flags: Sequence[str], libraries: Sequence[str]) -> Path:
    command = compiler()
    options = [*common_flags(command), *flags, "-isystem", str(include_dir()), "-idirafter", str(FALLBACK)]
    texts = [run_compiler([*command, *options, "-E", str(s.resolve())], s.name) for s in sources]
    parts = [*texts, *command, compiler_version(command), *flags, *libraries, machine_id(), str(complete_prefix())]

    def build(to: Path) -> None:
        resolved = [s.resolve() for s in sources]
        try:
            compile_program(resolved, to / "program", flags=["-O2", *flags], libraries=libraries, complete=True)
        except BuildError as error:
            if not NOT_LOCAL.search(str(error)):  # the compiler refused something other than a lambda with default captures
                raise
            changed = [accepted_copy([*command, *options], s, to) or s for s in resolved]
            compile_program(changed, to / "program", flags=["-O2", *flags], libraries=libraries, complete=True)

    return cached_file(f"programs/{digest(parts)}", "program", build)


def run_program(program: BuiltProgram, arguments: Sequence[str] = (), *, ipu: str = "ipu2", checks: Checks | None = None) -> int:
    """Run a program with this process's streams; return its exit code, or 128 + n if signal n ended it.

    `program` is the result of :func:`build_program`. `ipu` is the emulated IPU: ``ipu1``, ``ipu2``, ``ipu21``, or ``none`` (no IPU).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, **program.environment, "SNNC_EMULATED_IPU": ipu, **(checks or Checks()).environment()}
    code = subprocess.run([str(program.path), *arguments], env=environment, check=False).returncode
    return code if code >= 0 else 128 - code
