"""Read the graph that snnc described in the metadata of an ONNX file, and check it against the file's nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.ir.shapes import PortMap, size
from snnc.compiler.ir.verify import verify as verify_graph
from snnc.frontends.common.notes import Description, read_description
from snnc.frontends.common.work import MAX_WORK, far_more_work, work_of
from snnc.frontends.onnx.errors import DescriptionError
from snnc.frontends.onnx.flattening.evaluate import Inputs, use_counts
from snnc.frontends.onnx.flattening.flatten import Run
from snnc.frontends.onnx.flattening.node import Node, NodePool
from snnc.frontends.onnx.operators.table import DESCRIBED
from snnc.frontends.onnx.proof.traces import Imported, Trace, is_spike_port
from snnc.frontends.onnx.proof.verify import CheckedOutput, verify
from snnc.frontends.onnx.recover import ParsedFile

_Declared: TypeAlias = Mapping[str, tuple[int | str, ...]]
"""Shapes of inputs in the file, with names for dynamic sizes."""

_BATCH: Final = 2
"""Number of samples in the check, if the file does not fix it."""
_STEPS: Final = 16
"""Number of steps in the check, not counting delays and outputs that start late."""
_MAX_DELAY: Final = 48
"""Maximum number of steps added to the check for delays."""
_MAX_START: Final = 1_000
"""Maximum number of steps added to the check for outputs that start late."""


def described(text: object, source: ParsedFile, structure: object) -> Imported:
    """Return the graph that snnc described in a file, after comparing it with the file.

    `text` is the description, and `structure` the digest of the file's current nodes. A description that is damaged, or does not define
    what the file computes, raises a SnncError. The text is untrusted, so other exceptions are possible, too.
    """
    description = read_description(text, lambda name: source.graph.constants.get(name) if isinstance(name, str) else None)
    graph = description.graph
    inputs, outputs = dict(graph.of_type(Input)), dict(graph.of_type(Output))
    if {*inputs, *graph.state_inputs} != set(source.inputs) or set(outputs) != set(source.graph.outputs):
        raise DescriptionError("its inputs and outputs are not those of the file.")
    if description.structure != structure:
        raise DescriptionError("the nodes of the file have changed since snnc wrote it.")
    ports = verify_graph(graph)
    imported, nodes = _run(description, source, _inputs_of_check(graph, ports, source.inputs))
    _check_work(graph, ports, imported, list(nodes.values()))
    verify(graph, _checked_outputs(graph, imported.inputs, nodes), imported.traces, imported.inputs, folded=False)
    if source.array_shapes is None:
        return imported
    # The caller compares values for its own arrays, whose sizes may differ from those of the check.
    return _run(description, source, _bind_sizes(graph, ports, {**source.inputs, **source.array_shapes}))[0]


def _inputs_of_check(graph: Graph, ports: PortMap, declared: _Declared) -> Inputs:
    """Return the inputs of the check.

    If an input has a time axis, set the graph's number of steps to the number that the file declares, or to None if it declares none.
    """
    timed = [(n, op.layout.time_axis) for n, op in graph.of_type(Input) if op.layout.time_axis is not None]
    lengths = {declared[name][axis] for name, axis in timed if axis < len(declared[name])}
    if lengths:
        fixed = [n for n in lengths if isinstance(n, int)]
        if len(fixed) > 1:
            raise DescriptionError(f"the file's inputs have different numbers of steps: {', '.join(map(str, sorted(fixed)))}.")
        graph.steps = fixed[0] if fixed else None
    delays = sum({(e.source, e.source_port, e.delay): e.delay for e in graph.edges}.values())
    start = max((operation.start for _, operation in graph.of_type(Output)), default=0)
    needed = _STEPS + min(_MAX_DELAY, delays) + min(_MAX_START, start)
    steps = min(graph.steps or needed, needed) if timed else graph.steps
    shortened = {name: tuple(steps if k == axis else n for k, n in enumerate(declared[name])) for name, axis in timed if steps is not None}
    return _bind_sizes(graph, ports, {**declared, **shortened})


def _bind_sizes(graph: Graph, ports: PortMap, declared: _Declared) -> Inputs:
    """Return the inputs with a number for every size that `declared` leaves dynamic; refuse sizes that do not fit the graph."""
    operations = dict(graph.of_type(Input))
    patterns: dict[str, list[int | str]] = {name: _pattern(op) for name, op in operations.items()}
    batched = any(op.layout.batch_axis is not None for op in operations.values())
    for name, ref in graph.state_inputs.items():
        patterns[name] = [*(["batch"] if batched else []), *ports[ref.node, ref.name].shape]
    sizes: dict[str, int] = {"batch": _BATCH, "time": graph.steps or _STEPS}
    for name, pattern in patterns.items():
        if len(pattern) != len(declared[name]):
            raise DescriptionError(f"its input {name!r} has the shape {pattern}, but {list(declared[name])} in the file.")
        sizes |= {p: n for p, n in zip(pattern, declared[name], strict=True) if isinstance(p, str) and isinstance(n, int)}
    shapes = {name: tuple(sizes[p] if isinstance(p, str) else p for p in pattern) for name, pattern in patterns.items()}
    for name, shape in shapes.items():
        if any(isinstance(n, int) and n != m for n, m in zip(declared[name], shape, strict=True)):
            raise DescriptionError(f"its input {name!r} has the shape {list(shape)}, but {list(declared[name])} in the file.")
    axes = {name: axis for name, op in operations.items() if (axis := op.layout.time_axis) is not None}
    return Inputs(axes, shapes, sizes["time"])


def _pattern(operation: Input) -> list[int | str]:
    """Return the shape of an input, with "batch" and "time" as the sizes of these axes."""
    pattern: list[int | str] = list(operation.shape)
    axes = ((operation.layout.batch_axis, "batch"), (operation.layout.time_axis, "time"))
    for axis, name in sorted((axis, name) for axis, name in axes if axis is not None):
        pattern.insert(axis, name)
    return pattern


def _run(description: Description, source: ParsedFile, inputs: Inputs) -> tuple[Imported, Mapping[str, Node]]:
    """Run the file; return the graph with the file's values for its populations, and the file's outputs."""
    graph, pool = description.graph, NodePool()
    run = Run(pool, DESCRIBED, watch={name for row in description.values.values() for name in row.values()})
    results = run.graph(source.graph, {n: pool.input(n, s) for n, s in inputs.shapes.items()})
    outputs = {n: v for n, v in zip(source.graph.outputs, results, strict=True) if isinstance(v, Node)}
    return Imported(graph, tuple(_traces(description, inputs, run.seen)), inputs, pool), outputs


def _traces(description: Description, inputs: Inputs, seen: Mapping[tuple[str, int], Node]) -> Iterator[Trace]:
    """Yield the values that the states and outputs of populations have in the file; `seen` contains its tensors by name and step."""
    batch = next((inputs.shapes[n][a] for n, op in description.graph.of_type(Input) if (a := op.layout.batch_axis) is not None), 1)
    for name, population in description.graph.of_type(Population):
        model, shape = population.model, (batch, *population.shape)
        for port in dict.fromkeys((*model.states, *model.outputs)):
            tensor = description.values.get(name, {}).get(port, "")
            nodes = {t: seen[tensor, t] for t in range(inputs.steps) if (tensor, t) in seen}
            if nodes and all(math.prod(n.shape) == math.prod(shape) for n in nodes.values()):
                yield Trace(name, port, is_spike_port(model, port), nodes, shape, 0, population.shape)


def _checked_outputs(graph: Graph, inputs: Inputs, outputs: Mapping[str, Node]) -> list[CheckedOutput]:
    checked = []
    for name, operation in graph.of_type(Output):
        node, axis = outputs[name], (operation.layout.time_axis or 0) if operation.readout == "all" else None
        recorded = len(range(inputs.steps)[operation.start : operation.stop])
        if axis is not None and (axis >= len(node.shape) or node.shape[axis] != recorded):
            raise DescriptionError(f"its output {name!r} has no axis of {recorded} steps in the file.")
        checked.append(CheckedOutput(name, node, (), axis))
    return checked


def _check_work(graph: Graph, ports: PortMap, imported: Imported, outputs: list[Node]) -> None:
    """Refuse, before the check, a description that needs far more operations than its file, and a file that needs too many."""
    roots = [*outputs, *(n for trace in imported.traces for n in trace.nodes.values())]
    file_work = sum(_work_of_node(n) for n, _ in use_counts(roots).values() if n.value is None)
    samples = max(math.prod(imported.inputs.shapes[n]) // size(op.shape) for n, op in graph.of_type(Input))
    graph_work = samples * work_of(graph, ports)
    if far_more_work(graph_work, file_work):
        raise DescriptionError(f"its network needs {graph_work:,} operations, but the file needs {file_work:,}.")
    if file_work > MAX_WORK:
        raise DescriptionError(f"the file needs {file_work:,} operations in {imported.inputs.steps} steps, too many for a check.")


def _work_of_node(node: Node) -> int:
    terms = node.inputs[1].shape[1:] if node.op in ("linear", "conv") else node.attrs[1] if node.op == "pool" else ()
    return math.prod(node.shape) * math.prod(terms)
