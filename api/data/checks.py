"""Range checks of the settings of data sets, transforms and encoders."""

from __future__ import annotations

from numbers import Integral, Real

from snnc.errors import DataOptionError


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse a value that is not a whole number of `least` or more.

    Raises
    ------
    DataOptionError
        The value is not such a number.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise DataOptionError(f"{name} is {value!r}; it must be a whole number of {least} or more.")


def check_number(name: str, value: object, least: float, most: float = float("inf")) -> None:
    """Refuse a value that is not a number from `least` to `most`.

    Raises
    ------
    DataOptionError
        The value is not such a number.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= most:
        above = f" to {most:g}" if most < float("inf") else " or more"
        raise DataOptionError(f"{name} is {value!r}; it must be a number of {least:g}{above}.")
