"""Read the ONNX file of a feed-forward ReLU network as a graph whose populations are ReLU units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from onnx import ModelProto

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import FileLayout, Graph, Input, Linear, Operation, Output, Population, Reshape, Scale
from snnc.compiler.ir.verify import verify
from snnc.compiler.passes.fold_scale import fold_scale
from snnc.frontends.ann2snn.errors import AlreadySpikingError, Ann2SnnError, BatchAxisError, NoSpikingFormError
from snnc.frontends.ann2snn.matching import MatchedOperation, handlers, match
from snnc.frontends.ann2snn.measuring import check_runs_in_numpy
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.load import load
from snnc.frontends.onnx.errors import MalformedGraphError, OnnxError, SelfCheckError, ShapeError
from snnc.frontends.onnx.flattening.evaluate import Evaluator
from snnc.frontends.onnx.flattening.flatten import Run
from snnc.frontends.onnx.flattening.node import Node, NodePool, Shape
from snnc.frontends.onnx.flattening.operation import Subgraph, parse
from snnc.frontends.onnx.flattening.shaping import slice_axis
from snnc.frontends.onnx.reading.reader import declared_shapes, read_model, refusing

_BATCHES: Final = (3, 1)
"""Numbers of samples tried in turn if the file leaves their number open: with 3, operators that mix samples are noticed; 1 is for files
whose constants only fit one sample."""
_COMPARED: Final = 2
"""Number of random samples on which a network is compared with its file."""
_TOLERANCE: Final = 1e-4
"""Maximum difference between an output of the network and of the file, as a share of its largest value."""


@dataclass(frozen=True)
class ReluNetwork:
    """A network without time, for one sample: a graph whose populations are stateless ReLU units."""

    graph: Graph  # the graph; batch normalisation is folded into its weights
    origins: Mapping[str, str]  # node of the file by population
    notes: tuple[str, ...]  # notes about omitted operators


def read_relu_network(path: Path) -> ReluNetwork:
    """Read a ReLU network from a file.

    Raise AlreadySpikingError if the file contains a spiking network, and OnnxError if it is invalid or not supported. NoSpikingFormError
    (a layer cannot be converted) and BatchAxisError (the first axis is not the sample axis) name the node.
    """
    try:
        return recognise(path)
    except (Ann2SnnError, OnnxError):
        if _spikes(path):
            raise AlreadySpikingError(f"{path} is a spiking network already; leave --ann2snn out.") from None
        raise


def recognise(path: Path, *, compare: bool = True) -> ReluNetwork:
    """Read a file that must be a ReLU network; errors as for :func:`read_relu_network`, without :class:`AlreadySpikingError`.

    With `compare`, the network and the file are run on random samples and must agree.
    """
    with refusing(path, what="converted", advice="report the file"):
        network, pool, outputs = _recognised(read_model(path), path.stem)
        if compare:
            _compare(network.graph, pool, outputs)
        return network


def _spikes(path: Path) -> bool:
    try:
        return any(True for _ in load(path).of_type(Population))
    except SnncError:
        return False


_ReadRelu: TypeAlias = tuple[ReluNetwork, NodePool, dict[str, Node]]
"""A network, the pool of the file's nodes, and the nodes of the outputs by name."""


def _recognised(model: ModelProto, title: str) -> _ReadRelu:
    """Build the network, with the first of :data:`_BATCHES` that fits if the number of samples is open."""
    parsed = parse(model.graph)
    declared = _declared(model)
    open_axes = [n for n, shape in declared.items() if shape[0] is None]
    failure: SnncError | None = None
    for batch in _BATCHES if open_axes else (1,):
        shapes = {n: (batch if shape[0] is None else shape[0], *shape[1:]) for n, shape in declared.items()}
        try:
            return _built(parsed, shapes, title)
        except (BatchAxisError, ShapeError) as error:
            failure = failure or error
    raise failure or MalformedGraphError("the file cannot be read.")


def _declared(model: ModelProto) -> dict[str, tuple[int | None, *tuple[int, ...]]]:
    """Return the shape of each input; None is an open number of samples."""
    shapes: dict[str, tuple[int | None, *tuple[int, ...]]] = {}
    for name, declared in declared_shapes(model).items():
        sizes = [d if isinstance(d, int) else None for d in declared]
        inner = [s for s in sizes[1:] if s is not None]
        if len(sizes) < 2 or len(inner) < len(sizes) - 1:
            shown = [str(s) if s is not None else "?" for s in sizes]
            raise BatchAxisError(
                f"the input '{name}' has the shape [{', '.join(shown)}]; snnc needs the samples on the first axis, which may be open, "
                "and fixed sizes on the other axes. Export the model with such a shape."
            )
        if any(s is not None and s < 1 for s in sizes):
            raise MalformedGraphError(f"the input '{name}' has the shape {sizes}; every size must be 1 or more.")
        shapes[name] = (sizes[0], *inner)
    return shapes


