"""snnc's description of a graph in a NIR file, which restores what NIR nodes cannot store.

The description is text in the file's metadata (:mod:`snnc.frontends.common.notes`). Its graph is used only if it computes the same values
as the file's nodes on random inputs. The description refers to arrays of the graph that is built from the nodes by
``[node, field, shape]``, so that changed weights in the file take effect; it contains only arrays that this graph lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Array, Graph, Input, Output, Population, Sparse
from snnc.compiler.ir.verify import verify
from snnc.frontends.common.execute import GraphRunner
from snnc.frontends.common.notes import describe, read_description
from snnc.frontends.common.work import MAX_WORK, far_more_work, work_of
from snnc.frontends.nir.dialects import Dialect
from snnc.frontends.nir.errors import NirDescriptionError

_NAME: Final = ""
"""Key, in place of a port, under which the description stores the name of a node in the file."""
_BATCH: Final = 2
"""Number of samples of the comparison."""
_STEPS: Final = 16
"""Number of steps of the comparison, without those for delays."""
_DELAYS: Final = 48
"""Maximum number of steps added so that delayed values arrive."""
_ROUNDS: Final = 3
"""Number of random inputs in the comparison of a small network."""
_SMALL_WORK: Final = 1e7
"""Number of operations up to which the comparison uses several random inputs."""
_INPUT_SCALE: Final = 1.5
"""Standard deviation of the random inputs, above the usual threshold of 1, so that neurons fire."""
_TOLERANCE: Final = 1e-4
"""Relative and absolute difference up to which values count as equal."""


def describe_nir(graph: Graph, written: Graph, names: Mapping[str, str]) -> str | None:
    """Return the description of `graph`, or None if it would be too long.

    `written` is the graph that a reader would build from the file's nodes, and `names` contains the name in the file of each node of
    `graph` that the file contains.
    """

    def place_of(node: str, field: str) -> list[Any] | None:
        file_node = names.get(node)
        if file_node is None:
            return None
        operation = graph.operation(node)
        if isinstance(operation, Sparse) and field == "weight":
            return [file_node, field, list(operation.shape)]
        if isinstance(operation, Population):
            known = field.startswith("parameters.")
            return [file_node, field, list(np.shape(operation.parameters.get(field.partition(".")[2], np.zeros(()))))] if known else None
        return [file_node, field, list(np.shape(getattr(operation, field)))]

    return describe(graph, place_of, lambda place: _array_at(written, place), {node: {_NAME: name} for node, name in names.items()})


def described_graph(text: str, graph: Graph, dialect: Dialect) -> Graph:
    """Return the graph that the description `text` defines if it computes the same values as `graph`, built from the file's nodes.

    Otherwise return `graph`, with an assumption that says why the description is not used.
    """
    try:
        if dialect.name != "nir":
            raise NirDescriptionError(f"the nodes are read with the conventions of {dialect.name}")
        description = read_description(text, lambda place: _array_at(graph, place))
        names = {node: row[_NAME] for node, row in description.values.items() if _NAME in row}
        _compare(description.graph, graph, names)
    except Exception as error:  # the description is untrusted, and the nodes define the same network
        reason = error.text if isinstance(error, SnncError) else type(error).__name__
        graph.assumptions.append(f"The file contains snnc's description of its network, which is not used: {reason}.")
        return graph
    return description.graph


def _array_at(graph: Graph, place: Any) -> Array | None:
    """Return the array of `graph` at ``[node, field, shape]``; None if there is none."""
    match place:
        case [str(node), str(field), list(shape)] if node in graph.nx and all(type(n) is int for n in shape):
            operation, kind, _, key = graph.operation(node), *field.partition(".")
            values: Any = getattr(operation, kind, None)
            value = values.get(key) if isinstance(values, Mapping) else None if key else values
            if not isinstance(value, np.ndarray | np.generic):
                return None
            array: Array = np.asarray(value)
            if array.shape == tuple(shape):
                return array
            uniform = array.size > 0 and bool((array == array.flat[0]).all())
            if shape == [] and uniform:
                return np.asarray(array.reshape(-1)[0])
            fits = array.ndim == 0 and isinstance(operation, Population) and tuple(shape) == operation.shape
            return np.broadcast_to(array, tuple(shape)).copy() if fits else None
    return None


def _compare(candidate: Graph, reference: Graph, names: Mapping[str, str]) -> None:
    """Run the described graph `candidate` and the graph of the nodes `reference` on random input, and compare the results.

    Raises a SnncError if the results differ, the graphs have different inputs or outputs, or running them needs too many operations.
    """
    ports = [verify(graph) for graph in (candidate, reference)]
    for kind in (Input, Output):
        if sorted(names.get(n, "") for n, _ in candidate.of_type(kind)) != sorted(n for n, _ in reference.of_type(kind)):
            raise NirDescriptionError("its inputs or outputs are not those of the file")
    described_work, node_work = (work_of(graph, of_graph) for graph, of_graph in zip((candidate, reference), ports, strict=True))
    if far_more_work(described_work, node_work):
        raise NirDescriptionError(f"it needs {described_work:,} operations per step, but the nodes of the file need {node_work:,}")
    inputs, expected = dict(candidate.of_type(Input)), dict(reference.of_type(Input))
    if any(op.shape != expected[names[n]].shape for n, op in inputs.items()):
        raise NirDescriptionError("its inputs differ in shape from those of the file")
    steps = _STEPS + min(_DELAYS, sum(e.delay for e in candidate.edges))
    work = _BATCH * steps * node_work
    if work > MAX_WORK:
        raise NirDescriptionError(f"{steps} steps need {work:,} operations, too many for comparing it with the nodes of the file")
    for seed in range(_ROUNDS if work < _SMALL_WORK else 1):
        _compare_steps(candidate, reference, names, steps, seed)


def _compare_steps(candidate: Graph, reference: Graph, names: Mapping[str, str], steps: int, seed: int) -> None:
    """Compare the network's outputs, and the outputs of populations that both graphs contain, at each step, for one random input."""
    random = np.random.default_rng(seed)
    runners = [GraphRunner(graph, _BATCH, {}) for graph in (candidate, reference)]
    shared = [n for n, _ in candidate.of_type(Population) if n in names and names[n] in dict(reference.of_type(Population))]
    for t in range(steps):
        inputs = {n: _INPUT_SCALE * random.standard_normal((_BATCH, *op.shape)) for n, op in candidate.of_type(Input)}
        results, expected = runners[0].step(inputs), runners[1].step({names[n]: x for n, x in inputs.items()})
        pairs = [(n, results[n], expected[names[n]]) for n, _ in candidate.of_type(Output)]
        for n in shared:
            first, second = _first_output(candidate, n), _first_output(reference, names[n])
            pairs.append((n, runners[0].ports[n, first], runners[1].ports[names[n], second]))
        for name, ours, theirs in pairs:
            if ours.size != theirs.size or not np.allclose(ours.reshape(theirs.shape), theirs, _TOLERANCE, _TOLERANCE):
                raise NirDescriptionError(f"{name!r} differs from the nodes of the file at step {t}")


def _first_output(graph: Graph, name: str) -> str:
    operation = graph.operation(name)
    assert isinstance(operation, Population)
    return operation.model.outputs[0]
