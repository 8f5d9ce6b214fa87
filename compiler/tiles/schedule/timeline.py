"""Timeline of events: the contents of each sample's windows in every iteration, and the active populations.

A window is a list of events of one step, with a fixed capacity. Events that do not fit in the first window follow in further windows, in
rounds of the same iteration. Events are measured, or drawn if only a rate is known: a superstep waits for the block with the most events,
so their distribution over steps and samples matters, not only the mean.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, places_within
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.schedule.schedule import INPUT_STAGE

if TYPE_CHECKING:
    from snnc.compiler.tiles.problem import MappingProblem

MAX_ITERATIONS: Final = 512
"""Maximum number of iterations considered over all batches; if there are more, this many are chosen at random."""


class Sums:
    """Sums over ranges of samples, of values given per iteration and sample."""

    def __init__(self, values: Any) -> None:
        array = np.asarray(values, dtype=np.float64)
        self._before = np.zeros((array.shape[1] + 1, array.shape[0]))
        np.cumsum(array.T, axis=0, out=self._before[1:])

    def over(self, first: Ints, count: Ints) -> Floats:
        """Return [ranges, iterations]: sums over the samples ``[first, first + count)``."""
        sums: Floats = self._before[first + count] - self._before[first]
        return sums


@dataclass(frozen=True, eq=False)
class Rounds:
    """Windows: the iteration of each (an index into the chosen iterations), and the number of the window in it (0 is the first)."""

    iteration: Ints
    window: Ints


class EventTimeline:
    """Numbers of events of a problem in each iteration; the iterations of all batches are consecutive.

    The windows of a bus contain step t of its source in iteration ``stage + lag + R t``, in both passes; R is the interval of the schedule.
    """

    def __init__(self, problem: MappingProblem) -> None:
        self.problem = problem
        self._memo = Memo()

    @cached_property
    def _batches(self) -> int:
        p = self.problem
        return batches(p.network.sources, p.activity.counts, p.steps, p.batch)

    @property
    def _sequence_iterations(self) -> int:
        return self.problem.schedule.iterations(self.problem.steps)

    @cached_property
    def chosen(self) -> Ints:
        """The iterations that are used, numbered across all batches."""
        total = self._batches * self._sequence_iterations
        if total <= MAX_ITERATIONS:
            return np.arange(total)
        return np.sort(np.random.default_rng(0).choice(total, MAX_ITERATIONS, replace=False))

    def before(self, iterations: int | None) -> Ints:
        """Return the indices of chosen iterations that are among the first `iterations` of a sequence."""
        return np.flatnonzero(self.chosen % self._sequence_iterations < (iterations or self._sequence_iterations))

    def spikes(self, source: BusSource) -> Ints:
        """Return [batches, steps, samples]: number of events that a source sends."""
        p = self.problem
        rate, shape = p.activity.mean.get(source.buffer, 0.0), (self._batches, p.steps, p.batch)
        return self._memo.get(("spikes", source.buffer), lambda: spikes_of(source, rate, p.activity.counts.get(source.buffer), shape))

    def support(self, source: BusSource) -> Ints:
        """Return [batches, steps, samples]: number of neurons of a windowed source that receive a gradient, including those that spiked."""
        p = self.problem

        def make() -> Ints:
            rates = p.activity.mean.get(source.buffer, 0.0), p.activity.support[source.buffer]
            return support_of(source, rates, p.activity.support_counts.get(source.buffer), self.spikes(source))

        return self._memo.get(("support", source.buffer), make)

    def stored(self, bus: Bus) -> Ints:
        """Return [batches, steps, samples]: number of spikes that a relay stores; in mode "drop", no more than fit in a window."""
        spikes = self.spikes(bus.source)
        return spikes if self.problem.mode == "exact" else np.minimum(spikes, bus.capacity)

    def all_entries(self, bus: Bus) -> Ints:
        """Return [batches, steps, samples]: number of ids in all backward windows of a step (their *entries*)."""
        if bus.id not in self.problem.returned:
            return self.stored(bus)
        return self.stored(bus) + self.support(bus.source) - self.spikes(bus.source)

    def entries(self, bus: Bus) -> Ints:
        """Return [batches, steps, samples]: number of entries in the first backward window."""
        return np.minimum(self.all_entries(bus), self.capacity(bus, backward=True))

    def capacity(self, bus: Bus, *, backward: bool) -> int:
        """Return the number of entries that fit in a window of a bus."""
        return bus.gradient_capacity if backward and bus.id in self.problem.returned else bus.capacity

    def first(self, bus: Bus) -> int:
        """Return the iteration whose window contains the first step of a bus's source."""
        return self.problem.schedule.stages.get(bus.source.owner, INPUT_STAGE) + bus.lag

    def placed(self, values: Ints | Floats, first: int) -> Any:
        """Return [chosen iterations, samples] from [batches, steps, samples]: step t is in iteration ``first + R t``, others are 0."""
        p, by_iteration = self.problem, np.zeros((self._batches, self._sequence_iterations, values.shape[2]), dtype=values.dtype)
        where = first + p.schedule.interval * np.arange(p.steps)
        inside = (where >= 0) & (where < self._sequence_iterations)
        by_iteration[:, where[inside]] = values[:, inside]
        return by_iteration.reshape(-1, values.shape[2])[self.chosen]

    def active(self, first: int, since: int = 0) -> Floats:
        """Return [chosen iterations]: 1 if the iteration is ``first + R t`` for a step t of at least `since`, else 0."""

        def make() -> Floats:
            steps = np.ones((self._batches, self.problem.steps, 1))
            steps[:, :since] = 0
            active_steps: Floats = self.placed(steps, first)[:, 0]
            return active_steps

        return self._memo.get(("active", first, since), make)

    def sums(self, kind: str, bus: Bus, values: Callable[[], Any]) -> Sums:
        """Return sums over the samples of the result of `values`, cached under `kind` and the bus."""
        return self._memo.get((kind, bus.id), lambda: Sums(values()))

    def shown(self, bus: Bus, part: str) -> Sums:
        """Return the numbers of events in the window that neurons read: the last of an iteration in `part` "forward", else the first.

        In `part` "entries", these are all entries of the first backward window, not only spikes.
        """
        if part == "entries":
            return self.sums(part, bus, lambda: self.placed(self.entries(bus), self.first(bus)))
        if part == "backward":
            return self.sums(part, bus, lambda: self.window(bus, backward=True))
        return self.sums(part, bus, lambda: self.window(bus, backward=False, number=self.rounds(backward=False)))

    def window(self, bus: Bus, *, backward: bool, number: Ints | int = 0) -> Ints:
        """Return [chosen iterations, samples]: number of spikes, the first entries of a step, in window `number` (from 0)."""
        capacity, spikes = self.capacity(bus, backward=backward), self.placed(self.stored(bus), self.first(bus))
        if bus not in self.problem.limited(backward=backward):
            number = 0
        number_of_spikes: Ints = np.clip(spikes - np.asarray(number).reshape(-1, 1) * capacity, 0, capacity)
        return number_of_spikes

    def rounds(self, *, backward: bool) -> Ints:
        """Return [chosen iterations]: number of windows after the first, as needed by the busiest sample of any limited bus."""
        return self._memo.get(("rounds", backward), lambda: self._rounds(self.problem.limited(backward=backward), backward))

    def _rounds(self, limited: Iterable[Bus], backward: bool) -> Ints:
        further = np.zeros(len(self.chosen), dtype=np.int64)
        for bus in limited:
            entries = self.all_entries(bus) if backward else self.stored(bus)
            most = self.placed(entries, self.first(bus)).max(axis=1)
            further = np.maximum(further, -(-most // self.capacity(bus, backward=backward)) - 1)
        return further

    def further_rounds(self, *, backward: bool) -> Rounds:
        """Return all rounds in which blocks process one window and relays write the next.

        In the backward pass, the rounds process the windows from number 1 on; in the forward pass, all windows but the last.
        """
        number = self.rounds(backward=backward)
        return Rounds(np.repeat(np.arange(len(number)), number), places_within(number) + backward)

    def in_rounds(self, bus: Bus, rounds: Rounds, *, backward: bool, spikes: bool, later: int = 0) -> Ints:
        """Return [rounds, samples]: number of spikes, or of all entries, in the windows `later` windows after those of `rounds`."""
        capacity, first = self.capacity(bus, backward=backward), self.first(bus)
        in_all_windows = self.placed(self.stored(bus) if spikes else self.all_entries(bus), first)[rounds.iteration]
        in_window: Ints = np.clip(in_all_windows - (rounds.window + later)[:, None] * capacity, 0, capacity)
        return in_window

    def further(self, *, backward: bool) -> float:
        """Return the expected number of further windows of a sequence."""
        return float(self.rounds(backward=backward).mean()) * self._sequence_iterations

    def busiest(self, bus: Bus, part: str, samples: Ints) -> Floats:
        """Return the number of events per sample that the busiest block of `samples` samples reads, averaged over iterations with a step.

        `part` is an argument of :meth:`shown`.
        """
        distinct, place = np.unique(samples, return_inverse=True)
        results = np.array([self._memo.get((f"busiest {part} {n}", bus.id), partial(self._busiest, bus, part, int(n))) for n in distinct])
        return results[place].reshape(np.shape(samples))

    def _busiest(self, bus: Bus, part: str, samples: int) -> float:
        first = np.arange(0, self.problem.batch - samples + 1, samples)
        of_blocks = self.shown(bus, part).over(first, np.full(len(first), samples)).max(axis=0)
        return float(of_blocks.sum() / max(self.active(self.first(bus)).sum(), 1.0)) / samples


STEPS: Final = 512
"""Maximum number of steps, summed over all batches, that are used if measured samples fill several batches."""
DRAWN: Final = 100
"""Minimum number of drawn steps, so that the mean over steps of the largest count is reliable."""


def batches(sources: Iterable[BusSource], measured: Mapping[str, Array], steps: int, batch: int) -> int:
    """Return the number of batches whose events are used: all measured batches, within :data:`STEPS`, or enough drawn ones."""
    samples = [measured[s.buffer].shape[1] // batch for s in sources if s.buffer in measured]
    most = max(1, STEPS // steps)
    return max(1, min([most, *samples])) if samples else max(1, min(most, -(-DRAWN // steps)))


def spikes_of(source: BusSource, rate: float, measured: Array | None, shape: tuple[int, int, int]) -> Ints:
    """Return [batches, steps, samples]: number of events of a source; unmeasured, its values fire independently with probability `rate`."""
    if measured is not None:
        return fitted(measured, shape).astype(np.int64)
    drawn = _random(source, "spikes").binomial(source.width, rate, (shape[0], 1 if source.static else shape[1], shape[2]))
    return np.broadcast_to(drawn, shape)


def support_of(source: BusSource, rates: tuple[float, float], measured: Array | None, spikes: Ints) -> Ints:
    """Return [batches, steps, samples]: numbers of neurons that receive a gradient, including those that spike.

    `rates` are the fractions of neurons that spike and that receive a gradient.
    """
    if measured is not None:
        return np.maximum(fitted(measured, spikes.shape), spikes)
    rate, support = rates
    share = (support - rate) / (1.0 - rate) if rate < 1.0 else 0.0
    return spikes + _random(source, "near").binomial(source.width - spikes, min(max(share, 0.0), 1.0))


def fitted(measured: Array, shape: tuple[int, ...]) -> Array:
    """Return [batches, steps, samples, …] from [steps, samples, …], which repeat from the first if they do not suffice."""
    steps, samples = measured.shape[:2]
    chosen = np.arange(shape[0] * shape[2]) % samples
    samples_of_batches: Array = measured[np.arange(shape[1]) % steps][:, chosen]
    return samples_of_batches.reshape(shape[1], shape[0], shape[2], *measured.shape[2:]).swapaxes(0, 1)


def _random(source: BusSource, what: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{source.buffer} {what}".encode()))
