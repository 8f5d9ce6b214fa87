"""The order of populations with channels: whichever is predicted to be fastest."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.partition import Correspondence
from snnc.compiler.tiles.partition.reorder import movable, orders, reorder
from snnc.compiler.tiles.placement.quick_estimates import Clocks
from snnc.compiler.tiles.planning.activity import Activity, taken
from snnc.compiler.tiles.planning.parting import Mapped, Mapper, worth_planning

GRAINS: Final = (8, 1 << 30)
"""Channels that lie side by side, beside the author's order: some, and all."""


@dataclass(frozen=True, eq=False)
class ChannelOrders:
    """The order of each input and population that has another than the author's, and what the program's numbers stand for."""

    orders: Mapping[str, ChannelOrder]
    between: Correspondence


class Common:
    """Results that all points of an exploration share: the orders of their program, and plans that do not depend on the clock."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self._ways: list[tuple[StepProgram, Mapping[str, ChannelOrders | None]]] = []

    def ways(self, program: StepProgram) -> Mapping[str, ChannelOrders | None]:
        """Return the orders of a program that are tried, by name; "" is the author's."""
        known = next((ways for one, ways in self._ways if one is program), None)
        if known is None:
            known = _ways(program)
            self._ways.append((program, known))
        return known


def _ways(program: StepProgram) -> Mapping[str, ChannelOrders | None]:
    ways: dict[str, ChannelOrders | None] = {"": None}
    for grain in GRAINS:
        chosen = orders(program, grain)
        ways.setdefault(str(chosen), ChannelOrders(chosen, reorder(program, chosen)))
    return ways


def map_orders(program: StepProgram, mapper: Mapper, activity: Activity | None, common: Common) -> Mapped:
    """Map the network in several orders quickly, the fastest two of them in full, and keep the faster.

    Raises
    ------
    TooBigError
        It does not fit.
    """
    if not movable(program):
        return Mapped(mapper(program, activity))
    estimates: list[tuple[float, ChannelOrders | None]] = []
    # Whichever lies channels side by side is the fastest in most cases; others are looked at no longer than they may be faster.
    for way in reversed(list(common.ways(program).values())):
        with suppress(TooBigError):
            estimates.append((_plan(program, mapper, activity, way, quick=True).cycles, way))
    worth = worth_planning(estimates) or [None]
    return min((Mapped(_plan(program, mapper, activity, way), way) for way in worth), key=lambda found: found.plan.cycles)


def _plan(program: StepProgram, mapper: Mapper, activity: Activity | None, way: ChannelOrders | None, *, quick: bool = False) -> Plan:
    if way is None:
        return mapper(program, activity, quick=quick)
    return mapper(way.between.split, activity_of(way, activity), quick=quick)


def activity_of(way: ChannelOrders, activity: Activity | None) -> Activity | None:
    """Return the activity of the program in that order."""
    if activity is None:
        return None
    places = way.between.buffers
    moved = {name: rate if (p := places.get(name)) is None or p.index is None else rate[p.index] for name, rate in activity.rates.items()}
    bits = {name: pattern if (p := places.get(name)) is None else taken(pattern, p.index) for name, pattern in activity.patterns.items()}
    return replace(activity, rates=moved, patterns=bits)
