"""Emitted code for an external loss: the host sends the adjoint of the output and reads the summed gradients; there is no update."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, VertexLoop, class_name, connected
from snnc.compiler.ir.step_program import OutputInfo
from snnc.compiler.tiles.vertices.parameter_vertices import sum_private
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

SUM: Final = "sum_gradients"
"""Compute set of the last sums of gradients, if the training step does not update the parameters."""
SUM_TITLE: Final = "U1 gradients"
"""Title of its superstep; U1 is the update (docs/decisions/0001-poplar-program.md)."""


def sum_for_update(net: PoplarNetwork, assembly: Assembly) -> None:
    """Replace vertices that update parameters by vertices that sum their gradients."""
    loops, vertex = assembly.loops.get("update", []), sum_private(net.costs)
    for index, loop in enumerate(loops):
        if loop.codelet == "Update":
            loops[index] = only_sums(loop, vertex)
    assembly.variable("Tensor", "rates", 'layout.on_tile(poplar::FLOAT, {2}, "nothing", 0)', "dummy input for sums with a single part")


def only_sums(update: VertexLoop, vertex: VertexSpec) -> VertexLoop:
    """Return the loop that adds a `vertex` from :func:`sum_private` in place of each vertex of the loop `update`."""
    values = {"sums": update.values["gradient"], **{name: update.values[name] for name in ("others", "count", "parts")}}
    return replace(update, compute_set=SUM, codelet=class_name(vertex), vertex=vertex, values=connected(vertex, values))


def population_of(net: PoplarNetwork, output: OutputInfo) -> str:
    """Return the population that writes an output."""
    return next(p.id for p in net.program.populations if output.source.buffer in net.step(p.id).outputs)


def adjoint_name(net: PoplarNetwork) -> str:
    """Return the name of the tensor with the adjoint of the output that the loss reads."""
    return f"d_{loss_output(net).record}"


def add_external(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add the transfer of the output's adjoint from the host, and replace the update."""
    sum_for_update(net, assembly)
    population, adjoint = population_of(net, loss_output(net)), adjoint_name(net)
    # The host reads a loss after each training step, but the program does not know it.
    assembly.on_tile("FLOAT", "loss", "always zero")
    assembly.tensor("RESULT", "loss", "{1}", "loss", "{}", True)
    shape, order = f"{{STEPS, BATCH, {net.layers[population].neurons}}}", f"order_of_records({population}, STEPS, BATCH)"
    assembly.tensors.append(f'adjoint_input("{adjoint}", {shape}, {adjoint}.all, {order}, load_labels);')


def loss_output(net: PoplarNetwork) -> OutputInfo:
    """Return the output that the loss reads."""
    return next(o for o in net.program.outputs if o.id == net.program.loss_output)
