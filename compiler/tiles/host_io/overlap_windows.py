"""The time that a step can continue during a host transfer, until an operation waits for all tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from snnc.compiler.ir.plan import Phase, Plan

Beside: TypeAlias = Literal["forward", "backward", "update"]
_PARTS: Final[dict[str, Beside]] = {"forward": "forward", "recompute": "backward", "backward": "backward", "update": "update"}
_ONCE: Final = ("initial states", "start", "counters", "save", "restore", "to streaming memory", "from streaming memory")
"""Names of phases that do not belong to an iteration."""
Stretch: TypeAlias = tuple[float, bool]
"""Cycles for which a step continues, and whether all tiles then wait for each other."""


def windows(plan: Plan) -> dict[Beside, float]:
    """Cycles for which a step continues after the beginning of each part."""
    found: dict[Beside, float] = {}
    for index, phase in enumerate(plan.phases):
        part = _PARTS.get(phase.part)
        if part is not None and part not in found:
            groups = (list(group) for _, group in groupby(plan.phases[index:], key=lambda p: p.part))
            found[part] = _until_wait(_stretch(some, 1.0) for some in groups)
    return found


def hidden_in_turns(plan: Plan, each: float, once: float) -> float:
    """Cycles of transfers that overlap a step whose inputs come in segments.

    Parameters
    ----------
    plan
        Without overlap. Each run of a segment begins with the transfer for the next one; nothing else uses the reserved tiles before that.
    each, once
        Cycles of the transfer of a segment, and of the transfer once per step, with the last segment.
    """
    last = plan.segments.number - 1
    return sum(min(each + once * (turn == last), window) for turn, window in enumerate(_turns(plan)))


def _turns(plan: Plan) -> Iterator[float]:
    """Cycles from the beginning of each run of a segment to the next one, or until all tiles wait."""
    cut, of_part = plan.segments, {part: list(some) for part, some in groupby(plan.phases, key=lambda p: p.part)}
    iterations = {"forward": cut.iterations, "recompute": cut.again, "backward": cut.iterations}

    def run(part: str, number: int) -> Stretch:
        iterated = [p for p in of_part.get(part, ()) if not p.name.endswith(_ONCE)]
        return _stretch(iterated, number / max(iterations[part], 1))

    row: list[Stretch] = [(0.0, True)] if cut.rows else []
    for _ in range(cut.number - 1):
        yield _until_wait([run("forward", cut.length), *row])
    if not plan.training:
        yield _until_wait([run("forward", cut.last)])
        return
    ends: list[Stretch] = [_stretch(of_part.get("update", []), 1.0)]
    again = cut.number - 1
    between = row if again else ends
    yield _until_wait([run("forward", cut.last), _stretch(of_part.get("loss", []), 1.0), run("backward", cut.last), *between])
    for turn in range(again if cut.reruns else 0):
        yield _until_wait([run("recompute", cut.length), run("backward", cut.length), *(row if turn < again - 1 else ends)])


def _stretch(phases: Sequence[Phase], share: float) -> Stretch:
    """Cycles of all runs of some phases; if one of them waits, those before it in its first run."""
    cycles = 0.0
    for phase in phases:
        if phase.waits:
            return cycles, True
        cycles += phase.first_cycles
    return sum(share * p.runs * p.cycles for p in phases), False


def _until_wait(stretches: Iterator[Stretch] | Sequence[Stretch]) -> float:
    """Cycles until all tiles wait."""
    cycles = 0.0
    for more, waits in stretches:
        cycles += more
        if waits:
            return cycles
    return cycles
