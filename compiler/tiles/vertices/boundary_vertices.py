"""Vertices that save the initial values of a segment of iterations at its boundary, and restore them to run the segment again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.relay_loops import boundary_loops
from snnc.compiler.tiles.vertices.vertex_spec import Element, VertexSpec, constant, many, one

BOUNDARY: Final = (
    one("input", "int", "k", "the iteration"),
    constant("back", "iterations to go back by", "int"),
    constant("stage", "iteration in which the population runs step 0", "int"),
    constant("interval", "iterations from one step to the next", "int"),
    constant("steps", "steps", "int"),
    constant("segment", "iterations of a segment", "int"),
    constant("samples", "samples"),
)
"""Fields that select the boundary a vertex saves or restores."""


def state_types(kernel: Kernel) -> tuple[Element, ...]:
    """Return the types in which the states of a population are stored."""
    return tuple("half" if state in kernel.halves else "float" for state in kernel.states)


def boundary(costs: Mapping[str, CodeletCost], states: Sequence[Element], sent: Iterable[tuple[int, bool]]) -> VertexSpec:
    """Return the vertex that saves and restores the states of a block, of the types `states`, and the values that the block sent last.

    `sent` lists the outputs of the block: the index of each, and whether it sends spikes.
    """
    fields = [*BOUNDARY, constant("count", "neurons of the block")]
    for index, kind in enumerate(states):
        align = 4 * (kind == "half")
        fields.append(many("inout", kind, f"boundary_state{index}", "a state at boundaries", align))
        fields.append(many("inout", kind, f"state{index}", "the state itself", align))
    for index, spikes in sent:
        element: Element = "unsigned" if spikes else "float"
        fields.append(many("inout", element, f"boundary_sent{index}", "the last sent values, at boundaries"))
        fields.append(many("inout", element, f"sent{index}", "the last sent values"))
        fields += [constant(f"words{index}", "mask words per sample")] if spikes else []
    return VertexSpec("boundary", tuple(fields), costs["boundary"], boundary_loops(costs["boundary"]))
