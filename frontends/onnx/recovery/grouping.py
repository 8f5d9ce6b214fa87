"""Group the elementwise operations of a recovered step into populations.

A population contains the operations that a recurrence connects, operations that only depend on these, and operations that only these
read. A class is a value of the step (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`); a group is the classes of one population.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from snnc.frontends.onnx.flattening.node import Array
from snnc.frontends.onnx.reroll.roll import Const, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep


@dataclass(eq=False)
class Grouping:
    """Groups of elementwise classes, and the roles of other classes."""

    order: list[int]  # all classes, in evaluation order
    group: dict[int, int] = field(default_factory=dict)  # group by class; its number is that of one of its classes
    cores: set[int] = field(default_factory=set)  # groups with a recurrence
    bias: dict[int, int] = field(default_factory=dict)
    """By addition of a constant, the matrix product or convolution whose bias the constant is."""

    def members(self, group: int) -> list[int]:
        """Return the classes of a group, in evaluation order."""
        return [c for c in self.order if self.group.get(c) == group]

    @property
    def groups(self) -> list[int]:
        """Groups in the order of their first classes."""
        return list(dict.fromkeys(self.group[c] for c in self.order if c in self.group))


def grouping(step: RecoveredStep) -> Grouping:
    """Divide the elementwise classes of a step into groups; sums that no group takes stay without one and become additions of the graph."""
    groups = Grouping(step.order())
    uses = _uses(step, groups.order)
    _biases(step, groups, uses)
    ungrouped = [c for c in groups.order if step.is_elementwise(c) and c not in groups.bias]
    _cores(step, groups, ungrouped)
    _followers(step, groups, ungrouped)
    _feeders(step, groups, ungrouped, uses)
    for cls in list(ungrouped):
        if cls in groups.group:
            continue
        if _is_sum(step, cls):
            ungrouped.remove(cls)
        else:
            groups.group[cls] = cls
            _followers(step, groups, ungrouped)
    _filters(step, groups, uses)
    return groups


def _uses(step: RecoveredStep, order: list[int]) -> dict[int, list[tuple[int, int]]]:
    uses: dict[int, list[tuple[int, int]]] = {c: [] for c in order}
    reads = [(c, o) for c in order for o in step.operands(c)] + [(-1, step.through_layout(r.value)) for r in step.results]
    for reader, operand in reads:
        if isinstance(operand, Ref):
            uses[operand.cls].append((reader, operand.delay))
    return uses


def _biases(step: RecoveredStep, groups: Grouping, uses: dict[int, list[tuple[int, int]]]) -> None:
    """Find the additions of a constant that is the bias of a matrix product or convolution."""
    for cls in groups.order:
        operands = step.operands(cls)
        products = [o for o in operands if isinstance(o, Ref) and o.delay == 0 and step.classes[o.cls].op in ("linear", "conv")]
        constant = next((o for o in operands if isinstance(o, Const)), None)
        if step.classes[cls].op != "add" or len(products) != 1 or constant is None:
            continue
        product = products[0].cls
        alone = len(step.classes[product].operands) == 2 and len(uses[product]) == 1
        if alone and step.samples[product] == step.samples[cls] and channel_bias(step, product, constant.value) is not None:
            groups.bias[cls] = product


def channel_bias(step: RecoveredStep, product: int, value: Array) -> Array | None:
    """Return a constant that is added to a product as its bias, with one value per channel; None if it varies within a channel."""
    shape = step.classes[product].shape
    if np.ndim(value) > len(shape):
        return None
    full = np.asarray(value).reshape((1,) * (len(shape) - np.ndim(value)) + np.shape(value))
    channels = 1 if step.classes[product].op == "conv" else len(shape) - 1
    first = full[tuple(slice(None) if k == channels else slice(0, 1) for k in range(len(shape)))]
    return np.broadcast_to(first.reshape(-1), shape[channels : channels + 1]) if (full == first).all() else None


def _cores(step: RecoveredStep, groups: Grouping, ungrouped: list[int]) -> None:
    """Make a group of each recurrence."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(ungrouped)
    inside = set(ungrouped)
    for cls in ungrouped:
        graph.add_edges_from((o.cls, cls) for o in step.operands(cls) if isinstance(o, Ref) and o.cls in inside)
    for component in nx.strongly_connected_components(graph):
        first = min(component)
        if len(component) > 1 or graph.has_edge(first, first):
            groups.group.update(dict.fromkeys(component, first))
            groups.cores.add(first)


def _followers(step: RecoveredStep, groups: Grouping, ungrouped: list[int]) -> None:
    """Add to each group the classes that only read values of this group, all of the same shape as the class."""
    for cls in ungrouped:
        if cls in groups.group:
            continue
        reads = [o for o in step.operands(cls) if not isinstance(o, Const)]
        owners = {groups.group.get(o.cls) if isinstance(o, Ref) else None for o in reads}
        if len(owners) == 1 and None not in owners and all(step.operand_sample(o) == step.samples[cls] for o in reads):
            groups.group[cls] = owners.pop()  # type: ignore[assignment]


def _feeders(step: RecoveredStep, groups: Grouping, ungrouped: list[int], uses: dict[int, list[tuple[int, int]]]) -> None:
    """Add to each group the classes that only classes of this group read, all of the same shape and without delay."""
    for cls in reversed(ungrouped):
        if cls in groups.group:
            continue
        owners = {groups.group.get(user) for user, _ in uses[cls]}
        same_shape = all(user >= 0 and step.samples[user] == step.samples[cls] for user, _ in uses[cls])
        if len(owners) == 1 and None not in owners and same_shape and all(delay == 0 for _, delay in uses[cls]):
            groups.group[cls] = owners.pop()  # type: ignore[assignment]


def _filters(step: RecoveredStep, groups: Grouping, uses: dict[int, list[tuple[int, int]]]) -> None:
    """Merge a filter without spikes into the only population that reads it: a synaptic current is a state of the neuron that it drives."""
    changed = True
    while changed:
        changed = False
        for group in groups.groups:
            members = groups.members(group)
            if group not in groups.cores or any(step.classes[c].op in ("gt", "ge") for c in members):
                continue
            outside = [(user, d) for c in members for user, d in uses[c] if user >= 0 and groups.group.get(user) != group]
            users = {groups.group.get(user) for user, _ in outside}
            if len(users) != 1 or None in users or any(d for _, d in outside):
                continue
            owner = users.pop()
            if owner in groups.cores and step.samples[group] == step.samples[groups.members(owner)[0]]:
                groups.group.update(dict.fromkeys(members, owner))
                groups.cores.discard(group)
                changed = True
                break


def _is_sum(step: RecoveredStep, cls: int) -> bool:
    operands = step.operands(cls)
    return step.classes[cls].op == "add" and all(not isinstance(o, Const) and step.operand_sample(o) == step.samples[cls] for o in operands)
