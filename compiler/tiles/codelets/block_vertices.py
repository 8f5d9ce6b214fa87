"""Vertices of a population's blocks and their fields: steps, their adjoints, further windows, and gradients of sources.

A block is the neurons and samples that one worker of a tile processes. It receives a step as a window: a list of ids of spikes with a fixed
capacity, or values. Further windows contain the spikes beyond this capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.tiles.codelets.block_code import BackwardCode, BlockCode, HalfState, half_states
from snnc.compiler.tiles.codelets.block_loops import backward_loops, forward_loops, source_loops
from snnc.compiler.tiles.indexed.tables import TableForm
from snnc.compiler.tiles.mapped.network import BusSource, Layer, Link
from snnc.compiler.tiles.vertices.codelet_costs import partial_products
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.relay_vertices import id_type
from snnc.compiler.tiles.vertices.vertex_spec import Element, FieldKind, FieldSpec, VertexSpec, constant, many, one

INDEX_TYPES: Final[Mapping[int, Element]] = {2: "unsigned short", 4: "unsigned"}
"""Element type of the tables of indexed connections, by bytes."""
_BLOCK: Final = (
    one("input", "int", "k", "the iteration"),
    constant("stage", "iteration in which the population runs step 0", "int"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("steps", "steps", "int"),
    constant("samples", "samples of the block"),
    constant("count", "neurons of the block"),
)
_SOURCES: Final = (
    one("input", "int", "k", "the iteration"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("steps", "steps", "int"),
    constant("last", "first iteration of the backward pass", "int"),
    constant("batch", "samples of the tile"),
    constant("sample", "first sample of the block within the tile"),
    constant("samples", "samples of the block"),
    constant("count", "neurons of the block"),
)


@dataclass(frozen=True)
class BlockLink:
    """A connection, with the properties that determine the code of its target's vertices."""

    index: int
    """Index of the connection among those into the target; field names end with it."""
    link: Link
    returned: bool
    """Whether the gradient of the source returns in windows."""
    limited: bool
    limited_back: bool
    """Whether further windows may follow the first one, in the forward and in the backward pass."""
    form: TableForm | None
    """Form of the target's tables; None if the connection has no tables, or if a cost prediction lists the loops of all forms."""

    @property
    def read_backward(self) -> bool:
        """Whether the backward step reads the window, for weight gradients or to find the entries that a maximum chose."""
        return self.link.read_backward


def forward(cost: CodeletCost, layer: Layer, links: Sequence[BlockLink], code: BlockCode, *, supports: int, saved: bool) -> VertexSpec:
    """Return the vertex that runs a step and, with `saved`, stores values for the adjoint.

    `supports` is the number of outputs whose masks also mark neurons in the support of the surrogate.
    """
    kernel = layer.kernel
    access: FieldKind = "inout" if any(link.limited for link in links) else "output"
    fields = [*_BLOCK, *_first(layer), *_windows(links), *_weights(links)]
    for port in range(len(kernel.inputs)):
        fields.append(many(access, "float", f"current{port}", "the current of a port"))
        fields += [_parameter(f"bias{port}_{n}", "a bias of the port", shared) for n, shared in enumerate(layer.biases[port])]
    fields += [_values(f"state{i}", "inout", "a state", half=state in kernel.halves) for i, state in enumerate(kernel.states)]
    fields += _parameters(layer, code)
    fields += [_past(state, "inout") for state in (half_states(layer) if saved else ())]
    for i, name in enumerate(kernel.saved if saved else ()):
        fields.append(_values(f"saved{i}", "inout", "a saved value that the adjoint reads", half=name in kernel.rounded))
    kinds = {source.buffer: source.kind for source in layer.sent}
    for i, buffer in enumerate(layer.outputs):
        if kinds.get(buffer) == "spikes":
            fields += [constant(f"words{i}", "mask words per sample"), many("output", "unsigned", f"mask{i}", "a bit for each neuron")]
        elif buffer in kinds:
            fields.append(many("output", "float", f"value{i}", "values that the output sends"))
    fields += [many("inout", "float", f"record{i}", "a record of all steps") for i in range(layer.records)]
    cost = with_support_tests(cost, supports)
    return VertexSpec("forward", tuple(fields), cost, forward_loops(cost, links))


