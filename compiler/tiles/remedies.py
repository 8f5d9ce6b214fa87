"""Remedies for a network that does not fit: changed options, each tried with a new plan. The error message lists the best ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from snnc.compiler.machines import load_target, target_names
from snnc.compiler.machines.chip_links import find_routes
from snnc.compiler.machines.errors import UnreachableChipError
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.errors import Remedy
from snnc.compiler.tiles.mapped.operations import SGD_CYCLES
from snnc.compiler.tiles.request import MappingRequest
from snnc.compiler.tiles.schedule.buses import window_capacity

SECONDS: Final = 3.0
"""Processor time for new plans, in seconds; after it, only quick plans predict the effect of remedies."""
TRIES: Final = 12
"""Maximum number of plans in the search for one number (a batch or a number of steps)."""
MIN_TRIES: Final = 4
"""Number of plans that the search for one number may make even after the time limit."""
GALLOP: Final = 8
"""Maximum factor between a number that fits and the next to be tried: plans for small numbers take less time."""
MAX_REMEDIES: Final = 3
"""Maximum number of remedies in a message."""
IN_FILE: Final = "chips ="
"""Option text for machines from a user's file: the key to change in it."""
PREFERENCE: Final = ("--recompute", "--streaming", "--capacity", "--batch", "--target", IN_FILE, "--mode", "--optimizer", "--steps")
"""Options in order of preference: those that do not change results come first."""
WORTH: Final = 0.05
"""Smallest fraction of the missing bytes that an insufficient remedy must save to be reported."""


Options: TypeAlias = tuple[tuple[str, str], ...]
"""Command-line options with their values."""
Attempt: TypeAlias = Callable[..., tuple[int, int]]
"""Function that plans a request: ``(request, quick=…)``; with `quick`, it stops at the first placement that fits.

It returns the bytes on the fullest tile and the number of chips in use; if nothing fits, the bytes that are needed, and 0.
"""


