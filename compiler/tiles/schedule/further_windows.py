"""Further windows, which carry the events of a step that do not fit in its first window.

In one of the two passes, relays (the tiles that write windows) request the number of further windows that they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from snnc.compiler.tiles.schedule.window_test import Direction
from snnc.compiler.tiles.vertices.relay_vertices import ShownWindow


@dataclass(frozen=True)
class WindowSizes:
    """Sizes of the windows of a bus."""

    width: int
    events: bool
    """Number of values of the source, and whether it sends spikes."""
    exact: bool
    """Whether no event may be dropped."""
    capacity: int
    """Maximum number of ids in a window of the forward pass."""
    gradient_capacity: int | None
    """Maximum number of entries in a window of the backward pass, if gradients return in windows; otherwise None."""

    def limited(self, *, backward: bool = False) -> bool:
        """Return whether a window may be too small for the events of a step, so that further windows follow."""
        capacity = self.gradient_capacity if backward and self.gradient_capacity is not None else self.capacity
        return self.events and self.exact and capacity < self.width


@dataclass(frozen=True)
class FurtherWindows:
    """Sizes of the windows of all buses, by id, and properties derived from these."""

    sizes: dict[str, WindowSizes]
    training: bool

    @cached_property
    def forward(self) -> bool:
        """Whether further windows exist in the forward pass."""
        return any(sizes.limited() for sizes in self.sizes.values())

    @cached_property
    def backward(self) -> bool:
        """Whether further windows exist in the backward pass."""
        return self.training and any(sizes.limited(backward=True) for sizes in self.sizes.values())

    @property
    def requested_in(self) -> Direction | None:
        """The pass in which relays request further windows, or None; in the forward pass, they also request those of the backward pass."""
        return "forward" if self.forward else "backward" if self.backward else None

    @property
    def known(self) -> bool:
        """Whether the forward pass finds how many further windows the backward pass needs."""
        return self.forward and self.backward

    @cached_property
    def requesting(self) -> frozenset[str]:
        """Buses whose relays request further windows."""
        passes = (False, True)[: 1 + self.training]
        return frozenset(id_ for id_, sizes in self.sizes.items() if any(sizes.limited(backward=backward) for backward in passes))

    @cached_property
    def both(self) -> bool:
        """Whether the two passes need separate numbers of further windows, because some backward windows contain gradient entries."""
        return self.forward and any(self.sizes[id_].gradient_capacity is not None for id_ in self.requesting)

    def passes(self, bus: str, *, forward: bool) -> int:
        """Return the number of passes whose further windows relays request in this pass: 0, 1, or 2 if the passes' windows differ."""
        if self.requested_in != ("forward" if forward else "backward") or bus not in self.requesting:
            return 0
        return 2 if forward and self.sizes[bus].gradient_capacity is not None else 1

    def window(self, bus: str, *, forward: bool) -> ShownWindow:
        """Return the form of the windows of a bus that a relay's vertex writes in a pass."""
        sizes = self.sizes[bus]
        support = sizes.gradient_capacity is not None and not forward
        drops = forward and sizes.events and sizes.capacity < sizes.width  # in mode exact: counts further windows instead
        return ShownWindow(support, sizes.limited(backward=support), self.passes(bus, forward=forward), drops)


def request_length(workers: int, *, bits: bool, external: bool, lag: int) -> int:
    """Return the number of counts in a relay's request: one per worker if workers turn bits into ids, else one; `external`: of an input."""
    return workers if bits and (external or lag != 1) else 1  # at lag 1, one worker has just merged the ids of a population
