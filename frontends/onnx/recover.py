"""Recover one time step of a network from a parsed ONNX file, which is unrolled over time or is a single step.

``docs/explanation/onnx-import.md`` describes the stages, which this module runs in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.ir.graph import Conv, Graph, Linear, Pool, Population, Reduce, Sparse
from snnc.compiler.neurons.expression import SPIKES, calls
from snnc.frontends.onnx.errors import (
    InitialStateError,
    NoTimeError,
    NotYetError,
    OnnxError,
    ReadoutError,
    SelfCheckError,
    StatePairError,
    StepGraphError,
    TimeMixingError,
    TimeVaryingError,
)
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.evaluate import Inputs
from snnc.frontends.onnx.flattening.flatten import Run
from snnc.frontends.onnx.flattening.node import Node, NodePool, Shape
from snnc.frontends.onnx.flattening.operation import Subgraph
from snnc.frontends.onnx.operators.table import HANDLERS, MARKED
from snnc.frontends.onnx.proof.traces import Imported, Trace
from snnc.frontends.onnx.proof.verify import CheckedOutput, verify
from snnc.frontends.onnx.reading.packed import UnpackedStates, joined, unpack_states, with_advice
from snnc.frontends.onnx.reading.pairing import Pairs, guess_notes, pair_states
from snnc.frontends.onnx.recovery.build import FileFacts
from snnc.frontends.onnx.recovery.detaching import DEFAULT, Detach, detach_notes, strip_marks
from snnc.frontends.onnx.recovery.readout import accumulated, roll_output
from snnc.frontends.onnx.recovery.step_graph import graph_of_step
from snnc.frontends.onnx.reroll.rearrange import rearranged, with_explicit_broadcasts
from snnc.frontends.onnx.reroll.retime import retime
from snnc.frontends.onnx.reroll.roll import READINGS, Roller
from snnc.frontends.onnx.reroll.step import RecoveredStep, Result, check_operations
from snnc.frontends.onnx.reroll.timeline import GraphTimeline, check_extent, find_axes, input_timeline, static_timeline, steps_of_parts

_MIN_COPIES: Final = 4
"""Number of consecutive copies of a single step to analyse, unless arrays or buffers need more."""
_MIN_STEPS: Final = 3
"""Minimum number of steps that show how a step repeats."""
_UNEXPLAINED: Final = (InitialStateError, StepGraphError, TimeMixingError, TimeVaryingError, SelfCheckError)
"""Errors that another assignment of values to steps may avoid."""


@dataclass(frozen=True)
class ParsedFile:
    """A parsed file: its graph, and the declared shape of each input, in which a name stands for a dynamic size."""

    title: str
    graph: Subgraph
    inputs: Mapping[str, tuple[int | str, ...]]
    array_shapes: Mapping[str, Shape] | None = None
    """Shapes of the input arrays, with a time axis even for a single step. If given, the file is read for these shapes only, and the
    recovered network is not compared with it."""

    detach: Detach | None = DEFAULT  # rule for where gradients stop; None if marks in the file show it

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the dynamic sizes, in file order."""
        return tuple(dict.fromkeys(d for shape in self.inputs.values() for d in shape if isinstance(d, str)))

    def bound(self, sizes: Mapping[str, int]) -> dict[str, Shape]:
        """Return the input shapes with numbers for names."""
        return {n: tuple(sizes[d] if isinstance(d, str) else d for d in shape) for n, shape in self.inputs.items()}

    def sizes(self, array_shapes: Mapping[str, Shape]) -> dict[str, int]:
        """Return the dynamic sizes in `array_shapes`; unknown ones are set to the first known one (the batch size of most files), or 1."""
        known: dict[str, int] = {}
        for name, shape in array_shapes.items():
            declared = self.inputs.get(name, ())
            known |= {d: n for d, n in zip(reversed(declared), reversed(shape), strict=False) if isinstance(d, str)}
        batch = next(iter(known.values()), 1)
        return {s: known.get(s, batch) for s in self.symbols}


def recover(source: ParsedFile, sizes: Mapping[str, int], dynamic: Mapping[str, int]) -> Imported:
    """Recover the network with the numbers `sizes` for the dynamic sizes; `dynamic` contains those that the network leaves open."""
    shapes = source.bound(sizes)
    pool, inputs, outputs = _flattened(source, shapes)
    axes = find_axes(outputs.values())
    if steps_of_parts(outputs.values(), axes):
        pool, inputs, outputs = _flattened(source, shapes, axes)
    check_extent(shapes, axes)
    if axes:
        open_time = any(source.inputs[n][a] in dynamic for n, a in axes.items())
        try:
            return _unrolled(source, input_timeline(pool, axes, 0), shapes, open_time, outputs)
        except OnnxError:
            pairs = _packed_pairs(axes, inputs, outputs)
            if not pairs.outputs:
                raise
    else:
        pairs = pair_states(inputs, outputs)
    if not pairs.outputs:
        return _unrolled(source, static_timeline(pool, outputs), shapes, False, outputs)
    parts = unpack_states(pool, inputs, {n: outputs[o] for n, o in pairs.outputs.items()})
    try:
        imported = _single_step(source, shapes, pairs.outputs) if parts is None else _single_unpacked(source, shapes, pairs.outputs, parts)
    except _UNEXPLAINED as error:
        raise with_advice(error, pool, pairs.outputs) from None
    imported.graph.assumptions.extend(guess_notes(pairs))
    return replace(imported, carried=pairs.outputs)


