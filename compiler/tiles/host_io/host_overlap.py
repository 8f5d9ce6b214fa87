"""Overlap of the host's streams with computing: the decision, the number of tiles, and a plan with it.

A step with reserved tiles (:mod:`snnc.compiler.tiles.host_io.host_streams`) distributes their contents, then requests the inputs of the
next step and continues. If inputs come in segments, it requests the next segment before each one runs, and finally the first one of the
next step. The transfer overlaps the step until an operation waits for all tiles (:attr:`snnc.compiler.ir.plan.Phase.waits`), or the step
ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np

from snnc.compiler.ir.plan import HostOverlap, MemoryPhase, Overlap, Phase, Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.errors import HostOverlapError, MappingOptionError, TooBigError
from snnc.compiler.tiles.host_io.host_streams import SEGMENT, HandOver, Staging, host_streams
from snnc.compiler.tiles.host_io.overlap_windows import Beside, hidden_in_turns, windows

IO_TILES: Final = "I/O tiles"
"""Suffix of the names of phases that distribute the contents of reserved tiles."""
STAGING: Final = "staging"
"""Category of memory: the next step's data on reserved tiles."""
SIGNIFICANT: Final = 0.05
"""Minimum share of transfers in a step that justifies mapping again on fewer tiles."""
WORTH: Final = 0.01
"""Minimum share of a step that must be saved."""
CANDIDATES: Final = 12
"""Numbers of tiles that are compared."""


@dataclass(frozen=True)
class OverlapRequest:
    """The request: whether streams overlap, and on how many tiles of each chip (None: the number that is predicted to be best)."""

    overlap: Overlap = "auto"
    io_tiles: int | None = None


def check_wanted(wanted: OverlapRequest, target: Target) -> None:
    """Refuse numbers of tiles that the target does not have.

    Raises
    ------
    MappingOptionError
        No tile is left to compute, or none is reserved.
    """
    number = wanted.io_tiles
    if number is not None and not 1 <= number < target.tiles_per_chip:
        raise MappingOptionError(
            f"{number} tiles are to be set aside for the host; a chip of {target.name} has {target.tiles_per_chip}: give 1 to "
            f"{target.tiles_per_chip - 1} (--num-io-tiles)."
        )


def plan_overlap(planned: Callable[[Target], Plan], program: StepProgram, target: Target, wanted: OverlapRequest) -> Plan:
    """Plan with `planned`, on `target` or on its tiles that are not reserved.

    Parameters
    ----------
    planned
        Maps the program onto a machine.
    program, target, wanted
        The program, the machine, and the request.

    Raises
    ------
    HostOverlapError
        Streams are required to overlap, but cannot.
    MappingOptionError, TooBigError
        As `planned` raises them, or the number of tiles is out of range.
    """
    check_wanted(wanted, target)
    forced = wanted.overlap == "on"
    plan = planned(target)
    if wanted.overlap == "off" or not (forced or _share(plan) >= WORTH):
        return plan
    reason = _obstacle(plan)
    if reason is not None:
        if forced:
            raise HostOverlapError(f"the host's streams of {plan.name!r} cannot run beside computing: {reason}")
        return plan
    number, enough = wanted.io_tiles or _best_number(plan, program), (1 - WORTH) * plan.seconds_with_host
    free = number <= free_tiles(plan)
    if not forced and (_guess(plan, program, number) > enough or not (free or _share(plan) >= SIGNIFICANT)):
        return plan
    other = plan if free else _smaller(planned, target, number, forced=forced)
    found = None if other is None else with_overlap(other, program, number)
    if found is None or max(found.tile_memory) > target.tile_bytes:
        if forced:
            raise _no_room(plan, program, number)
        return plan
    return found if forced or found.seconds_with_host <= enough else plan


def _share(plan: Plan) -> float:
    """Share of the step spent on host transfers."""
    return 0.0 if plan.host_seconds is None else plan.host_seconds / plan.seconds_with_host


def _obstacle(plan: Plan) -> str | None:
    """The reason why streams cannot overlap; None if they can."""
    if plan.target.host is None:
        return f"the target {plan.target.name} does not tell the host's rate; add a section [host] to its file."
    if not plan.host_bytes:
        return "nothing is sent."
    return None


def _no_room(plan: Plan, program: StepProgram, number: int) -> HostOverlapError:
    staging = Staging(plan.target, number, host_streams(plan, program))
    return HostOverlapError(
        f"the host's streams of {plan.name!r} cannot run beside computing: {number} tiles of a chip set aside hold "
        f"{int(staging.held().max()):,} bytes each of {plan.target.tile_bytes:,}, and the others no longer hold the network; "
        "choose another number (--num-io-tiles), or leave the option out."
    )


def _smaller(planned: Callable[[Target], Plan], target: Target, number: int, *, forced: bool) -> Plan | None:
    """Plan on the remaining tiles of each chip."""
    less = replace(target, tiles_per_chip=target.tiles_per_chip - number)
    if forced:
        return widened(planned(less), target)
    with suppress(TooBigError, HostOverlapError):
        return widened(planned(less), target)
    return None


