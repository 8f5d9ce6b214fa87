"""Checks of settings."""

from __future__ import annotations

from numbers import Integral, Real

from snnc.errors import DataOptionError


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of `least` or more.

    Raises
    ------
    DataOptionError
        It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise DataOptionError(f"{name} is {value!r}; it must be a whole number of {least} or more.")


def check_number(name: str, value: object, least: float, most: float = float("inf")) -> None:
    """Refuse what is not a number of `least` to `most`.

    Raises
    ------
    DataOptionError
        It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= most:
        above = f" to {most:g}" if most < float("inf") else " or more"
        raise DataOptionError(f"{name} is {value!r}; it must be a number of {least:g}{above}.")
