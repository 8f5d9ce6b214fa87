"""Fields and template data for the incoming connections of a block: windows, weights, parameters and their gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Body, Values
from snnc.backends.poplar.vertices.counting import BLOCK, TRIPS, counted
from snnc.backends.poplar.vertices.indexed import table_body, table_values
from snnc.compiler.ir.step_program import ConnectionInfo
from snnc.compiler.tiles.codelets.block_vertices import BlockLink
from snnc.compiler.tiles.vertices.loops import LoopsByPlace


@dataclass(frozen=True)
class Incoming(BlockLink):
    """A connection into a population, with its template data."""

    connection: ConnectionInfo
    supports: bool
    """Whether the window of the backward pass also contains neurons that receive a gradient without a spike."""
    tables: Body | None
    """Template data of an indexed connection; None for other connections."""
    biased: bool
    """Whether the tables also contain biases."""

    @property
    def template(self) -> str:
        """Stem of the name of its template."""
        if self.link.sparse_values:
            return "dense_sparse_values"
        kind = self.connection.kind if self.tables is None else "maximum" if self.link.chooses else "indexed"
        return f"{kind}_{'events' if self.link.events else 'values'}"

    def body(self) -> Body:
        """Return the template data of the connection that all vertices share."""
        i, size = self.index, self.link.weight_elements
        shared = size == 1 and self.link.one_to_one
        of_neuron = f"static_cast<float>(weight{i}[c])" if self.link.half else f"weight{i}[c]"
        weight = "1.0f" if size == 0 else f"*weight{i}" if shared else of_neuron
        biases = f"&biases{i}[0], weights{i}" if self.link.half else f"&weight{i}[0], 0"
        return {
            "index": i,
            "port": self.link.port,
            "template": self.template,
            "rows": "HalfRows" if self.link.half else "Rows",
            "products": "HalfProducts" if self.link.half else "Products",
            "weight": weight,
            "biases": biases,
            "weight_times": "" if size == 0 else f"{weight} * ",
            "gradient_index": "0" if shared else "c",
            **(self.tables or {}),
            "rounds": str(self.link.half_deltas).lower(),
            "begin": "",
            "end": "",
            "biased": False,
            "number": "2 * s" if self.supports else "s",
            "numbers": f"Spikes{{&number{i}[0]}}" if self.supports else f"&number{i}[0]",
        }

    def step_body(self, loops: LoopsByPlace) -> Body:
        """Return the template data for a step.

        A maximum over spikes forgets which of the connection's entries it has seen: before it reads the window or, if a step may have
        several windows, after the last one.
        """
        seen = f"seen{self.index}" if self.link.chooses and self.link.events else ""
        cleared = {"end" if self.limited else "begin": seen}
        return self.body() | cleared | {"biased": self.biased, "counts": self.counts(loops)}

    def adjoint_body(self, loops: LoopsByPlace) -> Body:
        """Return the template data for the first window of the backward step."""
        chosen = f"chosen{self.index}" if self.link.chooses and self.link.events else ""
        return self.body() | {"begin": chosen, "biased": self.biased, "counts": self.counts(loops, backward=True)}

    def counts(self, loops: LoopsByPlace, *, backward: bool = False) -> list[str]:
        """Return the statements that count the cycles of the connection's loops."""
        events = f"total({self.body()['numbers'] if backward else f'&number{self.index}[0]'}, samples)"
        tables = TRIPS if self.form is not None else {}
        return counted(loops["incoming", self.index], {**self._trip_counts(), **tables, "events": events})

    def partials_body(self, loops: LoopsByPlace) -> Body:
        """Return the template data of the partial products that the connection returns to its source."""
        return self.body() | {"counts": counted(loops["partials", self.index], self._trip_counts())}

    def _trip_counts(self) -> dict[str, str]:
        i = self.index
        nonzero = f"nonzero_rows(&values{i}[0], width{i}, samples)"
        return {**BLOCK, "entries": f"entries_of(&number{i}[0], samples)", "width": f"width{i}", "nonzero": nonzero}


