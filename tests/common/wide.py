"""Cases of one kind of which some run always and all with ``--wide``."""

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

WIDE = "SNNC_TEST_WIDE"
"""Set where the wide cases run too."""


def sampled(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Mark all cases but every `one_in`-th as wide."""
    found = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if number % one_in == 0 else pytest.param(*values, marks=pytest.mark.wide))
    return found


def examples(some: T, every: T) -> T:
    """Return `some`, or `every` with the wide cases: how many examples a property is tried with, or what one test goes through."""
    return every if os.environ.get(WIDE) else some
