"""Divides the layers into stages: each runs a block of steps before the next one, so that weights between stages are read once per block.

Reading weights that do not fit in the L2 cache takes longer than adding them. A layer that is not in a loop does not depend on later
layers, so it may run a block of steps before the next layer begins. In the backward pass, the later stage runs its block first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.compiler.ir import step_operations as ops
from snnc.compiler.ir.step_program import StepProgram

HEAVY: Final = 1 << 19
"""Half the bytes of an L2 cache of 1 MiB; for larger weights, reading them once per block pays off."""


@dataclass(frozen=True)
class Stages:
    """Division of the populations into stages, in the order in which a block of steps runs them."""

    owner: Mapping[str, str]
    """Population of each current and output."""
    level: Mapping[str, int]
    """Stage of each population; inputs have none."""
    forward: frozenset[str]
    backward: frozenset[str]
    """`forward` and `backward`: dense connections whose products in that pass are computed for a block of steps at once."""

    @property
    def count(self) -> int:
        """Number of stages."""
        return 1 + max(self.level.values(), default=0)

    def filled(self, program: StepProgram) -> frozenset[str]:
        """Return the currents to which block products are added; their buffers have a row for each step of a block."""
        return frozenset(op.target for op in program.forward if isinstance(op, ops.DenseProduct) and op.connection in self.forward)

    def of(self, op: ops.ForwardOp | ops.BackwardOp) -> int:
        """Return the stage that runs `op`."""
        match op:
            case ops.NeuronStep() | ops.NeuronAdjoint():
                return self.level[op.population]
            case ops.Record() | ops.RecordAdjoint():
                return self.level.get(self.owner.get(op.source.buffer, ""), 0)
        return self.level[self.owner[op.target]]


def stages_of(storage: SequenceStorage, excluded: Callable[[ops.ForwardOp], bool]) -> Stages:
    """Return the stages of `storage.program`; `excluded` selects the operations of a readout that training computes as one product."""
    program = storage.program
    steps = [op for op in program.forward if isinstance(op, ops.NeuronStep)]
    owner = {buffer: op.population for op in steps for buffer in (*op.currents, *op.outputs)}
    connections = [op for op in program.forward if not isinstance(op, ops.Fill | ops.NeuronStep | ops.Record)]
    dense = [op for op in connections if isinstance(op, ops.DenseProduct) and not excluded(op)]
    heavy = {op.connection for op in dense if 4 * storage.size(op.weight) > HEAVY}
    from_inputs = frozenset(op.connection for op in connections if op.connection in heavy and op.source.buffer not in owner)
    level = _levels(program, owner, connections, heavy)
    across_stages = [op for op in connections if op.source.buffer in owner and level[owner[op.source.buffer]] < level[owner[op.target]]]
    # A later stage reads whole blocks of steps, so it must read lists of spikes, which are stored for all steps; rows of values may be
    # stored for only a few steps. Truncation clears the adjoints between two steps, which requires that all layers run the same step.
    if program.truncate or any(is_maximum(op) or not storage.stored(op.source.buffer).listed for op in across_stages):
        return Stages(owner, dict.fromkeys(level, 0), from_inputs, frozenset())
    ahead = frozenset(op.connection for op in across_stages if op.connection in heavy)
    return Stages(owner, level, from_inputs | ahead, ahead)


def _levels(program: StepProgram, owner: Mapping[str, str], connections: Sequence[ops.ConnectionOp], heavy: set[str]) -> dict[str, int]:
    """Return the stage of each population: the maximum number of heavy connections on a path to it, without those inside loops."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(p.id for p in program.populations)
    pairs = [(owner[op.source.buffer], owner[op.target], op.connection in heavy) for op in connections if op.source.buffer in owner]
    graph.add_edges_from((sender, receiver) for sender, receiver, _ in pairs)
    costly = {(sender, receiver) for sender, receiver, is_heavy in pairs if is_heavy}
    level: dict[str, int] = {}
    parts = nx.condensation(graph)
    for loop in (parts.nodes[n]["members"] for n in nx.topological_sort(parts)):
        before = [level[u] + ((u, v) in costly) for v in loop for u in graph.predecessors(v) if u not in loop]
        level |= dict.fromkeys(loop, max(before, default=0))
    return level