def incoming(net: PoplarNetwork, population: str) -> tuple[Incoming, ...]:
    """Return all connections into a population."""
    links = []
    for index, (connection, link) in enumerate(zip(net.incoming(population), net.layers[population].incoming, strict=True)):
        bus, tables = net.buses[connection.id], net.indexed.get(connection.id)
        links.append(
            Incoming(
                index,
                link,
                connection.id in net.returning,
                net.limited(bus),
                net.limited(bus, backward=True),
                None if tables is None else tables.target.form,
                connection,
                bus.gradient is not None,
                None if tables is None else table_body(net, connection.id, index),
                tables is not None and tables.map.biases > 0,
            )
        )
    return tuple(links)


def window_values(net: PoplarNetwork, links: Iterable[Incoming], backward: bool = False) -> Values:
    """Return the fields with which a vertex reads the windows of its connections."""
    values: Values = {}
    for link in links:
        bus, i = net.buses[link.connection.id], link.index
        if link.link.events:
            gradient = bus.gradient if backward else None
            window, capacity = (bus.id, bus.capacity) if gradient is None else (f"{bus.id}_support", gradient.capacity)
            values[f"ids{i}"] = f"Layout::samples({window}_ids, b)"
            values[f"number{i}"] = f"Layout::samples({window}_number, b)"
            values[f"room{i}"] = net.stores[bus.buffer].room(capacity)
            if link.link.dense:
                values[f"inputs{i}"] = bus.width
        else:
            values[f"values{i}"] = f"Layout::samples({bus.id}_values, b)"
            values[f"width{i}"] = bus.width
        if link.link.one_to_one:
            values[f"offset{i}"] = net.offset(link.connection.id)
    return values


def weight_values(links: Iterable[Incoming]) -> Values:
    """Return the fields for the weights of connections on the tiles of the target."""
    values: Values = {}
    for link in links:
        i, weight = link.index, link.connection.weight
        if link.form is not None:
            id_, side = link.connection.id, f"{link.connection.id}_in"
            values |= table_values(id_, i, link.form)
            if link.link.chooses:
                name = "seen" if link.link.events else "best"
                values[f"{name}{i}"] = f"{id_}_{name}[b.index]"
            else:
                values[f"weight{i}"] = f"{side}_copy[b.group]"
                if link.link.half and link.link.indexed is not None and link.biased:
                    weights = f"{side}.size(b, {link.link.indexed.map.weights})"
                    values |= {f"biases{i}": f"{side}_biases[b.group]", f"weights{i}": weights}
        elif link.link.one_to_one and link.link.weight_elements == 1:
            values[f"weight{i}"] = f"{weight}_copies[b.group][0]"
        elif weight:
            values[f"weight{i}"] = f"{weight}[b.group]"
    return values


def weight_gradient_values(links: Iterable[Incoming]) -> Values:
    """Return the fields for the private gradients of a block, or for the chosen entries of a maximum."""
    values: Values = {}
    for link in links:
        id_, i = link.connection.id, link.index
        if link.form is not None:
            values |= table_values(id_, i, link.form)
            if link.link.weight_gradient:
                values |= {f"gradient{i}": f"d_{id_}_theta[b.index]", f"size{i}": f"{id_}_in.size(b)"}
            else:
                values |= {f"chosen{i}": f"{id_}_chosen[b.index]", f"winner{i}": f"Layout::own({id_}_winner, b)"}
                values |= {} if link.link.events else {f"best{i}": f"{id_}_best[b.index]"}
        elif link.link.weight_gradient:
            values[f"gradient{i}"] = f"d_{link.connection.weight}[b.index]"
    return values


def parameter_value(parameter: str, shared: bool) -> str:
    """Return the C++ for a block's copy of a parameter with one value per neuron or, if `shared`, one for all."""
    return f"{parameter}_copies[b.group][0]" if shared else f"{parameter}[b.group]"


def parameter_place(name: str, shared: bool) -> str:
    """Return the C++ that reads the field `name` of a parameter at column c."""
    return f"*{name}" if shared else f"{name}[c]"
