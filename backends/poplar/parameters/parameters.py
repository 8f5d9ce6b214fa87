"""Emitted code for parameters: variables, copies, gradients and moments, and the vertices that update them.

docs/reference/terms.md explains the terms of tile machines: block, column group, replica, private gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import (
    FACTOR,
    clips,
    connected_update,
    keeps_remainder,
    optimizer_arrays,
    random_values,
    rates_of,
    set_in_passes,
)
from snnc.backends.poplar.parts import Assembly
from snnc.compiler.ir.step_program import ConnectionInfo
from snnc.compiler.losses.weight_rounding import REMAINDER
from snnc.compiler.tiles.vertices.parameter_vertices import pack_rows, sum_private, weight_rows

WEIGHT_ROWS: Final = "weights_to_sources"
"""Compute set that copies weights to the tiles of their sources."""
PACKED_ROWS: Final = "weight_rows_packed"
"""Compute set that packs rows of weights, before :data:`WEIGHT_ROWS`."""


@dataclass(frozen=True)
class PlacedParameter:
    """A parameter, and the population on whose blocks it is stored.

    `form` is "dense" ([inputs][neurons]), "wide" (one value per neuron) or "shared" (one value for all). `shape`, `order`, `rows` and
    `first` are C++: the shape of the host's array, the positions of the stored elements in it, the number of rows, and the column of
    that array with which a group begins.
    """

    name: str
    population: str
    form: str
    shape: str
    order: str
    rows: str
    learned: bool
    label: str
    half: bool
    first: str = "g.first"

    @property
    def summed(self) -> str:
        """End of the name of the C++ function that creates the sums of its gradient, which have the padding of its variables."""
        return "weights" if self.form == "dense" or self.half else "rows"


def placed_parameters(net: PoplarNetwork) -> Iterator[PlacedParameter]:
    """Yield once each parameter that the program uses, except weights and biases of indexed connections."""
    learned = {op.parameter for op in net.program.update} if net.training else set()
    seen: set[str] = set()
    for population in net.program.populations:
        names = [*net.step(population.id).parameters, *(b for port in population.ports for b in net.biases(port))]
        layer = net.layers[population.id]
        for name, shared in zip(names, [*layer.parameters, *itertools.chain(*layer.biases)], strict=True):
            if name in seen:
                continue
            seen.add(name)
            order = "{}" if shared else f"order_of_neurons({population.id})"
            yield _placed(net, name, population.id, "shared" if shared else "wide", order, "1", name in learned)
        for connection in net.incoming(population.id):
            if connection.weight and connection.weight not in seen and connection.id not in net.indexed:
                seen.add(connection.weight)
                yield _weight(net, connection, connection.weight, connection.weight in learned)


def _placed(net: PoplarNetwork, name: str, population: str, form: str, order: str, rows: str, learned: bool) -> PlacedParameter:
    parameter = net.program.parameters[name]
    return PlacedParameter(name, population, form, net.cpp_shape(name), order, rows, learned, parameter.label, parameter.half)


def _weight(net: PoplarNetwork, connection: ConnectionInfo, name: str, learned: bool) -> PlacedParameter:
    target = connection.target
    if connection.kind == "dense":
        inputs = net.size(connection.source_buffer)
        return _placed(net, name, target, "dense", f"order_of_weights({target}, {inputs})", str(inputs), learned)
    if net.size(name) == 1:
        return _placed(net, name, target, "shared", "{}", "1", learned)
    offset = net.offset(connection.id)
    order = f"order_of_pairs({target}, {net.size(name)}, {offset})"
    placed = _placed(net, name, target, "wide", order, "1", learned)
    if not placed.half:
        return placed
    return replace(placed, order=f"padded({target}, {order})", first=f"g.first - {offset}" if offset else "g.first")


def add_parameters(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the variables, copies and updates of all parameters, except those of indexed connections."""
    if net.mapped.extra_passes and not net.operation:
        assembly.tensors.append("add_passes();")
    in_passes = set_in_passes(net)
    for placed in placed_parameters(net):
        _variables(net, assembly, placed, in_passes=placed.name in in_passes)
        if placed.learned:
            _gradient(net, assembly, placed)
            _update(net, assembly, placed)
    for connection in net.program.connections:
        if connection in net.copied_rows:
            _source_rows(net, assembly, connection)
        elif connection.weight and (link := net.links[connection.id]).one_to_one and link.input_gradient:
            _source_weights(net, assembly, connection, connection.weight)


