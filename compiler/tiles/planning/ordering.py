"""Choice of the order of neurons in populations with channels (as of a convolution): the order with the fastest predicted plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.activity import Activity, pattern_at
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.partition import Correspondence
from snnc.compiler.tiles.partition.reorder import movable, orders, reorder
from snnc.compiler.tiles.planning.parting import Mapped, Mapper, worth_planning
from snnc.compiler.tiles.search.quick_estimates import Clocks

GRAINS: Final = (8, 1 << 30)
"""Maximum number of channels whose values at one position are adjacent; the last number stands for all channels. Each gives an order to
try besides the author's."""


@dataclass(frozen=True, eq=False)
class ChannelOrders:
    """The order of each reordered input and population, and the correspondence between the original and the reordered program."""

    orders: Mapping[str, ChannelOrder]
    correspondence: Correspondence


class Common:
    """Results shared by all points of an exploration: the orders of a program, and plans that do not depend on the clock rate."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self._variants: list[tuple[StepProgram, Mapping[str, ChannelOrders | None]]] = []

    def variants(self, program: StepProgram) -> Mapping[str, ChannelOrders | None]:
        """Return the orders to try for a program, by name; "" is the author's order."""
        known = next((variants for other, variants in self._variants if other is program), None)
        if known is None:
            known = _variants(program)
            self._variants.append((program, known))
        return known


def _variants(program: StepProgram) -> Mapping[str, ChannelOrders | None]:
    variants: dict[str, ChannelOrders | None] = {"": None}
    for grain in GRAINS:
        chosen = orders(program, grain)
        variants.setdefault(str(chosen), ChannelOrders(chosen, reorder(program, chosen)))
    return variants


def map_orders(program: StepProgram, mapper: Mapper, activity: Activity | None, common: Common) -> Mapped:
    """Estimate the network in several orders quickly, plan those with the fastest estimates in full, and return the fastest plan."""
    if not movable(program):
        return Mapped(mapper(program, activity))
    estimates: list[tuple[float, ChannelOrders | None]] = []
    # Adjacent channels are usually fastest, so they come first: the mapper keeps approximate cycles of orders far slower than earlier ones.
    for variant in reversed(list(common.variants(program).values())):
        with suppress(TooBigError):
            estimates.append((_plan(program, mapper, activity, variant, quick=True).cycles, variant))
    worth = worth_planning(estimates) or [None]
    return min((Mapped(_plan(program, mapper, activity, variant), variant) for variant in worth), key=lambda mapped: mapped.plan.cycles)


def _plan(program: StepProgram, mapper: Mapper, activity: Activity | None, variant: ChannelOrders | None, *, quick: bool = False) -> Plan:
    if variant is None:
        return mapper(program, activity, quick=quick)
    return mapper(variant.correspondence.program_of_parts, activity_of(variant, activity), quick=quick)


def activity_of(variant: ChannelOrders, activity: Activity | None) -> Activity | None:
    """Return the activity of the reordered program."""
    if activity is None:
        return None
    places = variant.correspondence.buffers
    moved = {name: rate if (p := places.get(name)) is None or p.index is None else rate[p.index] for name, rate in activity.rates.items()}
    bits = {name: bits if (p := places.get(name)) is None else pattern_at(bits, p.index) for name, bits in activity.patterns.items()}
    return replace(activity, rates=moved, patterns=bits)