# ---- how many tiles ------------------------------------------------------------------------------------------------------------------


def free_tiles(plan: Plan) -> int:
    """The most last tiles of a chip that hold nothing on any chip."""
    held = np.reshape(np.asarray(plan.tile_memory), (plan.target.chips, -1)).max(axis=0)
    return int(plan.target.tiles_per_chip - np.flatnonzero(held).max() - 1)


def _best_number(plan: Plan, program: StepProgram) -> int:
    """The number with the shortest step, if compute and exchange grow as tiles get fewer."""
    host, tiles = plan.target.host, plan.target.tiles_per_chip
    assert host is not None, "streams overlap only where the host's rate is told"
    most = max(min(host.most_io_tiles or tiles // 2, tiles - 1), 1)
    least = min(max(host.fewest_io_tiles, 1, _fewest(plan, program)), most)
    some = np.clip(2 * np.round(np.geomspace(least, most, CANDIDATES) / 2), least, most)
    return min((int(n) for n in np.unique(some)), key=lambda n: _guess(plan, program, n))


def _fewest(plan: Plan, program: StepProgram) -> int:
    """Tiles that hold the streams."""
    streams = sum(stream.bytes for stream in host_streams(plan, program))
    return 2 * math.ceil(streams / plan.chips_used / max(plan.target.tile_bytes - plan.target.fixed_tile_bytes, 1) / 2)


def _guess(plan: Plan, program: StepProgram, number: int) -> float:
    """Seconds of a step with `number` tiles of each chip reserved, before mapping again."""
    grown = 1.0 if number <= free_tiles(plan) else plan.target.tiles_per_chip / (plan.target.tiles_per_chip - number)
    phases = tuple(replace(p, compute=p.compute * grown, first=None, exchange=p.exchange * grown) for p in plan.phases)
    return with_overlap(replace(plan, phases=phases), program, number, guess=True).seconds_with_host


# ---- the plan ------------------------------------------------------------------------------------------------------------------------


def with_overlap(plan: Plan, program: StepProgram, number: int, *, guess: bool = False) -> Plan:
    """Reserve the last `number` tiles of each chip; they are free, except in a `guess`, which only estimates time."""
    staging = Staging(plan.target, number, host_streams(plan, program))
    cut = plan.segments
    given = _hand_over_phases(staging, cut.number - 1 if cut.reruns else 0)
    found = replace(plan, phases=_with_phases(plan, given), overlap=HostOverlap(number, *_hidden(plan, staging)))
    if guess:
        return found
    moved = sum(copy.turns * float(copy.received.sum()) for copy in staging.hand_overs())
    rate = plan.target.tiles_per_chip * plan.chips_used * plan.target.exchange_bytes_per_cycle
    bound = moved / rate + sum(p.runs * p.sync for p in given)
    return _with_memory(replace(found, bound_cycles=plan.bound_cycles + bound, tile_cycles=_tile_cycles(plan, staging)), staging)


def _hand_over_phases(staging: Staging, again: int) -> list[Phase]:
    """A phase for each kind of distributed array, words and half words in two copies; `again`: turns in which segments rerun."""
    found = []
    for what, copies in groupby(staging.hand_overs(), key=lambda copy: copy.what):
        some = list(copies)
        forward = _hand_over_phase(staging.target, what, some)
        found.append(replace(forward, runs=forward.runs - again) if what == SEGMENT else forward)
        if what == SEGMENT and again:
            found.append(replace(forward, name=f"recompute: {what} from {IO_TILES}", part="recompute", runs=again))
    return found


def _hand_over_phase(target: Target, what: str, copies: Sequence[HandOver]) -> Phase:
    return Phase(
        name=f"forward: {what} from {IO_TILES}",
        part="forward",
        runs=copies[0].turns,
        compute=0.0,
        sync=len(copies) * (target.sync_cycles + target.superstep_cycles),
        exchange=sum(copy.cycles(target) for copy in copies),
        bytes_in=int(max(copy.received.max() for copy in copies)),
        busiest_tile=int(copies[0].by_tile(target).argmax()),
    )


def _with_phases(plan: Plan, given: Sequence[Phase]) -> tuple[Phase, ...]:
    """Insert the distributing phases before their part."""
    found = [p for p in given if p.part == "forward"]
    for part, phases in groupby(plan.phases, key=lambda p: p.part):
        found += [p for p in given if p.part == part != "forward"]
        found += phases
    return tuple(found)


def _hidden(plan: Plan, staging: Staging) -> tuple[Beside, float]:
    """The part before which the transfer begins, and the cycles of it that overlap the step."""
    target = plan.target
    if plan.streamed != "off":
        cycles = [sum(s.cycles(target) for s in staging.streams if (s.what == SEGMENT) == each) for each in (True, False)]
        return "forward", hidden_in_turns(plan, *cycles)
    whole = sum(stream.cycles(target) for stream in staging.streams)
    beside, window = max(windows(plan).items(), key=lambda found: min(whole, found[1]))
    return beside, min(whole, window)


def _tile_cycles(plan: Plan, staging: Staging) -> dict[str, tuple[int, ...]]:
    exchange = np.asarray(plan.tile_cycles.get("exchange", np.zeros(plan.target.tiles)), dtype=np.float64)
    exchange = exchange + sum(copy.turns * copy.by_tile(plan.target) for copy in staging.hand_overs())
    return {**plan.tile_cycles, "exchange": tuple(exchange.astype(np.int64).tolist())}


def _with_memory(plan: Plan, staging: Staging) -> Plan:
    """Count the data on reserved tiles, and the code that distributes it; both are always live."""
    target, aside = plan.target, np.zeros(plan.target.tiles, dtype=np.int64)
    held = staging.held().astype(np.int64)
    aside[list(plan.io_tiles)] = target.fixed_tile_bytes
    fragments = np.sum([copy.fragments for copy in staging.hand_overs()], axis=0)
    code = aside + (target.fragment_code_bytes * fragments).astype(np.int64)
    memory = {name: np.asarray(tiles) for name, tiles in plan.memory.items()}
    memory = {**memory, "code": memory["code"] + code, STAGING: held}
    fullest, before = int(np.sum(list(memory.values()), axis=0).argmax()), plan.fullest_tile
    old = plan.memory_over_time
    by_name, by_part = {m.name: m for m in old}, {m.part: m for m in reversed(old)}
    phases = [by_name.get(p.name) or _handing(p, by_part[p.part]) for p in plan.phases] if old else []
    more = {"code": int(code.sum()), STAGING: int(held.sum())}

    def of_tile(m: MemoryPhase) -> dict[str, int]:
        alone = {name: int(memory[name][fullest]) for name in m.tile if name in ("code",)} | {STAGING: int(held[fullest])}
        if fullest == before:
            return {**m.tile, "code": m.tile.get("code", 0) + int(code[fullest]), STAGING: 0}
        return dict.fromkeys(m.tile, 0) | alone

    over_time = tuple(
        replace(m, tile=of_tile(m), all_tiles={**m.all_tiles, **{n: m.all_tiles.get(n, 0) + size for n, size in more.items()}})
        for m in phases
    )
    return replace(
        plan,
        memory={name: tuple(tiles.tolist()) for name, tiles in memory.items()},
        memory_over_time=over_time,
        unshared_bytes=plan.unshared_bytes + int(code[fullest]) if fullest == before else int(code[fullest] + held[fullest]),
    )


def _handing(phase: Phase, first: MemoryPhase) -> MemoryPhase:
    """Live data while arrays are distributed: everything except buffers of the `first` superstep of their part."""
    return replace(first, name=phase.name, tile={**first.tile, "exchange": 0}, all_tiles={**first.all_tiles, "exchange": 0})


def widened(plan: Plan, target: Target) -> Plan:
    """Return a plan that was made for the first tiles of each chip as one of the whole `target`.

    Raises
    ------
    HostOverlapError
        A layer is on tiles of two consecutive chips that are no longer consecutive.
    """
    less, more = plan.target.tiles_per_chip, target.tiles_per_chip

    def tile(number: int) -> int:
        return number // less * more + number % less

    def spread(values: tuple[int, ...]) -> tuple[int, ...]:
        whole = np.zeros((target.chips, more), dtype=np.int64)
        whole[:, :less] = np.reshape(np.asarray(values), (target.chips, less))
        return tuple(whole.ravel().tolist())

    for p in plan.populations:
        if any(start // less != (start + p.width - 1) // less for start in p.starts):
            raise HostOverlapError(
                f"the host's streams of {plan.name!r} cannot run beside computing: layer {p.label!r} lies on several chips, which "
                "exchange its spikes in every time step; a transfer ends at the first exchange between chips, long before the "
                f"{1e6 * (plan.host_seconds or 0):,.0f} us of inputs are there (a step takes {1e6 * plan.seconds:,.0f} us). Leave the "
                "option out, or let whole chips share the batch."
            )
    waiting = sum(p.runs * p.sync for p in plan.phases)
    barriers = (2 if plan.training else 1) * plan.steps * target.sync_cycles
    return replace(
        plan,
        target=target,
        populations=tuple(
            replace(p, starts=tuple(map(tile, p.starts)), blocks=tuple(replace(b, tile=tile(b.tile)) for b in p.blocks))
            for p in plan.populations
        ),
        buses=tuple(
            replace(
                b,
                relays=tuple(replace(r, tile=tile(r.tile)) for r in b.relays),
                gradient=b.gradient and replace(b.gradient, sums=tuple(replace(s, tile=tile(s.tile)) for s in b.gradient.sums)),
            )
            for b in plan.buses
        ),
        loss_tiles=tuple(map(tile, plan.loss_tiles)),
        phases=tuple(replace(p, busiest_tile=tile(p.busiest_tile)) for p in plan.phases),
        memory={name: spread(values) for name, values in plan.memory.items()},
        tile_cycles={name: spread(values) for name, values in plan.tile_cycles.items()},
        # Both bounds spread their work over all tiles.
        bound_cycles=waiting + (plan.bound_cycles - waiting) * less / more,
        ideal_cycles=barriers + (plan.ideal_cycles - barriers) * less / more,
    )
