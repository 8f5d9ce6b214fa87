"""The backward half of a step program: which gradients are needed, and the operations that compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from snnc.compiler.connections import Link
from snnc.compiler.errors import NothingToLearnError
from snnc.compiler.graph import Graph, Population
from snnc.compiler.losses import Loss
from snnc.compiler.step_program import (
    BackwardOp,
    BiasGradient,
    Buffer,
    ConnectionInfo,
    DenseInputGradient,
    DenseWeightGradient,
    NeuronAdjoint,
    NeuronStep,
    OneToOneInputGradient,
    OneToOneWeightGradient,
    OptimizerStep,
    OutputInfo,
    Parameter,
    PopulationInfo,
    RecordAdjoint,
    Value,
)


@dataclass(frozen=True)
class Trained:
    """Populations (by name) that a gradient runs through, and connections whose weights stay as they are."""

    populations: frozenset[str] = frozenset()
    frozen: frozenset[Link] = frozenset()


@dataclass(frozen=True)
class Backward:
    """What training adds to a step program."""

    operations: tuple[BackwardOp, ...]
    update: tuple[OptimizerStep, ...]


class Draft(Protocol):
    """What the forward half has found; the adjoint buffers are added to `buffers`."""

    trained: Trained
    links: tuple[Link, ...]
    buffers: dict[str, Buffer]
    parameters: dict[str, Parameter]
    populations: list[PopulationInfo]
    connections: list[ConnectionInfo]
    steps: list[NeuronStep]


def find_trained(graph: Graph, found: tuple[Link, ...], loss: Loss, source: str, frozen: frozenset[Link]) -> Trained:
    """Find the populations that lead to the loss and have something to learn in them or in front of them.

    Raises
    ------
    NothingToLearnError
        There are none.
    """
    leading = _closure({source} if isinstance(graph.operation(source), Population) else set(), [(li.target, li.source) for li in found])
    learning = {li.target for li in found if li.operation is not None and li.operation.learnable and li not in frozen}
    learning |= {name for name, population in graph.of_type(Population) if population.learnable}
    learning = _closure(learning, [(li.source, li.target) for li in found])
    trained = frozenset(name for name, _ in graph.of_type(Population) if name in leading & learning)
    if source not in trained:
        raise NothingToLearnError(
            f"the loss '{loss.name}' reads {source!r}, and nothing learnable leads there; "
            "make a weight or parameter in front of it learnable, or choose another loss_output."
        )
    return Trained(trained, frozen)


def _closure(start: set[str], edges: list[tuple[str, str]]) -> set[str]:
    """Everything that can be reached from `start`."""
    after: dict[str, list[str]] = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
    reached, waiting = set(start), list(start)
    while waiting:
        new = [name for name in after.get(waiting.pop(), ()) if name not in reached]
        reached.update(new)
        waiting += new
    return reached


def lower_backward(draft: Draft, output: OutputInfo, offsets: Mapping[str, int], update: bool) -> Backward:
    """Write the adjoint of the forward step, last population first, and with `update` the optimiser's steps.

    `offsets` says where one-to-one connections start in their target.
    """
    work = _Backward(draft, offsets)
    work.adjoint(output.record)
    operations: list[BackwardOp] = [RecordAdjoint(output.id, output.source, output.record)]
    for info, step in zip(reversed(draft.populations), reversed(draft.steps), strict=True):
        if info.label in draft.trained.populations:
            operations += work.population(info, step)
    steps = tuple(OptimizerStep(p, g) for p, g in work.gradients.items()) if update else ()
    return Backward(tuple(operations), steps)


@dataclass
class _Backward:
    draft: Draft
    offsets: Mapping[str, int]
    gradients: dict[str, str] = field(default_factory=dict)
    """Parameter to gradient buffer."""

    def adjoint(self, name: str) -> str:
        """Add the adjoint buffer of `name`, alike in shape and lifetime."""
        original = self.draft.buffers[name]
        self.draft.buffers[f"d_{name}"] = Buffer(f"d_{name}", "adjoint", original.shape, original.lifetime)
        return f"d_{name}"

    def gradient(self, parameter: str) -> str:
        """Add the gradient buffer of a learnable parameter."""
        name = f"d_{parameter}"
        self.draft.buffers[name] = Buffer(name, "gradient", self.draft.buffers[parameter].shape, "program")
        self.gradients[parameter] = name
        return name

    def population(self, info: PopulationInfo, step: NeuronStep) -> list[BackwardOp]:
        """The adjoint of a population and of the connections that lead to it."""
        for name in (*step.currents, *step.states, *step.outputs):
            self.adjoint(name)
        parameter = dict(zip(info.kernel.parameters, step.parameters, strict=True))
        gradients = tuple(self.gradient(parameter[a]) for a in info.kernel.learnable)
        operations: list[BackwardOp] = [
            NeuronAdjoint(step.population, step.currents, step.states, step.parameters, step.outputs, step.saved, gradients)
        ]
        for connection in self.draft.connections:
            if connection.target == info.id:
                operations += self.connection(connection, step.currents[connection.port])
        return operations

    def connection(self, connection: ConnectionInfo, current: str) -> list[BackwardOp]:
        """Gradients of a connection's weights, then of its source, each only where needed."""
        dense, id_, weight = connection.kind == "dense", connection.id, connection.weight
        source = Value(connection.source_buffer, connection.delay)
        offset = self.offsets.get(id_, 0)
        operations: list[BackwardOp] = []
        if connection.bias is not None and self.draft.parameters[connection.bias].learnable:
            operations.append(BiasGradient(current, self.gradient(connection.bias)))
        if weight is not None and self.draft.parameters[weight].learnable:
            gradient = self.gradient(weight)
            operations.append(
                DenseWeightGradient(id_, source, current, gradient)
                if dense
                else OneToOneWeightGradient(id_, source, current, gradient, offset)
            )
        if any(p.id == connection.source and p.label in self.draft.trained.populations for p in self.draft.populations):
            operations.append(
                DenseInputGradient(id_, source, weight, current)
                if dense and weight is not None
                else OneToOneInputGradient(id_, source, weight, current, offset)
            )
        return operations
