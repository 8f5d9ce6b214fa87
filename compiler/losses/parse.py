"""Losses by name, as on the command line and in configuration files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Loss
from snnc.compiler.losses.cross_entropy import CrossEntropyCount, CrossEntropyMaxMembrane, CrossEntropyMeanMembrane, CrossEntropyRate
from snnc.compiler.losses.mse_count import MeanSquaredCount
from snnc.compiler.losses.text import parse_composed

LOSSES: Final[tuple[type[Loss], ...]] = (
    CrossEntropyCount,
    CrossEntropyRate,
    CrossEntropyMeanMembrane,
    CrossEntropyMaxMembrane,
    MeanSquaredCount,
)
"""Losses with their own name; each can be created without arguments."""

_COMPOSED: Final = re.compile(r"[={*\[]|\s\+\s|:\s*lengths")
"""Pattern that occurs only in the text of composed losses."""
_ALIASES: Final[Mapping[str, str]] = {
    "count": "ce_count",
    "spike_count": "ce_count",
    "rate": "ce_rate",
    "spike_rate": "ce_rate",
    "mean_membrane": "ce_mean_membrane",
    "max_membrane": "ce_max_membrane",
    "mse": "mse_count",
}


def parse_loss(text: str) -> Loss:
    """Return a loss from its name: ``"ce_count"``, ``"mean membrane"``, ``"mse_count:0.8,0.2"``, or from the text of a composed loss.

    Raises
    ------
    UnknownLossError
        The name is unknown, or the numbers do not fit the loss.

    Examples
    --------
    >>> parse_loss("mse_count:0.8,0.2")
    MeanSquaredCount(correct_rate=0.8, incorrect_rate=0.2)
    """
    if _COMPOSED.search(text):
        return parse_composed(text)
    name, _, numbers = text.strip().partition(":")
    key = "_".join(name.lower().replace("-", " ").split()).removesuffix("_loss")
    key = _ALIASES.get(key, key)
    kinds = {kind.name: kind for kind in LOSSES}
    if key not in kinds and not numbers and key.partition("_")[0] in ("ce", "mse", "l1", "l2", "upper", "lower"):
        return parse_composed(key)
    if key not in kinds:
        raise UnknownLossError(f"the loss {text!r} is unknown; use {', '.join(kinds)} (or {', '.join(_ALIASES)}).")
    if not numbers:
        return kinds[key]()
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        raise UnknownLossError(f"the loss {text!r} has {numbers!r} instead of numbers such as in 'mse_count:0.8,0.2'.") from None
    if kinds[key] is not MeanSquaredCount or len(values) > 2:
        raise UnknownLossError(f"the loss {text!r} has {len(values)} number(s); only 'mse_count' has any: correct rate, incorrect rate.")
    return MeanSquaredCount(*values)