def _built(parsed: Subgraph, shapes: Mapping[str, Shape], title: str) -> _ReadRelu:
    batches = {shape[0] for shape in shapes.values()}
    if len(batches) > 1:
        raise BatchAxisError(f"the inputs have {sorted(batches)} samples on their first axes; export them with one number of samples.")
    pool, origins = NodePool(), dict[int, str]()
    inputs = {n: pool.input(n, s) for n, s in shapes.items()}
    results = Run(pool, handlers(parsed, origins)).graph(parsed, dict(inputs))
    outputs: dict[str, Node] = {}
    notes = []
    for name, value in zip(parsed.outputs, results, strict=True):
        if not isinstance(value, Node) or value.value is not None:
            raise NoSpikingFormError(f"the output '{name}' does not depend on the inputs; remove it from the model.")
        if value.op == "softmax":
            if value.attrs[0] != len(value.shape) - 1 or len(value.shape) != 2:
                raise NoSpikingFormError(
                    f"{origins[value.id]}: it runs along axis {value.attrs[0]} of {list(value.shape)}; only a Softmax over the classes, "
                    "the last of two axes, can be left out. Cut the model before it."
                )
            notes.append(f"Left out: {origins[value.id]} at the end; '{name}' is its input, whose largest class is the same.")
        outputs[name] = value.inputs[0] if value.op == "softmax" else value
    builder = _ReluGraphBuilder(Graph(title), origins, batches.pop(), frozenset((*shapes, *outputs)))
    for name, node in outputs.items():
        builder.output(name, node)
    if not builder.population_origins:
        raise NoSpikingFormError("the network contains no ReLU, so no layer can spike.")
    ports = verify(builder.graph)
    check_runs_in_numpy(builder.graph, ports)
    return ReluNetwork(fold_scale(builder.graph), builder.population_origins, tuple(notes)), pool, outputs


@dataclass
class _ReluGraphBuilder:
    """A graph under construction; each node of the file becomes one operation, some with an additional Scale or Reshape.

    `origins` is the place in the file by node id, `population_origins` that by population, and `batch` the number of samples of the file's
    inputs. `reserved` are the names of inputs and outputs, which no other operation may have.
    """

    graph: Graph
    origins: Mapping[int, str]
    batch: int
    reserved: frozenset[str]
    population_origins: dict[str, str] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)  # operation in the graph by node id
    _counts: dict[str, int] = field(default_factory=dict)

    def output(self, name: str, node: Node) -> None:
        """Add an output and all nodes that it depends on."""
        matched: dict[int, tuple[Node, MatchedOperation]] = {}
        failures: dict[int, Ann2SnnError] = {}
        waiting = [node]
        while waiting:
            n = waiting.pop()
            if n.id in matched or n.id in failures or n.id in self._names:
                continue
            try:
                matched[n.id] = n, match(n, self._where(n), self.batch)
            except Ann2SnnError as error:
                failures[n.id] = error
                waiting.extend(i for i in n.inputs if i.value is None)
            else:
                waiting.extend(matched[n.id][1].operands)
        if failures:
            raise failures[min(failures, key=lambda id_: (id_ not in self.origins, id_))]  # the first in the file
        for id_ in sorted(matched):
            self._add(*matched[id_])
        self.graph.add(name, Output("all", FileLayout(None, 0)))
        self.graph.connect(self._names[node.id], name)

    def _where(self, n: Node) -> str:
        return f"the input '{n.attrs[0]}'" if n.op == "input" else self.origins.get(n.id, f"a node of kind '{n.op}'")

    def _add(self, n: Node, matched: MatchedOperation) -> None:
        sources = [self._names[operand.id] for operand in matched.operands]
        if matched.minus:
            sources[1] = self._append("minus", Scale(np.array(-1.0, np.float32)), sources[1])
        if isinstance(matched.operation, Input):
            name = self.graph.add(str(n.attrs[0]), matched.operation)
        else:
            name = self._append(matched.prefix, matched.operation, *sources)
        if isinstance(matched.operation, Population):
            self.population_origins[name] = self._where(n)
        if isinstance(matched.operation, Linear) and len(n.shape) > 2:
            name = self._append("shape", Reshape(n.shape[1:]), name)
        self._names[n.id] = name

    def _append(self, prefix: str, operation: Operation, *sources: str) -> str:
        name = ""
        while not name or name in self.graph.nx or name in self.reserved:
            self._counts[prefix] = self._counts.get(prefix, 0) + 1
            name = f"{prefix}{self._counts[prefix]}"
        self.graph.add(name, operation)
        for source in sources:
            self.graph.connect(source, name)
        return name


def _compare(graph: Graph, pool: NodePool, outputs: Mapping[str, Node]) -> None:
    """Run the graph and the file's nodes on one or two random samples; raise a SelfCheckError if their outputs differ."""
    # Samples, along axis 0, take the place of steps; each is drawn separately, so the graph gets the samples that the nodes read.
    evaluate = Evaluator(seed=0, axes={n: 0 for n, _ in graph.of_type(Input)})
    batch = next(iter(outputs.values())).shape[0]
    rows = min(batch, _COMPARED)
    expected = {name: evaluate(slice_axis(pool, node, 0, 0, rows)) for name, node in outputs.items()}
    shapes = {n: (rows, *o.shape) for n, o in graph.of_type(Input)}
    drawn = {n: evaluate.steps(n, s, start=0) for n, s in shapes.items()}
    computed = GraphRunner(graph, rows, {}).step(drawn)
    for name, values in expected.items():
        gap, largest = np.abs(computed[name].reshape(values.shape) - values).max(), np.abs(values).max()
        if not gap <= _TOLERANCE * largest:
            raise SelfCheckError(
                f"the output '{name}' of the network read from the file differs from the file's by {gap:.3g}, with a largest value of "
                f"{largest:.3g}; report the file."
            )
