"""Schedules as text, for the command line and recipes: ``cosine:0.1,0.001,epochs=20``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeAlias

from snnc.backends.training.schedules.base import Schedule, ScheduleError
from snnc.backends.training.schedules.combined import ByEpoch, WarmUp
from snnc.backends.training.schedules.curves import ConstantSchedule, Cosine, Exponential, LinearSchedule, OneCycle, StepSchedule
from snnc.backends.training.schedules.plateau import Plateau

_NAMES: Final[dict[str, type[Schedule]]] = {
    "constant": ConstantSchedule,
    "linear": LinearSchedule,
    "steps": StepSchedule,
    "cosine": Cosine,
    "exponential": Exponential,
    "one_cycle": OneCycle,
    "plateau": Plateau,
}
Scheduled: TypeAlias = float | str | Callable[[int], float]
"""A number, a schedule, another function of the number of updates, or the text of a schedule."""
_WARM_UP: Final = "warm_up"
_BY_EPOCH: Final = "by_epoch:"
FORMS: Final = (
    "0.1; constant:0.1; linear:0.1,0.001,epochs=20; steps:0.1,factor=0.1,epochs=30/60; cosine:0.1,0,updates=1000; exponential:0.1,0,0.9; "
    "one_cycle:0.1,epochs=20; plateau:0.1,patience=5; warm_up:epochs=2+cosine:0.1,epochs=18; by_epoch:linear:0.1,0,updates=20"
)
"""An example of each form."""


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text describes: its name, the numbers in the order of its arguments, and ``argument=value``.

    Examples
    --------
    >>> parse_schedule("linear:0.1,0.01,updates=10")(5)
    0.055
    >>> parse_schedule("warm_up:updates=2+constant:0.5")(1)
    0.25

    Raises
    ------
    ScheduleError
        The text does not describe a schedule.
    """
    stripped = text.strip()
    if stripped.startswith(_BY_EPOCH):
        return ByEpoch(parse_schedule(stripped.removeprefix(_BY_EPOCH)))
    number = _number(stripped)
    if isinstance(number, int | float) and not isinstance(number, bool):
        return ConstantSchedule(number)
    name, _, rest = stripped.partition(":")
    if name == _WARM_UP:
        arguments, plus, then = rest.partition("+")
        if not plus:
            raise ScheduleError(f"the schedule {text!r} lacks the schedule after '+'; try warm_up:epochs=2+cosine:0.1,epochs=18.")
        return _created(WarmUp, arguments, text, then=parse_schedule(then))
    if name not in _NAMES:
        raise ScheduleError(f"{text!r} is not a schedule; examples are {FORMS}.")
    return _created(_NAMES[name], rest, text)


def schedule_text(schedule: Callable[[int], float]) -> str | None:
    """Return the text from which :func:`parse_schedule` creates this schedule; None for other functions."""
    if isinstance(schedule, ByEpoch):
        inner = schedule_text(schedule.then)
        return None if inner is None else f"{_BY_EPOCH}{inner}"
    if isinstance(schedule, WarmUp):
        inner = schedule_text(schedule.then) if callable(schedule.then) else repr(float(schedule.then))
        return None if inner is None else f"{_WARM_UP}:{_arguments(schedule, 'then')}+{inner}"
    for name, kind in _NAMES.items():
        if type(schedule) is kind:
            return f"{name}:{_arguments(schedule)}"
    return None


FUNCTION: Final = "function"
"""Text stored in a checkpoint for a function that is not a schedule."""


def value_text(value: Scheduled) -> str:
    """Return the text of a scheduled value in a checkpoint: a number, the text of a schedule, or :data:`FUNCTION`."""
    return (schedule_text(value) or FUNCTION) if callable(value) else repr(float(value))


def _created(kind: type[Schedule], arguments: str, text: str, **others: Any) -> Schedule:
    """Create a schedule from its arguments; messages quote `text`, from which it is parsed."""
    known = _fields(kind, *others)
    values: dict[str, Any] = {}
    for position, part in enumerate(re.split(r"\s*,\s*", arguments.strip()) if arguments.strip() else []):
        name, equals, value = part.rpartition("=")
        if not equals and position >= len(known):
            raise ScheduleError(f"the schedule {text!r} has too many numbers; its arguments are {', '.join(known)}.")
        name = name.strip() or list(known)[position]
        if name not in known:
            raise ScheduleError(f"the schedule {text!r} has no argument {name!r}; its arguments are {', '.join(known)}.")
        if name in values:
            raise ScheduleError(f"the schedule {text!r} gives {name} twice.")
        values[name] = _value(known[name], value.strip())
    missing = [name for name, field in known.items() if name not in values and field.default is MISSING]
    if missing:
        raise ScheduleError(f"the schedule {text!r} lacks {', '.join(missing)}; examples are {FORMS}.")
    return kind(**values, **others)


def _fields(kind: type[Schedule], *left_out: str) -> dict[str, Field[Any]]:
    """Return the arguments of a schedule, positional ones first."""
    chosen = [field for field in fields(kind) if field.name not in left_out]  # type: ignore[arg-type]  # every schedule is a dataclass
    return {field.name: field for field in sorted(chosen, key=lambda field: bool(field.kw_only))}


def _value(field: Field[Any], text: str) -> Any:
    if "Sequence" in str(field.type):
        return [_number(part) for part in text.split("/")]
    return _number(text)


def _number(text: str) -> int | float | bool | str:
    """Return the number or Boolean that a text contains, else the text; the schedule checks it."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _arguments(schedule: Schedule, *left_out: str) -> str:
    """Return the text of all arguments that have no default or differ from it."""
    parts = []
    for name, field in _fields(type(schedule), *left_out).items():
        value = getattr(schedule, name)
        if field.default is MISSING or value != field.default:
            parts.append(f"{name}={_text(value)}")
    return ",".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "/".join(map(_text, value))
    return value if isinstance(value, str) else repr(value if isinstance(value, int) else float(value))
