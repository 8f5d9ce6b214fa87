"""The draft of a step program, and its backward half: the gradients that are needed, and the operations that compute them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from snnc.compiler.errors import EmptyGroupError, NothingToLearnError
from snnc.compiler.ir.connections import PopulationLink
from snnc.compiler.ir.graph import Array, Graph, Population
from snnc.compiler.ir.shapes import PortMap
from snnc.compiler.ir.step_operations import BackwardOp, ConnectionOp, NeuronAdjoint, NeuronStep, RecordAdjoint
from snnc.compiler.ir.step_program import Buffer, ConnectionInfo, InputInfo, Lifetime, OutputInfo, Parameter, PopulationInfo, Role
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer, group_of, is_frozen
from snnc.compiler.lowering.connection_operations import bias_gradient, input_gradient, weight_gradient, weights_of
from snnc.compiler.lowering.halves import Halves
from snnc.compiler.lowering.spike_limits import SpikeLimit
from snnc.compiler.neurons.surrogates.surrogate import Surrogate


@dataclass
class Draft:
    """A step program under construction."""

    graph: Graph
    ports: PortMap
    links: tuple[PopulationLink, ...]
    trained: frozenset[str]
    """Populations (by name) through which gradients flow."""
    frozen: frozenset[PopulationLink]
    """Connections whose weights the option `train_recurrent` freezes."""
    surrogate: Surrogate
    gradient_window: tuple[float, float] | None
    optimizer: Optimizer | None
    limit: SpikeLimit | None
    half: Halves
    buffers: dict[str, Buffer] = field(default_factory=dict)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    inputs: list[InputInfo] = field(default_factory=list)
    populations: list[PopulationInfo] = field(default_factory=list)
    connections: list[ConnectionInfo] = field(default_factory=list)
    steps: list[NeuronStep] = field(default_factory=list)
    connection_ops: dict[str, ConnectionOp] = field(default_factory=dict)
    gradients: dict[str, str] = field(default_factory=dict)
    """Gradient buffers, by parameter."""
    ids: dict[str, str] = field(default_factory=dict)  # id in the step program, by name of the node
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    """Buffers with the values of ports, by (node, port)."""

    def buffer(self, name: str, role: Role, length: int, lifetime: Lifetime, kind: str = "values") -> str:
        """Add a buffer of `length` elements and return its name."""
        assert name not in self.buffers, f"two buffers are called {name}"
        self.buffers[name] = Buffer(name, role, (length,), lifetime, "spikes" if kind == "spikes" else "values")
        return name

    def parameter(self, name: str, label: str, value: Array | float, learnable: bool, flat: bool = False) -> str:
        """Add a parameter with its buffer; with `flat`, an array with several axes becomes a vector."""
        array = np.array(value, dtype=np.float32)
        array = array.reshape(-1) if flat and array.ndim else array
        self.parameters[name] = Parameter(name, label, array, learnable and not is_frozen(self.optimizer, label))
        self.buffers[name] = Buffer(name, "parameter", array.shape, "program")
        return name

    def adjoint(self, name: str) -> None:
        """Add the adjoint buffer of the buffer `name`, with the same shape and lifetime."""
        original = self.buffers[name]
        self.buffers[f"d_{name}"] = Buffer(f"d_{name}", "adjoint", original.shape, original.lifetime)

    def gradient(self, parameter: str) -> str:
        """Add the gradient buffer of a learnable parameter; return its name."""
        name = self.gradients[parameter] = f"d_{parameter}"
        self.buffers[name] = Buffer(name, "gradient", self.buffers[parameter].shape, "program")
        return name


def check_groups(optimizer: Optimizer, parameters: Iterable[Parameter]) -> None:
    """Raise an EmptyGroupError for a group of an optimiser that matches no parameter."""
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
) -> frozenset[str]:
    """Return the names of the populations that lead to `source`, which the loss reads, and that have or depend on learnable parameters.

    If the values that the loss reads do not depend on a learnable parameter, a NothingToLearnError is raised.
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
    return trained


def _learns(link: PopulationLink, optimizer: Optimizer | None) -> bool:
    """Return whether the optimiser updates the weight or the bias of a learnable link.

    The result is also True for a link without weight and bias, but no learnable link lacks both.
    """
    names = [name for name, value in zip(("weight", "bias"), weights_of(link), strict=True) if value is not None]
    return not names or any(not is_frozen(optimizer, f"{link.label}.{name}") for name in names)


def _closure(start: set[str], edges: list[tuple[str, str]]) -> set[str]:
    flow: nx.DiGraph[str] = nx.DiGraph(edges)
    flow.add_nodes_from(start)
    return start.union(*(nx.descendants(flow, name) for name in start))


def lower_backward(draft: Draft, output: OutputInfo) -> tuple[BackwardOp, ...]:
    """Return the adjoint of the forward step, last population first, and add its buffers to the draft."""
    draft.adjoint(output.record)
    operations: list[BackwardOp] = [RecordAdjoint(output.id, output.source, output.record)]
    for info, step in zip(reversed(draft.populations), reversed(draft.steps), strict=True):
        if info.label in draft.trained:
            operations += _population(draft, info, step)
    return tuple(operations)


def _population(draft: Draft, info: PopulationInfo, step: NeuronStep) -> list[BackwardOp]:
    for name in (*step.currents, *step.states, *step.outputs):
        draft.adjoint(name)
    parameter = dict(zip(info.kernel.parameters, step.parameters, strict=True))
    gradients = tuple(draft.gradient(parameter[a]) for a in info.kernel.learnable)
    operations: list[BackwardOp] = [
        NeuronAdjoint(step.population, step.currents, step.states, step.parameters, step.outputs, step.saved, gradients)
    ]
    for connection in draft.connections:
        if connection.target == info.id:
            operations += _connection(draft, connection)
    return operations


def _connection(draft: Draft, connection: ConnectionInfo) -> list[BackwardOp]:
    """Return the gradients of a connection's weights, then of its source, where these are needed."""
    op = draft.connection_ops[connection.id]
    operations: list[BackwardOp] = []
    for parameter, gradient_op in ((connection.bias, bias_gradient), (connection.weight, weight_gradient)):
        if parameter is not None and draft.parameters[parameter].learnable:
            operations.append(gradient_op(op, draft.gradient(parameter)))
    if any(p.id == connection.source and p.label in draft.trained for p in draft.populations):
        operations.append(input_gradient(op))
    return operations
