"""Dataclasses as plain data (JSON types) and back, by the types of their fields.

Data are not trusted: every value is checked against the type of its field, and an unknown or missing field is an error. A field whose
metadata contain ``optional`` is omitted if it is False, 0, empty or None. An object of a union also has its class, ``"is"``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from snnc.compiler.errors import GraphDataError
from snnc.compiler.neurons.expression import LOWERED, Assignment, Expression, parse_assignments, parse_expression, to_text

MAX_ENTRIES: Final = 1_000_000
"""Maximum number of entries of a list or an object."""
EQUATIONS: Final = tuple[Assignment, ...]
"""Type of equations, which are stored as text and never evaluated."""
_LARGEST: Final = 2**31
"""Magnitude that whole numbers must be below."""

Convert: TypeAlias = Callable[[Any, Any, str], Any]
"""(type, value, path of the value) -> the converted value, or NotImplemented for a type that needs no special conversion."""


def no_conversion(hint: Any, value: Any, at: str) -> Any:
    """Return NotImplemented: no type needs a special conversion."""
    return NotImplemented


def encoded(hint: Any, value: Any, convert: Convert = no_conversion, at: str = "") -> Any:
    """Return `value`, of type `hint`, as JSON types; `at` is its path, such as ``"parameters.beta"``."""
    origin, args = get_origin(hint), get_args(hint)
    if value is None:
        return None
    if NoneType in args:
        return encoded(_without_none(args), value, convert, at)
    converted = convert(hint, value, at)
    if converted is not NotImplemented:
        return converted
    if hint == EQUATIONS:
        return "\n".join(map(str, value))
    if hint == Expression:
        return to_text(value)
    if _is_union(origin):
        return {"is": type(value).__name__, **encoded_fields(value, convert, at)}
    if is_dataclass(hint):
        return encoded_fields(value, convert, at)
    if origin is tuple:
        hints = [args[0]] * len(value) if args[-1] is ... else args
        return [encoded(h, v, convert, f"{at}.{k}") for k, (h, v) in enumerate(zip(hints, value, strict=True))]
    if isinstance(value, Mapping):
        return {name: encoded(args[1], v, convert, f"{at}.{name}") for name, v in value.items()}
    return sorted(value) if isinstance(value, frozenset) else value.item() if isinstance(value, np.generic) else value


def encoded_fields(value: Any, convert: Convert = no_conversion, at: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass as JSON types."""
    kind: Any = type(value)
    hints, optional = field_types(kind), _optional(kind)
    shown = [name for name in hints if name not in optional or getattr(value, name)]
    return {name: encoded(hints[name], getattr(value, name), convert, f"{at}.{name}" if at else name) for name in shown}


