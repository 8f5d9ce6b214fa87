"""The optimisers' equations, step for step those of :mod:`torch.optim`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.compiler.losses.optimizers import SGD, Adam, Optimizer


@dataclass
class OptimizerState:
    """Moments of all parameters, and the number of steps so far."""

    optimizer: Optimizer
    count: int = 0
    first: dict[str, Array] = field(default_factory=dict)
    second: dict[str, Array] = field(default_factory=dict)

    def moments_of(self, moment: str) -> dict[str, Array]:
        """The values under a name of :func:`~snnc.backends.training.moments.moments`, by parameter."""
        return {"moment1": self.first, "moment2": self.second}[moment]

    def begin(self) -> None:
        """Start an update: one for all parameters."""
        self.count += 1

    def change(self, name: str, parameter: Array, gradient: Array, learning_rate: float) -> None:
        """Change `parameter` in place."""
        match self.optimizer:
            case SGD(momentum=momentum):
                step = gradient
                if momentum:
                    step = self.first[name] = momentum * self.first[name] + gradient if name in self.first else gradient.copy()
                parameter -= learning_rate * step
            case Adam(beta1=beta1, beta2=beta2, epsilon=epsilon):
                first = self.first[name] = beta1 * self.first.get(name, np.zeros_like(gradient)) + (1 - beta1) * gradient
                second = self.second[name] = beta2 * self.second.get(name, np.zeros_like(gradient)) + (1 - beta2) * gradient * gradient
                root = np.sqrt(second) / (1 - beta2**self.count) ** 0.5 + epsilon
                parameter -= learning_rate / (1 - beta1**self.count) * first / root
