"""The networks of the measured training steps, as data.

All networks have LIF neurons with current I, membrane potential v and spike s (s_before in the previous step)::

    v = 0.9 v (1 - s_before) + I        no gradient flows through the reset
    s = v > 1                           surrogate 1 / (1 + 25 |v - 1|)^2, the fast sigmoid of Zenke & Ganguli 2018 with slope 25

A leaky readout has the membrane potential m = 0.9 m + I. The loss is the cross entropy of the mean of m, or of the spike counts of the last
layer if there is no readout; the optimiser is Adam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from snnc.benchmarks.patterns import matching

BETA: Final = 0.9
THRESHOLD: Final = 1.0
SLOPE: Final = 25.0
LEARNING_RATE: Final = 1e-3
MAX_CHECKED: Final = 512
"""Maximum number of inputs and of neurons when the loss, gradients and weights of a workload without a readout are checked."""
GRADIENT_WINDOW: Final = -0.36
"""Lower end of the gradient window in mode "window", relative to the threshold: there, the surrogate derivative is 1 % of its maximum."""


@dataclass(frozen=True)
class DenseLayer:
    """A fully connected layer of LIF neurons; if `recurrent`, each neuron also reads the layer's spikes of the previous step."""

    neurons: int
    recurrent: bool = False


@dataclass(frozen=True)
class ConvLayer:
    """A convolution without padding, max pooling of its result, and LIF neurons."""

    channels: int
    kernel: int
    pool: int


@dataclass(frozen=True)
class Workload:
    """A network and the size of its training step."""

    name: str
    density: float
    """Share of inputs that are 1."""
    steps: int
    batch: int
    shape: tuple[int, ...]
    """Shape of one sample's input at one step."""
    layers: tuple[DenseLayer | ConvLayer, ...]
    classes: int
    """Width of the readout; 0: no readout, the loss is the cross entropy of the last layer's spike counts."""
    first_current: float = 0.4
    """Standard deviation of the current of a neuron in the first layer with random weights, in units of the threshold; it determines the
    activity."""
    later_current: float = 0.4
    """Standard deviation of the current of a neuron in a later layer, in units of the threshold, if 5 % of its inputs spike."""

    @property
    def label(self) -> str:
        """The name that patterns on the command line match: ``w1-5``, ``w1-ff-5``, ``conv-3``."""
        return f"{self.name.lower()}-{100 * self.density:g}"

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of the input, and of the output of each hidden layer."""
        shapes = [self.shape]
        for layer in self.layers:
            if isinstance(layer, DenseLayer):
                shapes.append((layer.neurons,))
            else:
                size = tuple((n - layer.kernel + 1) // layer.pool for n in shapes[-1][1:])
                shapes.append((layer.channels, *size))
        return shapes

    @property
    def outputs(self) -> int:
        """Number of classes: neurons of the readout, or of the last layer."""
        return self.classes or self.shapes()[-1][0]

    def checked(self, steps: int, batch: int) -> Workload:
        """Return the network whose results are checked: with fewer steps and samples, and fewer neurons if there is no readout."""
        if self.classes:
            return self.small(steps, batch)
        few = min(MAX_CHECKED, self.shape[0])
        return replace(self.small(steps, batch), shape=(few,), layers=(DenseLayer(few),))

    def small(self, steps: int, batch: int) -> Workload:
        """Return the same network with fewer steps and samples."""
        return replace(self, steps=min(steps, self.steps), batch=min(batch, self.batch))

    def to_data(self) -> dict[str, Any]:
        """Return the workload as JSON data."""
        layers = [
            ["dense", x.neurons, x.recurrent] if isinstance(x, DenseLayer) else ["conv", x.channels, x.kernel, x.pool] for x in self.layers
        ]
        return {**self.__dict__, "shape": list(self.shape), "layers": layers}

    @staticmethod
    def from_data(data: dict[str, Any]) -> Workload:
        """Undo :meth:`to_data`."""
        layers = tuple(DenseLayer(*rest) if kind == "dense" else ConvLayer(*rest) for kind, *rest in data["layers"])
        return Workload(**{**data, "shape": tuple(data["shape"]), "layers": layers})


def _w1(density: float, name: str = "W1", batch: int = 64, *, recurrent: bool = True) -> Workload:
    return Workload(name, density, 100, batch, (700,), (DenseLayer(256, recurrent),), 20)


WORKLOADS: Final = (
    _w1(0.01),
    _w1(0.05),
    _w1(0.10),
    _w1(0.05, "W1-ff", recurrent=False),
    Workload("W2", 0.03, 250, 64, (700,), (DenseLayer(1024, True), DenseLayer(1024, True)), 20),
    _w1(0.05, "W3", batch=1),
    Workload("conv", 0.03, 64, 32, (2, 34, 34), (ConvLayer(12, 5, 2), ConvLayer(32, 5, 2)), 10, first_current=0.12, later_current=0.12),
)


def workloads(patterns: str = "*", among: Sequence[Workload] = WORKLOADS, suite: str = "cpu") -> tuple[Workload, ...]:
    """Return the workloads of a suite whose label or name matches one of `patterns`, ignoring case."""
    known = f"there are {', '.join(w.label for w in among)}"
    return matching(patterns.lower(), among, lambda w: (w.label, w.name.lower()), f"workload of the suite {suite}", known)
