"""The order of populations with channels: whichever is predicted to be fastest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.partition import Correspondence
from snnc.compiler.tiles.partition.reorder import movable, orders, reorder
from snnc.compiler.tiles.placement.looks import Clocks
from snnc.driver.activity import Activity, taken
from snnc.driver.parting import Mapped, Mapper, worth_planning
from snnc.errors import ProjectFolderError

ORDERS: Final = "model/orders.json"
"""Where a project keeps how many channels of each population lie side by side."""
GRAINS: Final = (8, 1 << 30)
"""Channels that lie side by side, beside the author's order: some, and all."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """The order of each input and population that has another than the author's, and what the program's numbers stand for."""

    orders: Mapping[str, ChannelOrder]
    between: Correspondence


class Common:
    """What the points of an exploration have in common: the orders of their program, and plans that do not depend on the clock."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self._ways: list[tuple[StepProgram, Mapping[str, Ordered | None]]] = []

    def ways(self, program: StepProgram) -> Mapping[str, Ordered | None]:
        """Return the orders of a program that are tried, by name; "" is the author's."""
        known = next((ways for one, ways in self._ways if one is program), None)
        if known is None:
            known = _ways(program)
            self._ways.append((program, known))
        return known


def _ways(program: StepProgram) -> Mapping[str, Ordered | None]:
    ways: dict[str, Ordered | None] = {"": None}
    for grain in GRAINS:
        chosen = orders(program, grain)
        ways.setdefault(str(chosen), Ordered(chosen, reorder(program, chosen)))
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
    looks: list[tuple[float, Ordered | None]] = []
    # Whichever lies channels side by side is the fastest in most cases; others are looked at no longer than they may be faster.
    for way in reversed(list(common.ways(program).values())):
        with suppress(TooBigError):
            looks.append((_plan(program, mapper, activity, way, quick=True).cycles, way))
    worth = worth_planning(looks) or [None]
    return min((Mapped(_plan(program, mapper, activity, way), way) for way in worth), key=lambda found: found.plan.cycles)


def _plan(program: StepProgram, mapper: Mapper, activity: Activity | None, way: Ordered | None, *, quick: bool = False) -> Plan:
    if way is None:
        return mapper(program, activity, quick=quick)
    return mapper(way.between.split, activity_of(way, activity), quick=quick)


def activity_of(way: Ordered, activity: Activity | None) -> Activity | None:
    """Return the activity of the program in that order."""
    if activity is None:
        return None
    places = way.between.buffers
    moved = {name: rate if (p := places.get(name)) is None or p.index is None else rate[p.index] for name, rate in activity.rates.items()}
    bits = {name: pattern if (p := places.get(name)) is None else taken(pattern, p.index) for name, pattern in activity.patterns.items()}
    return replace(activity, rates=moved, patterns=bits)


def save_orders(way: Ordered, folder: Path) -> None:
    """Write the orders into a project's folder."""
    grains = {id_: order.grain for id_, order in way.orders.items()}
    (folder / ORDERS).write_text(json.dumps(grains, indent=1) + "\n", encoding="utf-8")


def load_orders(program: Callable[[], StepProgram], folder: Path) -> Ordered | None:
    """Read what :func:`save_orders` wrote, None where a project has the author's order.

    Raises
    ------
    ProjectFolderError
        The file is damaged.
    """
    if not (folder / ORDERS).exists():
        return None
    try:
        grains = json.loads((folder / ORDERS).read_text(encoding="utf-8"))
        whole = program()
        able = orders(whole, 1)
        chosen = {id_: replace(able[id_], grain=int(grain)) for id_, grain in grains.items()}
        if any(order.grain < 1 or order.channels % order.grain for order in chosen.values()):
            raise ValueError("a number of channels does not divide them")
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ProjectFolderError(f"{str(folder / ORDERS)!r} cannot be read ({error}); compile the model again.") from None
    return Ordered(chosen, reorder(whole, chosen))
