"""Parts of an update that a training step of a native program performs."""

from __future__ import annotations

from enum import IntEnum


class Gather(IntEnum):
    """Parts of an update that a training step, or a run that measures statistics, performs: values of the program's setting ``gather``."""

    ALONE = 0
    BEGINS = 1
    GOES_ON = 2
    CHANGES = 3
    AGAIN = 4
    MEASURES = 5
