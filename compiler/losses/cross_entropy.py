"""Softmax cross entropy over the last axis, shared by several losses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def cross_entropy(
    scores: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """Return the cross entropy of each row and its gradient with respect to `scores`.

    Parameters
    ----------
    scores
        [..., B, classes].
    target
        [B]: class indices.

    Returns
    -------
    array, array
        [..., B] and [..., B, classes]; not averaged.
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    rows = np.arange(scores.shape[-2])
    gradient = np.exp(log_p)
    gradient[..., rows, target] -= 1
    return -log_p[..., rows, target], gradient
