"""Cases of one kind of which some run always and all with ``--wide``."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Mark all cases but every `one_in`-th as wide."""
    found = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if number % one_in == 0 else pytest.param(*values, marks=pytest.mark.wide))
    return found
