"""Divides a program into components with their own kernels; only recurrent components run in a time loop with barriers.

A component is a strongly connected component of the graph of populations. Its inputs from outside are computed for all steps and samples at
once; then its own time loop runs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import networkx as nx

from snnc.backends.cuda.kernels.limits import limit_name
from snnc.backends.cuda.schedule.wavefront import Edge, Wavefront, wavefront
from snnc.compiler.ir.step_operations import ConnectionOp, DenseProduct, InputGradient, NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import limited_sources


@dataclass(frozen=True)
class Feedback:
    """Populations in a feedback loop of any form: teams of thread blocks run the steps, with barriers between them."""

    name: str
    """Prefix of kernel names."""
    populations: tuple[str, ...]
    """Populations of the component, in the order of the program."""
    forward: Wavefront
    backward: Wavefront
    """Schedules; in the forward pass, choosing the spikes that a limited source sends is scheduled like a population."""
    limits: tuple[str, ...] = ()
    """Sources of the component that have a spike limit and that its own populations read."""


@dataclass(frozen=True)
class _OnePopulation:
    population: str

    @property
    def populations(self) -> tuple[str, ...]:
        """All populations of the component."""
        return (self.population,)


class Walk(_OnePopulation):
    """A population without recurrence: one thread computes all steps of a neuron of a sample."""


@dataclass(frozen=True)
class RecurrentLoop(_OnePopulation):
    """A population with one dense recurrence of its own spikes, whose weights stay on chip if they fit."""

    recurrence: DenseProduct
    otherwise: Feedback
    """Alternative if the weights do not fit on chip."""


Component = Walk | RecurrentLoop | Feedback


class KernelOrder:
    """The components of a program, in the order in which their kernels run forward."""

    def __init__(self, program: StepProgram) -> None:
        self._program = program
        self._steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
        self._owner = {buffer: op.population for op in self._steps.values() for buffer in op.outputs}
        self._reader = {current: op.population for op in self._steps.values() for current in op.currents}
        self.adjoints = {op.population for op in program.backward if isinstance(op, NeuronAdjoint)}
        self._limited = limited_sources(program)
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self._steps)
        graph.add_edges_from((before, after) for before, after, _ in self._edges(self._steps))
        condensed = nx.condensation(graph)
        place = {name: i for i, name in enumerate(self._steps)}
        first = {c: min(place[p] for p in condensed.nodes[c]["members"]) for c in condensed}
        order = nx.lexicographical_topological_sort(condensed, key=first.__getitem__)
        members = [tuple(sorted(condensed.nodes[c]["members"], key=place.__getitem__)) for c in order]
        self.components = tuple(self._component(m, number) for number, m in enumerate(members))
        """Components in the order of the forward pass, which is topological."""
        self._component_of = {p: c for c in self.components for p in c.populations}

    def outside(self, op: ConnectionOp | InputGradient) -> bool:
        """Return whether the source and the target of `op` are in different components, or the source is an input.

        Such a source is complete before its target's component runs forward; such a target is complete before the source's runs backward.
        """
        owner = self._owner.get(op.source.buffer)
        return owner is None or self._component_of[owner] is not self._component_of[self._reader[op.target]]

    def _component(self, members: tuple[str, ...], number: int) -> Component:
        edges = self._edges(members)
        if not edges:
            return Walk(members[0])
        within = [op for op in self._program.forward if isinstance(op, ConnectionOp) and self._is_within(op, members)]
        backward = [name for name in members if name in self.adjoints]
        reversed_edges = [(after, before, delay) for before, after, delay in edges]
        limits = tuple(dict.fromkeys(op.source.buffer for op in within if op.source.buffer in self._limited))
        ahead = wavefront([*members, *map(limit_name, limits)], self._limited_edges(within))
        feedback = Feedback(f"feedback{number}", members, ahead, wavefront(backward, reversed_edges), limits)
        only = within[0] if len(members) == len(within) == 1 else None
        if isinstance(only, DenseProduct) and self._program.buffers[only.source.buffer].kind == "spikes":
            return RecurrentLoop(members[0], only, feedback)
        return feedback

    def _is_within(self, op: ConnectionOp, members: Collection[str]) -> bool:
        owner = self._owner.get(op.source.buffer)
        return owner is not None and owner in members and self._reader[op.target] in members

    def _limited_edges(self, within: Collection[ConnectionOp]) -> list[Edge]:
        """Return the edges of a component; those from a limited source to its readers pass through the choice of its spikes."""
        edges: list[Edge] = []
        for op in within:
            buffer, owner = op.source.buffer, self._owner[op.source.buffer]
            if buffer in self._limited:
                edges.append((owner, limit_name(buffer), 0))
                owner = limit_name(buffer)
            edges.append((owner, self._reader[op.target], op.source.delay))
        return edges

    def _edges(self, members: Collection[str]) -> list[Edge]:
        connections = [op for op in self._program.forward if isinstance(op, ConnectionOp)]
        within = [op for op in connections if self._is_within(op, members)]
        return [(self._owner[op.source.buffer], self._reader[op.target], op.source.delay) for op in within]
