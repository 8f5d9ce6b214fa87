"""Emitted code of networks with batch normalisation, in which the backward pass runs several times before an update.

Gradients and update are therefore separate programs, which the host runs (:mod:`snnc.backends.training.updates.normalising`). Each
parameter has a vertex that sums its gradients, and one that updates it from the sum.
"""

from __future__ import annotations

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.updates import sum_before_updates
from snnc.backends.poplar.parts import Assembly
from snnc.backends.poplar.vertices.external import only_sums
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, is_batch_norm
from snnc.compiler.tiles.vertices.parameter_vertices import sum_private


def repeats(net: PoplarNetwork) -> bool:
    """Return whether the backward pass runs several times before an update."""
    return net.described.passes > 0


def separate_sums(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add vertices that sum the gradients of each parameter; the existing updates then read only the sums."""
    if repeats(net):
        sum_before_updates(net, assembly, lambda update: only_sums(update, sum_private(net.costs)))


def set_in_passes(net: PoplarNetwork) -> frozenset[str]:
    """Return the parameters that the host sets between the passes of an update: statistics of batch normalisations."""
    found = set()
    for population in net.program.populations:
        if repeats(net) and is_batch_norm(population.model):
            names = dict(zip(population.kernel.parameters, net.step(population.id).parameters, strict=True))
            found |= {name for of, name in names.items() if population.kernel.labels[of] in (MEAN, VARIANCE, SHIFT, SLOPE)}
    return frozenset(found)