def _flattened(
    source: ParsedFile, shapes: Mapping[str, Shape], time_axes: Mapping[str, int] | None = None
) -> tuple[NodePool, dict[str, Node], dict[str, Node]]:
    pool = NodePool(time_axes)
    inputs = {n: pool.input(n, s) for n, s in shapes.items()}
    return pool, inputs, _run(source, pool, inputs)


def _run(source: ParsedFile, pool: NodePool, inputs: Mapping[str, Node], step: int | None = None) -> dict[str, Node]:
    results = Run(pool, HANDLERS if source.detach else MARKED, step).graph(source.graph, dict(inputs))
    nodes: dict[str, Node] = {}
    for name, value in zip(source.graph.outputs, results, strict=True):
        if not isinstance(value, Node):
            raise ReadoutError(f"the output '{name}' is a sequence, not a tensor; stack it.")
        nodes[name] = value
    return nodes


def _unrolled(
    source: ParsedFile, timeline: GraphTimeline, shapes: Mapping[str, Shape], open_time: bool, outputs: Mapping[str, Node]
) -> Imported:
    """Read a file that computes all steps; `open_time` tells whether the graph leaves their number open."""

    def build(roller: Roller) -> Imported:
        results = [roll_output(roller, name, node) for name, node in outputs.items()]
        return _build_and_check(source, roller, results, shapes, None if open_time else timeline.steps, outputs)

    return _try_readings(timeline, build)


def _try_readings(timeline: GraphTimeline, build: Callable[[Roller], Imported]) -> Imported:
    """Return the network from `build`; after one of :data:`_UNEXPLAINED`, assign the file's values to other steps and try again."""
    first = Roller(timeline)
    try:
        return build(first)
    except _UNEXPLAINED as error:
        for reading in READINGS[1:] if first.moved else ():
            with suppress(OnnxError):
                return build(Roller(timeline, reading))
        raise error


def _packed_pairs(axes: Mapping[str, int], inputs: dict[str, Node], outputs: dict[str, Node]) -> Pairs:
    """Return the pairs of states and outputs if every input that seems to have a time axis is a state, which may pack several states.

    Otherwise, return no pairs.
    """
    with suppress(StatePairError):
        pairs = pair_states(inputs, outputs)
        if set(axes) <= set(pairs.outputs):
            return pairs
    return Pairs({})


def _single_unpacked(source: ParsedFile, shapes: Mapping[str, Shape], pairs: Mapping[str, str], parts: UnpackedStates) -> Imported:
    """Read a single step with its states separated, or as they are if that fails; in the other order if no tensor packs several states."""
    first, second = (parts, None) if parts.packed else (None, parts)
    try:
        return _single_step(source, shapes, pairs, first)
    except OnnxError:
        with suppress(OnnxError):
            return _single_step(source, shapes, pairs, second)
        raise


def _single_step(
    source: ParsedFile, shapes: Mapping[str, Shape], pairs: Mapping[str, str], parts: UnpackedStates | None = None
) -> Imported:
    """Read a single step like an unrolled file: as several copies of the step, each of which continues the states of the copy before it."""
    pool = NodePool()
    lengths = [s[0] for n, s in (source.array_shapes or {}).items() if len(s) == len(source.inputs.get(n, ())) + 1]
    count = max([_MIN_COPIES + (parts.depth if parts else 0), *lengths])
    sequences = {n: pool.input(n, (count, *s)) for n, s in shapes.items() if n not in pairs}
    states = parts.start(pool) if parts else {n: pool.input(n, shapes[n]) for n in pairs}
    state_shapes = parts.shapes if parts else {n: shapes[n] for n in pairs}
    rows: dict[str, list[Node]] = {name: [] for name in source.graph.outputs}
    for t in range(count):
        slices = {n: shaping.at_index(pool, x, 0, t) for n, x in sequences.items()}
        outputs = _run(source, pool, {**slices, **states}, t)
        outputs |= {o: joined(pool, outputs[o]) for o in pairs.values()} if parts else {}
        for name, node in outputs.items():
            rows[name].append(node)
        states = {n: outputs[o] for n, o in pairs.items()}
    timeline = input_timeline(pool, dict.fromkeys(sequences, 0), count)
    for name, nodes in rows.items():
        if nodes[-1].value is not None:
            raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
    input_shapes = {**shapes, **state_shapes, **{n: x.shape for n, x in sequences.items()}}

    def build(roller: Roller) -> Imported:
        results = [Result(n, roller.roll(dict(enumerate(r))), "all", 0, r[-1].shape, tuple(r)) for n, r in rows.items()]
        return _build_and_check(source, roller, results, input_shapes, None)

    imported = _try_readings(timeline, build)
    graph = imported.graph
    paired = ", ".join(f"{i} -> {o}" for i, o in pairs.items())
    graph.assumptions.append(f"The file is one time step; its states continue as {paired}.")
    if parts:
        graph.state_inputs = {n: graph.state_inputs[n] for n in (*state_shapes, *graph.state_inputs) if n in graph.state_inputs}
        graph.assumptions.extend(
            f"The buffer '{n}' shifts by one entry per step; it starts with zeros, and other contents cannot be set." for n in parts.buffers
        )
        graph.idle_inputs |= dict.fromkeys(parts.buffers, "zeros")
    ignored = [n for n in state_shapes if n not in graph.state_inputs]
    graph.idle_inputs |= dict.fromkeys(ignored, "ignored")
    if ignored:
        graph.assumptions.append(f"The initial states {', '.join(ignored)} have no effect in the file; snnc ignores their values.")
    return imported


