"""Emitted code for indexed connections, which are defined by a table of (source, target, weight).

docs/reference/terms.md explains column group and private gradient, :mod:`snnc.compiler.tiles.indexed.tables` row and run. A
connection ``c`` has these members in ``host.cpp``:

- ``c_in`` and, if the source needs a gradient, ``c_out``: objects of the class ``Side`` for the target and for the source;
- ``c_in_rows``: the index of the first run of each row; ``c_in_place``, ``c_in_start`` and ``c_in_length``: the first target, first weight
  and number of values of each run (``c_out_…`` for the source);
- ``c_owners``: the owners, which are tiles that store and update a part of the weights and biases each;
- ``c_theta``: theta, the weights and then the biases, in the parts of the owners; with float16 weights, only the weights;
- ``c_beta``: the float32 biases if the weights are float16;
- ``c_in_copy`` and ``c_out_copy``: copies of the weights and biases that the column groups of each side use.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import FACTOR, clips, connected_update, optimizer_arrays, random_values, rates_of
from snnc.backends.poplar.parts import Assembly, Body, Values
from snnc.compiler.losses.weight_rounding import REMAINDER
from snnc.compiler.tiles.codelets.block_vertices import INDEX_TYPES
from snnc.compiler.tiles.indexed.plan_tables import IndexedConnection
from snnc.compiler.tiles.indexed.tables import IndexTables, TableForm
from snnc.compiler.tiles.vertices.control_vertices import ZERO_VERTEX
from snnc.compiler.tiles.vertices.parameter_vertices import sum_pieces, sum_private

SIDE_TABLES: Final = 6
"""Number of tables in ``plan.bin`` for one side of a connection."""
SHARED_SUMS: Final = "shared_sums"
"""C++ name of the Poplar program in which workers sum the private gradients of column groups."""
_POPLAR_TYPES: Final = {2: "poplar::UNSIGNED_SHORT", 4: "poplar::UNSIGNED_INT"}


# ---- plan.bin --------------------------------------------------------------------------------------------------------


def indexed_tables(net: PoplarNetwork) -> Iterator[npt.NDArray[Any]]:
    """Yield the tables of each indexed connection: target, source, and its constant weights or the owners and order of its weights."""
    for indexed in net.indexed.values():
        yield from _side_tables(indexed.target)
        if indexed.source is not None:
            yield from _side_tables(indexed.source)
        if indexed.owners is None:
            assert indexed.map.constants is not None
            yield indexed.map.constants.astype("<f4").view("<u4").reshape(-1, 1)
        else:
            assert indexed.map.order is not None
            yield indexed.owners.table()
            yield indexed.map.order.reshape(-1, 1)


def _side_tables(tables: IndexTables) -> Iterator[npt.NDArray[Any]]:
    """Yield the tables that the class ``Side`` of indexed.hpp reads."""
    low, span, sizes = (np.append(column, 0) for column in (tables.low, tables.span, tables.used.sizes))
    columns = (low, span, tables.row_start, tables.run_start, tables.used.group, tables.targets.group, sizes, tables.key_start)
    yield np.stack(columns, axis=1)
    yield tables.rows.reshape(-1, 1)
    yield np.stack([tables.first_target, tables.first_weight, tables.length], axis=1)
    yield np.stack([tables.used.first, tables.used.count], axis=1)
    yield np.stack([tables.targets.first, tables.targets.count], axis=1)
    yield tables.keys.reshape(-1, 1)


def _count(indexed: IndexedConnection) -> int:
    return SIDE_TABLES * (1 + (indexed.source is not None)) + (1 if indexed.owners is None else 2)


def first_table(net: PoplarNetwork, connection: str) -> int:
    """Return the index in ``plan.bin`` of an indexed connection's first table."""
    return _tables_before(net, itertools.takewhile(lambda id_: id_ != connection, net.indexed))


