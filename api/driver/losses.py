"""Losses by the names used in programs."""

from __future__ import annotations

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses import Loss, parse_loss


def cross_entropy(of: str = "spike count") -> Loss:
    """Cross entropy between the classes and a readout of the output.

    Parameters
    ----------
    of
        ``"spike count"``, ``"spike rate"``, ``"mean membrane"`` or ``"max membrane"``.

    Examples
    --------
    >>> cross_entropy("mean membrane").name
    'ce_mean_membrane'
    """
    loss = parse_loss(of)
    if not loss.name.startswith("ce_"):
        raise UnknownLossError(f"CrossEntropy({of!r}) is not known; give 'spike count', 'spike rate', 'mean membrane' or 'max membrane'.")
    return loss
