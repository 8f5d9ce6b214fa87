"""Order of an array with channels, in which several channels of one position are adjacent; tile programs store populations in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChannelOrder:
    """Order of values (channels, positions), stored `grain` channels at a time.

    All positions of the first `grain` channels come first; the channels of a position are adjacent.

    A grain of 1 is the model's order, channels first; a grain of all channels is channels last. `grain` divides `channels`.

    Examples
    --------
    >>> ChannelOrder(2, 3, 2).values().tolist()
    [0, 3, 1, 4, 2, 5]
    """

    channels: int
    positions: int
    grain: int

    def values(self) -> Ints:
        """Return the index in the model's order of the value that is stored at each place."""
        return _values(self)

    def places(self) -> Ints:
        """Return the place at which each value is stored, for the values in the model's order."""
        return np.argsort(self.values(), kind="stable")


@lru_cache(maxsize=64)
def _values(order: ChannelOrder) -> Ints:
    blocks = np.arange(order.channels * order.positions).reshape(order.channels // order.grain, order.grain, order.positions)
    values: Ints = blocks.transpose(0, 2, 1).reshape(-1)
    values.setflags(write=False)
    return values
