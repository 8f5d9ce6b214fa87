"""Emitted code of networks with batch normalisation: sums of gradients and their update are separate programs.

The host runs one after the other (:mod:`snnc.backends.training.updates.normalising`). So each parameter has two vertices: one sums
its gradients, and one updates it from the sum.
"""

from __future__ import annotations

from dataclasses import replace

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import update_vertices, updated
from snnc.backends.poplar.parts import Assembly, class_name
from snnc.backends.poplar.vertices.external import only_sums
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, is_batch_norm
from snnc.compiler.tiles.vertices.parameter_vertices import sum_private


def repeats(net: PoplarNetwork) -> bool:
    """Return whether an update runs the backward pass several times, so that gradients and update are separate programs."""
    return net.described.passes > 0


def separate_sums(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add vertices that sum the gradients of each parameter; the existing updates then read only the sums."""
    if not repeats(net):
        return
    loops, vertex = assembly.loops.get("update", []), sum_private(net.costs)
    updates = {class_name(found) for found in (updated(net), *update_vertices(net))}
    sums = []
    for index, loop in enumerate(loops):
        if loop.codelet not in updates:
            continue
        sums.append(only_sums(loop, vertex))
        alone = {"others": next(f.value for f in loop.fields if f.name == "rates"), "parts": "1"}
        loops[index] = replace(loop, fields=tuple(replace(f, value=alone.get(f.name, f.value)) for f in loop.fields))
    assembly.loops["update"] = [*loops, *sums]


def set_in_passes(net: PoplarNetwork) -> frozenset[str]:
    """Return the statistics that the host sets between the passes of an update; these parameters have no copies on other tiles."""
    found = set()
    for population in net.program.populations:
        if repeats(net) and is_batch_norm(population.model):
            names = dict(zip(population.kernel.parameters, net.step(population.id).parameters, strict=True))
            found |= {name for of, name in names.items() if population.kernel.labels[of] in (MEAN, VARIANCE, SHIFT, SLOPE)}
    return frozenset(found)
