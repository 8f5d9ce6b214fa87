"""Vertices that control iterations: clocks, which count them, and the test for further windows.

A window is a list of the events of a step with a fixed capacity. If a step has more events, further windows follow in the same iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, Loop, looping
from snnc.compiler.tiles.vertices.vertex_spec import FieldSpec, VertexSpec, constant, many, one

CLOCK_VERTEX: Final = VertexSpec(
    "clock",
    (
        one("input", "int", "from", "one counter of the iteration"),
        one("output", "int", "to", "the other counter"),
        constant("add", "iterations to advance by", "int"),
    ),
    CodeletCost(start=8),  # its fields, load, add, store, return
)
"""Sets one of two iteration counters from the other; two alternate, so that no compute set both reads and writes one."""
ZERO_VERTEX: Final = VertexSpec(
    "zero",
    (many("output", "float", "values", "values to clear"), constant("count", "elements")),
    CodeletCost(start=16, element=1),
    tuple(looping("elements", Amount("count"), 1)),
)
"""Sets currents, and the chosen entries of max pooling, to 0 before the first step."""
_AGAIN: Final = one("output", "bool", "again", "whether further windows follow")
_LEFT: Final = one("output", "unsigned", "left", "number of further windows that follow")
_ROUNDS: Final = one("inout", "unsigned", "rounds", "total further windows of all iterations so far")
_MOST: Final = (
    many("input", "unsigned", "more", "number of further windows that each relay needs"),
    many("output", "unsigned", "most", "largest number of further windows that a relay needs"),
    constant("count", "number of relays that report"),
)


COMPARED: Final = "numbers compared"
"""Loop over the numbers that relays reported."""


def _compared(cost: CodeletCost) -> tuple[Loop, ...]:
    return tuple(looping(COMPARED, Amount("numbers"), cost.element))


def most(costs: Mapping[str, CodeletCost], name: str = "most") -> VertexSpec:
    """Return the vertex that computes the maximum of the numbers of further windows that some relays need."""
    return VertexSpec(name, _MOST, costs["most"], _compared(costs["most"]))


def most_of_workers(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex of the deciding tile, each worker of which computes the maximum of its share of the reported numbers."""
    return most(costs, "most_of_workers")


def answer(costs: Mapping[str, CodeletCost], *, looks_back: bool) -> VertexSpec:
    """Return the vertex that decides whether further windows follow; with `looks_back`, it records their number for the backward pass."""
    history: tuple[FieldSpec, ...] = ()
    if looks_back:
        history = (
            one("input", "int", "k", "the iteration"),
            many("inout", "unsigned", "back", "number of further windows in each iteration of the backward pass"),
        )
    maxima = many("input", "unsigned", "maxima", "largest number that each worker found")
    return VertexSpec("answer", (maxima, _AGAIN, _LEFT, _ROUNDS, *history), costs["answer"], _compared(costs["answer"]))


def known(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that reads, in the backward pass, the number of further windows that the forward pass recorded."""
    fields = (
        one("input", "int", "k", "the iteration"),
        many("input", "unsigned", "back", "number of further windows in each iteration"),
        _LEFT,
        _AGAIN,
        _ROUNDS,
    )
    return VertexSpec("known", fields, costs["known"])


def count_down(costs: Mapping[str, CodeletCost]) -> VertexSpec:
    """Return the vertex that subtracts one further window from the number left."""
    return VertexSpec("count_down", (one("inout", "unsigned", "left", _LEFT.contents), _AGAIN), costs["count_down"])
