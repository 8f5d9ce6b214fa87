"""A kernel's code as statements, with the loads that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from snnc.backends.printing import c_assignments
from snnc.compiler.expression import Assignment, symbols


def needed(assignments: Sequence[Assignment], results: Iterable[str]) -> tuple[Assignment, ...]:
    """Return the assignments that `results` follow from, in order."""
    wanted, kept = set(results), []
    for assignment in reversed(assignments):
        if assignment.target in wanted:
            wanted.update(symbols(assignment.value))
            kept.append(assignment)
    return tuple(reversed(kept))


def reads(assignments: Sequence[Assignment], results: Iterable[str]) -> set[str]:
    """Names that `assignments` and `results` read but nothing assigns."""
    found = {name for a in assignments for name in symbols(a.value)} | set(results)
    return found - {a.target for a in assignments}


def loads(names: Iterable[str], places: Mapping[str, str]) -> list[dict[str, str]]:
    """Return ``{"name", "value"}`` for each name that has a place."""
    wanted = set(names)
    return [{"name": name, "value": place} for name, place in places.items() if name in wanted]


def statements(assignments: Sequence[Assignment]) -> list[str]:
    """Print straight-line float code."""
    return c_assignments(assignments)
