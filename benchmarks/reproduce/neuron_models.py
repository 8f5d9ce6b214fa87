"""The neuron models of snnTorch for IPUs (arXiv 2211.10725), each in a network of 784-1000-10 for MNIST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from snnc.compiler.errors import SnncError
from snnc.compiler.neurons.library import LIF, SLSTM, Alpha, CubaLIF, Lapicque
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.driver.estimating import estimate
from snnc.frontends.dsl.connections import Dense, OneToOne
from snnc.frontends.dsl.network import Network

INPUTS, HIDDEN, CLASSES, STEPS = 784, 1000, 10, 25
"""Sizes of the network and steps of a sequence: ``mnist`` of the public repository ``vinniesun/snntorch-ipu``."""
_MAKE: Final[Mapping[str, Callable[[], NeuronModel]]] = {
    "Leaky": lambda: LIF(beta=0.9),
    "Synaptic": lambda: CubaLIF(0.8, 0.9),
    "Lapicque": Lapicque,
    "Alpha": Alpha,
    "RLeaky one to one": lambda: LIF(beta=0.9, input_kept=False),
    "RLeaky all to all": lambda: LIF(beta=0.9, input_kept=False),
    "RSynaptic all to all": lambda: CubaLIF(0.8, 0.9),
    "SLSTM": SLSTM,
}
MODELS: Final = tuple(_MAKE)
"""Names of the models; of the recurrent ones with their kind of recurrence."""


def network(model: str, seed: int = 0) -> Network:
    """Return the network of one of :data:`MODELS`; its inputs are the values of pixels."""
    net = Network(model, seed=seed)
    pixels = net.input(INPUTS, "values", name="pixels")
    hidden_model = _MAKE[model]()
    hidden = net.population(HIDDEN, hidden_model, name="hidden")
    output = net.population(CLASSES, LIF(beta=0.9), name="output")
    for port in hidden_model.inputs:
        net.connect(pixels, hidden, Dense(), target_port=port)
        if model == "SLSTM":
            net.connect(hidden, hidden, Dense(bias=False), delay=1, target_port=port)
    if "one to one" in model:
        net.connect(hidden, hidden, OneToOne(0.1), delay=1)
    elif "all to all" in model:
        net.connect(hidden, hidden, Dense(bias=False), delay=1)
    net.connect(hidden, output, Dense())
    return net


def predict_neuron_model(model: str, batch: int, target: str = "gc200") -> dict[str, Any]:
    """Return the predicted training step of the network of `model`."""
    try:
        found = estimate(network(model), target, steps=STEPS, batch=batch, loss="ce_count", optimizer="adam")
    except SnncError as error:
        return {"model": model, "batch": batch, "error": error.text}
    data = found.to_data()
    return {"model": model, "batch": batch} | {
        name: data[name] for name in ("target", "samples_per_s", "step_ms", "peak_tile_bytes", "steps")
    }