def decoded(hint: Any, value: Any, at: str, convert: Convert = no_conversion, where: Callable[[str], str] = str) -> Any:
    """Return the value of type `hint` from the result of :func:`encoded`.

    `at` is the path of the value, and `where` describes a path in the messages of GraphDataErrors.
    """
    origin, args = get_origin(hint), get_args(hint)
    if NoneType in args:
        return None if value is None else decoded(_without_none(args), value, at, convert, where)
    converted = convert(hint, value, at)
    if converted is not NotImplemented:
        return converted
    if hint == EQUATIONS:
        return parse_assignments(text(value, where(at)), LOWERED)
    if hint == Expression:
        return parse_expression(text(value, where(at)))
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            raise wrong_value(where(at), f"one of {', '.join(map(str, args))}", value)
        return value
    if _is_union(origin):
        kinds = {kind.__name__: kind for kind in args}
        kind = value.get("is") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise wrong_value(where(at), f"one of {', '.join(kinds)}", value)
        return decoded_fields(kinds[kind], {name: v for name, v in value.items() if name != "is"}, at, convert, where)
    if is_dataclass(hint):
        return decoded_fields(hint, value, at, convert, where)
    if origin is tuple:
        rows = json_list(value, where(at))
        hints = [args[0]] * len(rows) if args[-1] is ... else list(args)
        if len(hints) != len(rows):
            raise wrong_value(where(at), f"{len(hints)} values", value)
        return tuple(decoded(h, v, f"{at} {k}", convert, where) for k, (h, v) in enumerate(zip(hints, rows, strict=True)))
    if origin is frozenset:
        return frozenset(text(v, where(at)) for v in json_list(value, where(at)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: decoded(args[1], v, f"{at}.{name}", convert, where) for name, v in json_mapping(value, where(at)).items()}
    return {bool: _truth, int: _integer, float: _number, str: text}[hint](value, where(at))


def decoded_fields(kind: Any, value: Any, at: str, convert: Convert = no_conversion, where: Callable[[str], str] = str) -> Any:
    """Return the dataclass `kind` from the result of :func:`encoded_fields`; see :func:`decoded`."""
    absent = _optional(kind) - set(value if isinstance(value, dict) else ())
    hints = {name: hint for name, hint in field_types(kind).items() if name not in absent}
    values = json_object(value, where(at), hints)
    return kind(**{name: decoded(hint, values[name], f"{name} of {at}" if at else name, convert, where) for name, hint in hints.items()})


@cache
def field_types(kind: Any) -> Mapping[str, Any]:
    """Return the types of the fields of `kind`; NumPy's array alias is not resolved, because its definition differs between versions."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _optional(kind: Any) -> set[str]:
    return {f.name for f in fields(kind) if f.metadata.get("optional")}


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is UnionType


def _without_none(args: tuple[Any, ...]) -> Any:
    inner = tuple(a for a in args if a is not NoneType)
    return inner[0] if len(inner) == 1 else Union[inner]  # noqa: UP007  # of a tuple


def wrong_value(where: str, wanted: str, value: object) -> GraphDataError:
    """Return the error for a value of the wrong type."""
    return GraphDataError(f"the description of the network is wrong: {where} must be {wanted}, but is {repr(value)[:80]}.")


def json_object(value: object, where: str, keys: Collection[str]) -> dict[str, Any]:
    """Return `value` if it is an object with exactly these keys, else raise a GraphDataError."""
    data = json_mapping(value, where)
    if set(data) != set(keys):
        missing, unknown = sorted(set(keys) - set(data)), sorted(set(data) - set(keys))
        what = f"lacks {', '.join(missing)}" if missing else f"contains the unknown {unknown[0][:60]!r}"
        raise GraphDataError(f"the description of the network is wrong: {where} {what}.")
    return data


def json_mapping(value: object, where: str, most: int = MAX_ENTRIES) -> dict[str, Any]:
    """Return `value` if it is an object with at most `most` keys, else raise a GraphDataError."""
    if not isinstance(value, dict) or len(value) > most:
        raise wrong_value(where, f"an object of at most {most:,} entries", value)
    return value


def json_list(value: object, where: str, most: int = MAX_ENTRIES) -> list[Any]:
    """Return `value` if it is a list of at most `most` elements, else raise a GraphDataError."""
    if not isinstance(value, list) or len(value) > most:
        raise wrong_value(where, f"a list of at most {most:,} entries", value)
    return value


def text(value: object, where: str) -> str:
    """Return `value` if it is text that can be encoded (JSON may contain unpaired Unicode surrogates), else raise a GraphDataError."""
    if not isinstance(value, str) or value.encode(errors="ignore").decode() != value:
        raise wrong_value(where, "text", value)
    return value


def natural(value: object, where: str) -> int:
    """Return `value` if it is a whole number of 0 or more, else raise a GraphDataError."""
    number = _integer(value, where)
    if number < 0:
        raise wrong_value(where, "0 or more", value)
    return number


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _LARGEST:
        raise wrong_value(where, f"a whole number below {_LARGEST:,}", value)
    return value


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_value(where, "true or false", value)
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise wrong_value(where, "a finite number", value)
    return float(value)
