"""Convert a graph of ReLU units to a graph of integrate-and-fire neurons.

Each node has a *scale*: its values in the spiking network, averaged over the steps, are approximately its values in the ReLU network
divided by the scale.

=================================  ==========================================================================
node                               scale
=================================  ==========================================================================
an input, an output                1
a population                       the activation that becomes a rate of 1, from :mod:`snnc.frontends.ann2snn.measuring`
Linear, Conv, Scale                the scale of the nodes that read it; if it is b, and the operand has scale a,
                                   the weights are multiplied by a/b and the bias by 1/b (Rueckauer et al. 2017)
pooling, Reshape, Slice, …         the scale of the operand
Add, Concat                        the scale of the nodes that read it; operands of another scale are multiplied
                                   by a factor
=================================  ==========================================================================

If the nodes that read a Linear, Conv, Scale, Add or Concat need different scales, its scale is 1. If they accept any scale, a Linear, Conv
or Scale has the scale 1, and an Add or Concat that of its first operand. ReLU units become neurons with threshold 1 and binary spikes, and
biases become constant currents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import networkx as nx
import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Array, Graph, Operation, Population, Shape
from snnc.compiler.ir.shapes import node_shapes, port_map
from snnc.compiler.ir.verify import verify
from snnc.compiler.neurons.library import IF, I
from snnc.compiler.neurons.neuron import NeuronModel, neuron
from snnc.compiler.neurons.surrogates.library import straight_through
from snnc.compiler.passes.edit import fresh_name

_THRESHOLD: Final = 1.0
"""Threshold of the neurons that replace ReLU units; the weights of each layer are scaled to it."""
_START: Final = 0.5
"""Initial membrane potential, half the threshold, so that rates are rounded to nearest and not down (Deng & Gu 2021; Bu et al. 2022)."""
_GROWTH: Final[NeuronModel] = neuron("Increment", states={"m": 0.0}, equations="y = i - m\nm = i", output="y")
"""Growth of the input since the previous step."""
_GROWTH_SPIKES: Final[NeuronModel] = neuron("Increment", states={"m": 0.0}, equations="s = spike(i - m - 0.5)\nm = i", output="s")
"""The growth as a spike, for an input that grows by 0 or 1 per step."""


def convert(graph: Graph, scales: Mapping[str, float], steps: int) -> Graph:
    """Return the spiking network for a graph of ReLU units from :mod:`snnc.frontends.ann2snn.read`.

    `scales` contains the activation that becomes a rate of 1, by population. Inputs are constant currents at all `steps`, and outputs are
    means over the steps.
    """
    order = list(nx.topological_sort(graph.nx))
    conversion = _Conversion(graph, node_shapes(port_map(graph)), scales, _preferred_scales(graph, order, scales), Graph(graph.name, steps))
    for name in order:
        conversion.add(name)
    verify(conversion.snn)
    return conversion.snn


def _preferred_scales(graph: Graph, order: list[str], scales: Mapping[str, float]) -> dict[str, float | None]:
    """Return the scale that the nodes that read each node need: None if they accept any, 1 if they need different ones."""
    preferred: dict[str, float | None] = {}
    for name in reversed(order):
        needed = {_preferred_scale(e.target, graph.operation(e.target), scales, preferred) for e in graph.outgoing(name)} - {None}
        preferred[name] = needed.pop() if len(needed) == 1 else 1.0 if needed else None
    return preferred


def _preferred_scale(name: str, operation: Operation, scales: Mapping[str, float], preferred: Mapping[str, float | None]) -> float | None:
    match operation:
        case Population():
            return scales[name]
        case ir.Output():
            return 1.0
        case ir.Linear() | ir.Conv() | ir.Scale():
            return None
    return preferred[name]


@dataclass
class _Conversion:
    """The spiking network `snn` under construction from the ReLU network `ann`.

    By node of `ann`: `scale` is its scale; `preferred` is the scale that the nodes that read it need, None if they accept any;
    `counterpart` is the node of `snn` with its values. `steady` are nodes whose values in `snn` are the same at every step, `binary` those
    whose values in `snn` are 0 or 1.
    """

    ann: Graph
    shapes: Mapping[str, Shape]
    scales: Mapping[str, float]
    preferred: Mapping[str, float | None]
    snn: Graph
    scale: dict[str, float] = field(default_factory=dict)
    steady: set[str] = field(default_factory=set)
    binary: set[str] = field(default_factory=set)
    counterpart: dict[str, str] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Add the counterpart of node `name`, after the counterparts of its sources."""
        operation = self.ann.operation(name)
        sources = [e.source for e in sorted(self.ann.incoming(name), key=lambda e: (len(e.target_port), e.target_port))]
        if sources and all(s in self.steady for s in sources):
            self.steady.add(name)
        match operation:
            case ir.Input():
                self.scale[name] = 1.0
                self.steady.add(name)
                self._put(name, operation)
            case Population(shape=shape):
                self.scale[name] = self.scales[name]
                self.steady.discard(name)
                self.binary.add(name)
                self._put(name, spiking(shape), self._rescaled(sources[0], self.scales[name]))
            case ir.Output():
                self._put(name, ir.Output("mean", ir.FileLayout(None, 0)), self._rescaled(sources[0], 1.0))
            case ir.Linear() | ir.Conv() | ir.Scale():
                self.scale[name] = self.preferred[name] or 1.0
                self._put(name, _scaled(operation, self.scale[sources[0]], self.scale[name]), self.counterpart[sources[0]])
            case ir.Add() | ir.Concat():
                self.scale[name] = self.preferred[name] or self.scale[sources[0]]
                if isinstance(operation, ir.Concat) and all(s in self.binary and self.scale[s] == self.scale[name] for s in sources):
                    self.binary.add(name)
                self._put(name, operation, *(self._rescaled(s, self.scale[name]) for s in sources))
            case _:
                self._with_same_scale(name, operation, sources[0])

    def _with_same_scale(self, name: str, operation: Operation, source: str) -> None:
        self.scale[name] = self.scale[source]
        is_maximum = isinstance(operation, ir.Pool | ir.Reduce) and operation.kind == "max"
        if source in self.binary and (is_maximum or isinstance(operation, ir.Reshape | ir.Flatten | ir.Slice)):
            self.binary.add(name)
        if is_maximum and source not in self.steady:
            self._maximum(name, operation, source)
        else:
            self._put(name, operation, self.counterpart[source])

    def _maximum(self, name: str, operation: Operation, source: str) -> None:
        """Add a maximum whose mean over the steps is the maximum of its operands' means.

        The operands are summed over the steps, and the output of a step is the growth of the largest sum. For spikes it is 0 or 1,
        because no sum grows by more than 1 per step.
        """
        counts = self._insert(f"{name}.count", Population(I(), self.shapes[source]), self.counterpart[source])
        largest = self._insert(f"{name}.largest", operation, counts)
        binary = name in self.binary
        model, surrogate = (_GROWTH_SPIKES, straight_through()) if binary else (_GROWTH, None)
        self._put(name, Population(model, self.shapes[name], surrogate=surrogate), largest)

    def _rescaled(self, source: str, scale: float) -> str:
        factor = self.scale[source] / scale
        if factor == 1.0:
            return self.counterpart[source]
        return self._insert(f"{source}.scaled", ir.OneToOne(np.array(factor, np.float32)), self.counterpart[source])

    def _insert(self, name: str, operation: Operation, source: str) -> str:
        unused = fresh_name(self.snn, name)
        self.snn.add(unused, operation)
        self.snn.connect(source, unused)
        return unused

    def _put(self, name: str, operation: Operation, *sources: str) -> None:
        self.counterpart[name] = self.snn.add(name, operation)
        for source in sources:
            self.snn.connect(source, name)


def spiking(shape: Shape) -> Population:
    """Return integrate-and-fire neurons with reset by subtraction, which preserves the integrated charge.

    ::

        v' = v + i
        s  = H(v' - 1), with H(0) = 1
        v  = v' - s

    With a constant current i, T steps contain ``floor(1/2 + T i)`` spikes, but at least 0 and at most T.
    """
    return Population(IF(_THRESHOLD, reset_delay=False, strict=False), shape, initial={"v": np.array(_START, np.float32)})


def _scaled(operation: ir.Linear | ir.Conv | ir.Scale, before: float, after: float) -> ir.Linear | ir.Conv | ir.Scale:
    bias: Array | None = None if operation.bias is None else (np.asarray(operation.bias, np.float64) / after).astype(np.float32)
    return replace(operation, weight=(np.asarray(operation.weight, np.float64) * (before / after)).astype(np.float32), bias=bias)
