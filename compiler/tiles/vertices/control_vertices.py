"""Vertices that control iterations: clocks, and the test for further windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, Loop, looping
from snnc.compiler.tiles.vertices.vertex_spec import FieldSpec, VertexSpec, constant, one, run

CLOCK_VERTEX: Final = VertexSpec(
    "clock",
    (
        one("input", "int", "from", "one counter of the iteration"),
        one("output", "int", "to", "the other counter"),
        constant("add", "iterations that it moves on", "int"),
    ),
    CodeletCost(start=8),  # its fields, load, add, store, return
)
"""The vertex that sets one counter of the iteration from the other."""
ZERO_VERTEX: Final = VertexSpec(
    "zero",
    (run("output", "float", "values", "what becomes 0"), constant("count", "elements")),
    CodeletCost(start=16, element=1),
    tuple(looping("elements", Amount("count"), 1)),
)
"""The vertex that sets currents to zero before the first step."""
_AGAIN: Final = one("output", "bool", "again", "whether further windows follow")
_LEFT: Final = one("output", "unsigned", "left", "how many further windows follow")
_ROUNDS: Final = one("inout", "unsigned", "rounds", "further windows of all iterations so far")
_MOST: Final = (
    run("input", "unsigned", "more", "how many further windows relays need"),
    run("output", "unsigned", "most", "the most of them"),
    constant("count", "how many relays say so"),
)


COMPARED: Final = "numbers compared"
"""Loop over the numbers that relays reported."""


def _compared(cost: CodeletCost) -> tuple[Loop, ...]:
    return tuple(looping(COMPARED, Amount("numbers"), cost.element))


def most(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that finds the maximum of the numbers of further windows that some relays need."""
    return VertexSpec("most", _MOST, costs["most"], _compared(costs["most"]))


def most_of_workers(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that finds this maximum with all workers, on the tile that decides."""
    return VertexSpec("most_of_workers", _MOST, costs["most"], _compared(costs["most"]))


def answer(costs: Mapping[str, CodeletCost], *, looks_back: bool) -> VertexSpec:
    """Return the vertex that decides whether further windows follow; with `looks_back` it stores their number for the backward pass."""
    kept: tuple[FieldSpec, ...] = ()
    if looks_back:
        kept = (
            one("input", "int", "k", "the iteration"),
            run("inout", "unsigned", "back", "further windows of each iteration of the backward pass"),
        )
    maxima = run("input", "unsigned", "maxima", "the most that each worker found")
    return VertexSpec("answer", (maxima, _AGAIN, _LEFT, _ROUNDS, *kept), costs["answer"], _compared(costs["answer"]))


def known(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that reads, in the backward pass, how many further windows the forward pass found."""
    fields = (
        one("input", "int", "k", "the iteration"),
        run("input", "unsigned", "back", "further windows of each iteration"),
        _LEFT,
        _AGAIN,
        _ROUNDS,
    )
    return VertexSpec("known", fields, costs["known"])


def count_down(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that counts down the further windows that are left."""
    return VertexSpec("count_down", (one("inout", "unsigned", "left", _LEFT.holds), _AGAIN), costs["count_down"])
