"""Composed losses as text: in the syntax of the command line, and as JSON for project files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.named_terms import compared_term, key_of, regulariser
from snnc.compiler.losses.term import Term

_PART: Final = re.compile(r"(?:([0-9.eE+-]+)\s*\*\s*)?(\w[\w -]*?)(?:\[(.*)\])?(?::([^\[\]]*))?", re.DOTALL)
"""A term in text: factor, name, equation in brackets, options."""
_WHOLE: Final[Mapping[str, Callable[[str], Any]]] = {
    "classes": int,
    "targets": str,
    "lengths": lambda text: {"": True, "true": True, "false": False}[text.lower()],
}
"""Options of the whole loss, with their parsers."""
_OWN: Final[Mapping[str, Callable[[str], Any]]] = {
    "of": str,
    "on": float,
    "off": float,
    "inverse": str,
    "statistic": str,
    "port": str,
    "bound": float,
}
"""Options of a term, with their parsers."""


def parse_composed(text: str) -> Composed:
    """Parse a sum of terms, or the JSON text of :func:`data_text`.

    Examples: ``"ce_count:classes=10 + 0.1*l2_rate:of=hidden"``, ``"equation[abs(x - y)]:statistic=last,targets=values"``.

    Raises
    ------
    UnknownLossError
        A part of the text is not a valid term.
    """
    if text.lstrip().startswith("{"):
        return from_data_text(text)
    parts = [_part(part.strip()) for part in re.split(r"\s\+\s(?![^\[]*\])", text)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def _part(text: str) -> Composed:
    """Return the loss described by one part of a sum: an optional factor, a name, and options."""
    found = _PART.fullmatch(text)
    if found is None:
        raise UnknownLossError(f"the loss {text!r} cannot be read; give a name with options, such as 'ce_count:classes=10'.")
    factor, name, equation, options = found.groups()
    own, whole = _options(text, options or "")
    key = key_of(name).removesuffix("_loss")
    term = _term(text, key, equation, own)
    try:
        return Composed((term,), **whole) * (1.0 if factor is None else float(factor))
    except ValueError:
        raise UnknownLossError(f"{factor!r} is not a factor of a loss: {text!r}.") from None


def _term(text: str, key: str, equation: str | None, own: dict[str, Any]) -> Term:
    """Return the term with the name `key` and the options `own`; `text` is quoted in messages."""
    try:
        if key == "equation":
            if equation is None:
                raise UnknownLossError(f"the loss {text!r} has no equation; give one, as in 'equation[abs(x - y)]:statistic=mean'.")
            return Term(own.pop("statistic", "mean"), equation, **own)
        if equation is not None:
            raise UnknownLossError(f"the loss {text!r} has an equation in brackets; only 'equation[…]' may have one.")
        criterion, _, of = key.partition("_")
        if criterion in ("ce", "mse"):
            return compared_term(criterion, "membrane" if of == "steps" else of, **own)
        return regulariser(key, **own)
    except TypeError:
        raise UnknownLossError(f"the loss {text!r} has an option that {key!r} does not have.") from None


def _options(text: str, options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the term, and those of the whole loss."""
    of_term: dict[str, Any] = {}
    of_loss: dict[str, Any] = {}
    for option in filter(None, map(str.strip, options.split(","))):
        name, _, value = map(str.strip, option.partition("="))
        read = _WHOLE.get(name) or _OWN.get(name)
        if read is None:
            raise UnknownLossError(f"the loss {text!r} has the unknown option {name!r}; known options are {', '.join([*_OWN, *_WHOLE])}.")
        try:
            (of_loss if name in _WHOLE else of_term)[name] = read(value)
        except (ValueError, KeyError):
            raise UnknownLossError(f"the loss {text!r} has the invalid value {value!r} of {name}.") from None
    return of_term, of_loss


def data_text(loss: Composed) -> str:
    """Return the text for project files: JSON of all fields that differ from the defaults."""
    terms = [_differing(term, Term("mean")) | {"statistic": term.statistic, "criterion": term.criterion} for term in loss.terms]
    whole = _differing(loss, Composed(loss.terms))
    return json.dumps({**whole, "terms": terms}, sort_keys=True)


def _differing(value: Any, default: Any) -> dict[str, Any]:
    return {name: found for name, found in asdict(value).items() if name != "terms" and found != getattr(default, name)}


def from_data_text(text: str) -> Composed:
    """Return the loss from the result of :func:`data_text`.

    Raises
    ------
    UnknownLossError
        The text is invalid.
    """
    try:
        data = json.loads(text)
        terms = tuple(Term(**term) for term in data.pop("terms"))
        slices = tuple((int(first), int(stop)) for first, stop in data.pop("slices", ()))
        return Composed(terms, slices=slices, **data)
    except UnknownLossError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise UnknownLossError(f"the loss {text[:80]!r} is damaged.") from None
