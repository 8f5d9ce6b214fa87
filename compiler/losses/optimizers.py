"""Optimisers as data; the equations are those of :mod:`torch.optim`, so loss curves can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent: ``m = momentum*m + g; w -= lr*m`` (``w -= lr*g`` without momentum), as torch.optim.SGD."""

    lr: float = 1e-2
    momentum: float = 0.0
    name: str = "sgd"


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba, arXiv 1412.6980, algorithm 1, epsilon outside the root as torch.optim.Adam)."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name: str = "adam"


Optimizer: TypeAlias = SGD | Adam
