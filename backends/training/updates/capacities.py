"""Spike capacities (maximum numbers of spikes that a source sends per step) as run-time values, set before each update."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Engine
from snnc.backends.runtime.errors import SpikeLimitError
from snnc.backends.training.schedules import Scheduled, TrainingPosition, parse_schedule, value_at, value_text
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.capacities import (
    Capacities,
    CapacityArgument,
    CapacityTextError,
    Share,
    check_names,
    checked_share,
    parse_capacity,
    source_labels,
    split_capacity,
    split_share,
)
from snnc.compiler.lowering.named_parts import quoted
from snnc.compiler.lowering.spike_limits import LOWEST, POLICIES, DropPolicy, SpikeLimit, choice_key, limited_sources

ScheduledCapacity: TypeAlias = Scheduled | Share | Mapping[str, Scheduled | Share]
"""A number of spikes, a share of a source's neurons, a schedule of either, or one of these for each source, by name; each also as text."""


@dataclass(frozen=True)
class _Entry:
    """Spike capacity of a source at each update: a number of spikes or, if `share`, a percentage of its neurons."""

    value: float | Callable[[int], float]
    share: bool

    @staticmethod
    def of(raw: Any) -> _Entry:
        value, share = split_share(raw)
        if isinstance(value, str):
            return _Entry(parse_schedule(value), share)
        if not callable(value) and not isinstance(value, Real):
            raise CapacityTextError(f"the capacity {raw!r} is not a number, share or schedule.")
        return _Entry(value, share)

    def at(self, when: TrainingPosition, capacity: str) -> float | Share:
        value = value_at(self.value, when) if callable(self.value) else self.value
        return checked_share(value, capacity) if self.share else value

    @property
    def text(self) -> str:
        return value_text(self.value) + (" %" if self.share else "")


@dataclass(frozen=True)
class CapacityPlan:
    """Capacities of a training run: a default (None: no change), and capacities of sources by name."""

    default: _Entry | None
    named: Mapping[str, _Entry]

    @staticmethod
    def of(capacity: ScheduledCapacity) -> CapacityPlan:
        """Parse the argument `capacity` of ``fit``; raise a CapacityTextError or ScheduleError if it is invalid."""
        default, named = split_capacity(capacity)
        return CapacityPlan(None if default is None else _Entry.of(default), {name: _Entry.of(raw) for name, raw in named.items()})

    def at(self, when: TrainingPosition) -> float | Capacities:
        """Return the capacities for the update that follows `when`."""
        default = None if self.default is None else self.default.at(when, self.text)
        if not self.named and default is not None and not isinstance(default, Share):
            return default
        return Capacities(default, tuple((name, entry.at(when, self.text)) for name, entry in self.named.items()))

    @property
    def text(self) -> str:
        """The text stored in a checkpoint."""
        parts = [] if self.default is None else [self.default.text]
        return "; ".join([*parts, *(f"{quoted(name)}={entry.text}" for name, entry in self.named.items())])


@dataclass(frozen=True)
class _Source:
    """A source with a spike limit: its buffer, label, number of neurons (`width`) and compiled capacity (`largest`).

    `capacity` and `key` name the parameters for the run-time capacity and for the random choice.
    """

    buffer: str
    label: str
    width: int
    largest: int
    capacity: str
    key: str


