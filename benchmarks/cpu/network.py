"""A workload as a network of snnc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.benchmarks.cpu.workloads import BETA, SLOPE, THRESHOLD, ConvLayer, Workload
from snnc.compiler.ir.graph import Array
from snnc.compiler.neurons.library import LI, LIF
from snnc.frontends.dsl import connections
from snnc.frontends.dsl.connections.base import Connection
from snnc.frontends.dsl.network import Network

SURROGATE: Final = f"fast_sigmoid:{SLOPE:g}"


def network(workload: Workload) -> Network:
    """Return the network of a workload, with random weights; a session then loads those of a problem (:func:`labelled`)."""
    net = Network(workload.name)
    source = net.input(workload.shape, name="input", kind="spikes")
    for n, layer in enumerate(workload.layers, 1):
        name, model = f"hidden{n}", LIF(beta=BETA, threshold=THRESHOLD, reset="zero")
        if isinstance(layer, ConvLayer):
            chain: list[Connection] = [connections.Conv(layer.channels, layer.kernel), connections.MaxPool(layer.pool)]
            population = net.population(net.shape_after(source, chain), model, name=name)
            net.connect(source, population, chain)
        else:
            population = net.population(layer.neurons, model, name=name)
            net.connect(source, population, connections.Dense())
            if layer.recurrent:
                net.connect(population, population, connections.Dense(bias=False), delay=1)
        source = population
    if workload.classes:
        readout = net.population(workload.classes, LI(beta=BETA), name="readout")
        net.connect(source, readout, connections.Dense())
    return net


def loss_of(workload: Workload) -> str:
    """Return the loss of a workload, as it is written on the command line."""
    return "ce_mean_membrane" if workload.classes else "ce_count"


def training(workload: Workload, window: float | None = None) -> dict[str, Any]:
    """Return the options of :func:`snnc.compile` for the training step of a workload."""
    return {"steps": workload.steps, "batch": workload.batch, "loss": loss_of(workload), "optimizer": "adam", "surrogate": SURROGATE} | (
        {} if window is None else {"gradient_window": window}
    )


def labels(workload: Workload) -> dict[str, str]:
    """Return snnc's label of each weight of a :class:`~snnc.benchmarks.cpu.problem.TrainingStepProblem`."""
    labels: dict[str, str] = {}
    source = "input"
    for n, layer in enumerate(workload.layers, 1):
        connection = f"{source}_to_hidden{n}" + ("_conv" if isinstance(layer, ConvLayer) else "")
        labels |= {f"hidden{n}.weight": f"{connection}.weight", f"hidden{n}.bias": f"{connection}.bias"}
        if not isinstance(layer, ConvLayer) and layer.recurrent:
            labels[f"hidden{n}.recurrent"] = f"hidden{n}_to_hidden{n}.weight"
        source = f"hidden{n}"
    if not workload.classes:
        return labels
    return labels | {"readout.weight": f"{source}_to_readout.weight", "readout.bias": f"{source}_to_readout.bias"}


def labelled(workload: Workload, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights of a problem under snnc's labels."""
    names = labels(workload)
    return {names[name]: value for name, value in weights.items()}
