"""LSUV: layer-sequential unit-variance initialisation of spiking layers on a batch of data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Array, Graph, Population, Sparse
from snnc.compiler.lowering.lower import lower
from snnc.driver.measuring import with_outputs
from snnc.errors import InitialisationError
from snnc.frontends.dsl.initialisers import Orthogonal
from snnc.initialising.incoming import IncomingWeights, incoming_weights, scale_weights, with_weights
from snnc.initialising.membrane import membrane_of, threshold_of


@dataclass(frozen=True)
class LSUV:
    """Orthogonal weights, scaled layer by layer until the standard deviation of the membrane potential on a batch is `std` thresholds.

    Mishkin and Matas, "All you need is a good init", 2016 (arXiv 1511.06422), whose algorithm scales the weights of each layer until the
    variance of its output is 1. Here, the output is the membrane potential, over all neurons, samples and steps, including spikes and
    resets. Recurrent weights are also orthogonal, with the gain `recurrent`; they are scaled further only if the layer has no other
    weights. Weights of sparse connections are drawn from a normal distribution instead. Biases become 0.

    Parameters
    ----------
    std
        Standard deviation of the membrane potential, in thresholds.
    tolerance
        Accepted relative error of the standard deviation.
    rounds
        Maximum number of scalings per layer.
    recurrent
        Gain of recurrent weights, in thresholds.
    """

    std: float = 1.0
    tolerance: float = 0.05
    rounds: int = 20
    recurrent: float = 0.2

    def __post_init__(self) -> None:
        for name in ("std", "tolerance", "recurrent"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InitialisationError(f"{name} is {value}; it must be a number above 0.")
        if self.rounds < 1:
            raise InitialisationError(f"rounds is {self.rounds}; it must be 1 or more.")

    def apply(self, graph: Graph, inputs: Mapping[str, Array], rng: np.random.Generator) -> Graph:
        """Return a copy of `graph` with new weights; `inputs` contains a batch [T, B, *shape] for each input, by name.

        Raise InitialisationError if the batch evokes no response in a layer, or a layer does not converge in `rounds` scalings.
        """
        changed, incoming = graph.copy(), incoming_weights(graph)
        for name, weights in incoming.items():
            for one in weights:
                gain = self.recurrent * threshold_of(_population(graph, name)) if one.recurrent else 1.0
                with_weights(changed, one.name, gain * _orthogonal(one, rng))
        for name, weights in incoming.items():
            scaled = [one.name for one in weights if not one.recurrent] or [one.name for one in weights]
            if scaled:
                self._scale(changed, name, scaled, inputs)
        return changed

    def _scale(self, graph: Graph, name: str, weights: list[str], inputs: Mapping[str, Array]) -> None:
        target = self.std * threshold_of(_population(graph, name))
        for _ in range(self.rounds):
            measured = float(membranes(graph, name, inputs).std())
            if measured == 0:
                raise InitialisationError(
                    f"the membrane potentials of {name!r} are constant on this batch: no spike reaches the layer. Try more data."
                )
            if abs(measured / target - 1) <= self.tolerance:
                return
            for node in weights:
                scale_weights(graph, node, target / measured)
        raise InitialisationError(
            f"the membrane potentials of {name!r} have a standard deviation of {measured:.3g} instead of {target:.3g} after {self.rounds} "
            "scalings, because resets and recurrence counteract them. Try a smaller std, a larger tolerance or FluctuationDriven()."
        )


def _population(graph: Graph, name: str) -> Population:
    operation = graph.operation(name)
    assert isinstance(operation, Population)
    return operation


def _orthogonal(one: IncomingWeights, rng: np.random.Generator) -> Array:
    """Return orthogonal weights; for a sparse connection, normal weights with the same variance."""
    if isinstance(one.operation, Sparse):
        drawn: Array = rng.normal(0.0, 1 / math.sqrt(one.fans.fan_in), one.operation.weight.shape)
        return drawn
    return Orthogonal().draw(one.operation.weight.shape, one.fans, rng)


def membranes(graph: Graph, name: str, inputs: Mapping[str, Array]) -> Array:
    """Run the network and return the membrane potentials [T, B, *shape] of a population."""
    port = name, membrane_of(_population(graph, name))
    probed, names = with_outputs(graph, [port])
    program = lower(probed)
    records = ReferenceEngine(program).forward({i.id: inputs[i.label] for i in program.inputs}, {})
    (output,) = (o.id for o in program.outputs if o.label == names[port])
    return records[output]
