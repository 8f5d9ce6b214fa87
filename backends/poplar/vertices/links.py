"""Fields of a block's vertex for its inputs: buses, weights, parameters, and their gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Body, CodeletField, number, scalar, vector
from snnc.backends.poplar.vertices.indexed import choice_field, gradient_field, sent_choice_fields, table_body, table_fields
from snnc.compiler.ir.step_program import ConnectionInfo
from snnc.compiler.lowering.sparse_values import is_quiet

ZERO: Final = "for (unsigned c = 0; c < count; ++c)\n          {}[s * count + c] = 0.0f;"
"""Starts what is chosen of a sample."""


def zeros_of(link: Incoming) -> Body:
    """A maximum of spikes starts afresh in every step: before its only window, or behind the last of several."""
    if not (link.chooses and link.events):
        return {}
    return {"end" if link.limited else "begin": [ZERO.format(f"seen{link.index}")]}


@dataclass(frozen=True)
class Incoming:
    """A connection into a population as its vertices see it; `index` numbers the fields."""

    index: int
    connection: ConnectionInfo
    events: bool
    limited: bool
    learned: bool
    weight_size: int
    returned: bool
    """Whether the gradient of the source returns in windows."""
    limited_back: bool
    """Whether further windows follow in the backward pass."""
    near: bool
    """Whether the window of the backward pass also holds neurons near the threshold."""
    tables: Body | None = None
    """Template data of an indexed connection."""
    biased: bool = False
    """Whether tables hold biases too."""
    chooses: bool = False
    """Whether it is a maximum."""
    sends: bool = False
    """Whether it tells its source which entry of a maximum it was."""
    quiet: bool = False
    """Whether it is dense and reads values that are mostly 0."""

    @property
    def read_backward(self) -> bool:
        """Whether the backward step reads its window."""
        return self.learned or self.sends

    @property
    def template(self) -> str:
        """Stem of the template that prints it."""
        if self.quiet:
            return "dense_quiet"
        kind = self.connection.kind if self.tables is None else "maximum" if self.chooses else "indexed"
        return f"{kind}_{'events' if self.events else 'values'}"

    def body(self) -> Body:
        """Its template data."""
        i, shared = self.index, self.weight_size == 1 and self.connection.kind == "one_to_one"
        weight = {0: "1.0f"}.get(self.weight_size, f"*weight{i}" if shared else f"weight{i}[c]")
        return {
            "index": i,
            "port": self.connection.port,
            "template": self.template,
            "weight": weight,
            "weight_times": "" if self.weight_size == 0 else f"{weight} * ",
            "gradient_index": "0" if shared else "c",
            **(self.tables or {}),
            "begin": [],
            "end": [],
            "number": "2 * s" if self.near else "s",
            "numbers": f"Spikes{{&number{i}[0]}}" if self.near else f"&number{i}[0]",
        }

    def bodies(self) -> list[Body]:
        """The same for the window that comes with a step's equations: what further ones go on with starts or ends; with biases."""
        return [self.body() | zeros_of(self), *([{**self.body(), "template": "indexed_bias"}] if self.biased else [])]

    def first_bodies(self) -> list[Body]:
        """The same for the first window of the backward step."""
        begin = {"begin": [ZERO.format(f"chosen{self.index}")]} if self.chooses and self.events else {}
        return [self.bodies()[0] | {"begin": [], "end": []} | begin, *self.bodies()[1:]]


def incoming(net: PoplarNetwork, population: str) -> tuple[Incoming, ...]:
    """All connections into a population."""
    found = []
    for index, connection in enumerate(net.incoming(population)):
        bus = net.buses[connection.id]
        size = net.size(connection.weight) if connection.weight else 0
        tables = table_body(net, connection.id, index) if connection.id in net.indexed else None
        biased = tables is not None and net.indexed[connection.id].map.biases > 0
        chooses = tables is not None and net.indexed[connection.id].map.maximum
        sends = chooses and net.input_gradient(connection.id)
        learned, returned = net.weight_gradient(connection.id), net.returns(connection.id)
        back, near = net.limited(bus, backward=True), bus.gradient is not None
        seen = (bus.kind == "events", net.limited(bus), learned, size, returned, back, near)
        found.append(Incoming(index, connection, *seen, tables, biased, chooses, sends, is_quiet(net.program, connection)))
    return tuple(found)