def _variables(net: PoplarNetwork, assembly: Assembly, placed: PlacedParameter, *, in_passes: bool) -> None:
    """Declare the variables of a parameter, and refresh its copies after a change by the host.

    Parameters set by the host between the passes of an update (`in_passes`, decision 58) have a value per neuron and no copies to refresh.
    """
    name, p = placed.name, placed.population
    comment = f"parameter {placed.label}"
    if placed.form == "shared":
        assembly.on_tile("FLOAT", name, comment, tile=f"{p}.groups[0].tile")
        assembly.variable("Parts", f"{name}_copies", f'layout.group_numbers({p}, "{name}_copies")', "copy of the value on every tile")
        assembly.refresh.append(f"to_readers.add({name}.broadcast({p}.groups.size(), 0), {name}_copies.all);")
        on_device = name
    else:
        function = "half_weights" if placed.half else placed.summed
        assembly.variable("Parts", name, f'layout.{function}({p}, "{name}", {placed.rows})', comment)
        if placed.learned and not net.operation:  # an operation receives the parameters of all replicas
            assembly.refresh.append(f"spread({p}, {name}, to_replicas);")
        on_device = f"{name}.all"
    if in_passes:
        assembly.tensors.append(f'parameter_of_blocks("{name}", {placed.shape}, {on_device}, {placed.order});')
    elif placed.half:
        assembly.tensors.append(f'half_parameter("{name}", {placed.shape}, {on_device}, {placed.order});')
    else:
        assembly.tensors.append(f'tensor("{name}", SNNC_PARAMETER, {placed.shape}, {on_device}, {placed.order}, true);')


def _gradient(net: PoplarNetwork, assembly: Assembly, placed: PlacedParameter) -> None:
    name, p, order = placed.name, placed.population, placed.order
    if placed.form == "shared":
        sums = assembly.variable("Parts", f"d_{name}", f'layout.block_numbers({p}, "d_{name}")', f"private gradients of {placed.label}")
        total = f"{sums}.range(0, 1)"
    else:
        expression = f'layout.block_{placed.summed}({p}, "d_{name}", {placed.rows})'
        sums = assembly.variable("Sums", f"d_{name}", expression, f"private gradients of {placed.label}")
        assembly.forget("backward", f"{sums}.others")
        total, order = f"totals({p}, {sums})", f"first_replica({p}, {order})"
        values = {"sums": f"{sums}.first[g.index]", "others": f"{sums}.of_others(g)"}
        values |= {"count": f"{sums}.first.size(g.index)", "parts": "g.end - g.begin"}
        groups = ("Group", "g", f"with_private_sums({p})")
        assembly.add("update", placed.label, groups, "sum_private_gradients", sum_private(net.costs), values)
    assembly.tensors.append(f'tensor("d_{name}", SNNC_GRADIENT, {placed.shape}, {total}, {order}, false);')


def _update(net: PoplarNetwork, assembly: Assembly, placed: PlacedParameter) -> None:
    name, p = placed.name, placed.population
    shared = placed.form == "shared"
    others = f"d_{name}.range(1, {p}.blocks.size())" if shared else f"other_sums({p}, d_{name}, g)"
    parts = f"{p}.blocks.size()" if shared else f"summands({p}, g)"
    values: dict[str, object] = {
        "rates": rates_of(net, name),
        "value": name if shared else f"own_share({p}, {name}, g)",
        "gradient": f"d_{name}[0]" if shared else f"summed_share({p}, d_{name}, g)",
        # Every field must be connected. If there are no other gradients, `others` is connected to the rates, which the vertex reads anyway.
        "others": f"{parts} > 1 ? {others} : rates",
        "count": 1 if shared else f"own_share({p}, {name}, g).numElements()",
        "parts": parts,
    }
    for moment in [*optimizer_arrays(net), *([REMAINDER] if placed.half and keeps_remainder(net) else [])]:
        array = f"{name}_{moment}"
        if shared:
            assembly.on_tile("FLOAT", array, tile=f"{p}.groups[0].tile")
        else:
            assembly.variable("Parts", array, f'layout.shares({p}, "{array}", {name})')
        on_device = array if shared else f"all_shares({p}, {array})"
        order = placed.order if shared else f"first_replica({p}, {placed.order})"
        role = "SETTING" if moment == "kept" else "MOMENT"  # kept: the sum of the gradients of earlier batches
        assembly.tensors.append(f'tensor("{array}", SNNC_{role}, {placed.shape}, {on_device}, {order}, true);')
        values[moment] = array if shared else f"{array}[g.index]"
    tile, groups = ("g.tile", f"with_share({p}, {name})") if not shared else (f"{p}.groups[0].tile", "")
    values |= {"clip": FACTOR} if clips(net) else {}
    random = random_values(net, name) if placed.half else {}
    if random:  # the numbers depend on the position of a weight in the host's array
        begin = f"share_of({p}, {name}.size(g.index), g.replica).begin"
        values |= random | {"begin": begin, "first": placed.first, "columns": "g.count", "inputs": placed.rows}
    vertex = connected_update(net, half=placed.half)
    assembly.add("update", placed.label, ("Group", "g", groups), "update_parameters", vertex, values, tile)


