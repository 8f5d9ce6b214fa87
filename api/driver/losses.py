"""The cross-entropy loss by the name of its readout; ``snnc`` exports :func:`cross_entropy` as ``CrossEntropy``."""

from __future__ import annotations

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses import Loss, parse_loss


def cross_entropy(of: str = "spike count") -> Loss:
    """Return the cross entropy between class indices and a readout of the output.

    Parameters
    ----------
    of
        ``"spike count"``, ``"spike rate"``, ``"mean membrane"`` or ``"max membrane"``.

    Raises
    ------
    UnknownLossError
        `of` is unknown.
    """
    loss = parse_loss(of)
    if not loss.name.startswith("ce_"):
        raise UnknownLossError(f"CrossEntropy({of!r}) is unknown; give 'spike count', 'spike rate', 'mean membrane' or 'max membrane'.")
    return loss
