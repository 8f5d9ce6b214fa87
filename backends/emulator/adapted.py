"""Codelets compiled with the flags and changes that this machine's compiler needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snnc.backends.emulator.refused import is_refused, unknown_builtins, without_refused
from snnc.backends.emulator.sources import in_declared_order
from snnc.backends.toolchain.compilers import run_compiler

# Keeps the compute() of every vertex in the library, even if the file does not call it.
KEEP_COMPUTE = "-Dcompute=__attribute__((used)) compute"
NAMED_ELEMENTS = re.compile(
    r"request for member .[xyzw]. in |illegal vector component|member reference base type"
    r"|brace-enclosed initializer list.*(?:__vector|snnc_)"
)
"""Compiler errors for ``v.x`` and ``v = {a, b}`` on the compiler's vector types; classes support both, but are slower."""
HALF_CLASSES, ALL_CLASSES = "-DSNNC_HALF_VECTOR_CLASSES", "-DSNNC_VECTOR_CLASSES"
"""Flags that define vectors of halves, or all vectors, as classes. For halves, classes are faster with GCC, which converts the elements
of its own vectors one by one."""
COMPUTE_ELSEWHERE = re.compile(
    r"before .__attribute__.|expected .* after attribute|an attribute list cannot appear here|attributes at the beginning of statement"
)
"""Compiler errors that :data:`KEEP_COMPUTE` causes if `compute` also names something other than a function, or is called."""
OWN_CONSTANT = re.compile(r"expected unqualified-id before .*\n[^\n]*\bM_[A-Z0-9_]+\s*[={(]")
"""Compiler error for a codelet's own constant with a name such as `M_PI`, which <cmath> defines here, but not on an IPU."""
OWN_CONSTANTS = "-DSNNC_OWN_MATH_CONSTANTS"
MAX_ATTEMPTS = 24


@dataclass(frozen=True)
class Attempt:
    """One way to compile a source.

    Attributes
    ----------
    flags
        Command of the compiler and its flags.
    refused
        Builtins that stop the run, as inline assembly then does; None if the source is compiled as it is.
    """

    source: Path
    flags: tuple[str, ...]
    refused: frozenset[str] | None = None


def compile_adapted(source: Path, scratch: Path, flags: Sequence[str], rest: Sequence[str], clang: bool) -> Attempt:
    """Compile a source, changing flags or a copy of it until the compiler accepts it; return what it accepted.

    Parameters
    ----------
    source
        C++ file, or a copy of it for this compiler.
    scratch
        Folder of further copies.
    flags
        Command of the compiler, and the flags that the preprocessor needs.
    rest
        Further flags, such as the name of the object file.
    clang
        Whether the compiler is Clang.

    Raises
    ------
    BuildError
        The compiler's errors are not about anything that can be adapted.
    """
    from snnc.compiler.errors import BuildError  # not needed if the cache has the table

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
                original = original or error
            attempt = changed
    raise BuildError(f"{name} does not compile after {MAX_ATTEMPTS} adaptations")


def _input(attempt: Attempt, scratch: Path, name: str) -> list[str]:
    """Return the arguments that name what the compiler reads: the source, or the preprocessed text without an IPU's instructions."""
    if attempt.refused is None:
        return [str(attempt.source)]
    text = run_compiler([*attempt.flags, "-E", str(attempt.source)], name)
    changed = scratch / f"{attempt.source.stem}.ii"
    changed.write_text(without_refused(text, attempt.refused))
    return ["-w", str(changed)]


def _changed(attempt: Attempt, scratch: Path, errors: str, clang: bool) -> Attempt | None:
    """Return a way to compile that may avoid these errors; None if no other is known."""
    ordered = in_declared_order(attempt.source, scratch, errors)
    if ordered is not None:
        return replace(attempt, source=ordered)
    found = (attempt.refused or frozenset()) | unknown_builtins(errors)
    if is_refused(errors) and found != attempt.refused:
        return replace(attempt, refused=found)
    flags = _other_flags(list(attempt.flags), errors, clang)
    return None if flags is None else replace(attempt, flags=tuple(flags))


def _other_flags(flags: list[str], errors: str, clang: bool) -> list[str] | None:
    """Return flags under which the source may compile; None if no others are known."""
    if HALF_CLASSES in flags:
        return [f for f in flags if f != HALF_CLASSES]
    if NAMED_ELEMENTS.search(errors) and ALL_CLASSES not in flags:
        return [*flags, ALL_CLASSES]
    if OWN_CONSTANT.search(errors) and OWN_CONSTANTS not in flags:
        return [*flags, OWN_CONSTANTS]
    if COMPUTE_ELSEWHERE.search(errors) and KEEP_COMPUTE in flags and not clang:
        return [*(f for f in flags if f != KEEP_COMPUTE), "-fkeep-inline-functions"]
    return None
