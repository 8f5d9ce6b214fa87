"""Groups of similar cases, of which some always run and all run with ``--wide``."""

import os
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

WIDE = "SNNC_TEST_WIDE"
"""Set if the wide cases run too."""
REPRESENTATIVE = "representative"
"""Marker of a parametrised test, with ids of its representative cases: all others are wide. ``*`` in an id matches any text."""


def sampled(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Mark all cases but every `one_in`-th as wide."""
    found = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if number % one_in == 0 else pytest.param(*values, marks=pytest.mark.wide))
    return found


def examples(some: T, every: T) -> T:
    """Return `some`, or `every` if wide cases run: the number of examples of a property, or the cases of a single test."""
    return every if os.environ.get(WIDE) else some


def is_wide(item: pytest.Item) -> bool:
    """Return whether a test runs only with ``--wide``."""
    if item.get_closest_marker("wide"):
        return True
    chosen = _representative(item)
    return bool(chosen) and not any(_matches(item, case) for case in chosen)


def unknown_cases(items: Iterable[pytest.Item]) -> list[str]:
    """Return the representative cases that do not exist among all tests of a file: a renamed case would otherwise never run."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    return [
        f"{name}[{case}]"
        for name, cases in tests.items()
        for case in _representative(cases[0])
        if not any(_matches(item, case) for item in cases)
    ]


def _representative(item: pytest.Item) -> tuple[str, ...]:
    marker = item.get_closest_marker(REPRESENTATIVE)
    return marker.args if marker else ()


def _matches(item: pytest.Item, case: str) -> bool:
    return fnmatchcase(item.nodeid.partition("[")[2][:-1], case.replace("[", "[[]"))