def with_support_tests(cost: CodeletCost, supports: int) -> CodeletCost:
    """Return `cost` with the tests whether a neuron is in the support of the surrogate, one for each of `supports` outputs."""
    return replace(cost, neuron=cost.neuron + supports * cost.window_test, pair=cost.pair + 2 * supports * cost.window_test)


def gather(cost: CodeletCost, layer: Layer, links: Sequence[BlockLink]) -> VertexSpec:
    """Return the vertex that adds a further window of `links` to the currents."""
    ports = sorted({link.link.port for link in links})
    currents = [many("inout", "float", f"current{port}", "the current of a port") for port in ports]
    return VertexSpec("gather", (*_BLOCK, *_first(layer), *_windows(links), *_weights(links), *currents), cost, forward_loops(cost, links))


def backward(cost: CodeletCost, layer: Layer, links: Sequence[BlockLink], code: BackwardCode, returning: Sequence[BusSource]) -> VertexSpec:
    """Return the vertex that runs the adjoint of a step.

    It adds to the weight gradients of `links` and to the gradients of their sources. Gradients of `returning` sources return in windows.
    """
    kernel = layer.kernel
    added = [link for link in links if link.read_backward or link.returned]
    back = [link for link in added if link.returned]
    fields = [*_BLOCK, *_windows(added), *_gradients(added), *_weights(back)]
    for link in back:
        fields += _partials(link)
    fields += [
        many("inout", "float", f"d_state{i}", "the adjoint of a state") for i, state in enumerate(kernel.states) if state in code.states
    ]
    fields += [many("inout", "float", f"sum_{parameter.name}", "gradients of a parameter") for parameter in code.sums]
    for port in code.ports:
        fields.append(many("output", "float", f"delta{port}", "the gradient of a current"))
        if sends_deltas(links, port):
            half = sends_halves(links, port)
            element: Element = "half" if half else "float"
            fields.append(many("output", element, f"sent{port}", "the gradient of a current, for the sources", 4 * half))
        if layer.stores_adjoint:
            fields.append(many("inout", "float", f"shown{port}", "the gradient of a current at all steps, for a caller"))
    fields += _parameters(layer, code)
    stored = {state: {state, f"{state}_prev"} for state in kernel.states}
    halves = half_states(layer)
    rounded = {state.name for state in halves}
    fields += [
        _values(f"state{i}", "input", "a state of all steps", half=state in kernel.halves)
        for i, (state, names) in enumerate(stored.items())
        if names & code.reads and state not in rounded
    ]
    fields += [_past(state, "input") for state in halves]
    for i, name in enumerate(kernel.saved):
        if name in code.reads:
            fields.append(_values(f"saved{i}", "input", "a value of the forward pass", half=name in kernel.rounded))
    returning_sources = returning_to(layer, code, returning)
    for i, source in enumerate(returning_sources):
        fields += _returning(i, source)
    fields += _first(layer, always=bool(returning_sources))
    fields += [constant("last", "first iteration of the backward pass", "int")] if returning_sources else []
    for i, buffer in enumerate(layer.outputs):
        if f"d_o{i}" in code.reads:
            fields += _ring(i) if any(link.input_gradient and link.source.buffer == buffer for link in layer.outgoing) else []
            fields += [many("input", "float", f"d_record{i}", "the adjoint of a record")] if buffer in layer.adjoint_outputs else []
    loops = backward_loops(cost, [link for link in links if link.read_backward], back, len(returning_sources))
    return VertexSpec("backward", tuple(fields), cost.calling(partial_products(cost)) if back else cost, loops)


def weight_round(cost: CodeletCost, layer: Layer, links: Sequence[BlockLink], returning: Sequence[BusSource]) -> VertexSpec:
    """Return the vertex that adds a further window of `links` to weight gradients, and receives gradients returned to `returning`."""
    back = [link for link in links if link.returned]
    fields = [*_BLOCK, *_windows(links), *_gradients(links), *_weights(back)]
    for i, source in enumerate(returning):
        fields += _returning(i, source)
    fields += _first(layer, always=bool(returning))
    for link in back:
        fields += _partials(link)
    fields += [many("input", "float", f"delta{port}", "the gradient of a current") for port in sorted({link.link.port for link in links})]
    for output in sorted({layer.outputs.index(source.buffer) for source in returning}):
        fields += _ring(output)
    loops = backward_loops(cost, [link for link in links if link.read_backward], back, len(returning))
    return VertexSpec("weight_round", tuple(fields), cost.calling(partial_products(cost)) if back else cost, loops)


