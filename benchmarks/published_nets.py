"""The nets of arXiv 2311.04386, with the sizes of its public benchmark scripts.

Sizes, capacities, batches and optimisers are those of ``benchmarking/benchmarking_script.py`` and ``benchmarking/runfile_*.sh`` of
``jrfinkbeiner/graphcore_snn``. The neuron (decay :data:`DECAY`, gain :data:`GAIN`, threshold 1, hard reset without gradient) and the
one-step delay between layers are those of ``custom_lif_multi_layer/custom_lif_layer_vectorize_transpose``. The gain is part of the
weights here, which is equivalent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.benchmarks.published import PublishedLayer, PublishedNet
from snnc.compiler.ir.graph import Array, Shape
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.neuron import NeuronModel, neuron
from snnc.frontends.dsl.connections import Dense
from snnc.frontends.dsl.initialisers import Fans
from snnc.frontends.dsl.network import Network

DECAY: Final = 0.95
GAIN: Final = 10.0 * (1.0 - DECAY)
"""Factor of a neuron's current."""
SURROGATE: Final = "fast_sigmoid:10"
"""SuperSpike with slope 10."""
WINDOW: Final = (-0.1, math.inf)
"""Range of the membrane potential minus threshold in which neurons receive a gradient. The scripts call its lower end (here 0.9 in
absolute terms) the second threshold."""
READOUT: Final = "readout"
USABLE_TILES: Final = 1471
"""Number of tiles of an IPU on which the scripts place neurons; tile 0 is omitted."""


@dataclass(frozen=True)
class Dataset:
    """Numbers of inputs, classes and steps of a data set, and its input capacity in the scripts."""

    inputs: int
    classes: int
    steps: int
    capacity: int


DATASETS: Final = {
    "nmnist": Dataset(34 * 34 * 2, 10, 100, 32),
    "dvs": Dataset(48 * 48 * 2, 11, 50, 32),
    "shd": Dataset(700, 20, 100, 48),
}


def hidden_sizes(layers: int, per_tile: int, classes: int) -> tuple[int, ...]:
    """Return the sizes of `layers` layers that share one IPU evenly, in whole tiles of `per_tile` neurons; tiles for the readout stay free.

    `classes` is 0 for an IPU without readout. Tiles that remain go to the first layers.
    """
    neurons = USABLE_TILES * per_tile - math.ceil(classes / per_tile) * per_tile
    tiles, rest = neurons // layers // per_tile, neurons % (layers * per_tile)
    return tuple(per_tile * (tiles + (rest > per_tile * i)) for i in range(layers))


def capacity_of(neurons: int, activity: float) -> int:
    """Return the capacity K of a layer: the share `activity` of its neurons, rounded down to an even number, at least 2."""
    return max(2 * int(activity * neurons // 2), 2)


def published_net(
    name: str, data: Dataset, *, layers: int, per_tile: int, ipus: int, activity: float, batch: int, optimizer: str
) -> PublishedNet:
    """Return one net of the scripts' grid, in which every layer sends as many spikes and gradients as its capacity.

    `layers` is the number of hidden layers per IPU.
    """
    sizes = (*hidden_sizes(layers, per_tile, 0) * (ipus - 1), *hidden_sizes(layers, per_tile, data.classes), data.classes)
    chain = tuple(PublishedLayer(n, capacity_of(n, activity), spikes=0.0, gradients=0.0) for n in sizes)
    return PublishedNet(name, data.inputs, data.capacity, 0.0, chain, data.steps, batch, optimizer).full()


@dataclass(frozen=True)
class ScaledUniform:
    """Initial weights, uniform in ±multiplier·sqrt(6 / fan_in) as in the scripts, times the neuron's gain, in single precision."""

    multiplier: float

    def draw(self, shape: Shape, fans: Fans, rng: np.random.Generator) -> Array:
        """Return an array of `shape`."""
        limit = np.float32(weight_limit(self.multiplier, fans.fan_in) * GAIN)
        weights: Array = rng.random(shape, np.float32)
        weights *= 2 * limit
        weights -= limit
        return weights


def weight_limit(multiplier: float, inputs: float) -> float:
    """Return the limit of the uniform initial weights without the gain; the log prints 0.2558990 for 1466 inputs and multiplier 4."""
    return multiplier * math.sqrt(6.0 / inputs)


def network_of(net: PublishedNet, multiplier: float, seed: int = 0, *, dense: bool = False) -> Callable[[], Network]:
    """Return a function that builds `net` as an snnc network; it draws the weights when it is called.

    With `dense`, inputs and hidden layers send values: the program then moves and multiplies zeros as well, as a dense framework does.
    """

    def build() -> Network:
        network = Network(net.name, seed=seed)
        source, delay = network.input(net.inputs, "values" if dense else "spikes", name="input"), 0
        for name, layer in zip(layer_names(net), net.layers, strict=True):
            hidden = name != READOUT
            target = network.population(layer.neurons, dense_lif() if dense and hidden else LIF(beta=DECAY, reset="zero"), name=name)
            network.connect(source, target, Dense(bias=False, init=ScaledUniform(multiplier)), delay=delay)
            source, delay = target, 1
        return network

    return build


def dense_lif() -> NeuronModel:
    """Return the published neuron with an output of values: spikes plus a parameter that is 0, so that they do not count as spikes."""
    return neuron(
        "dense LIF",
        inputs="i",
        states={"v": 0.0},
        params={"beta": DECAY, "threshold": 1.0, "offset": 0.0},
        equations="""
            r = detach(spike(v - threshold))
            v = beta * ((1 - r) * v) + i
            y = spike(v - threshold) + offset
        """,
        output="y",
    )


def layer_names(net: PublishedNet) -> tuple[str, ...]:
    """Return the names of the populations: ``hidden1`` … and ``readout``."""
    return (*(f"hidden{i + 1}" for i in range(len(net.layers) - 1)), READOUT)
