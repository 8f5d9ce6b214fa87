"""Values of several channels in an order that places the channels of one position side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChannelOrder:
    """Values (channels, positions), stored `grain` channels at a time: all positions of the first channels, with the channels of a
    position together.

    A grain of 1 is the author's order, channels first; a grain of all channels is channels last. `grain` divides `channels`.

    Examples
    --------
    >>> ChannelOrder(2, 3, 2).values().tolist()
    [0, 3, 1, 4, 2, 5]
    """

    channels: int
    positions: int
    grain: int

    def values(self) -> Ints:
        """Return the author's number of the value at each place."""
        return _values(self)

    def places(self) -> Ints:
        """Return the place of each of the author's values."""
        return np.argsort(self.values(), kind="stable")


@lru_cache(maxsize=64)
def _values(order: ChannelOrder) -> Ints:
    blocks = np.arange(order.channels * order.positions).reshape(order.channels // order.grain, order.grain, order.positions)
    found: Ints = blocks.transpose(0, 2, 1).reshape(-1)
    found.setflags(write=False)
    return found
