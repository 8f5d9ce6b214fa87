"""Selection of the recorded values that a loss reads."""

from __future__ import annotations

from typing import Final

from snnc.compiler.errors import LossOutputError
from snnc.compiler.ir.connections import recorded
from snnc.compiler.ir.graph import Graph, Output, Population, source_ports
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.compiler.losses import Loss
from snnc.compiler.losses.base import LossPort
from snnc.compiler.neurons.binary_values import is_binary
from snnc.compiler.neurons.expression import symbols
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.passes.edit import fresh_name

_MEMBRANES: Final = ("v", "mem", "u", "membrane", "V", "U")
"""Usual names of membrane potentials, most usual first."""


def choose_loss_output(graph: Graph, loss: Loss, wanted: str | None) -> tuple[Graph, str]:
    """Return the graph and the name of the output that `loss` reads; a new output is added to a copy of the graph.

    `wanted` is an output, a population, or ``"population.port"``. By default, the loss reads the only output if it fits, that is, if it
    records spikes or membrane potentials as the loss requires; else the fitting port of the last recorded population; else the only
    output. If none of these exists, or the loss cannot read `wanted`, a LossOutputError is raised.
    """
    if wanted is not None:
        return _named_output(graph, loss, wanted)
    ports = port_map(graph)
    outputs = [name for name, _ in graph.of_type(Output)]
    if len(outputs) == 1 and (ports[outputs[0], "in"].kind == "spikes") == (loss.port == "spikes"):
        return graph, outputs[0]
    populations = [
        source for source, _, _ in (recorded(graph, output) for output in outputs) if isinstance(graph.operation(source), Population)
    ]
    if populations and (port := port_of(graph, populations[-1], loss.port, ports)) is not None:
        return _recorded(graph, populations[-1], port)
    if len(outputs) == 1:
        return graph, outputs[0]
    raise LossOutputError(
        f"the loss '{loss.name}' reads {loss.port}, and it is not clear from which output ({', '.join(map(repr, outputs))}); "
        "choose one with loss_output (--loss-output), or give 'population.port'."
    )


def _named_output(graph: Graph, loss: Loss, wanted: str) -> tuple[Graph, str]:
    name, _, port = wanted.rpartition(".")
    if wanted in graph.nx and isinstance(graph.operation(wanted), Output):
        return graph, wanted
    if wanted in graph.nx and isinstance(graph.operation(wanted), Population):
        port_of_loss = port_of(graph, wanted, loss.port)
        if port_of_loss is None:
            raise LossOutputError(f"the population {wanted!r} has no unique {loss.port}; give '{wanted}.port'.")
        return _recorded(graph, wanted, port_of_loss)
    if name in graph.nx:
        operation = graph.operation(name)
        if isinstance(operation, Population) and port in source_ports(operation):
            return _recorded(graph, name, port)
    outputs = ", ".join(repr(n) for n, _ in graph.of_type(Output))
    raise LossOutputError(f"the loss cannot read {wanted!r}, which is neither an output ({outputs}) nor 'population' or 'population.port'.")


def port_of(graph: Graph, name: str, wanted: LossPort, ports: PortMap | None = None) -> str | None:
    """Return the first output port of spikes of population `name`, or the port of its membrane; None if no port is known to be one."""
    model = graph.operation(name).model  # type: ignore[union-attr]
    if wanted == "membrane":
        return membrane(model)
    ports = port_map(graph) if ports is None else ports
    candidates = [port for port in model.outputs if ports[name, port].kind == "spikes"]
    return candidates[0] if candidates else None


def membrane(model: NeuronModel) -> str | None:
    """Return the state that is the membrane of `model`: found by name, as the only state, or as the only state that a spike reads."""
    for name in _MEMBRANES:
        if name in model.states:
            return name
    if len(model.states) == 1:
        return next(iter(model.states))
    read = {name for a in model.equations if is_binary(a.value) for name in symbols(a.value) if name in model.states}
    return next(iter(read)) if len(read) == 1 else None


def _recorded(graph: Graph, name: str, port: str) -> tuple[Graph, str]:
    """Return the graph and its output that records a port, which is added to a copy of the graph if it does not exist."""
    for output, _ in graph.of_type(Output):
        if recorded(graph, output) == (name, port, 0):
            return graph, output
    graph = graph.copy()
    output = graph.add(fresh_name(graph, f"{name}.{port}"), Output())
    graph.connect(name, output, source_port=port)
    return graph, output
