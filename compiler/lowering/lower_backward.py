"""Backward half of a step program: the gradients that are needed, and the operations that compute them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import networkx as nx

from snnc.compiler.errors import EmptyGroupError, NothingToLearnError
from snnc.compiler.ir.connections import PopulationLink
from snnc.compiler.ir.graph import Graph, Population
from snnc.compiler.ir.step_operations import BackwardOp, ConnectionOp, NeuronAdjoint, NeuronStep, OptimizerStep, RecordAdjoint
from snnc.compiler.ir.step_program import Buffer, ConnectionInfo, OutputInfo, Parameter, PopulationInfo
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer, group_of, is_frozen
from snnc.compiler.lowering.connection_operations import bias_gradient, input_gradient, weight_gradient, weights_of


@dataclass(frozen=True)
class Trained:
    """Populations (by name) through which gradients flow, and connections whose weights the option `train_recurrent` freezes."""

    populations: frozenset[str] = frozenset()
    frozen: frozenset[PopulationLink] = frozenset()


@dataclass(frozen=True)
class Backward:
    """Operations that training adds to a step program."""

    operations: tuple[BackwardOp, ...]
    update: tuple[OptimizerStep, ...]


class BackwardDraft(Protocol):
    """Results of the forward half; adjoint buffers are added to `buffers`."""

    trained: Trained
    links: tuple[PopulationLink, ...]
    buffers: dict[str, Buffer]
    parameters: dict[str, Parameter]
    populations: list[PopulationInfo]
    connections: list[ConnectionInfo]
    steps: list[NeuronStep]
    connection_ops: dict[str, ConnectionOp]
    """Forward operation of each connection, by the connection's id."""


def check_groups(optimizer: Optimizer, parameters: Iterable[Parameter]) -> None:
    """Check that every group of an optimiser matches a parameter.

    Raises
    ------
    EmptyGroupError
        A group matches no parameter; the message contains its pattern and all parameters.
    """
    labels = [p.label for p in parameters]
    for group in optimizer.groups:
        if not any(group_of(optimizer, label) is group for label in labels):
            raise EmptyGroupError(
                f"the group {group.pattern!r} of the optimiser matches no parameter that earlier groups do not match; parameters are "
                f"{', '.join(labels)}."
            )


def find_trained(
    graph: Graph,
    connections: tuple[PopulationLink, ...],
    loss: Loss,
    source: str,
    frozen: frozenset[PopulationLink],
    optimizer: Optimizer | None = None,
) -> Trained:
    """Find the populations that lead to `source`, which the loss reads, and that have or depend on learnable parameters.

    Raises
    ------
    NothingToLearnError
        The values that the loss reads do not depend on a learnable parameter.
    """
    start = {source} if isinstance(graph.operation(source), Population) else set()
    leads_to_loss = _closure(start, [(li.target, li.source) for li in connections])
    learns = {li.target for li in connections if li.learnable and li not in frozen and _learns(li, optimizer)}
    learns |= {
        name for name, population in graph.of_type(Population) if any(not is_frozen(optimizer, f"{name}.{p}") for p in population.learnable)
    }
    depends = _closure(learns, [(li.source, li.target) for li in connections])
    trained = frozenset(name for name, _ in graph.of_type(Population) if name in leads_to_loss & depends)
    if source not in trained:
        raise NothingToLearnError(
            f"the loss '{loss.name}' reads {source!r}, but no learnable weight or parameter affects it; "
            "make a weight or parameter before it learnable, or choose a different loss_output."
        )
    return Trained(trained, frozen)


def _learns(link: PopulationLink, optimizer: Optimizer | None) -> bool:
    """Return whether the optimiser updates the weight or the bias of a learnable link.

    The result is also True for a one-to-one link whose weight is None: it has no parameter that the optimiser could freeze.
    """
    names = [name for name, value in zip(("weight", "bias"), weights_of(link), strict=True) if value is not None]
    return not names or any(not is_frozen(optimizer, f"{link.label}.{name}") for name in names)


def _closure(start: set[str], edges: list[tuple[str, str]]) -> set[str]:
    """Return all nodes reachable from `start`, including `start`."""
    flow: nx.DiGraph[str] = nx.DiGraph(edges)
    flow.add_nodes_from(start)
    return start.union(*(nx.descendants(flow, name) for name in start))


def lower_backward(draft: BackwardDraft, output: OutputInfo, update: bool) -> Backward:
    """Return the adjoint of the forward step, last population first, and with `update` the optimiser steps."""
    backward = _Backward(draft)
    backward.adjoint(output.record)
    operations: list[BackwardOp] = [RecordAdjoint(output.id, output.source, output.record)]
    for info, step in zip(reversed(draft.populations), reversed(draft.steps), strict=True):
        if info.label in draft.trained.populations:
            operations += backward.population(info, step)
    steps = tuple(OptimizerStep(p, g) for p, g in backward.gradients.items()) if update else ()
    return Backward(tuple(operations), steps)


@dataclass
class _Backward:
    """The backward half under construction."""

    draft: BackwardDraft
    gradients: dict[str, str] = field(default_factory=dict)
    """Gradient buffers, by parameter."""

    def adjoint(self, name: str) -> str:
        """Add the adjoint buffer of the buffer `name`, with the same shape and lifetime; return its name."""
        original = self.draft.buffers[name]
        self.draft.buffers[f"d_{name}"] = Buffer(f"d_{name}", "adjoint", original.shape, original.lifetime)
        return f"d_{name}"

    def gradient(self, parameter: str) -> str:
        """Add the gradient buffer of a learnable parameter; return its name."""
        name = f"d_{parameter}"
        self.draft.buffers[name] = Buffer(name, "gradient", self.draft.buffers[parameter].shape, "program")
        self.gradients[parameter] = name
        return name

    def population(self, info: PopulationInfo, step: NeuronStep) -> list[BackwardOp]:
        """Return the adjoint of a population and of its incoming connections."""
        for name in (*step.currents, *step.states, *step.outputs):
            self.adjoint(name)
        parameter = dict(zip(info.kernel.parameters, step.parameters, strict=True))
        gradients = tuple(self.gradient(parameter[a]) for a in info.kernel.learnable)
        operations: list[BackwardOp] = [
            NeuronAdjoint(step.population, step.currents, step.states, step.parameters, step.outputs, step.saved, gradients)
        ]
        for connection in self.draft.connections:
            if connection.target == info.id:
                operations += self.connection(connection)
        return operations

    def connection(self, connection: ConnectionInfo) -> list[BackwardOp]:
        """Return the gradients of a connection's weights, then of its source, where these are needed."""
        op = self.draft.connection_ops[connection.id]
        bias, weight = connection.bias, connection.weight
        operations: list[BackwardOp] = []
        if bias is not None and self.draft.parameters[bias].learnable:
            operations.append(bias_gradient(op, self.gradient(bias)))
        if weight is not None and self.draft.parameters[weight].learnable:
            operations.append(weight_gradient(op, self.gradient(weight)))
        if any(p.id == connection.source and p.label in self.draft.trained.populations for p in self.draft.populations):
            operations.append(input_gradient(op))
        return operations
