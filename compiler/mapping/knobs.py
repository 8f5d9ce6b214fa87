"""What helps a network that does not fit: options, each tried by planning again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.mapping.capacity import window_capacity
from snnc.compiler.mapping.cost import network_costs
from snnc.compiler.mapping.errors import Knob
from snnc.compiler.mapping.links import find_routes
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.target import Target
from snnc.compiler.target_errors import UnreachableChipError
from snnc.compiler.targets import load_target, target_names

SECONDS: Final = 1.5
"""Time for finding larger values that still fit; each knob is tried once in any case."""
TRIES: Final = 14
"""Plans for one number."""
MOST_KNOBS: Final = 3
WORTH: Final = 0.05
"""Part of what is missing that a knob has to save to be named when it is not enough."""
IN_FILE: Final = "chips ="
"""What to change in the file of a machine that is not among those that snnc knows."""


@dataclass(frozen=True)
class Trial:
    """Bytes on the fullest tile, and the chips used (0: does not fit)."""

    bytes: int
    chips: int

    @property
    def fits(self) -> bool:
        """Whether a plan was found."""
        return self.chips > 0


Attempt = Callable[[Problem], Trial]


def find_knobs(problem: Problem, needed: int, attempt: Attempt) -> tuple[Knob, ...]:
    """Return what helps most: what makes the network fit first (what changes no result before what does), then what saves most.

    Parameters
    ----------
    problem
        What does not fit.
    needed
        Bytes of its fullest tile.
    attempt
        Plans a problem.
    """
    tries = _Tries(problem, needed, attempt, time.monotonic() + SECONDS)
    enough = needed - WORTH * (needed - problem.target.tile_bytes)
    found = [knob for knob in tries.all() if knob.fits or knob.bytes <= enough]
    if not any(knob.fits for knob in found):
        found += tries.together()
    return tuple(sorted(found, key=lambda knob: (not knob.fits, 0 if knob.fits else knob.bytes))[:MOST_KNOBS])


@dataclass(frozen=True)
class _Tries:
    problem: Problem
    needed: int
    attempt: Attempt
    until: float

    def all(self) -> Iterator[Knob]:
        """Try every knob by itself, those first that change no result."""
        yield from self._capacity()
        yield from self._machine()
        yield from self._number("batch", self.problem.batch)
        yield from self._dropping()
        yield from self._optimizer()
        yield from self._number("steps", self.problem.steps)

    def together(self) -> Iterator[Knob]:
        """Turn one after the other until the network fits: the largest machine of the kind, no moments, fewer samples, fewer steps."""
        problem, options = self.problem, list[tuple[str, str]]()
        machines = larger_targets(problem.target)
        if machines:
            problem = replace(problem, target=machines[-1])
            options.append(self._named(machines[-1]))
        if problem.network.moments:
            problem = _without_moments(problem)
            options.append(("--optimizer", "sgd"))
        trial = self.attempt(problem)
        for name in ("batch", "steps"):
            now = getattr(problem, name)
            if now > 1 and not trial.fits:
                value, trial = self._largest(problem, name, now)
                problem = _with(problem, name, value)
                options.append((f"--{name}", str(value)))
        if len(options) > 1:
            yield _knob(tuple(options), trial)

    def _number(self, name: str, now: int) -> Iterator[Knob]:
        """The largest number that fits, else 1."""
        if now > 1:
            value, trial = self._largest(self.problem, name, now)
            yield _knob(((f"--{name}", str(value)),), trial)

    def _largest(self, problem: Problem, name: str, now: int) -> tuple[int, Trial]:
        """Bisect; the first guess is where bytes, as a straight line from 1 to `now`, reach what a tile has."""
        there = problem.target.tile_bytes
        value, best = 1, self.attempt(_with(problem, name, 1))
        high = now
        if not best.fits:
            return value, best
        slope = (self.needed - best.bytes) / max(now - 1, 1)
        guess = int(1 + (there - best.bytes) / slope) if slope > 0 else now // 2
        for _ in range(TRIES):
            if high - value <= 1 or time.monotonic() > self.until:
                break
            middle = min(max(guess, value + 1), high - 1)
            trial = self.attempt(_with(problem, name, middle))
            if trial.fits:
                value, best = middle, trial
            else:
                high = middle
            guess = (value + high) // 2
        return value, best

    def _machine(self) -> Iterator[Knob]:
        """The smallest machine of the kind on which the network fits, else the largest there is."""
        last: Knob | None = None
        for target in larger_targets(self.problem.target):
            last = _knob((self._named(target),), self.attempt(replace(self.problem, target=target)))
            if last.fits:
                break
        if last is not None:
            yield last

    def _named(self, target: Target) -> tuple[str, str]:
        """How to ask for a larger machine."""
        return (IN_FILE, str(target.chips)) if target.name == self.problem.target.name else ("--target", target.name)

    def _capacity(self) -> Iterator[Knob]:
        """Smaller windows in mode "exact"."""
        size = _usual_capacity(self.problem)
        if self.problem.mode == "exact" and size is not None:
            yield _knob((("--capacity", str(size)),), self.attempt(_with_capacity(self.problem, size)))

    def _dropping(self) -> Iterator[Knob]:
        """Smaller windows, and no room for more events than they hold."""
        events = [bus.capacity for bus in self.problem.buses if bus.events]
        if self.problem.mode == "drop" or not events:
            return
        size = _usual_capacity(self.problem) or max(events)
        changed = replace(_with_capacity(self.problem, size), mode="drop")
        yield _knob((("--mode", "drop"), ("--capacity", str(size))), self.attempt(changed))

    def _optimizer(self) -> Iterator[Knob]:
        """Plain gradient descent keeps no moments."""
        if self.problem.network.moments:
            yield _knob((("--optimizer", "sgd"),), self.attempt(_without_moments(self.problem)))


def larger_targets(mine: Target) -> tuple[Target, ...]:
    """Machines with more chips of the same kind, the smallest first.

    Those that snnc knows, one of each size; of a machine that it does not know, the same twice and four times as large.
    """
    known = [load_target(name) for name in target_names()]
    kind = [t for t in known if replace(mine, name=t.name, chips=t.chips, links=t.links) == t]
    if not kind:
        return tuple(t for t in (replace(mine, chips=2 * mine.chips), replace(mine, chips=4 * mine.chips)) if _is_joined(t))
    sizes = {t.chips: t for t in sorted(kind, key=lambda t: t.name, reverse=True) if t.chips > mine.chips}
    return tuple(sizes[chips] for chips in sorted(sizes))


def _is_joined(target: Target) -> bool:
    """Whether the links of a file also join more chips than it describes."""
    try:
        find_routes(target)
    except UnreachableChipError:
        return False
    return True


def _knob(options: tuple[tuple[str, str], ...], trial: Trial) -> Knob:
    return Knob(options, trial.bytes, trial.fits, trial.chips)


def _with(problem: Problem, name: str, value: int) -> Problem:
    return replace(problem, batch=value) if name == "batch" else replace(problem, steps=value)


def _without_moments(problem: Problem) -> Problem:
    network = replace(problem.network, moments=0)
    return replace(problem, network=network, costs=network_costs(network))


def _with_capacity(problem: Problem, size: int) -> Problem:
    buses = tuple(replace(bus, capacity=min(size, bus.source.width)) if bus.events else bus for bus in problem.buses)
    return replace(problem, buses=buses)


def _usual_capacity(problem: Problem) -> int | None:
    """One capacity for all windows that the expected activity would rarely pass; None when they are no larger already."""
    sizes = {bus.id: window_capacity(bus.source, problem.activity.get(bus.source.buffer, 0.0), None) for bus in problem.buses if bus.events}
    if not sizes or not any(bus.capacity > math.ceil(max(sizes.values())) for bus in problem.buses if bus.events):
        return None
    return max(sizes.values())
