"""The assignments of a kernel that a result needs, and the values they read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from snnc.compiler.neurons.expression import Assignment, symbols


def needed(assignments: Sequence[Assignment], results: Iterable[str]) -> tuple[Assignment, ...]:
    """Return the assignments that `results` depend on, in order."""
    required, chosen = set(results), []
    for assignment in reversed(assignments):
        if assignment.target in required:
            required.update(symbols(assignment.value))
            chosen.append(assignment)
    return tuple(reversed(chosen))


def reads(assignments: Sequence[Assignment], results: Iterable[str]) -> set[str]:
    """Names that `assignments` and `results` read but do not assign."""
    found = {name for a in assignments for name in symbols(a.value)} | set(results)
    return found - {a.target for a in assignments}
