"""Compile codelets on this machine: if its compiler rejects a source, adapt the flags or a copy of the source and try again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snnc.backends.emulator.refused import ABOUT_ASSEMBLY, UNKNOWN_BUILTIN, without_refused
from snnc.backends.emulator.sources import ALL_CLASSES, HALF_CLASSES, KEEP_COMPUTE, in_declared_order
from snnc.backends.toolchain.compilers import run_compiler
from snnc.compiler.errors import BuildError

NAMED_ELEMENTS = re.compile(
    r"request for member .[xyzw]. in |illegal vector component|member reference base type"
    r"|brace-enclosed initializer list.*(?:__vector|snnc_)"
)
"""Compiler errors for ``v.x`` and ``v = {a, b}`` on the compiler's vectors; those of :data:`ALL_CLASSES` support both, but are slower."""
COMPUTE_ELSEWHERE = re.compile(
    r"before .__attribute__.|expected .* after attribute|an attribute list cannot appear here|attributes at the beginning of statement"
)
"""Compiler errors that :data:`KEEP_COMPUTE` causes if `compute` also names something other than a function, or is called."""
OWN_CONSTANT = re.compile(r"expected unqualified-id before .*\n[^\n]*\bM_[A-Z0-9_]+\s*[={(]")
"""Compiler error for a codelet's own constant with a name such as `M_PI`, which <cmath> defines here, but not on an IPU."""
OWN_CONSTANTS = "-DSNNC_OWN_MATH_CONSTANTS"
"""Flag without which <cmath> defines these constants."""
ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b")
MAX_ATTEMPTS = 24
"""Each attempt adapts one thing; a source may need several."""


@dataclass(frozen=True)
class Attempt:
    """One way to compile a source; `flags` contains the compiler's command too."""

    source: Path
    flags: tuple[str, ...]
    refused: frozenset[str] | None = None
    """Builtins to replace, together with all inline assembly, by calls that stop the run; None: nothing is replaced."""


def compile_adapted(source: Path, scratch: Path, flags: Sequence[str], rest: Sequence[str], clang: bool) -> Attempt:
    """Compile a C++ file and return the attempt that the compiler accepted.

    `scratch` is a folder for adapted copies. `flags` is the command of the compiler with the flags that the preprocessor needs, and `rest`
    contains further flags, such as the name of the object file.

    Raises a BuildError if the compiler reports an error that no known adaptation avoids.
    """
    name, attempt = source.name, Attempt(source, tuple(flags))
    original: BuildError | None = None
    for _ in range(MAX_ATTEMPTS):
        try:
            run_compiler([*attempt.flags, *_input(attempt, scratch, name), *rest], name)
            return attempt
        except BuildError as error:
            changed = _changed(attempt, scratch, str(error), clang)
            if changed is None:
                raise original or error from None
            if changed.refused is not None:
                original = original or error  # errors of copies without instructions of an IPU would confuse the user
            attempt = changed
    raise BuildError(f"{name} does not compile after {MAX_ATTEMPTS} adaptations")


def _input(attempt: Attempt, scratch: Path, name: str) -> list[str]:
    """Return the compiler's arguments for the source, or for a preprocessed copy without instructions of an IPU."""
    if attempt.refused is None:
        return [str(attempt.source)]
    text = run_compiler([*attempt.flags, "-E", str(attempt.source)], name)
    changed = scratch / f"{attempt.source.stem}.ii"
    changed.write_text(without_refused(text, attempt.refused))
    return ["-w", str(changed)]


def _changed(attempt: Attempt, scratch: Path, errors: str, clang: bool) -> Attempt | None:
    ordered = in_declared_order(attempt.source, scratch, errors)
    if ordered is not None:
        return replace(attempt, source=ordered)
    unknown = UNKNOWN_BUILTIN.findall(errors)
    refused = (attempt.refused or frozenset()).union(unknown)
    if (unknown or ABOUT_ASSEMBLY.search(errors)) and refused != attempt.refused:
        return replace(attempt, refused=refused)
    flags = _other_flags(list(attempt.flags), errors, clang)
    if flags is not None:
        return replace(attempt, flags=tuple(flags))
    if attempt.refused is None and ASSEMBLY.search(attempt.source.read_text(errors="replace")):
        return replace(attempt, refused=frozenset())  # an operand of assembly may be a constant that only an IPU has
    return None


def _other_flags(flags: list[str], errors: str, clang: bool) -> list[str] | None:
    if HALF_CLASSES in flags:
        return [f for f in flags if f != HALF_CLASSES]
    for reported, flag in ((NAMED_ELEMENTS, ALL_CLASSES), (OWN_CONSTANT, OWN_CONSTANTS)):
        if reported.search(errors) and flag not in flags:
            return [*flags, flag]
    if COMPUTE_ELSEWHERE.search(errors) and KEEP_COMPUTE in flags and not clang:
        return [*(f for f in flags if f != KEEP_COMPUTE), "-fkeep-inline-functions"]
    return None