def source_gradient(cost: CodeletCost, layer: Layer, links: Sequence[tuple[Link, TableForm | None]]) -> VertexSpec:
    """Return the vertex that adds the gradients from the targets of `links` (with the form of their source tables) to output gradients."""
    fields = list(_SOURCES)
    for output in sorted({layer.outputs.index(link.source.buffer) for link, _ in links}):
        fields += _ring(output)
    for i, (link, form) in enumerate(links):
        fields += [
            constant(f"stage{i}", "iteration in which the target runs step 0", "int"),
            constant(f"delay{i}", "delay in steps", "int"),
        ]
        fields += _of_target(i, link, form)
    return VertexSpec("source_gradient", tuple(fields), cost, source_loops(cost, links))


def returning_to(layer: Layer, code: BlockCode, sources: Iterable[BusSource]) -> list[BusSource]:
    """Return the `sources` whose output gradients the adjoint reads."""
    return [source for source in sources if f"d_o{layer.outputs.index(source.buffer)}" in code.reads]


def sends_deltas(links: Iterable[BlockLink], port: int) -> bool:
    """Return whether sources read the gradient of the current of `port` to compute their own gradients."""
    return any(link.link.port == port and link.link.input_gradient and not link.returned for link in links)


def sends_halves(links: Iterable[BlockLink], port: int) -> bool:
    """Return whether sources read the gradient of the current of `port` as float16."""
    return any(link.link.port == port and link.link.half_deltas and not link.returned for link in links)


def _first(layer: Layer, *, always: bool = False) -> list[FieldSpec]:
    needed = always or any(link.one_to_one for link in layer.incoming)
    return [constant("first", "first neuron of the block")] if needed else []


def _windows(links: Iterable[BlockLink]) -> Iterator[FieldSpec]:
    for link in links:
        i, connection = link.index, link.link
        if connection.events:
            yield many("input", id_type(connection.source.width), f"ids{i}", "ids of the window")
            yield many("input", "unsigned", f"number{i}", "number of ids in the window")
            yield constant(f"room{i}", "capacity of the window in ids, in whole words")
            if connection.dense:
                yield constant(f"inputs{i}", "values of the source")
        else:
            yield many("input", "float", f"values{i}", "values of the source")
            yield constant(f"width{i}", "number of values")
        if connection.one_to_one:
            yield constant(f"offset{i}", "neuron that receives the first value")


def _table(i: int, form: TableForm) -> Iterator[FieldSpec]:
    index = INDEX_TYPES[form.index_bytes]
    yield many("input", index, f"rows{i}", "start of each row's runs")
    yield many("input", index, f"place{i}", "first target of each run")
    yield many("input", index, f"start{i}", "first weight of each run")
    if not form.single:
        yield many("input", index, f"length{i}", "number of values of each run")


def _target_table(link: BlockLink, form: TableForm) -> Iterator[FieldSpec]:
    i = link.index
    yield from _table(i, form)
    if form.keyed:
        yield many("input", INDEX_TYPES[form.index_bytes], f"keys{i}", "source of each row")
    else:
        yield constant(f"low{i}", "source of the first row")
    yield constant(f"span{i}", "number of rows")


def _weights(links: Iterable[BlockLink]) -> Iterator[FieldSpec]:
    for link in links:
        i, connection = link.index, link.link
        if link.form is not None:
            yield from _target_table(link, link.form)
            if connection.chooses:
                yield _choice("seen" if connection.events else "best", i)
            else:
                yield from _table_weights(i, connection)
        elif connection.half and connection.dense:
            yield many("input", "half", f"weight{i}", "weights", 8)
        elif connection.weight_elements:
            yield _weight(i, connection, align=8 if connection.dense else 0)


def _weight(i: int, link: Link, align: int = 0) -> FieldSpec:
    if link.one_to_one and link.weight_elements == 1:
        return one("input", "float", f"weight{i}", "the weight shared by all neurons")
    return many("input", "half" if link.half else "float", f"weight{i}", "weights", align)


