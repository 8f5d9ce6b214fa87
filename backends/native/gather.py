"""Parts of an update that a training step of a native program performs."""

from __future__ import annotations

from enum import IntEnum


class Gather(IntEnum):
    """Values of the setting ``gather`` of a program: the part of an update that its next training step (or run) performs."""

    ALONE = 0
    """The complete update."""
    BEGINS = 1
    """Gradients, which replace earlier ones."""
    GOES_ON = 2
    """Gradients, which are added to earlier ones."""
    CHANGES = 3
    """The update of the parameters from the gradients."""
    AGAIN = 4
    """The backward pass of the last sequence, after a change of parameters that only this pass reads."""
    MEASURES = 5
    """A forward run that computes the statistics of normalisations."""
