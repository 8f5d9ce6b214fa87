"""Write a graph as a NIR file."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, Final

import nir  # type: ignore[import-untyped]
import numpy as np

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.sparse import dense_weight
from snnc.compiler.ir.graph import Array, Edge, Graph, Population, Shape
from snnc.compiler.ir.shapes import node_shapes
from snnc.compiler.ir.verify import verify
from snnc.compiler.neurons.library import Identity
from snnc.frontends.common.notes import KEY
from snnc.frontends.nir.errors import NirTimeStepError, NirWriteError, NotInNirError
from snnc.frontends.nir.load import load_nir
from snnc.frontends.nir.reading.described import describe_nir
from snnc.frontends.nir.reading.flatten import unused_name
from snnc.frontends.nir.wiring import DelayedEdge, dissolve, plain_links
from snnc.frontends.nir.writing.invert import nir_fields

_ADVICE: Final = "Write it as .onnx, or change the network."


def write_nir(graph: Graph, path: str | Path, *, dt: float) -> tuple[str, ...]:
    """Write `graph` to a NIR file that all readers of the standard interpret in the same way.

    Parameters
    ----------
    graph
        The network.
    path
        The file, which is written completely or not at all.
    dt
        Seconds per step; it turns factors per step into time constants, and is stored in the file's metadata.

    Returns
    -------
    tuple of str
        Sentences about properties that the file cannot contain, and about options with which the nir package reads it.

    Raises
    ------
    NotInNirError
        NIR cannot express the network; the message says what and why.
    NirTimeStepError
        `dt` is not a positive number.
    NirWriteError
        The file cannot be written.
    """
    if not math.isfinite(dt) or dt <= 0:
        raise NirTimeStepError(f"dt is {dt:g}; it must be a number of seconds above 0.")
    writer = _NirWriter(graph, dt)
    network, notes = writer.network()
    path = Path(path)
    try:
        with temporary_folder(f".{path.name}.", path.parent) as folder:
            temporary = folder / path.name
            nir.write(temporary, network)
            description = describe_nir(graph, load_nir(temporary), writer.names)
            if description is not None:
                network.metadata[KEY] = description
                nir.write(temporary, network)
            os.replace(temporary, path)
    except OSError as error:
        raise NirWriteError(f"{path} cannot be written: {error.strerror or error}.") from None
    return notes


class _NirWriter:
    """Converts operations to NIR nodes, and edges to NIR edges.

    A reader gives the edge that closes a cycle a delay of one step; any other delay becomes a Delay node.
    """

    def __init__(self, graph: Graph, dt: float) -> None:
        self.graph, self.dt = graph, dt
        self.shapes = node_shapes(verify(graph))
        self.names: dict[str, str] = {}
        self.nodes: dict[str, Any] = {}
        self.notes: list[str] = []

    def network(self) -> tuple[Any, tuple[str, ...]]:
        """Return the NIRGraph, and the sentences that :func:`write_nir` returns."""
        passing = [n for n in self.graph.names if self._passes_on(n)]
        for edge in self.graph.edges:
            self._check_port(edge)
        links, dissolved = dissolve((DelayedEdge(e.source, e.target, e.delay) for e in self.graph.edges), passing)
        remaining = [n for n in self.graph.names if n not in dissolved]
        for name in remaining:
            self.names[name] = self._fresh(name)
            self.nodes[self.names[name]] = self._node(name)
        edges = self._edges(self._reshaped(links))
        self._note_missing()
        try:
            network = nir.NIRGraph(self.nodes, edges, metadata={"dt": self.dt})
        except (ValueError, TypeError, IndexError) as error:
            network = nir.NIRGraph(self.nodes, edges, metadata={"dt": self.dt}, type_check=False)
            self.notes.append(f"The nir package needs type_check=False to read the file ({str(error)[:100]}).")
        return network, tuple(self.notes)

    def _passes_on(self, name: str) -> bool:
        """Return whether a node passes on the sum of its inputs unchanged."""
        operation = self.graph.operation(name)
        plain = isinstance(operation, Population) and operation.model.equations == Identity().equations
        return plain or isinstance(operation, ir.Add) or (isinstance(operation, ir.OneToOne) and operation.weight is None)

    def _check_port(self, edge: Edge) -> None:
        operation = self.graph.operation(edge.source)
        if isinstance(operation, Population) and edge.source_port != operation.model.outputs[0]:
            raise NotInNirError(
                f"the connection {edge.source!r} -> {edge.target!r} reads {edge.source_port!r} of {edge.source!r}, but a NIR neuron has "
                f"only its output {operation.model.outputs[0]!r}. {_ADVICE}"
            )

    def _node(self, name: str) -> Any:
        operation = self.graph.operation(name)
        shape = self._entering(name)
        match operation:
            case ir.Input(layout=layout):
                if layout.time_axis is None:
                    raise NotInNirError(f"the input {name!r} is the same at every step, but NIR inputs are sequences. {_ADVICE}")
                return nir.Input(np.array(operation.shape))
            case ir.Output(readout=readout) as output:
                if output != ir.Output("all", output.layout):
                    what = readout if readout != "all" else "part from some step on"
                    raise NotInNirError(f"the output {name!r} is the {what} over time, but a NIR Output records every step. {_ADVICE}")
                return nir.Output(np.array(shape))
            case ir.Sparse() as sparse:
                dense = dense_weight(sparse)
                return nir.Linear(dense) if sparse.bias is None else nir.Affine(dense, sparse.bias)
            case ir.Linear(weight=weight, bias=bias):
                return nir.Linear(weight) if bias is None else nir.Affine(weight, bias)
            case ir.Scale(bias=bias) if bias is not None and np.any(bias):
                raise NotInNirError(f"{name!r} (Scale) adds a bias, but NIR's Scale only multiplies. Merge it into the preceding layer.")
            case ir.Scale(weight=weight) | ir.OneToOne(weight=weight) if weight is not None:
                return nir.Scale(np.ascontiguousarray(np.broadcast_to(weight, shape)))
            case ir.Flatten() | ir.Reshape():
                return self._flatten(name, shape)
            case ir.Conv() as conv:
                return _convolution(name, conv, shape)
            case ir.Pool() as pool:
                return _pooling(name, pool)
            case Population() as population if not self._passes_on(name):
                kind, fields = nir_fields(name, population, self.dt)
                return getattr(nir, kind)(**fields)
            case _ if self._passes_on(name):
                return nir.Delay(np.zeros(shape))
        raise NotInNirError(f"{name!r} is a {type(operation).__name__}, which NIR does not have. {_ADVICE}")

    def _entering(self, name: str) -> Shape:
        """Return the shape that a node reads; if its inputs have several shapes, the one with the most axes."""
        incoming = self.graph.incoming(name)
        if isinstance(self.graph.operation(name), Population) or not incoming:
            return self.shapes[name]
        return max((self.shapes[e.source] for e in incoming), key=len)

    def _flatten(self, name: str, shape: Shape) -> Any:
        leaving = self.shapes[name]
        axes = _joined_axes(shape, leaving)
        if axes is None:
            raise NotInNirError(f"{name!r} reshapes {shape} to {leaving}, but NIR can only join axes. {_ADVICE}")
        return nir.Flatten({"input": np.array(shape)}, *axes)

    def _reshaped(self, links: list[DelayedEdge]) -> list[DelayedEdge]:
        """Return links between nodes of the file, with a Flatten wherever a node reads values with some of their axes joined."""
        reshaped = []
        for link in links:
            leaving, entering = self.shapes[link.source], self._entering(link.target)
            target = self.graph.operation(link.target)
            entering = target.weight.shape[1:] if isinstance(target, ir.Linear) else entering
            entering = target.shape[1:] if isinstance(target, ir.Sparse) else entering
            if leaving == entering or not isinstance(target, ir.Linear | ir.Sparse | Population | ir.Add | ir.OneToOne | ir.Scale):
                reshaped.append(DelayedEdge(self.names[link.source], self.names[link.target], link.delay))
                continue
            joined = _joined_axes(leaving, entering)
            if joined is None:
                raise NotInNirError(
                    f"{link.target!r} reads {link.source!r} of shape {leaving} in the shape {entering}; NIR can only join axes. {_ADVICE}"
                )
            name = self._fresh(f"{link.source}.flat")
            self.nodes[name] = nir.Flatten({"input": np.array(leaving)}, *joined)
            reshaped += [DelayedEdge(self.names[link.source], name, link.delay), DelayedEdge(name, self.names[link.target])]
        return reshaped

    def _edges(self, links: list[DelayedEdge]) -> list[tuple[str, str]]:
        """Return the edges of the file; delays not implied by a cycle, and second edges between two nodes, become Delay nodes."""
        plain = plain_links(links, self.nodes)
        edges: dict[tuple[str, str], None] = {}
        delay_nodes: dict[tuple[str, int], str] = {}
        for link in links:
            key = (link.source, link.delay)
            if (link.delay and link not in plain) or (link.source, link.target) in edges:
                if key not in delay_nodes or (delay_nodes[key], link.target) in edges:
                    delay_nodes[key] = self._fresh(f"{link.source}.late{link.delay}")
                    self.nodes[delay_nodes[key]] = nir.Delay(np.full(self._size_of(link.source), link.delay * self.dt))
                    edges[link.source, delay_nodes[key]] = None
                edges[delay_nodes[key], link.target] = None
            else:
                edges[link.source, link.target] = None
        return list(edges)

    def _size_of(self, node: str) -> Shape:
        original = {name_in_file: name for name, name_in_file in self.names.items()}
        if node in original:
            return self.shapes[original[node]]
        return tuple(int(n) for n in np.atleast_1d(self.nodes[node].output_type["output"]))

    def _fresh(self, name: str) -> str:
        clean = re.sub(r"[/\x00]", ".", name)
        return unused_name(clean if clean.strip(".") else "node", self.nodes)

    def _note_missing(self) -> None:
        learnt = [n for n, p in self.graph.of_type(Population) if p.learnable]
        fixed = [n for n, o in self.graph.of_type(ir.Linear, ir.Sparse, ir.Conv) if not o.learnable]
        if learnt or fixed:
            self.notes.append(f"NIR does not store which parameters are learnable ({', '.join([*learnt, *fixed][:6])}).")
        if any(p.surrogate is not None for _, p in self.graph.of_type(Population)):
            self.notes.append("NIR does not store surrogate derivatives.")
        if self.graph.state_inputs:
            self.notes.append(f"NIR has no inputs for initial states; {', '.join(list(self.graph.state_inputs)[:6])} are left out.")
        if any(i.kind == "spikes" for _, i in self.graph.of_type(ir.Input)):
            self.notes.append("NIR does not store whether an input carries spikes.")


def _joined_axes(shape: Shape, leaving: Shape) -> tuple[int, int] | None:
    """Return the first and last axis that a Flatten must join to turn `shape` into `leaving`; None if it cannot."""
    for first in range(len(shape)):
        for last in range(first, len(shape)):
            if (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]) == leaving:
                return (0, -1) if (first, last) == (0, len(shape) - 1) else (first, last)
    return None


def _convolution(name: str, conv: ir.Conv, shape: Shape) -> Any:
    rank = conv.weight.ndim - 2
    ones = (1,) * rank
    stride, dilation = conv.stride or ones, conv.dilation or ones
    padding = _padding(conv.padding or ((0, 0),) * rank)
    if padding is None:
        same = [(d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in zip(conv.weight.shape[2:], dilation, strict=True)]
        if list(conv.padding) != same or stride != ones:
            raise NotInNirError(f"{name!r} pads by {conv.padding}; NIR pads both ends equally, or 'same' with stride 1. {_ADVICE}")
    bias: Array = np.zeros(conv.weight.shape[0], np.float32) if conv.bias is None else conv.bias
    if rank == 1:
        return nir.Conv1d(shape[1], conv.weight, stride[0], "same" if padding is None else padding[0], dilation[0], conv.groups, bias)
    return nir.Conv2d(shape[1:], conv.weight, stride, "same" if padding is None else padding, dilation, conv.groups, bias)


def _padding(padding: tuple[tuple[int, int], ...]) -> tuple[int, ...] | None:
    return tuple(before for before, _ in padding) if all(before == after for before, after in padding) else None


def _pooling(name: str, pool: ir.Pool) -> Any:
    padding = _padding(pool.padding or ((0, 0),) * len(pool.kernel))
    padding_excluded = pool.kind == "average" and not pool.count_padding and any(padding or ())
    unsupported = pool.ceil or any(d != 1 for d in pool.dilation) or padding is None or padding_excluded
    if pool.kind == "max" or len(pool.kernel) != 2 or unsupported:
        raise NotInNirError(
            f"{name!r} is a {pool.kind} over windows {pool.kernel}; NIR has sums and averages over two axes, without dilation and ceil, "
            f"with equal padding at both ends that counts in averages. {_ADVICE}"
        )
    make = nir.SumPool2d if pool.kind == "sum" else nir.AvgPool2d
    return make(np.array(pool.kernel), np.array(pool.stride or pool.kernel), np.array(padding))
