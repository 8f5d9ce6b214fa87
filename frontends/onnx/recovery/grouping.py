"""Groups of elementwise classes that form one population: those connected by a recurrence, and those that depend on it alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from snnc.frontends.onnx.flattening.node import Array
from snnc.frontends.onnx.reroll.roll import Const, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep


@dataclass(eq=False)
class Grouping:
    """Groups of elementwise classes, and the treatment of the others.

    ``bias`` maps an addition of a constant to the matrix product that it belongs to; ``sums`` are plain additions between groups.
    """

    order: list[int]
    group: dict[int, int] = field(default_factory=dict)
    cores: set[int] = field(default_factory=set)
    bias: dict[int, int] = field(default_factory=dict)
    sums: set[int] = field(default_factory=set)

    def members(self, group: int) -> list[int]:
        """Return the classes of a group, in order."""
        return [c for c in self.order if self.group.get(c) == group]

    @property
    def groups(self) -> list[int]:
        """All groups, in the order of their first members."""
        return list(dict.fromkeys(self.group[c] for c in self.order if c in self.group))


def grouping(step: RecoveredStep) -> Grouping:
    """Partition the elementwise classes of a step into populations."""
    made = Grouping(step.order())
    uses = _uses(step, made.order)
    _biases(step, made, uses)
    loose = [c for c in made.order if step.is_elementwise(c) and c not in made.bias]
    _cores(step, made, loose)
    _followers(step, made, loose)
    _feeders(step, made, loose, uses)
    for cls in loose:
        if cls in made.group or cls in made.sums:
            continue
        if _is_sum(step, cls):
            made.sums.add(cls)
            continue
        made.group[cls] = cls
        _followers(step, made, loose)
    _filters(step, made, uses)
    return made


def _uses(step: RecoveredStep, order: list[int]) -> dict[int, list[tuple[int, int]]]:
    uses: dict[int, list[tuple[int, int]]] = {c: [] for c in order}
    for cls in order:
        for operand in step.operands(cls):
            if isinstance(operand, Ref):
                uses[operand.cls].append((cls, operand.delay))
    for result in step.results:
        value = step.through_layout(result.value)
        if isinstance(value, Ref):
            uses[value.cls].append((-1, value.delay))
    return uses


def _biases(step: RecoveredStep, made: Grouping, uses: dict[int, list[tuple[int, int]]]) -> None:
    """Find additions of a constant that are the bias of a product."""
    for cls in made.order:
        operands = step.operands(cls)
        if step.classes[cls].op != "add" or len(operands) != 2:
            continue
        products = [o for o in operands if isinstance(o, Ref) and o.delay == 0 and step.classes[o.cls].op in ("linear", "conv")]
        constant = next((o for o in operands if isinstance(o, Const)), None)
        if len(products) != 1 or constant is None:
            continue
        product = products[0].cls
        if channel_bias(step, product, constant.value) is None:
            continue
        if len(step.classes[product].operands) == 2 and len(uses[product]) == 1 and step.samples[product] == step.samples[cls]:
            made.bias[cls] = product


def channel_bias(step: RecoveredStep, product: int, value: Array) -> Array | None:
    """Return an added constant as a bias of a product, one value per channel; None if it differs within a channel."""
    full = np.asarray(value).reshape((1,) * (len(step.classes[product].shape) - np.ndim(value)) + np.shape(value))
    shape = step.classes[product].shape
    if full.ndim != len(shape):
        return None
    channels = 1 if step.classes[product].op == "conv" else len(shape) - 1
    rest = tuple(k for k in range(len(shape)) if k != channels)
    first = full[tuple(slice(None) if k == channels else slice(0, 1) for k in range(len(shape)))]
    if not (full == first).all():
        return None
    return np.broadcast_to(np.squeeze(first, rest), shape[channels : channels + 1])


def _cores(step: RecoveredStep, made: Grouping, loose: list[int]) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(loose)
    inside = set(loose)
    for cls in loose:
        graph.add_edges_from((o.cls, cls) for o in step.operands(cls) if isinstance(o, Ref) and o.cls in inside)
    for component in nx.strongly_connected_components(graph):
        first = min(component)
        if len(component) > 1 or graph.has_edge(first, first):
            made.group.update(dict.fromkeys(component, first))
            made.cores.add(first)


def _followers(step: RecoveredStep, made: Grouping, loose: list[int]) -> None:
    for cls in loose:
        if cls in made.group or cls in made.sums:
            continue
        reads = [o for o in step.operands(cls) if not isinstance(o, Const)]
        owners = {made.group.get(o.cls) if isinstance(o, Ref) else None for o in reads}
        if len(owners) == 1 and None not in owners and all(step.operand_sample(o) == step.samples[cls] for o in reads):
            made.group[cls] = owners.pop()  # type: ignore[assignment]


def _feeders(step: RecoveredStep, made: Grouping, loose: list[int], uses: dict[int, list[tuple[int, int]]]) -> None:
    for cls in reversed(loose):
        if cls in made.group or cls in made.sums:
            continue
        owners = {made.group.get(user) for user, _ in uses[cls]}
        same_shape = all(user >= 0 and step.samples[user] == step.samples[cls] for user, _ in uses[cls])
        if len(owners) == 1 and None not in owners and same_shape and all(delay == 0 for _, delay in uses[cls]):
            made.group[cls] = owners.pop()  # type: ignore[assignment]


def _filters(step: RecoveredStep, made: Grouping, uses: dict[int, list[tuple[int, int]]]) -> None:
    """Join a filter without spikes to the one population that it feeds: a synaptic current belongs to its membrane."""
    changed = True
    while changed:
        changed = False
        for group in made.groups:
            members = made.members(group)
            if group not in made.cores or any(step.classes[c].op in ("gt", "ge") for c in members):
                continue
            outside = [(user, d) for c in members for user, d in uses[c] if user >= 0 and made.group.get(user) != group]
            users = {made.group.get(user) for user, _ in outside}
            if len(users) != 1 or None in users or any(d for _, d in outside):
                continue
            owner = users.pop()
            if owner in made.cores and step.samples[group] == step.samples[made.members(owner)[0]]:
                made.group.update(dict.fromkeys(members, owner))
                made.cores.discard(group)
                changed = True
                break


def _is_sum(step: RecoveredStep, cls: int) -> bool:
    operands = step.operands(cls)
    return step.classes[cls].op == "add" and all(not isinstance(o, Const) and step.operand_sample(o) == step.samples[cls] for o in operands)
