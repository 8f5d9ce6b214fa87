"""Parts of an update that a training step of a native program performs."""

from __future__ import annotations

from enum import IntEnum


class Gather(IntEnum):
    """Values of the setting ``gather`` of a program: what its next training step (or run) computes."""

    ALONE = 0
    """The complete update."""
    BEGINS = 1
    """Only gradients, which replace earlier ones."""
    GOES_ON = 2
    """Only gradients, which are added to earlier ones."""
    CHANGES = 3
    """Only the update of the parameters, from the gradients computed before."""
    AGAIN = 4
    """The gradients of the last sequence once more, after a change of parameters that only the backward pass reads."""
    MEASURES = 5
    """A forward run that computes the statistics of batch normalisations."""
