"""Limits on the spikes that a source sends per step: a number, a share of its neurons, or one of these for each source by name.

As text, parts end with semicolons, and a part with a name is for that source alone: ``"64"``, ``"5 %"``, ``"5 %; hidden=20; x=1 %"``.
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


class CapacityTextError(SnncError):
    """A capacity is neither a number nor a share, or names a source that the network does not have."""

    code = "SNNC-E600"


@dataclass(frozen=True)
class Share:
    """A part of the neurons of a source, in percent.

    Attributes
    ----------
    percent
        Above 0, at most 100; during training also a schedule or another function of the update.
    """

    percent: Any

    def of(self, width: int) -> int:
        """Return the spikes of a source of `width` neurons, at least one; halves are rounded up."""
        return max(1, math.floor(width * float(self.percent) / 100 + 0.5))


Amount: TypeAlias = float | Share
CapacityArgument: TypeAlias = float | str | Share | Mapping[str, float | str | Share]
"""A number, a share, text, or one of these for each source by name; the name ``"*"`` stands for all others."""
OTHERS: Final = "*"
_FORMS: Final = "a number of spikes, a share, or one of them by name: '64', '5 %', '5 %; hidden=20'"
_PART: Final = re.compile(r" part \d+$")
"""Suffix that a mapping adds to the name of a population that it cuts into parts."""


@dataclass(frozen=True)
class Capacities:
    """Maximum number of spikes that each source sends per step.

    Attributes
    ----------
    default
        For all sources without a number of their own; None: these send all spikes.
    named
        For the inputs and populations with these names.
    """

    default: Amount | None
    named: tuple[tuple[str, Amount], ...] = ()

    def of(self, label: str, width: int) -> int | None:
        """Return the limit of a source; None: it sends all spikes."""
        names = dict(self.named)
        amount = names.get(label, names.get(_PART.sub("", label), self.default))
        return amount.of(width) if isinstance(amount, Share) else None if amount is None else int(amount)

    @property
    def least(self) -> int:
        """The smallest of its limits; 1 without limits."""
        return int(min((a for a in (self.default, *dict(self.named).values()) if a is not None and not isinstance(a, Share)), default=1))

    @property
    def text(self) -> str:
        """The text that :func:`parse_capacity` reads."""
        parts = [] if self.default is None else [_text(self.default)]
        return "; ".join([*parts, *(f"{name}={_text(amount)}" for name, amount in self.named)])

    def __str__(self) -> str:
        return self.text


def parse_capacity(given: CapacityArgument | Capacities | None) -> int | Capacities | None:
    """Read a capacity; one number for all sources is returned as a number.

    Raises
    ------
    CapacityTextError
        It cannot be read, or a share is not between 0 and 100 %.

    Examples
    --------
    >>> parse_capacity("5 %; hidden=20").of("hidden", 100), parse_capacity("5 %").of("hidden", 100)
    (20, 5)
    """
    if given is None or isinstance(given, Capacities):
        return given
    default, named = split_capacity(given)
    amounts = {name: _amount(raw, given) for name, raw in named.items()}
    whole = None if default is None else _amount(default, given)
    if not amounts and isinstance(whole, int):
        return whole
    return Capacities(whole, tuple(amounts.items()))


def split_capacity(given: Any) -> tuple[Any, dict[str, Any]]:
    """Return the capacity of all other sources (None if it is not given), and those of single sources by name.

    Raises
    ------
    CapacityTextError
        It is empty, gives a source twice, or has an empty name.
    """
    if isinstance(given, Mapping):
        named = {str(name): value for name, value in given.items()}
        default = named.pop(OTHERS, None)
    elif isinstance(given, str):
        default, named = None, {}
        for part in filter(None, (part.strip() for part in given.split(";"))):
            name, equals, value = part.partition("=")
            # The numbers of a schedule have names too: linear:64,14,epochs=10.
            own = name.strip() if equals and ":" not in name else OTHERS
            if own in named or (own == OTHERS and default is not None):
                raise CapacityTextError(f"the capacity {given!r} gives two numbers for {own!r}; leave one of them out.")
            if own == OTHERS:
                default = value.strip() if equals and ":" not in name else part
            else:
                named[own] = value.strip()
    else:
        return given, {}
    if (default is None and not named) or "" in named:
        raise CapacityTextError(f"the capacity {given!r} says nothing; give {_FORMS}.")
    return default, named


def split_share(raw: Any) -> tuple[Any, bool]:
    """Return the number, text or function of an amount, and whether it is in percent."""
    if isinstance(raw, Share):
        return raw.percent, True
    if isinstance(raw, str) and raw.rstrip().endswith("%"):
        return raw.rstrip().removesuffix("%").strip(), True
    return raw, False


def checked_share(percent: Any, given: object) -> Share:
    """Return a share.

    Raises
    ------
    CapacityTextError
        It is not a number above 0 and at most 100.
    """
    if isinstance(percent, bool) or not isinstance(percent, Real) or not 0 < float(percent) <= 100:
        raise CapacityTextError(f"the capacity {given!r} has a share of {percent} %; give one above 0 and at most 100 %.")
    return Share(float(percent))


def _amount(raw: Any, given: object) -> int | Share:
    value, share = split_share(raw)
    if isinstance(value, str):
        try:
            value = float(value) if share or not re.fullmatch(r"[+-]?\d+", value) else int(value)
        except ValueError:
            value = None
    if share and isinstance(value, Real):
        return checked_share(value, given)
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not number.is_integer():
        raise CapacityTextError(f"the capacity {given!r} cannot be read; give {_FORMS}.")
    return int(number)


def _text(amount: Amount) -> str:
    return f"{amount.percent:g} %" if isinstance(amount, Share) else f"{amount:g}" if amount != int(amount) else str(int(amount))


def source_labels(program: StepProgram) -> dict[str, str]:
    """Return the author's name of the input or population that fills each buffer."""
    populations = {p.id: p.label for p in program.populations}
    steps = [op for op in program.forward if isinstance(op, NeuronStep)]
    return {f"{i.id}_in": i.label for i in program.inputs} | {o: populations[op.population] for op in steps for o in op.outputs}


def check_names(capacity: int | Capacities | None, labels: Iterable[str]) -> None:
    """Raise an error for a name that no source has.

    Raises
    ------
    CapacityTextError
        No source has one of the names; the message lists those that exist.
    """
    known = list(dict.fromkeys(labels))
    for name, _ in capacity.named if isinstance(capacity, Capacities) else ():
        if name not in known:
            raise CapacityTextError(f"the capacity names {name!r}, which sends no spikes; those that do are {', '.join(known) or 'none'}.")
