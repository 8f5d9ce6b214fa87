"""Weight gradients and source gradients, distributed over the workers of a tile by the spikes of all its samples."""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, Values, VertexLoop, connected
from snnc.backends.poplar.vertices.gradient_windows import cleared, partial_name
from snnc.backends.poplar.vertices.links import Incoming, incoming
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.tiles.vertices.block_vertices import balanced_gradients

AHEAD: Final = "backward_ahead"
"""The compute set of neurons whose weight gradients follow in that of all others."""
TITLE: Final = "Deals what a tile adds to weight gradients over its workers, by spikes."
_BLOCKS: Final = "{p}.groups[h.begin].begin, {p}.groups[h.end - 1].end"


def add_dealt_gradients(net: PoplarNetwork, assembly: Assembly, population: PopulationInfo) -> None:
    """Add the vertex of each tile of a population."""
    links = [link for link in incoming(net, population.id) if link.read_backward or link.returned]
    p, blocks = population.id, _BLOCKS.format(p=population.id)
    values: Values = {
        "k": "second_clock[h.tile]",
        "stage": net.stages[p],
        "interval": "INTERVAL",
        "steps": "STEPS",
        "samples": f"{p}.replicas[h.replica].samples",
        "groups": "h.end - h.begin",
        "shares": f"{p}.groups[h.begin].end - {p}.groups[h.begin].begin",
        "columns": "h.count / (h.end - h.begin)",
        "larger": "h.count % (h.end - h.begin)",
    }
    for link in links:
        values |= _window_values(net, p, link)
        values |= _gradient_values(p, link) if link.link.weight_gradient else {}
        values |= _partial_values(net, p, link) if link.returned else {}
        values[f"delta{link.link.port}"] = f"d_{population.ports[link.link.port]}_own.range({blocks})"
    body: Body = {
        "links": [_body(link) for link in links],
        "cleared": [link.body() for link in links if link.returned and cleared(net, link.connection)],
    }
    vertex, shown = balanced_gradients(net.costs[f"dealt.{p}"], links), f"{p} {population.label}"
    fields = connected(vertex, values)
    name = assembly.described(vertex, TITLE, shown, fields, body)
    comment = f"{shown}: {TITLE[:1].lower()}{TITLE[1:]}"
    assembly.loop("backward", VertexLoop(comment, "Home", "h", f"{p}.homes", "backward_neurons", name, "h.tile", fields))


def _body(link: Incoming) -> Body:
    """Template data of a connection."""
    body, lengths = link.body(), "Spikes" if link.supports else "const unsigned *"
    return body | {"list": body["numbers"], "lengths": lengths, "learned": link.link.weight_gradient, "returned": link.returned}


def _window_values(net: PoplarNetwork, population: str, link: Incoming) -> Values:
    bus, i = net.buses[link.connection.id], link.index
    replica = f"{population}.replicas[h.replica]"
    window, capacity = (f"{bus.id}_near", bus.gradient.capacity) if bus.gradient is not None else (bus.id, bus.capacity)
    return {
        f"ids{i}": f"Layout::samples({window}_ids, {replica})",
        f"number{i}": f"Layout::samples({window}_number, {replica})",
        f"room{i}": net.stores[bus.buffer].room(capacity),
        f"inputs{i}": bus.width,
    }


def _gradient_values(population: str, link: Incoming) -> Values:
    """The sums of the first block of each group, and those of the others, in order."""
    i, sums = link.index, f"d_{link.connection.weight}"
    others = f"{sums}.others.range({population}.groups[h.begin].begin - h.begin, {population}.groups[h.end - 1].end - h.end)"
    return {f"first{i}": f"{sums}.first.range(h.begin, h.end)", f"others{i}": others}


def _partial_values(net: PoplarNetwork, population: str, link: Incoming) -> Values:
    gradient, i = net.buses[link.connection.id].gradient, link.index
    assert gradient is not None
    return {
        f"weight{i}": f"{link.connection.weight}.range(h.begin, h.end)",
        f"capacity{i}": gradient.capacity,
        f"partial{i}": f"{partial_name(link.connection)}.range({_BLOCKS.format(p=population)})",
    }
