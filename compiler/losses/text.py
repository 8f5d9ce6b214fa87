"""Losses as text: in the syntax of the command line and of configuration files, and as JSON for project files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.named_losses import LOSSES, MeanSquaredCount
from snnc.compiler.losses.named_terms import compared_term, key_of, regulariser
from snnc.compiler.losses.term import Term

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

_PART: Final = re.compile(r"(?:([0-9.eE+-]+)\s*\*\s*)?(\w[\w -]*?)(?:\[(.*)\])?(?::([^\[\]]*))?", re.DOTALL)
"""A term in text: factor, name, equation in brackets, options."""
_LOSS_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "classes": int,
    "targets": str,
    "lengths": lambda text: {"": True, "true": True, "false": False}[text.lower()],
}
"""Options of the whole loss, with their parsers."""
_TERM_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "of": str,
    "on": float,
    "off": float,
    "inverse": str,
    "statistic": str,
    "port": str,
    "bound": float,
}
"""Options of a term, with their parsers."""


def parse_loss(text: str) -> Loss:
    """Return a loss from its name: ``"ce_count"``, ``"mean membrane"``, ``"mse_count:0.8,0.2"``, or from the text of a composed loss.

    Any other text raises an UnknownLossError.

    Examples
    --------
    >>> parse_loss("mse_count:0.8,0.2")
    MeanSquaredCount(correct_rate=0.8, incorrect_rate=0.2)
    """
    if _COMPOSED.search(text):
        return _parse_composed(text)
    name, _, numbers = text.strip().partition(":")
    key = key_of(name).removesuffix("_loss")
    key = _ALIASES.get(key, key)
    kinds = {kind.name: kind for kind in LOSSES}
    if key not in kinds and not numbers and key.partition("_")[0] in ("ce", "mse", "l1", "l2", "upper", "lower"):
        return _parse_composed(key)
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


def _parse_composed(text: str) -> Composed:
    """Parse a sum of terms, or the JSON text of :func:`data_text`.

    Examples: ``"ce_count:classes=10 + 0.1*l2_rate:of=hidden"``, ``"equation[abs(x - y)]:statistic=last,targets=values"``.
    """
    if text.lstrip().startswith("{"):
        return from_data_text(text)
    first, *others = (_part(part.strip()) for part in re.split(r"\s\+\s(?![^\[]*\])", text))
    return sum(others, first)


def _part(text: str) -> Composed:
    """Return the loss described by one part of a sum: an optional factor, a name, and options."""
    match = _PART.fullmatch(text)
    if match is None:
        raise UnknownLossError(f"the loss {text!r} cannot be read; give a name with options, such as 'ce_count:classes=10'.")
    factor, name, equation, options = match.groups()
    term_options, loss_options = _options(text, options or "")
    key = key_of(name).removesuffix("_loss")
    term = _term_of(text, key, equation, term_options)
    try:
        return Composed((term,), **loss_options) * (1.0 if factor is None else float(factor))
    except ValueError:
        raise UnknownLossError(f"{factor!r} is not a factor of a loss: {text!r}.") from None


def _term_of(text: str, key: str, equation: str | None, options: dict[str, Any]) -> Term:
    try:
        if key == "equation":
            if equation is None:
                raise UnknownLossError(f"the loss {text!r} has no equation; give one, as in 'equation[abs(x - y)]:statistic=mean'.")
            return Term(options.pop("statistic", "mean"), equation, **options)
        if equation is not None:
            raise UnknownLossError(f"the loss {text!r} has an equation in brackets; only 'equation[…]' may have one.")
        criterion, _, of = key.partition("_")
        if criterion in ("ce", "mse"):
            return compared_term(criterion, "membrane" if of == "steps" else of, **options)
        return regulariser(key, **options)
    except TypeError:
        raise UnknownLossError(f"the loss {text!r} has an option that {key!r} does not have.") from None


def _options(text: str, options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    of_term: dict[str, Any] = {}
    of_loss: dict[str, Any] = {}
    for option in filter(None, map(str.strip, options.split(","))):
        name, _, value = map(str.strip, option.partition("="))
        parse = _LOSS_OPTIONS.get(name) or _TERM_OPTIONS.get(name)
        if parse is None:
            known = ", ".join([*_TERM_OPTIONS, *_LOSS_OPTIONS])
            raise UnknownLossError(f"the loss {text!r} has the unknown option {name!r}; known options are {known}.")
        try:
            (of_loss if name in _LOSS_OPTIONS else of_term)[name] = parse(value)
        except (ValueError, KeyError):
            raise UnknownLossError(f"the loss {text!r} has the invalid value {value!r} of {name}.") from None
    return of_term, of_loss


def data_text(loss: Composed) -> str:
    """Return a loss as text for project files: JSON of its terms, without fields that have their defaults."""
    terms = [_differing(term, Term("mean")) | {"statistic": term.statistic, "criterion": term.criterion} for term in loss.terms]
    loss_fields = _differing(loss, Composed(loss.terms))
    return json.dumps({**loss_fields, "terms": terms}, sort_keys=True)


def _differing(value: Any, default: Any) -> dict[str, Any]:
    return {name: field for name, field in asdict(value).items() if name != "terms" and field != getattr(default, name)}


def from_data_text(text: str) -> Composed:
    """Return the loss from the result of :func:`data_text`; an invalid text raises an UnknownLossError."""
    try:
        data = json.loads(text)
        terms = tuple(Term(**term) for term in data.pop("terms"))
        slices = tuple((int(first), int(stop)) for first, stop in data.pop("slices", ()))
        return Composed(terms, slices=slices, **data)
    except UnknownLossError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise UnknownLossError(f"the loss {text[:80]!r} is damaged.") from None
