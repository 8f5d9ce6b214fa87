"""Finds remedies for a network that does not fit: options, each tried with a new plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeAlias

from snnc.compiler.machines import load_target, target_names
from snnc.compiler.machines.errors import UnreachableChipError
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.errors import Knob
from snnc.compiler.tiles.exchange.chip_links import find_routes
from snnc.compiler.tiles.request import MappingRequest
from snnc.compiler.tiles.schedule.capacity import window_capacity
from snnc.compiler.tiles.vertices.operations import SGD_CYCLES

SECONDS: Final = 3.0
"""Processor time for planning again; after it, remedies are still named, but from quick plans."""
TRIES: Final = 12
"""Plans for one number."""
FEWEST_TRIES: Final = 4
"""The same after the time is over."""
GALLOP: Final = 8
"""Maximum factor between numbers tried: small numbers are planned quickly."""
MOST_KNOBS: Final = 3
IN_FILE: Final = "chips ="
"""Change to the file of a machine that snnc does not know."""
PREFERENCE: Final = ("--recompute", "--streaming", "--capacity", "--batch", "--target", IN_FILE, "--mode", "--optimizer", "--steps")
"""Order of preference: options that change no result come first."""
WORTH: Final = 0.05
"""Fraction of the missing bytes that an insufficient knob must save to be named."""


@dataclass(frozen=True)
class RemedyTrial:
    """Bytes on the fullest tile, and the chips used (0: does not fit)."""

    bytes: int
    chips: int

    @property
    def fits(self) -> bool:
        """Whether a plan was found."""
        return self.chips > 0


Options: TypeAlias = tuple[tuple[str, str], ...]


class Attempt(Protocol):
    """Plans a request; quick: the first plan that fits, with little effort."""

    def __call__(self, request: MappingRequest, *, quick: bool) -> RemedyTrial:
        """Plan."""
        ...


def find_knobs(request: MappingRequest, needed: int, attempt: Attempt) -> tuple[Knob, ...]:
    """Return the best remedies: first those that make the network fit (preferring those that change no result), then those that save most.

    Each knob is first planned quickly, and the best then as in :func:`snnc.compiler.tiles.make_plan` while there is time.

    Parameters
    ----------
    request
        The request that does not fit.
    needed
        Bytes of its fullest tile.
    attempt
        Plans one.
    """
    tries = _Tries(request, needed, attempt, time.process_time() + SECONDS)
    enough = needed - WORTH * (needed - request.target.tile_bytes)
    found: list[RemedyInTrial] = []
    for turn in tries.all():
        found += [turn] if turn.trial.fits or turn.trial.bytes <= enough else []
        if tries.late and len(found) >= MOST_KNOBS:
            break
    if len(found) < MOST_KNOBS or not any(turn.trial.fits for turn in found):
        found += tries.together()
    best = sorted(found, key=_rank)[:MOST_KNOBS]
    knobs = (turn.knob for turn in sorted(map(tries.planned, best), key=_rank))
    return tuple(knob for knob in knobs if knob.fits or knob.bytes < needed)


@dataclass(frozen=True)
class RemedyInTrial:
    """A knob under examination: its options, the resulting request, and the result of planning it."""

    options: tuple[tuple[str, str], ...]
    request: MappingRequest
    trial: RemedyTrial
    exact: bool = False

    @property
    def knob(self) -> Knob:
        """Its description."""
        return Knob(self.options, self.trial.bytes, self.trial.fits, self.trial.chips, self.exact)


def _rank(turn: RemedyInTrial) -> tuple[bool, int]:
    """Fitting knobs by PREFERENCE, then combinations of several; of the rest, those that save most."""
    if not turn.trial.fits:
        return True, turn.trial.bytes
    names = {name for name, _ in turn.options}
    kinds = [PREFERENCE.index(name) for name in names - ({"--capacity"} if "--mode" in names else set())]
    return False, max(kinds) + (len(PREFERENCE) if len(kinds) > 1 else 0)


@dataclass(frozen=True)
class _Tries:
    request: MappingRequest
    needed: int
    attempt: Attempt
    until: float

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.process_time() > self.until

    def planned(self, turn: RemedyInTrial) -> RemedyInTrial:
        """Plan once more with full effort, when there is time."""
        if self.late:
            return turn
        return replace(turn, trial=self.attempt(turn.request, quick=False), exact=True)

    def _turn(self, request: MappingRequest, *options: tuple[str, str]) -> RemedyInTrial:
        return RemedyInTrial(options, request, self.attempt(request, quick=True))

    def all(self) -> Iterator[RemedyInTrial]:
        """Try every knob alone, those that are planned quickly first."""
        if self.request.recompute != "auto" and self.request.network.training:
            yield self._turn(replace(self.request, recompute="auto"), ("--recompute", "auto"))
        if self.request.streaming != "auto" and self.request.network.training:
            yield self._turn(replace(self.request, streaming="auto"), ("--streaming", "auto"))
        yield from self._capacity()
        yield from self._number("batch", self.request.batch)
        yield from self._number("steps", self.request.steps)
        yield from self._dropping()
        yield from self._optimizer()
        yield from self._machine()

    def together(self) -> Iterator[RemedyInTrial]:
        """Combine knobs until the network fits: a larger machine, dropping, no moments, fewer samples, fewer steps."""
        request, options = self.request, list[tuple[str, str]]()
        machines = larger_targets(request.target)
        if machines:
            request = replace(request, target=machines[-1], chips=None)
            options.append(self._named(machines[-1]))
        turned: RemedyInTrial | None = None
        for change in (self._dropped, self._plain, partial(self._fewer, "batch"), partial(self._fewer, "steps")):
            found = change(request, tuple(options))
            if found is not None:
                turned, request, options = found, found.request, list(found.options)
            if turned is not None and turned.trial.fits:
                break
        if turned is not None and len(options) > 1:
            yield turned

    def _dropped(self, request: MappingRequest, before: Options) -> RemedyInTrial | None:
        size = _usual_capacity(request)
        if request.mode == "drop" or size is None:
            return None
        return self._turn(replace(request, capacity=size, mode="drop"), *before, ("--mode", "drop"), ("--capacity", str(size)))

    def _plain(self, request: MappingRequest, before: Options) -> RemedyInTrial | None:
        return self._turn(_without_moments(request), *before, ("--optimizer", "sgd")) if request.network.moments else None

    def _fewer(self, name: str, request: MappingRequest, before: Options) -> RemedyInTrial | None:
        now = getattr(request, name)
        if now == 1:
            return None
        value, trial = self._largest(request, name, now)
        return RemedyInTrial((*before, (f"--{name}", str(value))), _with(request, name, value), trial)

    def _number(self, name: str, now: int) -> Iterator[RemedyInTrial]:
        """The largest number that fits, else 1."""
        if now > 1:
            value, trial = self._largest(self.request, name, now)
            yield RemedyInTrial(((f"--{name}", str(value)),), _with(self.request, name, value), trial)

    def _largest(self, request: MappingRequest, name: str, now: int) -> tuple[int, RemedyTrial]:
        """Bisect; the first guess interpolates the bytes linearly between 1 and `now`."""
        there = request.target.tile_bytes
        value, best = 1, self.attempt(_with(request, name, 1), quick=True)
        high = now
        if not best.fits:
            return value, best
        slope = (self.needed - best.bytes) / max(now - 1, 1)
        guess = int(1 + (there - best.bytes) / slope) if slope > 0 else now // 2
        for tried in range(TRIES):
            if high - value <= 1 or (self.late and tried >= FEWEST_TRIES):
                break
            middle = min(max(min(guess, GALLOP * value), value + 1), high - 1)
            trial = self.attempt(_with(request, name, middle), quick=True)
            if trial.fits:
                value, best = middle, trial
            else:
                high = middle
            guess = guess if value < guess < high else (value + high) // 2
        return value, best

    def _machine(self) -> Iterator[RemedyInTrial]:
        """The smallest machine of the kind on which the network fits, else the largest there is."""
        last: RemedyInTrial | None = None
        for target in larger_targets(self.request.target):
            last = self._turn(replace(self.request, target=target, chips=None), self._named(target))
            if last.trial.fits or self.late:
                break
        if last is not None:
            yield last

    def _named(self, target: Target) -> tuple[str, str]:
        """The option for a larger machine."""
        return (IN_FILE, str(target.chips)) if target.name == self.request.target.name else ("--target", target.name)

    def _capacity(self) -> Iterator[RemedyInTrial]:
        """Smaller windows in mode "exact"."""
        size = _usual_capacity(self.request)
        if self.request.mode == "exact" and size is not None:
            yield self._turn(replace(self.request, capacity=size), ("--capacity", str(size)))

    def _dropping(self) -> Iterator[RemedyInTrial]:
        """Smaller windows, which drop events beyond their capacity."""
        events = [bus.capacity for bus in next(self.request.problems()).buses if bus.events]
        if self.request.mode == "drop" or not events:
            return
        size = _usual_capacity(self.request) or max(events)
        changed = replace(self.request, capacity=size, mode="drop")
        yield self._turn(changed, ("--mode", "drop"), ("--capacity", str(size)))

    def _optimizer(self) -> Iterator[RemedyInTrial]:
        """Plain gradient descent keeps no moments."""
        if self.request.network.moments:
            yield self._turn(_without_moments(self.request), ("--optimizer", "sgd"))


def larger_targets(mine: Target) -> tuple[Target, ...]:
    """Machines with more chips of the same kind, the smallest first.

    Known machines, one of each size; for an unknown machine, the same one twice and four times as large.
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


def _with(request: MappingRequest, name: str, value: int) -> MappingRequest:
    return replace(request, batch=value) if name == "batch" else replace(request, steps=value)


def _without_moments(request: MappingRequest) -> MappingRequest:
    return replace(request, network=replace(request.network, moments=0, update=SGD_CYCLES))


def _usual_capacity(request: MappingRequest) -> int | None:
    """One capacity for all windows that the expected activity would rarely exceed; None if they are already no larger."""
    problem = next(request.problems())
    buses = [bus for bus in problem.buses if bus.events]
    size = max((window_capacity(bus.source, problem.activity[bus.source.buffer], None) for bus in buses), default=0)
    return size if any(bus.capacity > size for bus in buses) else None
