"""Pass that removes Flatten and Reshape where the nodes that read them can read their source; they change no values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir.graph import Flatten, Graph, Reshape
from snnc.compiler.passes.edit import without


@dataclass(frozen=True)
class DropFlatten:
    """Remove each Flatten or Reshape that is read only by nodes that can read its source directly.

    A Flatten or Reshape that changes the shape is kept before an Output, because it defines the shape of the result.
    """

    name: ClassVar[str] = "drop-flatten"

    def __call__(self, graph: Graph) -> Graph:
        """Return a copy of the graph without these nodes."""
        return without(graph, [name for name, _ in graph.of_type(Flatten, Reshape)])