def tables_before_window_test(net: PoplarNetwork) -> int:
    """Return the number of tables in ``plan.bin`` before those of the test for further windows."""
    return _tables_before(net, net.indexed)


def _tables_before(net: PoplarNetwork, connections: Iterable[str]) -> int:
    """Return the number of tables of populations, stores, reductions, and these indexed connections."""
    return len(net.plan.populations) + len(net.stores) + len(net.gradient_buses) + sum(_count(net.indexed[id_]) for id_ in connections)


# ---- variables and the update ----------------------------------------------------------------------------------------


def add_indexed(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the variables, copies and updates of all indexed connections."""
    for id_, indexed in net.indexed.items():
        table = first_table(net, id_)
        _add_side(assembly, f"{id_}_in", indexed.connection.target, indexed.target, table)
        table += SIDE_TABLES
        if indexed.source is not None:
            _add_side(assembly, f"{id_}_out", indexed.connection.source, indexed.source, table)
            table += SIDE_TABLES
        if indexed.map.maximum:
            _add_choices(net, assembly, indexed)
        elif indexed.owners is None:
            for side in _sides(indexed):
                assembly.variable("Parts", f"{side}_copy", f"{side}.constants(graph, tables[{table}])", "constant weights")
        else:
            _add_parameters(net, assembly, indexed, table)


def _add_choices(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection) -> None:
    """Add the intermediate results of a maximum: the number (from 1) of the first entry with a spike, or the largest value so far."""
    id_, target = indexed.connection.id, indexed.connection.target
    bus = net.buses[id_]
    if bus.kind == "events":
        seen = assembly.cells(target, f"{id_}_seen", "1", "first entry with a spike")
        if net.limited(bus):
            add_zeroing(assembly, target, seen, "nothing seen")
    else:
        assembly.variable("Sums", f"{id_}_best", f'layout.block_rows({target}, "{id_}_best", 1)', "largest value so far")
    if indexed.source is not None:
        assembly.cells(target, f"{id_}_chosen", "1", "first entry of the largest value")
        assembly.variable("Matrix", f"{id_}_winner", f'layout.matrix({target}, "{id_}_winner")', "chosen entries, for the source")


def add_zeroing(assembly: Assembly, population: str, cells: str, comment: str) -> None:
    """Add vertices that set the `cells` of all blocks of a population to zero before the first step."""
    values = {"values": f"{cells}[b.index]", "count": f"{cells}.size(b.index)"}
    assembly.add("start", f"{population}: {comment}", ("Block", "b", f"{population}.blocks"), "zero_currents", ZERO_VERTEX, values)


def _sides(indexed: IndexedConnection) -> list[str]:
    id_ = indexed.connection.id
    return [f"{id_}_in", *([f"{id_}_out"] if indexed.source is not None else [])]


def _add_side(assembly: Assembly, name: str, population: str, tables: IndexTables, first_table: int) -> None:
    form = tables.form
    number_type, poplar_type = INDEX_TYPES[form.index_bytes], _POPLAR_TYPES[form.index_bytes]
    assembly.variable("Side", name, f"Side({population}, tables, {first_table})", f"runs with {population}")
    assembly.variable("Parts", f"{name}_rows", f"{name}.rows<{number_type}>(graph, {poplar_type})")
    if form.keyed:
        assembly.variable("Parts", f"{name}_keys", f"{name}.keys<{number_type}>(graph, {poplar_type})")
    for column, what in enumerate(_run_columns(form)[1:]):
        assembly.variable("Parts", f"{name}_{what}", f"{name}.runs<{number_type}>(graph, {poplar_type}, {column})")


def _add_parameters(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, first_table: int) -> None:
    """Add weights and biases and, in training, their gradients and updates; `first_table` is the table of the owners."""
    connection, id_, target = indexed.connection, indexed.connection.id, indexed.connection.target
    owners, order = f"{id_}_owners", first_table + 1
    assembly.variable("std::vector<Owner>", owners, f"owners_of(tables[{first_table}])", "owners of the weights, which update them")
    if net.links[id_].half:
        _add_half_parameters(net, assembly, indexed, order)
    else:
        _owned(assembly, owners, f"{id_}_theta", f"weights and biases of {connection.label}")
        for side in _sides(indexed):
            assembly.variable("Parts", f"{side}_copy", f'{side}.copies(graph, "{side}_copy")', "copy of the weights that each group uses")
            assembly.refresh.append(f"to_readers.add({side}.from({id_}_theta.all), {side}_copy.all);")
        _expose(net, assembly, indexed, "PARAMETER", "", "theta", order, writable=True)
    if not net.links[id_].weight_gradient:
        return
    sums = assembly.variable("Parts", f"d_{id_}_theta", f'{id_}_in.private_sums(graph, "d_{id_}_theta")', "private gradients")
    assembly.forget("backward", sums)
    workers = net.plan.target.workers
    _owned(assembly, owners, f"d_{id_}_total", "sums of the private gradients")
    _owned(assembly, owners, f"d_{id_}_rest", "sums of all workers but the first", workers - 1)
    assembly.forget(SHARED_SUMS, f"d_{id_}_rest")
    shares = f"Shares({target}, {id_}_in, {owners}, {sums})"
    assembly.variable("Shares", f"{id_}_shares", shares, "the groups' parts of each owner's gradient")
    _expose(net, assembly, indexed, "GRADIENT", "d_", "total", order, writable=False)
    _add_sums(net, assembly, indexed, sums)
    _add_updates(net, assembly, indexed, order)


def _add_half_parameters(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, order: int) -> None:
    """Add float16 weights, padded to whole words per owner, and float32 biases; `order` is the table with the order of the weights."""
    connection, id_, weights = indexed.connection, indexed.connection.id, indexed.map.weights
    theta = f'half_theta(graph, {id_}_owners, "{id_}_theta", {weights})'
    assembly.variable("Parts", f"{id_}_theta", theta, f"weights of {connection.label}, in whole words per owner")
    on_device = f"without_padding({id_}_theta, {id_}_owners, {weights})"
    for side in _sides(indexed):
        expression = f'{side}.copies(graph, "{side}_copy", poplar::HALF, 0, {weights})'
        assembly.variable("Parts", f"{side}_copy", expression, "copy of the weights that each group uses")
        assembly.refresh.append(f"to_readers.add({side}.from({on_device}, 0, {weights}), {side}_copy.all);")
    shape = net.cpp_shape(connection.weight or "")
    assembly.tensors.append(f'half_parameter("{connection.weight}", {shape}, {on_device}, order_of_table(tables[{order}]));')
    if not indexed.map.biases:
        return
    size = f"[](const Owner &o) {{ return o.first < {weights} ? std::size_t{{0}} : o.count; }}"
    assembly.variable("Parts", f"{id_}_beta", f'parts_on(graph, {id_}_owners, "{id_}_beta", {size})', f"biases of {connection.label}")
    copies = f'{id_}_in.copies(graph, "{id_}_in_biases", poplar::FLOAT, {weights}, {indexed.map.elements})'
    assembly.variable("Parts", f"{id_}_in_biases", copies, "copy of the biases that each group uses")
    assembly.refresh.append(f"to_readers.add({id_}_in.from({id_}_beta.all, {weights}, {indexed.map.elements}), {id_}_in_biases.all);")
    assembly.tensor("PARAMETER", str(connection.bias), net.cpp_shape(connection.bias or ""), f"{id_}_beta.all", "{}", True)


def _add_sums(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, sums: str) -> None:
    """Add the vertices that sum the private gradients of each group and then, for each owner, those of all groups."""
    label, id_, target = indexed.connection.label, indexed.connection.id, indexed.connection.target
    values = {
        "sums": f"{sums}[g.begin]",
        "others": f"{sums}.range(g.begin + 1, g.end)",
        "count": f"{sums}.size(g.begin)",
        "parts": "g.end - g.begin",
    }
    groups = ("Group", "g", f"with_several_blocks({target})")
    assembly.add("update", label, groups, "sum_private_gradients", sum_private(net.costs), values)
    nothing = "layout.numbers({0.0f}, s.tile)" if net.links[id_].half else f"{id_}_theta[s.owner]"
    values = {
        "pieces": f"{id_}_shares.of(s, {nothing})",
        "place": f"layout.constants({id_}_shares.place(s), s.tile)",
        "total": f"summed(d_{id_}_total, d_{id_}_rest, s)",
        "number": f"{id_}_shares.number(s)",
        "count": "s.count",
    }
    shares = ("SumShare", "s", f"shares_of_sums({id_}_owners, {net.plan.target.workers})")
    assembly.add("update", label, shares, "sum_shared_gradients", sum_pieces(net.costs), values)


def _owned(assembly: Assembly, owners: str, name: str, comment: str, each: int = 1) -> None:
    """Add an array with `each` values for each element of the owners."""
    size = "o.count" if each == 1 else f"{each} * o.count"
    assembly.variable("Parts", name, f'parts_on(graph, {owners}, "{name}", [](const Owner &o) {{ return {size}; }})', comment)


def _add_updates(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, order: int) -> None:
    """Add the vertices that update weights and biases: one class for both if both are float32 and have the same rates."""
    id_, weight, bias, weights = indexed.connection.id, indexed.connection.weight, indexed.connection.bias, indexed.map.weights
    for moment in optimizer_arrays(net):
        _owned(assembly, f"{id_}_owners", f"{id_}_{moment}", "")
        _expose(net, assembly, indexed, "SETTING" if moment == "kept" else "MOMENT", "", moment, order, writable=True)
    learned, half = f"learned_owners({id_}_owners)", net.links[id_].half
    updated = {op.parameter for op in net.program.update}
    rates = {name: rates_of(net, name) for name in (weight, bias) if name in updated and name is not None}
    if not half and len(set(rates.values())) == 1:
        _add_update(net, assembly, indexed, learned, next(iter(rates.values())))
        return
    if weight in rates:
        rounding = _rounding(net, assembly, indexed, order) if half else {}
        _add_update(net, assembly, indexed, f"owners_between({learned}, 0, {weights})", rates[weight], half=half, rounding=rounding)
    if bias in rates and indexed.map.biases:
        owners_of_biases = f"owners_between({learned}, {weights}, {indexed.map.elements})"
        _add_update(net, assembly, indexed, owners_of_biases, rates[bias], value="beta" if half else "theta")


def _rounding(net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, order: int) -> Values:
    """Return the fields for rounding weights: those of random numbers (stochastic rounding), or rounding errors ("master")."""
    id_, weight, rounding = indexed.connection.id, indexed.connection.weight or "", net.program.rounding
    if rounding is not None and rounding.kind == "master":
        _owned(assembly, f"{id_}_owners", f"{id_}_{REMAINDER}", "rounding errors")
        on_device = f"{id_}_{REMAINDER}.all.slice(0, {indexed.map.weights})"
        assembly.tensor("MOMENT", f"{weight}_{REMAINDER}", net.cpp_shape(weight), on_device, f"order_of_table(tables[{order}])", True)
        return {REMAINDER: f"{id_}_{REMAINDER}[o.index]"}
    values = random_values(net, weight)
    if not values:
        return {}
    if indexed.map.reordered:
        return values | {"places": f"layout.constants(places_of(o, tables[{order}]), o.tile)"}
    # Weights in the model's order are passed as a matrix with one column: the row is the position, which selects the random number.
    return values | {"begin": "o.first", "first": 0, "columns": 1, "inputs": 1}


def _add_update(
    net: PoplarNetwork,
    assembly: Assembly,
    indexed: IndexedConnection,
    owners: str,
    rates: str,
    *,
    half: bool = False,
    value: str = "theta",
    rounding: Values | None = None,
) -> None:
    id_ = indexed.connection.id
    values: Values = {
        "rates": rates,
        "value": f"{id_}_{value}[o.index]",
        "gradient": f"d_{id_}_total[o.index]",
        "others": f"d_{id_}_rest[o.index]",
        "count": "o.count",
        "parts": net.plan.target.workers,
    }
    values |= {moment: f"{id_}_{moment}[o.index]" for moment in optimizer_arrays(net)}
    values |= {"clip": FACTOR} if clips(net) else {}
    values |= rounding or {}
    vertex = connected_update(net, half=half, placed=half and indexed.map.reordered)
    assembly.add("update", indexed.connection.label, ("Owner", "o", owners), "update_parameters", vertex, values)


def _expose(
    net: PoplarNetwork, assembly: Assembly, indexed: IndexedConnection, role: str, prefix: str, what: str, order: int, *, writable: bool
) -> None:
    """Expose the weights and biases, or the values `what` that belong to them, to the host."""
    connection, weights, elements = indexed.connection, indexed.map.weights, indexed.map.elements
    learned = {op.parameter for op in net.program.update}
    suffix = f"_{what}" if role in ("MOMENT", "SETTING") else ""
    for name, first, last, order_code in (
        (connection.weight, 0, weights, f"order_of_table(tables[{order}])"),
        (connection.bias if indexed.map.biases else None, weights, elements, "{}"),
    ):
        if name is None or (role != "PARAMETER" and name not in learned):
            continue
        on_device = f"{prefix}{connection.id}_{what}.all.slice({first}, {last})"
        assembly.tensor(role, f"{prefix}{name}{suffix}", net.cpp_shape(name), on_device, order_code, writable)


# ---- vertices --------------------------------------------------------------------------------------------------------


def table_values(connection: str, index: int, form: TableForm) -> Values:
    """Return the fields for the tables of a target's vertex."""
    side = f"{connection}_in"
    rows: Values = {f"keys{index}": f"{side}_keys[b.group]"} if form.keyed else {f"low{index}": f"{side}.low(b)"}
    return _table_values(side, index, form) | rows | {f"span{index}": f"{side}.span(b)"}


def source_values(connection: str, index: int, delta: str, form: TableForm, *, chooses: bool) -> Values:
    """Return the fields of a source's vertex: tables, deltas of its targets, and weights or the chosen entries of a maximum."""
    side = f"{connection}_out"
    weight = {f"winner{index}": f"{side}.rows_of({connection}_winner, b)"} if chooses else {f"weight{index}": f"{side}_copy[b.group]"}
    return _table_values(side, index, form) | {f"delta{index}": f"{side}.rows_of({delta}, b)"} | weight


def _table_values(side: str, index: int, form: TableForm) -> Values:
    return {f"{name}{index}": f"{side}_{name}[b.group]" for name in _run_columns(form)}


def _run_columns(form: TableForm) -> tuple[str, ...]:
    return ("rows", "place", "start") if form.single else ("rows", "place", "start", "length")


def table_body(net: PoplarNetwork, connection: str, index: int, *, source: bool = False) -> Body:
    """Return the template data for the tables of an indexed connection."""
    indexed = net.indexed[connection]
    tables = indexed.source if source else indexed.target
    assert tables is not None
    form = tables.form
    return {
        "table_type": INDEX_TYPES[form.index_bytes],
        "single": "true" if form.single else "false",
        "length": "nullptr" if form.single else f"&length{index}[0]",
        "find": f"&keys{index}[0]" if form.keyed else f"low{index}",
        "kind": "single" if form.single else "run",
        "value": "choice" if indexed.map.maximum else "value",
    }
