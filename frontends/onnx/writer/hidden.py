"""Get the values of a file's populations from a run in ONNX Runtime, for ``snnc verify``: find the tensors that contain them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Graph
from snnc.frontends.onnx.errors import OnnxError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.evaluate import CallerInputs, FileReplay
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool, Tensor
from snnc.frontends.onnx.proof.traces import Imported, Trace
from snnc.frontends.onnx.writer.errors import RuntimeRefusesError
from snnc.frontends.onnx.writer.runtime import RuntimeModel, key_of

RUNTIME: Final = "ONNX Runtime"
_EVALUATION: Final = "snnc's own evaluation of the file's operations"
"""Implementations that compute the values of populations; the second one computes values that ONNX Runtime cannot return."""


@dataclass(frozen=True, eq=False)
class Observed:
    """The values of one source port of a population in another implementation."""

    population: str
    port: str
    fires: bool
    """Whether the values are spikes."""
    by_step: Mapping[int, Array]  # values [batch, *neurons] by step, without steps at which the other implementation does not compute them
    sources: frozenset[str]  # implementations that computed the values


class HiddenOfFile:
    """Finds the values of populations in an ONNX file, read for the shapes of a run, and extracts them from this run of `steps` steps."""

    def __init__(self, imported: Imported, steps: int) -> None:
        self._imported = imported
        self._steps = steps
        locator = _Locator(imported.pool, steps)
        self._places: dict[tuple[int, int], _TensorPlace | None] = {}
        for node, t in self._values():
            if (node.id, t) not in self._places and node.value is None:
                self._places[node.id, t] = locator.find(node, t)

    def open(self, path: Path, graph: Graph) -> RuntimeModel:
        """Load the file in ONNX Runtime with hidden values as outputs, or without them if ONNX Runtime then refuses the file."""
        try:
            return RuntimeModel(path, graph, [p.tensor for p in self._places.values() if p is not None], self._imported.carried)
        except RuntimeRefusesError:
            self._places = dict.fromkeys(self._places)
            return RuntimeModel(path, graph, carried=self._imported.carried)

    def _values(self) -> list[tuple[Node, int]]:
        return [(n, t) for trace in self._imported.traces for t, n in trace.nodes.items() if 0 <= t < self._steps]

    def observe(self, runtime: RuntimeModel, results: Mapping[str, Array], arrays: Mapping[str, Array]) -> list[Observed]:
        """Return the values of the populations in a run of ONNX Runtime on the inputs `arrays`, with these `results`.

        For values that ONNX Runtime cannot return, snnc evaluates the file's own operations.
        """
        lost = {id_ for (id_, _), place in self._places.items() if place is None}
        roots = [n for n, _ in self._values() if n.id in lost]
        replay = FileReplay(roots, CallerInputs(arrays, self._imported.inputs))
        return [self._observed(trace, runtime, results, replay) for trace in self._imported.traces]

    def _observed(self, trace: Trace, runtime: RuntimeModel, results: Mapping[str, Array], replay: FileReplay) -> Observed:
        values: dict[int, Array] = {}
        sources: set[str] = set()
        for t, node in sorted((t, n) for t, n in trace.nodes.items() if 0 <= t < self._steps):
            place = self._places.get((node.id, t))
            if node.value is not None:
                value = node.value
            elif place is not None:
                value = place.extract(results[runtime.exposed[key_of(place.tensor)]], runtime.stepwise)
                sources.add(RUNTIME)
            else:
                value = replay.value(node)
                sources.add(_EVALUATION)
            value = np.asarray(value, np.float64)
            values[t] = trace.arrange(value.reshape(node.shape) if value.size == np.prod(node.shape, dtype=int) else value)
        return Observed(trace.population, trace.port, trace.fires, values, frozenset(sources))


def of_arrays(population: str, port: str, fires: bool, values: Array, source: str) -> Observed:
    """Return the observation of a port from its values [steps, batch, *neurons]."""
    return Observed(population, port, fires, dict(enumerate(values)), frozenset({source}))


def source_of(observed: Sequence[Observed]) -> str:
    """Return, as text, the implementations that computed the ports of one population."""
    return " and ".join(sorted({source for o in observed for source in o.sources}))


_TRIES: Final = 20_000
"""Maximum number of slices of whole-sequence tensors that are tried, for all values together."""
_MOVES: Final = (0, 1, -1)
"""Offsets in time that are tried: step t of the graph may be step t, t + 1 or t - 1 of a tensor of the file."""


@dataclass(frozen=True)
class _TensorPlace:
    """A tensor of the file, or its slice number `part` of `parts` equal slices along `axis`."""

    tensor: Tensor
    axis: int = 0
    part: int = 0
    parts: int = 1

    def extract(self, value: Array, stepwise: bool) -> Array:
        """Return the value at this place from `value`, a run's result for the tensor.

        The first axes of `value` are the steps, if the file computes one step and was run once per step, then the iterations of enclosing
        loops.
        """
        tensor = self.tensor
        if stepwise:
            value = value[tensor.step or 0]
        for level in tensor.levels:
            if level.attribute == "body":
                value = value[level.trip]
        if self.parts == 1:
            return value
        size = value.shape[self.axis] // self.parts
        return value[(slice(None),) * self.axis + (slice(self.part * size, (self.part + 1) * size),)]


class _Locator:
    """Finds the tensors of a file that contain given values: a tensor of one step, else a slice of a tensor over the whole sequence."""

    def __init__(self, pool: NodePool, steps: int) -> None:
        self._pool = pool
        self._steps = steps
        self._tensors: dict[int, Tensor] = {}
        """Tensor by the id of its node; if that is a reshape, by the id of the node that it reshapes."""
        self._by_size: dict[int, list[tuple[Node, Tensor]]] = {}
        """Nodes and their tensors by number of values."""
        for id_, tensor in pool.tensors.items():
            if any(not level.node for level in tensor.levels):
                continue
            node = pool.nodes[id_]
            self._tensors.setdefault(_plain(node).id, tensor)
            self._by_size.setdefault(math.prod(node.shape), []).append((node, tensor))
        self._last: tuple[Node, Tensor, int, int] | None = None
        """Slice found last, which is tried first: node, tensor, axis, and steps by which values are moved."""
        self._tries = _TRIES

    def find(self, node: Node, t: int) -> _TensorPlace | None:
        """Return the place in the file of `node`, the value of step `t`; None if it has none, or the tries are used up."""
        tensor = self._tensors.get(_plain(node).id)
        if tensor is not None:
            return _TensorPlace(tensor)
        last = [] if self._last is None else [self._last]
        stacked = (
            (n, sequence, axis, d)
            for n, sequence in self._by_size.get(math.prod(node.shape) * self._steps, ())
            for axis in range(len(n.shape))
            for d in _MOVES
        )
        for source, sequence, axis, moved in chain(last, stacked):
            if self._tries == 0:
                break
            self._tries -= 1
            fits = source.shape[axis] % self._steps == 0 and 0 <= t + moved < self._steps
            if fits and self._is_piece(source, axis, t + moved, node):
                self._last = (source, sequence, axis, moved)
                return _TensorPlace(sequence, axis, t + moved, self._steps)
        return None

    def _is_piece(self, source: Node, axis: int, t: int, node: Node) -> bool:
        size = source.shape[axis] // self._steps
        try:
            return _plain(shaping.slice_axis(self._pool, source, axis, t * size, size)) is _plain(node)
        except OnnxError:
            return False


def _plain(node: Node) -> Node:
    return node.inputs[0] if node.op == "reshape" else node