def _table_weights(i: int, link: Link) -> Iterator[FieldSpec]:
    """Yield the weights that a table refers to, then the biases; float16 weights are a separate array."""
    if not link.half:
        yield many("input", "float", f"weight{i}", "weights, and biases")
        return
    yield many("input", "half", f"weight{i}", "weights")
    if link.indexed is not None and link.indexed.map.biases:
        yield many("input", "float", f"biases{i}", "biases")
        yield constant(f"weights{i}", "number of weights, which tables number before the biases")


def _choice(name: str, i: int) -> FieldSpec:
    return many("inout", "float", f"{name}{i}", "the state of a maximum")


def _gradients(links: Iterable[BlockLink]) -> Iterator[FieldSpec]:
    for link in links:
        i, connection = link.index, link.link
        if link.form is not None and connection.read_backward:
            yield from _target_table(link, link.form)
        if connection.weight_gradient:
            yield many("inout", "float", f"gradient{i}", "weight gradients of the block", 8 if connection.dense else 0)
            if link.form is not None:
                yield constant(f"size{i}", "number of weight gradients")
        elif connection.read_backward:
            yield _choice("chosen", i)
            if not connection.events:
                yield _choice("best", i)
            yield many("output", "float", f"winner{i}", "entries that the maximum chose, for the source")


def _values(name: str, access: FieldKind, contents: str, *, half: bool) -> FieldSpec:
    return many(access, "half", name, contents, align=4) if half else many(access, "float", name, contents)


def _past(state: HalfState, access: FieldKind) -> FieldSpec:
    return _values(f"past{state.index}", access, "a state of all steps", half=True)


def _partials(link: BlockLink) -> Iterator[FieldSpec]:
    yield constant(f"capacity{link.index}", "capacity of the window in entries")
    yield many("inout", "float", f"partial{link.index}", "partial products of the window's entries")


def _parameter(name: str, contents: str, shared: bool) -> FieldSpec:
    return one("input", "float", name, contents) if shared else many("input", "float", name, contents)


def _parameters(layer: Layer, code: BlockCode) -> Iterator[FieldSpec]:
    for i, shared in enumerate(layer.parameters):
        if f"a{i}" in code.reads:
            yield _parameter(f"param{i}", "a parameter", shared)


def _returning(i: int, source: BusSource) -> tuple[FieldSpec, ...]:
    return (
        constant(f"offset_back{i}", "iteration whose window contains step 0", "int"),
        constant(f"last_back{i}", "last step written to a window", "int"),
        constant(f"capacity_back{i}", "capacity of the window in entries"),
        constant(f"room_back{i}", "capacity of the window in ids, in whole words"),
        many("input", id_type(source.width), f"ids_back{i}", "ids of the window"),
        many("input", "unsigned", f"number_back{i}", "number of spikes and of all entries in the window"),
        many("input", "float", f"value_back{i}", "gradients of the window's entries"),
    )


def _ring(output: int) -> tuple[FieldSpec, FieldSpec]:
    """Return the fields of a ring buffer for the output gradients of steps that the adjoint has not reached yet."""
    pending = many("inout", "float", f"d_output{output}", "pending gradients of an output")
    return pending, constant(f"ring{output}", "number of pending steps")


def _of_target(i: int, link: Link, form: TableForm | None) -> Iterator[FieldSpec]:
    delta, weight = many("input", "float", f"delta{i}", "the target's deltas"), many("input", "float", f"weight{i}", "weights")
    if link.half:
        contents = "weights, in rows of even length" if link.dense else "weights"
        weight = many("input", "half", f"weight{i}", contents, align=4 * link.dense)
    if form is not None:
        yield from _table(i, form)
        yield delta
        yield many("input", "float", f"winner{i}", "entries that the maximum chose") if link.chooses else weight
    elif link.dense:
        yield constant(f"outputs{i}", "neurons of the target")
        half = link.half_deltas
        yield many("input", "half" if half else "float", delta.name, delta.contents, 4 if half else 8)  # one load reads two samples
        yield weight
    else:
        yield delta
        if link.weight_elements:
            yield _weight(i, link)