def bus_fields(net: PoplarNetwork, links: Iterable[Incoming], backward: bool = False) -> list[CodeletField]:
    """Windows that the connections read, and what finds their place in the block."""
    fields: list[CodeletField] = []
    for link in links:
        bus, i = net.buses[link.connection.id], link.index
        if link.events:
            store = net.stores[bus.buffer]
            near = backward and bus.gradient is not None
            window, capacity = f"{bus.id}_near" if near else bus.id, bus.gradient.capacity if near and bus.gradient else bus.capacity
            fields += [
                vector("Input", store.id_type, f"ids{i}", f"Layout::samples({window}_ids, b)"),
                vector("Input", "unsigned", f"number{i}", f"Layout::samples({window}_number, b)"),
                number(f"room{i}", store.room(capacity)),
            ]
            if link.connection.kind == "dense":
                fields.append(number(f"inputs{i}", bus.width))
        else:
            fields += [
                vector("Input", "float", f"values{i}", f"Layout::samples({bus.id}_values, b)"),
                number(f"width{i}", bus.width),
            ]
        if link.connection.kind == "one_to_one":
            fields.append(number(f"offset{i}", net.offset(link.connection.id)))
    return fields


def weight_fields(net: PoplarNetwork, links: Iterable[Incoming]) -> list[CodeletField]:
    """Weights that the connections use, as they lie with the target."""
    fields = []
    for link in links:
        name, weight = f"weight{link.index}", link.connection.weight
        if link.tables is not None:
            fields += table_fields(net, link.connection.id, link.index, with_weights=not link.chooses)
            if link.chooses:
                fields.append(choice_field(link.connection.id, link.index, "seen" if link.events else "best"))
        elif weight and link.connection.kind == "one_to_one" and link.weight_size == 1:
            fields.append(scalar("Input", "float", name, f"{weight}_copies[b.group][0]"))
        elif weight:
            fields.append(vector("Input", "float", name, f"{weight}[b.group]", _alignment(link)))
    return fields


def gradient_fields(net: PoplarNetwork, links: Iterable[Incoming]) -> list[CodeletField]:
    """The block's private sums of weight gradients."""
    fields = []
    for link in links:
        if link.learned and link.tables is not None:
            fields += table_fields(net, link.connection.id, link.index, with_weights=False)
            fields += gradient_field(link.connection.id, link.index)
        elif link.sends:
            fields += table_fields(net, link.connection.id, link.index, with_weights=False)
            fields += sent_choice_fields(link.connection.id, link.index, events=link.events)
        elif link.learned:
            fields.append(vector("InOut", "float", f"gradient{link.index}", f"d_{link.connection.weight}[b.index]", _alignment(link)))
    return fields


def _alignment(link: Incoming) -> int:
    """Rows of dense weights are read in pairs of columns."""
    return 8 if link.connection.kind == "dense" else 0


def is_shared(net: PoplarNetwork, parameter: str, population: str) -> bool:
    """Whether one number serves all neurons of a population."""
    return net.size(parameter) == 1 and net.neurons[population] > 1


def parameter_field(net: PoplarNetwork, population: str, parameter: str, name: str) -> tuple[CodeletField, str]:
    """Field of a parameter with one value a neuron or one for all, and how the code reads it at column c."""
    if is_shared(net, parameter, population):
        return scalar("Input", "float", name, f"{parameter}_copies[b.group][0]"), f"*{name}"
    return vector("Input", "float", name, f"{parameter}[b.group]"), f"{name}[c]"
