"""The neuron models of snnTorch for IPUs (arXiv 2211.10725), each in a network for MNIST: 784-1000-10, or with a convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snnc.compiler.errors import SnncError
from snnc.compiler.neurons.library import LIF, SLSTM, Alpha, CubaLIF, Lapicque
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.driver.estimating import estimate_graph
from snnc.frontends.dsl.connections import Conv, Dense, OneToOne
from snnc.frontends.dsl.connections.base import Connection
from snnc.frontends.dsl.network import Network
from snnc.options.compile_options import options

INPUTS, HIDDEN, CLASSES, STEPS = 784, 1000, 10, 25
"""Numbers of inputs, hidden neurons, classes and steps: ``mnist`` of the public repository ``vinniesun/snntorch-ipu``."""
CHANNELS, KERNEL, STRIDE = 16, 5, 2
"""Number of channels, kernel size and stride of the convolution in the convolutional networks, whose input is an image of 28 x 28."""
HALVES: Final = ("weights:stochastic,history,deltas", "history,deltas", "weights:stochastic,history", "history")
"""Values to store as float16 for precision "float16"; the first choice that snnc accepts for a network is used."""
Recurrence: TypeAlias = Literal["", "one to one", "all to all"]
Precision: TypeAlias = Literal["float32", "float16"]


@dataclass(frozen=True)
class Variant:
    """A neuron model in a network."""

    neuron: Callable[[], NeuronModel]
    recurrence: Recurrence = ""
    """Kind of the recurrent connection; "" for none."""
    gates: bool = False
    """Whether the recurrent connection reaches every input port, like the gates of an LSTM."""
    convolution: bool = False
    """Whether the connections to the hidden layer are convolutions."""


_VARIANTS: Final[Mapping[str, Variant]] = {
    "Leaky": Variant(lambda: LIF(beta=0.9)),
    "Synaptic": Variant(lambda: CubaLIF(0.8, 0.9)),
    "Lapicque": Variant(Lapicque),
    "Alpha": Variant(Alpha),
    "RLeaky one to one": Variant(lambda: LIF(beta=0.9, input_kept=False), "one to one"),
    "RLeaky all to all": Variant(lambda: LIF(beta=0.9, input_kept=False), "all to all"),
    "RSynaptic one to one": Variant(lambda: CubaLIF(0.8, 0.9), "one to one"),
    "RSynaptic all to all": Variant(lambda: CubaLIF(0.8, 0.9), "all to all"),
    "SLSTM": Variant(SLSTM, "all to all", gates=True),
    "Leaky, convolution": Variant(lambda: LIF(beta=0.9), convolution=True),
    "SConv2dLSTM": Variant(SLSTM, "all to all", gates=True, convolution=True),
}
MODELS: Final = tuple(_VARIANTS)
"""Models by name; the names of recurrent ones include the kind of recurrence."""


def network(model: str, seed: int = 0, *, inputs: int = INPUTS, hidden: int = HIDDEN) -> Network:
    """Return the network of one of :data:`MODELS`; its inputs are the values of pixels.

    The input of a convolutional model is an image of 28 x 28; `inputs` and `hidden` are ignored.
    """
    variant = _VARIANTS[model]
    net = Network(model, seed=seed)
    side = round(INPUTS**0.5)
    pixels = net.input((1, side, side) if variant.convolution else inputs, "values", name="pixels")
    small = -(-side // STRIDE)
    chosen = variant.neuron()
    layer = net.population((CHANNELS, small, small) if variant.convolution else hidden, chosen, name="hidden")
    output = net.population(CLASSES, LIF(beta=0.9), name="output")
    for port in chosen.inputs:
        feed = Conv(CHANNELS, KERNEL, stride=STRIDE, padding=KERNEL // 2) if variant.convolution else Dense()
        net.connect(pixels, layer, feed, target_port=port)
        if variant.gates:
            net.connect(layer, layer, _feedback(variant), delay=1, target_port=port)
    if variant.recurrence and not variant.gates:
        net.connect(layer, layer, _feedback(variant), delay=1)
    net.connect(layer, output, Dense())
    return net


def _feedback(variant: Variant) -> Connection:
    if variant.convolution:
        return Conv(CHANNELS, KERNEL, padding=KERNEL // 2, bias=False)
    return OneToOne(0.1) if variant.recurrence == "one to one" else Dense(bias=False)


def predict_neuron_model(model: str, batch: int, target: str = "gc200", precision: Precision = "float32") -> dict[str, Any]:
    """Return the predicted training step of the network of `model`, or an ``error``.

    With precision "float16", the history, the deltas of dense connections and their weights (rounded stochastically) are stored as float16
    where snnc accepts it for the network (see :data:`HALVES`).
    """
    named = {"model": model, "batch": batch, "precision": precision}
    refused = ""
    for half in HALVES if precision == "float16" else (None,):
        half_options: dict[str, Any] = {} if half is None else {"precision": precision, "half": half}
        optimizer = "adam:loss_scale=1024" if half is not None and "deltas" in half else "adam"
        try:
            chosen = options(target, steps=STEPS, batch=batch, loss="ce_count", optimizer=optimizer, **half_options)
            data = estimate_graph(network(model).graph(), chosen).to_data()
        except SnncError as error:
            refused = error.text
            continue
        numbers = {name: data[name] for name in ("target", "samples_per_s", "step_ms", "peak_tile_bytes", "steps")}
        return named | numbers | ({} if half is None else {"half": half})
    return named | {"error": refused}