class SpikeLimits:
    """Limits on the number of spikes that each source of a loaded engine sends per step, and the policy that selects these spikes."""

    def __init__(self, program: StepProgram, engine: Engine) -> None:
        self.seed = 0
        """Seed of the random choice; the session may set another."""
        self._engine = engine
        labels, value = source_labels(program), {name: float(p.value) for name, p in program.parameters.items() if p.value.ndim == 0}
        self._sources = tuple(
            _Source(s.buffer, labels[s.buffer], size(program.buffers[s.buffer].shape), int(value[s.capacity]), s.capacity, s.key)
            for s in limited_sources(program).values()
        )
        self._update = 0
        self._now = {s.buffer: s.largest for s in self._sources}
        """Current capacity of each source, by buffer."""
        self.policy: DropPolicy | None = None
        """Policy that selects the sent spikes; None if the program sends all, or if the policy is fixed at compilation."""
        if self._sources:
            self.policy = "lowest" if value[self._sources[0].key] == LOWEST else "random"

    @property
    def capacity(self) -> int | dict[str, int] | None:
        """Maximum number of sent spikes: one number if it is the same for all sources, else by name. None if the policy is None."""
        numbers = set(self._now.values())
        return numbers.pop() if len(numbers) == 1 else {s.label: self._now[s.buffer] for s in self._sources} or None

    def set(
        self, capacity: CapacityArgument | Capacities | None = None, policy: DropPolicy | None = None, update: int | None = None
    ) -> None:
        """Set the maximum number of sent spikes, the policy, and the update number that seeds the random choice; None: no change.

        One capacity for all sources is reduced to each source's compiled capacity. The capacity of a named source must not exceed the
        compiled one. Raises a SpikeLimitError if the program has no limits, or a value is out of range, and a CapacityTextError if a text
        is invalid, or names a source that has no limit.
        """
        if self.policy is None:
            raise SpikeLimitError(
                "the program has no capacity that a run can change; compile with mode='drop' and the largest capacity that a run needs."
            )
        wanted = self._now if capacity is None else self._capacities(capacity)
        chosen = self.policy if policy is None else policy
        if chosen not in POLICIES:
            raise SpikeLimitError(f"drop is {chosen!r}; it must be one of {', '.join(POLICIES)}.")
        update = self._update if update is None else update
        if (wanted, chosen) == (self._now, self.policy) and (update == self._update or chosen == "lowest"):
            self._update = update
            return
        values = dict[str, float]()
        for source in self._sources:
            values[source.capacity] = float(wanted[source.buffer])
            values[source.key] = choice_key(SpikeLimit(wanted[source.buffer], chosen, self.seed), source.buffer, update)
        self._engine.set_parameters({name: np.array(value, dtype=np.float32) for name, value in values.items()})
        self._now, self.policy, self._update = wanted, chosen, update

    def use_first_choice(self) -> None:
        """Use the random choice of update 0, so that results outside of training do not depend on the number of updates."""
        if self._update and self.policy == "random":
            self.set(update=0)

    def _capacities(self, capacity: CapacityArgument | Capacities) -> dict[str, int]:
        parsed = capacity if isinstance(capacity, Real) else parse_capacity(capacity)
        wanted = parsed if isinstance(parsed, Capacities) else Capacities(_rounded(parsed, self._largest))
        check_names(wanted, [s.label for s in self._sources])
        named, numbers = dict(wanted.named), dict[str, int]()
        for source in self._sources:
            number = _spikes(wanted, source)
            if number is None:
                numbers[source.buffer] = self._now[source.buffer]
            elif source.label in named:
                numbers[source.buffer] = _rounded(number, source.largest, f" of {source.label!r}")
            else:
                largest = max(self._largest, source.width)
                numbers[source.buffer] = min(_rounded(number, largest, largest_name="the number of neurons"), source.largest)
        return numbers

    @property
    def _largest(self) -> int:
        return max(s.largest for s in self._sources)


def _spikes(wanted: Capacities, source: _Source) -> float | None:
    """Return the capacity of a source, by its name or the default; None if neither is given."""
    amount = dict(wanted.named).get(source.label, wanted.default)
    return amount.of(source.width) if isinstance(amount, Share) else amount


def _rounded(value: Any, largest: int, source: str = "", largest_name: str = "the compiled capacity") -> int:
    """Return `value` rounded to a number of spikes; raise a SpikeLimitError unless it is from 1 to `largest`."""
    number = round(float(value)) if not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value) else 0
    if not 1 <= number <= largest:
        raise SpikeLimitError(f"the capacity{source} is {value!r}; it must be a number from 1 to {largest_name}, {largest}.")
    return number