def _build_and_check(
    source: ParsedFile,
    roller: Roller,
    results: list[Result],
    shapes: Mapping[str, Shape],
    steps: int | None,
    outputs: Mapping[str, Node] | None = None,
) -> Imported:
    """Build the graph of the recovered step, and compare it with the file unless the file is read for given arrays.

    `outputs` are the nodes of the file's outputs; None for a single step.
    """
    strip_marks(roller.classes)
    moved = retime(roller.classes, [r.value for r in results], aligned=roller.reading == "aligned")
    results = [accumulated(roller, replace(r, value=v)) for r, v in zip(results, moved, strict=True)]
    timeline, axes = roller.timeline, roller.timeline.axes
    file = FileFacts(source.title, shapes, steps, set(source.inputs) | set(source.graph.outputs), source.detach)
    try:
        graph, traces = _graph_of(RecoveredStep(roller.classes, axes, results), file)
    except (StepGraphError, NotYetError) as error:
        graph, traces = _graph_of_one_sample(RecoveredStep(roller.classes, axes, results, batched=False), file, error)
    if timeline.steps < _MIN_STEPS:
        raise NoTimeError(
            f"the file has {timeline.steps} time steps, but snnc needs {_MIN_STEPS} to see how a step repeats. "
            "Export more steps, or a single step with its states as inputs and outputs."
        )
    imported = Imported(graph, traces, Inputs(axes, shapes, timeline.steps), timeline.pool)
    graph.assumptions.extend(_lost_states(graph))
    if source.detach is not None:
        graph.assumptions.extend(detach_notes(graph, source.detach))
    if source.array_shapes is not None:
        return imported
    checked = [CheckedOutput(r.name, outputs[r.name] if outputs else None, r.rows, r.time_axis) for r in results]
    graph.assumptions.extend(verify(graph, checked, traces, imported.inputs, timeline.pool.folded))
    return imported


def _graph_of(step: RecoveredStep, file: FileFacts) -> tuple[Graph, tuple[Trace, ...]]:
    step = rearranged(with_explicit_broadcasts(step))
    check_operations(step)
    return graph_of_step(step, file)


def _graph_of_one_sample(step: RecoveredStep, file: FileFacts, error: OnnxError) -> tuple[Graph, tuple[Trace, ...]]:
    """Build the graph of a step without batch axis, whose convolutions read one sample.

    If that fails, raise `error`, which the attempt with a batch axis raised and which explains more.
    """
    if not any(c.op in ("conv", "pool") and c.shape[0] == 1 for c in step.classes):
        raise error
    try:
        return _graph_of(step, file)
    except OnnxError:
        raise error from None


_MIXING: Final = (Linear, Sparse, Conv, Pool, Reduce)
"""Operations that mix neurons, so that what they read belongs to another layer."""


def _lost_states(graph: Graph) -> list[str]:
    return [
        f"SNNC-W201: the spiking population '{name}' carries no state from step to step; "
        "if its neurons have a membrane potential, the export lost it."
        for name, population in graph.of_type(Population)
        if any(_fires(population, a.target) for a in population.model.equations)
        and not population.model.states
        and not _reads_a_state(graph, name)
    ]


def _reads_a_state(graph: Graph, name: str) -> bool:
    """Return whether a state, or a value of an earlier step, reaches a population without passing through weights or spikes."""
    seen, stack = {name}, [name]
    while stack:
        for edge in graph.incoming(stack.pop()):
            source = graph.operation(edge.source)
            if isinstance(source, _MIXING) or (isinstance(source, Population) and _fires(source, edge.source_port)):
                continue
            if edge.delay or (isinstance(source, Population) and source.model.states):
                return True
            if edge.source not in seen:
                seen.add(edge.source)
                stack.append(edge.source)
    return False


def _fires(population: Population, port: str) -> bool:
    return any(a.target == port and c.function in SPIKES for a in population.model.equations for c in calls(a.value))
