"""Flatten and Reshape change no value: connect their consumers to their source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.graph import Flatten, Graph, Reshape
from snnc.compiler.passes.edit import without


@dataclass(frozen=True)
class DropFlatten:
    """Remove every Flatten and Reshape whose consumers can read its source directly.

    One before an Output stays: it gives the result its shape.
    """

    name: ClassVar[str] = "drop-flatten"

    def __call__(self, graph: Graph) -> Graph:
        """Return the graph without them."""
        return without(graph, [name for name, _ in graph.of_type(Flatten, Reshape)])
