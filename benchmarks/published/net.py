"""Networks of the published program: a chain of dense layers of LIF neurons, each with a fixed spike capacity.

The program is that of arXiv 2311.04386; its properties are taken from the public code ``jrfinkbeiner/graphcore_snn``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.tiles.errors import PublishedOptionError

PRIVATE_COPIES: Final = 6
"""Number of private copies of the weight gradient on a tile, one per worker (``calcLIFWeightGrad``). A batch has at least as many samples
as copies."""
MOMENTS: Final = {"adam": 2, "sgd": 0}
"""Number of values that each optimiser of the benchmark scripts stores for a parameter."""


@dataclass(frozen=True)
class PublishedLayer:
    """A layer of LIF neurons with dense input weights."""

    neurons: int
    capacity: int
    """K, the capacity of the layer's sparse spike tensor, in ids per sample and step."""
    spikes: float
    """n0: mean number of neurons that spiked, over samples and steps; at most K."""
    gradients: float
    """n1: mean number of neurons that receive a gradient, because they spiked or are near the threshold; at most K."""

    def __post_init__(self) -> None:
        if not 1 <= self.capacity <= self.neurons:
            raise PublishedOptionError(f"the capacity of a layer of {self.neurons} neurons is {self.capacity}; it is 1 to {self.neurons}.")
        if not 0 <= self.spikes <= self.gradients <= self.capacity:
            raise PublishedOptionError(
                f"a layer of capacity K = {self.capacity} has n0 = {self.spikes:g} spikes and n1 = {self.gradients:g} gradients; "
                "it must be 0 <= n0 <= n1 <= K."
            )


@dataclass(frozen=True)
class PublishedNet:
    """A network of the published program, and the size of its training step."""

    name: str
    inputs: int
    input_capacity: int
    """Maximum number of ids per sample and step."""
    input_spikes: float
    """Mean number of ids per sample and step."""
    layers: tuple[PublishedLayer, ...]
    """Hidden layers in order, then the readout, which spikes as well."""
    steps: int
    batch: int
    optimizer: str = "adam"
    """A key of :data:`MOMENTS`."""

    def __post_init__(self) -> None:
        if self.batch < PRIVATE_COPIES:
            raise PublishedOptionError(
                f"{self.name!r} has a batch of {self.batch}; the published program gives each of its {PRIVATE_COPIES} private weight "
                f"gradients a sample, so give {PRIVATE_COPIES} or more."
            )

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of inputs, and number of neurons of each layer."""
        return (self.inputs, *(layer.neurons for layer in self.layers))

    @property
    def weights(self) -> int:
        """Number of weights of all layers; there are no biases."""
        return sum(a * b for a, b in zip(self.widths[:-1], self.widths[1:], strict=True))

    @property
    def moments(self) -> int:
        """Number of values that the optimiser stores for a weight."""
        return MOMENTS[self.optimizer]

    def full(self) -> PublishedNet:
        """Return the net with every capacity in use: n0 = n1 = K."""
        layers = tuple(replace(layer, spikes=float(layer.capacity), gradients=float(layer.capacity)) for layer in self.layers)
        return replace(self, input_spikes=float(self.input_capacity), layers=layers)
