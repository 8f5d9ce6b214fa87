"""Weight gradients and source gradients, distributed over the workers of a tile by the spikes of all its samples."""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, CodeletField, VertexLoop, integer, number, scalar, vector
from snnc.backends.poplar.vertices.gradient_windows import cleared, partial_name
from snnc.backends.poplar.vertices.links import Incoming, incoming
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.tiles.vertices.cost import partial_products

AHEAD: Final = "backward_ahead"
"""The compute set of neurons whose weight gradients follow in that of all others."""
TITLE: Final = "Deals what a tile adds to weight gradients over its workers, by spikes."
_BLOCKS: Final = "{p}.groups[h.begin].begin, {p}.groups[h.end - 1].end"


def add_dealt_gradients(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add the vertex of each tile of a population."""
    links = [link for link in incoming(net, population.id) if link.read_backward or link.returned]
    p, blocks = population.id, _BLOCKS.format(p=population.id)
    fields = [
        scalar("Input", "int", "k", "second_clock[h.tile]"),
        integer("stage", net.stages[p]),
        integer("interval", "INTERVAL"),
        integer("steps", "STEPS"),
        number("samples", f"{p}.replicas[h.replica].samples"),
        number("groups", "h.end - h.begin"),
        number("shares", f"{p}.groups[h.begin].end - {p}.groups[h.begin].begin"),
        number("columns", "h.count / (h.end - h.begin)"),
        number("larger", "h.count % (h.end - h.begin)"),
    ]
    for link in links:
        fields += _window_fields(net, p, link)
        fields += _gradient_fields(p, link) if link.learned else []
        fields += _partial_fields(net, p, link) if link.returned else []
    for port in sorted({link.connection.port for link in links}):
        fields.append(vector("Input", "float", f"delta{port}", f"d_{population.ports[port]}_own.range({blocks})"))
    shown, cost = f"{p} {population.label}", net.cost(f"dealt.{p}")
    back = any(link.returned for link in links)
    body: Body = {
        "links": [_body(link) for link in links],
        "cleared": [link.body() for link in links if link.returned and cleared(net, link.connection)],
    }
    given = tuple(fields)
    cost = cost.calling(partial_products(cost)) if back else cost
    name = assembly.codelet("dealt_gradients", "DealtGradients", TITLE, shown, given, cost, body)
    comment = f"{shown}: {TITLE[:1].lower()}{TITLE[1:]}"
    assembly.loop("backward", VertexLoop(comment, "Home", "h", f"{p}.homes", "backward_neurons", name, "h.tile", given))


def _body(link: Incoming) -> Body:
    """Template data of a connection."""
    body = link.body()
    lengths = "Spikes" if link.near else "const unsigned *"
    return body | {"list": body["numbers"], "lengths": lengths, "learned": link.learned, "returned": link.returned}


def _window_fields(net: PoplarNetwork, population: str, link: Incoming) -> list[CodeletField]:
    bus, i = net.buses[link.connection.id], link.index
    store, replica = net.stores[bus.buffer], f"{population}.replicas[h.replica]"
    window, capacity = (f"{bus.id}_near", bus.gradient.capacity) if bus.gradient is not None else (bus.id, bus.capacity)
    return [
        vector("Input", store.id_type, f"ids{i}", f"Layout::samples({window}_ids, {replica})"),
        vector("Input", "unsigned", f"number{i}", f"Layout::samples({window}_number, {replica})"),
        number(f"room{i}", store.room(capacity)),
        number(f"inputs{i}", bus.width),
    ]


def _gradient_fields(population: str, link: Incoming) -> list[CodeletField]:
    """The sums of the first block of each group, and those of the others, in order."""
    i, sums = link.index, f"d_{link.connection.weight}"
    others = f"{sums}.others.range({population}.groups[h.begin].begin - h.begin, {population}.groups[h.end - 1].end - h.end)"
    return [
        vector("InOut", "float", f"first{i}", f"{sums}.first.range(h.begin, h.end)", 8),
        vector("InOut", "float", f"others{i}", others, 8),
    ]


def _partial_fields(net: PoplarNetwork, population: str, link: Incoming) -> list[CodeletField]:
    gradient, i = net.buses[link.connection.id].gradient, link.index
    assert gradient is not None
    return [
        vector("Input", "float", f"weight{i}", f"{link.connection.weight}.range(h.begin, h.end)", 8),
        number(f"capacity{i}", gradient.capacity),
        vector("InOut", "float", f"partial{i}", f"{partial_name(link.connection)}.range({_BLOCKS.format(p=population)})"),
    ]