def _source_weights(net: PoplarNetwork, assembly: Assembly, connection: ConnectionInfo, weight: str) -> None:
    """Add a copy of the weights of a one-to-one connection on the tiles of its source, which compute the input gradient."""
    source, target, rows = connection.source, connection.target, f"{weight}_rows"
    half = net.links[connection.id].half
    if net.size(weight) == 1:
        assembly.variable("Parts", rows, f'layout.group_numbers({source}, "{rows}")', "copy of the value on the tiles of its source")
        assembly.refresh.append(f"to_readers.add({weight}.broadcast({source}.groups.size(), 0), {rows}.all);")
    else:
        offset = net.offset(connection.id)
        expression = f'layout.{"half_numbers" if half else "source_rows"}({source}, "{rows}"{"" if half else ", 1"})'
        assembly.variable("Parts", rows, expression, "copy of the weights on the tiles of their source")
        assembly.refresh.append(f"to_readers.add(Layout::pairs_of({source}, {target}, {weight}, {offset}), {rows}.all);")


def _source_rows(net: PoplarNetwork, assembly: Assembly, connection: ConnectionInfo) -> None:
    """Add vertices with which source tiles (``Home`` in C++) collect their rows of weights from column groups, directly or packed."""
    source, target, rows = connection.source, connection.target, f"{connection.weight}_rows"
    inputs, outputs = net.size(connection.source_buffer), net.layers[target].neurons
    half = net.links[connection.id].half
    expression = f'layout.{"half_" if half else ""}source_rows({source}, "{rows}", {outputs})'
    assembly.variable("Parts", rows, expression, "copy of the weights by rows, on the tiles of their source")
    packed = connection.id in net.packed_rows
    pieces = _packed_rows(net, assembly, connection) if packed else f"Layout::rows_of({source}, h, {target}, {connection.weight}, {inputs})"
    values = {
        "pieces": pieces,
        "runs": f"layout.constants(runs_of_tiles({target}), h.tile)",
        "rows": f"{rows}.range(h.begin, h.end)",
        "count": "h.count",
        "outputs": outputs,
        "length": f"runs_of_tiles({target}).size()",
    }
    assembly.add("update", connection.label, ("Home", "h", f"{source}.homes"), WEIGHT_ROWS, weight_rows(net.costs, half=half), values)


def _packed_rows(net: PoplarNetwork, assembly: Assembly, connection: ConnectionInfo) -> str:
    """Add vertices with which target tiles pack rows of the weights; return the C++ for the pieces that a source tile reads."""
    inputs, bundles = net.size(connection.source_buffer), net.packed_rows[connection.id]
    weight, name = connection.weight, f"{connection.weight}_packing"
    value = f"Packing({connection.source}, {connection.target}, {inputs}, {bundles})"
    assembly.variable("Packing", name, value, "tiles that pack rows of the weights")
    packed = assembly.variable("Parts", f"{weight}_packed", f'layout.packed_rows({name}.packers(), "{weight}_packed")', "packed rows")
    values = {
        "pieces": f"{name}.collected(p, {weight})",
        "widths": f"layout.constants({name}.widths(p), p.tile)",
        "runs": f"layout.constants({name}.runs(p), p.tile)",
        "packed": f"{packed}[p.index]",
        "number": f"{name}.widths(p).size()",
        "length": f"{name}.runs(p).size()",
        "rows": "p.count",
        "columns": "p.columns",
    }
    assembly.add("update", connection.label, ("Packer", "p", f"{name}.packers()"), PACKED_ROWS, pack_rows(net.costs), values)
    return f"{name}.to(h, {packed})"
