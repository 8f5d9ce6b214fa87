"""Checks of counts: whole numbers with a minimum."""

from __future__ import annotations

from numbers import Integral

from snnc.backends.runtime.errors import TrainingOptionError


def check_count(name: str, value: object, least: int) -> None:
    """Refuse values that are not whole numbers of `least` or more.

    Raises
    ------
    TrainingOptionError
        It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise TrainingOptionError(f"{name} is {value!r}; it is a whole number of {least} or more.")
