"""A network whose loss is someone else's: its output's adjoint is given, gradients of parameters (and of inputs) come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from snnc.compiler.graph import Edge, Graph, Input, OneToOne, Population
from snnc.compiler.neurons.stateless import Relay
from snnc.compiler.passes.edit import fresh_name


@dataclass(frozen=True)
class GivenAdjoint:
    """Stands where a program has its loss; only programs on the processor know it.

    Attributes
    ----------
    relays
        Populations whose currents' adjoints are kept, by label; see :func:`with_input_gradients`.
    """

    relays: tuple[str, ...] = ()

    name: ClassVar[str] = "adjoint"
    port: ClassVar[Literal["spikes", "membrane"]] = "membrane"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """There is no value; `target` is the adjoint."""
        return 0.0, target.astype(output.dtype)

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the sum over time."""
        scores: npt.NDArray[np.floating] = output.sum(axis=0)
        return scores


def with_input_gradients(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Return `graph` with a relay behind each input, and the relay of each input: what arrives at it has the input's gradient.

    A relay is only differentiated behind something that learns: the link in front of it has a weight of 1, which nobody changes.
    """
    made = Graph(graph.name, graph.steps)
    made.state_inputs, made.idle_inputs, made.assumptions = dict(graph.state_inputs), dict(graph.idle_inputs), list(graph.assumptions)
    for name in graph.names:
        made.add(name, graph.operation(name))
    relays: dict[str, str] = {}
    for name, operation in graph.of_type(Input):
        link = made.add(fresh_name(made, f"{name} gradient"), OneToOne(np.ones((), np.float32), learnable=True))
        relay = made.add(fresh_name(made, f"{name} relay"), Population(Relay(), operation.shape))
        made.connect(name, link)
        made.connect(link, relay)
        relays[name] = relay
    for edge in graph.edges:
        _connect(made, edge, relays)
    return made, relays


def _connect(made: Graph, edge: Edge, relays: dict[str, str]) -> None:
    source, port = (relays[edge.source], "") if edge.source in relays else (edge.source, edge.source_port)
    made.connect(source, edge.target, source_port=port, target_port=edge.target_port, delay=edge.delay)
