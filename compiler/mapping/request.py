"""What a mapping was asked for, and the problems that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from snnc.compiler.mapping.buses import make_buses
from snnc.compiler.mapping.capacity import expected_activity
from snnc.compiler.mapping.cost import network_costs
from snnc.compiler.mapping.network import Network
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.schedule import Schedule
from snnc.compiler.plan import Mode
from snnc.compiler.target import Target


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of :func:`snnc.compiler.mapping.make_plan`, with the network and its schedule."""

    network: Network
    schedule: Schedule
    target: Target
    steps: int
    batch: int
    mode: Mode
    activity: Mapping[str, float] | None
    capacity: Mapping[str, int] | int | None
    chips: int | None

    def problems(self) -> Iterator[Problem]:
        """One problem for each way to size the windows.

        Small windows, by the measured activity, save bytes but cost a test for further ones in every iteration; so windows that hold
        everything are tried as well. Whatever the user gave is kept.
        """
        costs, expected = network_costs(self.network), expected_activity(self.network, self.activity)
        open_ = self.activity and self.capacity is None and self.mode == "exact"
        for measured in (self.activity, None) if open_ else (self.activity,):
            buses, bus_of = make_buses(self.network, self.schedule, measured, self.capacity)
            yield Problem(self.network, self.schedule, buses, bus_of, costs, expected, self.target, self.steps, self.batch, self.mode)