def find_remedies(request: MappingRequest, needed: int, attempt: Attempt) -> tuple[Remedy, ...]:
    """Return the best remedies, at most :data:`MAX_REMEDIES`.

    Those with which the network fits come first, in the order of :data:`PREFERENCE`, then those that save most bytes.
    The fullest tile of `request` needs `needed` bytes. Remedies are planned quickly. While time remains (:data:`SECONDS`), the best ones
    are then planned as by :func:`snnc.compiler.tiles.make_plan`.
    """
    tries = _Tries(request, needed, attempt, time.process_time() + SECONDS)
    enough = needed - WORTH * (needed - request.target.tile_bytes)
    remedies: list[TriedRemedy] = []
    for tried in tries.all():
        remedies += [tried] if tried.remedy.fits or tried.remedy.bytes <= enough else []
        if tries.late and len(remedies) >= MAX_REMEDIES:
            break
    if len(remedies) < MAX_REMEDIES or not any(tried.remedy.fits for tried in remedies):
        remedies += tries.together()
    best = sorted(remedies, key=_rank)[:MAX_REMEDIES]
    results = (tried.remedy for tried in sorted(map(tries.planned, best), key=_rank))
    return tuple(remedy for remedy in results if remedy.fits or remedy.bytes < needed)


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy that was planned: its options with the result of the plan, and the resulting request."""

    remedy: Remedy
    request: MappingRequest


def _rank(tried: TriedRemedy) -> tuple[bool, int]:
    """Return a sort key: first remedies that fit, by :data:`PREFERENCE`; then combinations that fit; then all others, by bytes."""
    if not tried.remedy.fits:
        return True, tried.remedy.bytes
    names = {name for name, _ in tried.remedy.options}
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
        return time.process_time() > self.until

    def planned(self, tried: TriedRemedy) -> TriedRemedy:
        if self.late:
            return tried
        return replace(tried, remedy=Remedy(tried.remedy.options, *self.attempt(tried.request, quick=False)))

    def _try(self, request: MappingRequest, *options: tuple[str, str]) -> TriedRemedy:
        return TriedRemedy(Remedy(options, *self.attempt(request, quick=True), exact=False), request)

    def all(self) -> Iterator[TriedRemedy]:
        """Try every option by itself, beginning with options whose plans take little time."""
        if self.request.recompute != "auto" and self.request.network.training:
            yield self._try(replace(self.request, recompute="auto"), ("--recompute", "auto"))
        if self.request.streaming != "auto" and self.request.network.training:
            yield self._try(replace(self.request, streaming="auto"), ("--streaming", "auto"))
        fewer = partial(self._fewer, "batch"), partial(self._fewer, "steps")
        for change in (self._capacity, *fewer, partial(self._dropped, always=True), self._sgd, self._machine):
            tried = change(self.request, ())
            if tried is not None:
                yield tried

    def together(self) -> Iterator[TriedRemedy]:
        """Combine options until the network fits: a larger machine, dropped events, SGD without moments, fewer samples and steps."""
        request, options = self.request, list[tuple[str, str]]()
        machines = larger_targets(request.target)
        if machines:
            request = replace(request, target=machines[-1], chips=None)
            options.append(self._named(machines[-1]))
        last: TriedRemedy | None = None
        for change in (self._dropped, self._sgd, partial(self._fewer, "batch"), partial(self._fewer, "steps")):
            combined = change(request, tuple(options))
            if combined is not None:
                last, request, options = combined, combined.request, list(combined.remedy.options)
            if last is not None and last.remedy.fits:
                break
        if last is not None and len(options) > 1:
            yield last

    def _dropped(self, request: MappingRequest, before: Options, *, always: bool = False) -> TriedRemedy | None:
        """Try smaller windows that drop events beyond their capacity; with `always`, also windows of the present size."""
        events = [bus.capacity for bus in next(request.problems()).buses if bus.events]
        if request.mode == "drop" or not events:
            return None
        size = _usual_capacity(request) or (max(events) if always else None)
        if size is None:
            return None
        return self._try(replace(request, capacity=size, mode="drop"), *before, ("--mode", "drop"), ("--capacity", str(size)))

    def _sgd(self, request: MappingRequest, before: Options) -> TriedRemedy | None:
        sgd = replace(request, network=replace(request.network, moments=0, update=SGD_CYCLES))
        return self._try(sgd, *before, ("--optimizer", "sgd")) if request.network.moments else None

    def _fewer(self, name: str, request: MappingRequest, before: Options) -> TriedRemedy | None:
        """Try the largest number of samples or steps that fits, or the smallest number if none fits."""
        now = getattr(request, name)
        if now <= _unit(request, name):
            return None
        value, size, chips = self._largest(request, name, now)
        return TriedRemedy(Remedy((*before, (f"--{name}", str(value))), size, chips, exact=False), _with(request, name, value))

    def _largest(self, request: MappingRequest, name: str, now: int) -> tuple[int, int, int]:
        """Find the largest number that fits by bisection, which starts from a linear interpolation of the bytes between 1 and `now`.

        Return the number, and the result of its plan (:class:`Attempt`).
        """
        tile_bytes, unit = request.target.tile_bytes, _unit(request, name)
        now //= unit
        value, best = 1, self.attempt(_with(request, name, unit), quick=True)
        high = now
        bytes_of_one, chips = best
        if not chips:
            return unit, *best
        slope = (self.needed - bytes_of_one) / max(now - 1, 1)
        guess = int(1 + (tile_bytes - bytes_of_one) / slope) if slope > 0 else now // 2
        for tried in range(TRIES):
            if high - value <= 1 or (self.late and tried >= MIN_TRIES):
                break
            middle = min(max(min(guess, GALLOP * value), value + 1), high - 1)
            planned_bytes, chips = self.attempt(_with(request, name, middle * unit), quick=True)
            if chips:
                value, best = middle, (planned_bytes, chips)
            else:
                high = middle
            guess = guess if value < guess < high else (value + high) // 2
        return value * unit, *best

    def _machine(self, request: MappingRequest, before: Options) -> TriedRemedy | None:
        """Try larger machines of the same kind: the smallest on which the network fits, else the largest."""
        last: TriedRemedy | None = None
        for target in larger_targets(request.target):
            last = self._try(replace(request, target=target, chips=None), *before, self._named(target))
            if last.remedy.fits or self.late:
                break
        return last

    def _named(self, target: Target) -> tuple[str, str]:
        return (IN_FILE, str(target.chips)) if target.name == self.request.target.name else ("--target", target.name)

    def _capacity(self, request: MappingRequest, before: Options) -> TriedRemedy | None:
        size = _usual_capacity(request) if request.mode == "exact" else None
        return None if size is None else self._try(replace(request, capacity=size), *before, ("--capacity", str(size)))


def larger_targets(target: Target) -> tuple[Target, ...]:
    """Return the machines with more chips of the same kind, the smallest first.

    For a known machine, these are other known machines, one for each number of chips; for a machine from a file, the same machine with
    twice and four times the chips.
    """
    known = [load_target(name) for name in target_names()]
    kind = [t for t in known if replace(target, name=t.name, chips=t.chips, links=t.links) == t]
    if not kind:
        return tuple(t for t in (replace(target, chips=2 * target.chips), replace(target, chips=4 * target.chips)) if _is_joined(t))
    sizes = {t.chips: t for t in sorted(kind, key=lambda t: t.name, reverse=True) if t.chips > target.chips}
    return tuple(sizes[chips] for chips in sorted(sizes))


def _is_joined(target: Target) -> bool:
    try:
        find_routes(target)
    except UnreachableChipError:
        return False
    return True


def _unit(request: MappingRequest, name: str) -> int:
    """Return the number of which `name` must be a multiple: 2 for a batch with float16 deltas, which are stored for pairs of samples."""
    return 2 if name == "batch" and request.network.half_deltas else 1


def _with(request: MappingRequest, name: str, value: int) -> MappingRequest:
    return replace(request, batch=value) if name == "batch" else replace(request, steps=value)


def _usual_capacity(request: MappingRequest) -> int | None:
    """Return a capacity for all windows that the spikes of a step rarely exceed; None if it would make no window smaller."""
    problem = next(request.problems())
    buses = [bus for bus in problem.buses if bus.events]
    size = max((window_capacity(bus.source, problem.activity.mean[bus.source.buffer], None) for bus in buses), default=0)
    return size if any(bus.capacity > size for bus in buses) else None
