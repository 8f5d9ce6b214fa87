"""The contents of every iteration: the events in each sample's windows, and the active populations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Mode
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.network import BusSource, MappedNetwork
from snnc.compiler.tiles.placement.grouping import Floats, Ints
from snnc.compiler.tiles.relays.buses import Bus
from snnc.compiler.tiles.schedule.events import batches, spikes_of, support_of
from snnc.compiler.tiles.schedule.schedule import INPUT_STAGE, TileSchedule

T = TypeVar("T")
MOST: Final = 512
"""Maximum number of iterations considered over all batches; if there are more, this many are chosen at random."""


class Sums:
    """A number for each sample in each iteration, for sums over ranges of samples."""

    def __init__(self, values: Any) -> None:
        """Take [iterations, samples]."""
        whole = np.asarray(values, dtype=np.float64)
        self._before = np.zeros((whole.shape[1] + 1, whole.shape[0]))
        np.cumsum(whole.T, axis=0, out=self._before[1:])

    def over(self, first: Ints, count: Ints) -> Floats:
        """[ranges, iterations]: sums over the samples ``[first, first + count)``."""
        found: Floats = self._before[first + count] - self._before[first]
        return found


@dataclass(frozen=True, eq=False)
class Rounds:
    """Further windows: the iteration (among the chosen ones) and the number of the window of each."""

    iteration: Ints
    window: Ints


class CountedProblem(Protocol):
    """What a timeline reads of a :class:`~snnc.compiler.tiles.problem.MappingProblem`, which has the timeline."""

    @property
    def network(self) -> MappedNetwork:
        """Its sources are counted."""

    @property
    def schedule(self) -> TileSchedule:
        """In which iteration a step is shown."""

    @property
    def steps(self) -> int:
        """T."""

    @property
    def batch(self) -> int:
        """Samples of a step."""

    @property
    def mode(self) -> Mode:
        """What happens to events beyond a window."""

    @property
    def activity(self) -> Mapping[str, float]:
        """Spikes a value and step, by buffer."""

    @property
    def counts(self) -> Mapping[str, Array]:
        """Measured spikes, [steps, samples], by buffer."""

    @property
    def support(self) -> Mapping[str, float]:
        """Neurons that take gradient, a value and step, by buffer."""

    @property
    def support_counts(self) -> Mapping[str, Array]:
        """The same as measured, [steps, samples]."""

    @property
    def windowed_buses(self) -> frozenset[str]:
        """Ids of the buses over which gradients return in windows."""

    def limited(self, *, backward: bool = False) -> tuple[Bus, ...]:
        """Buses whose windows can overflow into further ones."""


class EventTimeline:
    """Counts of a problem by iteration, those of all batches in a row.

    Windows of a bus show the source's step t in iteration ``stage + lag + R t``, forward and backward.
    """

    def __init__(self, problem: CountedProblem) -> None:
        self.problem = problem
        self._memo = Memo()

    @cached_property
    def _batches(self) -> int:
        p = self.problem
        return batches(p.network.sources, p.counts, p.steps, p.batch)

    @property
    def _each(self) -> int:
        return self.problem.schedule.iterations(self.problem.steps)

    @cached_property
    def chosen(self) -> Ints:
        """The considered iterations, counted over all batches."""
        whole = self._batches * self._each
        if whole <= MOST:
            return np.arange(whole)
        return np.sort(np.random.default_rng(0).choice(whole, MOST, replace=False))

    def before(self, iterations: int | None) -> Ints:
        """The chosen ones among the first `iterations` of a sequence."""
        return np.flatnonzero(self.chosen % self._each < (iterations or self._each))

    def spikes(self, source: BusSource) -> Ints:
        """[batches, steps, samples]: events that a source sends."""
        return self._cached("spikes", source.buffer, lambda: self._spikes(source))

    def _spikes(self, source: BusSource) -> Ints:
        p = self.problem
        rate = p.activity.get(source.buffer, 0.0)
        return spikes_of(source, rate, p.counts.get(source.buffer), (self._batches, p.steps, p.batch))

    def support(self, source: BusSource) -> Ints:
        """[batches, steps, samples]: neurons of a windowed source that take gradient, with those that spiked."""
        return self._cached("support", source.buffer, lambda: self._support(source))

    def _support(self, source: BusSource) -> Ints:
        p = self.problem
        rates = p.activity.get(source.buffer, 0.0), p.support[source.buffer]
        return support_of(source, rates, p.support_counts.get(source.buffer), self.spikes(source))

    def stored(self, bus: Bus) -> Ints:
        """Spikes of a step that a relay stores: in mode "drop" no more than a window holds."""
        spikes = self.spikes(bus.source)
        return spikes if self.problem.mode == "exact" else np.minimum(spikes, bus.capacity)

    def all_entries(self, bus: Bus) -> Ints:
        """[batches, steps, samples]: entries of a step that the backward pass shows, in one window or several."""
        if bus.id not in self.problem.windowed_buses:
            return self.stored(bus)
        return self.stored(bus) + self.support(bus.source) - self.spikes(bus.source)

    def entries(self, bus: Bus) -> Ints:
        """[batches, steps, samples]: entries in the first backward window."""
        return np.minimum(self.all_entries(bus), self.room(bus, backward=True))

    def room(self, bus: Bus, *, backward: bool) -> int:
        """The contents of a window of a bus."""
        return bus.gradient_capacity if backward and bus.id in self.problem.windowed_buses else bus.capacity

    # ---- in iterations ----

    def first(self, bus: Bus) -> int:
        """The iteration that shows the first step of a bus."""
        return self.problem.schedule.stages.get(bus.source.owner, INPUT_STAGE) + bus.lag

    def placed(self, values: Ints | Floats, first: int) -> Any:
        """[chosen iterations, samples] of [batches, steps, samples] whose step t belongs to the iteration ``first + R t``; else 0."""
        p, found = self.problem, np.zeros((self._batches, self._each, values.shape[2]), dtype=values.dtype)
        where = first + p.schedule.interval * np.arange(p.steps)
        inside = (where >= 0) & (where < self._each)
        found[:, where[inside]] = values[:, inside]
        return found.reshape(-1, values.shape[2])[self.chosen]

    def active(self, first: int, since: int = 0) -> Floats:
        """[chosen iterations]: 1 where ``first + R t`` holds for some step t that is not before `since`."""
        return self._cached("active", f"{first} {since}", lambda: self._active(first, since))

    def _active(self, first: int, since: int) -> Floats:
        steps = np.ones((self._batches, self.problem.steps, 1))
        steps[:, :since] = 0
        found: Floats = self.placed(steps, first)[:, 0]
        return found

    def sums(self, kind: str, bus: Bus, values: Callable[[], Any]) -> Sums:
        """Cache sums over the samples of the result of `values`; `kind` names it."""
        return self._cached(kind, bus.id, lambda: Sums(values()))

    def shown(self, bus: Bus, part: str) -> Sums:
        """Events of the window that the neurons of `part` read: forward the last one of an iteration, backward the first."""
        if part == "backward":
            return self.sums(part, bus, lambda: self.window(bus, backward=True))
        return self.sums(part, bus, lambda: self.window(bus, backward=False, number=self.rounds(backward=False)))

    def window(self, bus: Bus, *, backward: bool, number: Ints | int = 0) -> Ints:
        """[chosen iterations, samples]: spikes that a window of each iteration shows, the first being number 0."""
        room, spikes = self.room(bus, backward=backward), self.placed(self.stored(bus), self.first(bus))
        if bus not in self.problem.limited(backward=backward):
            number = 0
        found: Ints = np.clip(spikes - np.asarray(number).reshape(-1, 1) * room, 0, room)
        return found

    # ---- further windows ----

    def rounds(self, *, backward: bool) -> Ints:
        """[chosen iterations]: windows after the first; the busiest sample of any limited bus decides."""
        return self._cached("rounds", str(backward), lambda: self._rounds(self.problem.limited(backward=backward), backward))

    def _rounds(self, limited: Iterable[Bus], backward: bool) -> Ints:
        found = np.zeros(len(self.chosen), dtype=np.int64)
        for bus in limited:
            all_ = self.all_entries(bus) if backward else self.stored(bus)
            most = self.placed(all_, self.first(bus)).max(axis=1)
            found = np.maximum(found, -(-most // self.room(bus, backward=backward)) - 1)
        return found

    def further_rounds(self, *, backward: bool) -> Rounds:
        """All further rounds considered: backward the windows from 1 on; forward all but the last."""
        return self._cached("further", str(backward), lambda: self._further_rounds(backward))

    def _further_rounds(self, backward: bool) -> Rounds:
        number = self.rounds(backward=backward)
        iteration = np.repeat(np.arange(len(number)), number)
        window = np.arange(len(iteration)) - np.repeat(np.cumsum(number) - number, number)
        return Rounds(iteration, window + backward)

    def in_rounds(self, bus: Bus, rounds: Rounds, *, backward: bool, spikes: bool, later: int = 0) -> Ints:
        """[rounds, samples]: spikes, or all entries, that the windows `later` than those of `rounds` show."""
        room, first = self.room(bus, backward=backward), self.first(bus)
        all_ = self.placed(self.stored(bus) if spikes else self.all_entries(bus), first)[rounds.iteration]
        found: Ints = np.clip(all_ - (rounds.window + later)[:, None] * room, 0, room)
        return found

    def further(self, *, backward: bool) -> float:
        """Expected further windows of a sequence."""
        return float(self.rounds(backward=backward).mean()) * self._each

    def busiest(self, bus: Bus, part: str, samples: Ints) -> Floats:
        """Events per sample shown to the busiest of all blocks with so many `samples` each, averaged over iterations with a step.

        `part` is "forward", "backward" or "entries": spikes, or entries of the first backward window.
        """
        some, place = np.unique(samples, return_inverse=True)
        found = np.array([self._cached(f"busiest {part} {n}", bus.id, partial(self._busiest, bus, part, int(n))) for n in some])
        return found[place].reshape(np.shape(samples))

    def _busiest(self, bus: Bus, part: str, samples: int) -> float:
        first = np.arange(0, self.problem.batch - samples + 1, samples)
        if part == "entries":
            shown = self.sums(part, bus, lambda: self.placed(self.entries(bus), self.first(bus)))
        else:
            shown = self.shown(bus, part)
        of_blocks = shown.over(first, np.full(len(first), samples)).max(axis=0)
        return float(of_blocks.sum() / max(self.active(self.first(bus)).sum(), 1.0)) / samples

    def _cached(self, kind: str, name: str, made: Callable[[], T]) -> T:
        return self._memo.get((kind, name), made)
