"""Capacities: the maximum number of spikes of a source in one window or, in mode ``drop``, in a step.

It is a number, a share of the source's neurons, or one of these for each source. In text, semicolons separate parts, and a part with a name
applies to that source: ``"64"``, ``"5 %"``, ``"5 %; hidden=20; x=1 %"``. A name that contains ``;``, ``=`` or ``:`` is
written in quotes: ``'"a;b"=20'``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, TypeAlias

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.named_parts import named_parts, quoted


class CapacityTextError(SnncError, code="SNNC-E600"):
    """A capacity is neither a number nor a share, or is set for a source that the network does not have."""


@dataclass(frozen=True)
class Share:
    """A part of the neurons of a source, in percent.

    Attributes
    ----------
    percent
        Number above 0 and up to 100; in training also a schedule, or a function of the number of the update.
    """

    percent: Any

    def of(self, width: int) -> int:
        """Return the number of spikes for `width` neurons, at least 1, rounded half up."""
        return max(1, math.floor(width * float(self.percent) / 100 + 0.5))


Amount: TypeAlias = float | Share
CapacityArgument: TypeAlias = float | str | Share | Mapping[str, float | str | Share]
"""A number, a share, text, or one of these by name of the source; the name ``"*"`` means all other sources."""
OTHERS: Final = "*"
_QUOTES: Final = "names with ; = : in quotes: '\"a;b\"=20'"
_FORMS: Final = f"a number of spikes, a share, or one of these by name: '64', '5 %', '5 %; hidden=20', {_QUOTES}"
_PART: Final = re.compile(r" part \d+$")
"""Suffix added to the name of a population that the mapping cuts into parts."""


@dataclass(frozen=True)
class Capacities:
    """Maximum number of spikes of each source in one window or, in mode ``drop``, in a step."""

    default: Amount | None  # limit of all sources without their own; None: these have no limit (the mapper may choose one)
    named: tuple[tuple[str, Amount], ...] = ()  # limits of inputs and populations, by name

    def of(self, label: str, width: int) -> int | None:
        """Return the limit of the source `label`; None: it has none."""
        names = dict(self.named)
        amount = names.get(label, names.get(_PART.sub("", label), self.default))
        return amount.of(width) if isinstance(amount, Share) else None if amount is None else int(amount)

    @property
    def least(self) -> int:
        """Smallest limit that is a number of spikes, not a share; 1 if there is none."""
        return int(min((a for a in (self.default, *dict(self.named).values()) if a is not None and not isinstance(a, Share)), default=1))

    @property
    def text(self) -> str:
        """The text from which :func:`parse_capacity` returns these limits."""
        parts = [] if self.default is None else [_text(self.default)]
        return "; ".join([*parts, *(f"{quoted(name)}={_text(amount)}" for name, amount in self.named)])

    def __str__(self) -> str:
        return self.text


def parse_capacity(capacity: CapacityArgument | Capacities | None) -> int | Capacities | None:
    """Parse a capacity; a single number for all sources is returned as a number. Faults raise a CapacityTextError.

    Examples
    --------
    >>> parse_capacity("5 %; hidden=20").of("hidden", 100), parse_capacity("5 %").of("hidden", 100)
    (20, 5)
    """
    if capacity is None or isinstance(capacity, Capacities):
        return capacity
    default, named = split_capacity(capacity)
    amounts = {name: _amount(raw, capacity) for name, raw in named.items()}
    amount = None if default is None else _amount(default, capacity)
    if not amounts and isinstance(amount, int):
        return amount
    return Capacities(amount, tuple(amounts.items()))


def split_capacity(capacity: Any) -> tuple[Any, dict[str, Any]]:
    """Return the capacity of all unnamed sources (None if it is not set), and the capacities of named sources.

    A capacity that is empty, has two values for a source, or an empty name, raises a CapacityTextError.
    """
    if isinstance(capacity, Mapping):
        named = {str(name): value for name, value in capacity.items()}
        default = named.pop(OTHERS, None)
    elif isinstance(capacity, str):
        default, named = None, {}
        for quoted_name, part in named_parts(capacity):
            source, value = (quoted_name, part) if quoted_name is not None else _named(part)
            if source in named:
                raise CapacityTextError(f"the capacity {capacity!r} has two values for {source!r}; remove one of them.")
            if source == OTHERS and default is not None:
                raise CapacityTextError(
                    f"the capacity {capacity!r} has two values without a name, {default!r} and {value!r}; remove one of them, or write a "
                    "name with ; = : in quotes: '\"a;b\"=20'."
                )
            if source == OTHERS:
                default = value
            else:
                named[source] = value
    else:
        return capacity, {}
    if (default is None and not named) or "" in named:
        raise CapacityTextError(f"the capacity {capacity!r} is empty; give {_FORMS}.")
    return default, named


def _named(part: str) -> tuple[str, str]:
    """Return the name and the value of a part whose name, if it has one, is not in quotes."""
    name, equals, value = part.partition("=")
    # Arguments of a schedule may contain "=" as well: linear:64,14,epochs=10.
    return (name.strip(), value.strip()) if equals and ":" not in name else (OTHERS, part)


def split_share(raw: Any) -> tuple[Any, bool]:
    """Return the number, text or function of an amount, and whether it is in percent."""
    if isinstance(raw, Share):
        return raw.percent, True
    if isinstance(raw, str) and raw.rstrip().endswith("%"):
        return raw.rstrip().removesuffix("%").strip(), True
    return raw, False


def checked_share(percent: Any, capacity: object) -> Share:
    """Return `percent` as a share, or raise a CapacityTextError that quotes `capacity`, of which it is a part.

    A share is a number above 0 and up to 100.
    """
    if isinstance(percent, bool) or not isinstance(percent, Real) or not 0 < float(percent) <= 100:
        raise CapacityTextError(f"the capacity {capacity!r} has a share of {percent} %; give one above 0 and up to 100 %.")
    return Share(float(percent))


def _amount(raw: Any, capacity: object) -> int | Share:
    """Return a number of spikes or a share; messages quote `capacity`, of which it is a part."""
    value, share = split_share(raw)
    if isinstance(value, str):
        try:
            value = float(value) if share or not re.fullmatch(r"[+-]?\d+", value) else int(value)
        except ValueError:
            value = None
    if share and isinstance(value, Real):
        return checked_share(value, capacity)
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not number.is_integer():
        raise CapacityTextError(f"the capacity {capacity!r} cannot be read; give {_FORMS}.")
    return int(number)


def _text(amount: Amount) -> str:
    return f"{amount.percent:g} %" if isinstance(amount, Share) else f"{amount:g}" if amount != int(amount) else str(int(amount))


def source_labels(program: StepProgram) -> dict[str, str]:
    """Return, for each buffer that an input or a population writes, the name of this input or population in the model."""
    populations = {p.id: p.label for p in program.populations}
    steps = [op for op in program.forward if isinstance(op, NeuronStep)]
    return {f"{i.id}_in": i.label for i in program.inputs} | {o: populations[op.population] for op in steps for o in op.outputs}


def check_names(capacity: int | Capacities | None, labels: Iterable[str]) -> None:
    """Raise a CapacityTextError for a name of a capacity that is not the name of a source."""
    known = list(dict.fromkeys(labels))
    for name, _ in capacity.named if isinstance(capacity, Capacities) else ():
        if name not in known:
            sources = ", ".join(known) or "none"
            raise CapacityTextError(f"the capacity is set for {name!r}, which sends no spikes; sources of spikes are {sources}.")
