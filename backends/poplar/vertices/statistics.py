"""Emitted vertices for batch normalisations: each neuron's moments in a block, which the host merges with those of other blocks.

*Moments* are the mean over the samples of the block and all steps, and the sum of squared distances from it.
"""

from __future__ import annotations

from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body
from snnc.compiler.ir.step_program import OutputInfo
from snnc.compiler.tiles.vertices.statistics_vertices import block_moments

MOMENTS: Final = "block_moments"
"""Compute set that computes means and squared distances (superstep N1); it runs after the forward pass."""
MOMENTS_TITLE: Final = "N1 moments"


def moments_name(output: OutputInfo) -> str:
    """Return the name of the tensor with the moments of an output's blocks."""
    return f"{output.record}_moments"


def add_moments(net: PoplarNetwork, assembly: Assembly, population: str, output: OutputInfo, cells: str) -> None:
    """Add a vertex on each block of a population for the moments of the record `cells`, which only these vertices read."""
    assembly.forget("forward", cells)
    name = moments_name(output)
    assembly.variable("Parts", name, f'layout.block_moments({population}, "{name}")', f"mean and squared distances: {output.label}")
    if not net.operation:
        assembly.tensor("RESULT", name, f"{{{name}.all.numElements()}}", f"{name}.all", "{}", False)
    values = {"values": f"{cells}[b.index]", "found": f"{name}[b.index]", "rows": "STEPS * b.samples", "count": "b.count"}
    assembly.add("statistics", output.label, ("Block", "b", f"{population}.blocks"), MOMENTS, block_moments(net.costs), values)


def moments_codelets(net: PoplarNetwork) -> list[Body]:
    """Return the template data of the codelet, if the program uses it."""
    return [{"template": MOMENTS, "vertex": block_moments(net.costs)}] if net.mapped.computes_statistics else []


def moments_of_outputs(net: PoplarNetwork) -> list[Body]:
    """Return the outputs with moments for ``project.json``, with the first neuron and the numbers of neurons and samples of each block."""
    moments: list[Body] = []
    for placed in net.plan.populations:
        for output in net.moment_outputs(placed.id):
            blocks = [[b.first, b.count, b.samples] for b in placed.blocks]
            moments.append({"id": output.id, "tensor": moments_name(output), "shape": list(output.shape), "blocks": blocks})
    return moments
