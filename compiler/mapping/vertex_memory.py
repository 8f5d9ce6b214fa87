"""Bytes of the fields of vertices: 4 for each field, 4 for the place in the list of a compute set's vertices."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.mapping.grouping import Ints, column_groups, sample_groups
from snnc.compiler.mapping.network import Layer, learned_rows
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.traffic import Layout

FIELD: Final = 4
UPDATE: Final = 13
"""Fields of the vertices that sum a parameter's private gradients and update it."""
RELAY: Final = 36
"""Fields of a relay's vertices, forward and backward."""
PIECE: Final = 9
"""Numbers that tell a worker of a relay which part of a mask to look through."""


def vertex_bytes(layout: Layout) -> Ints:
    """Bytes on every tile."""
    problem = layout.problem
    fields: Ints = np.zeros(problem.target.tiles, dtype=np.int64)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        groups = column_groups(where.tile_neurons, where.columns)
        shares = sample_groups(where.tile_neurons, where.columns, problem.target.workers, where.tile_samples)
        fields[where.tiles] += groups * (shares * _of_block(problem, layer) + UPDATE * len(learned_rows(layer)) * problem.training)
    for source, relays in layout.relays.items():
        tiles, samples = np.array([(relay.tile, relay.samples) for relay in relays], dtype=np.int64).T
        fields[tiles] += RELAY
        if not source.external and source.kind == "spikes":
            fields[tiles] += (samples + problem.target.workers) * PIECE + layout.range_by_id(source.owner).width
    found: Ints = FIELD * fields
    return found


def _of_block(problem: Problem, layer: Layer) -> int:
    """Fields of a block's vertices: iteration and sizes; list, length, room, rows and weights of each connection; what neurons have."""
    kernel = layer.kernel
    own = len(kernel.states) + len(kernel.inputs) + layer.neuron_parameters + layer.scalar_parameters
    found = 7 + 5 * len(layer.incoming) + own + layer.records + len(layer.sent)
    if not (problem.training and layer.gradient):
        return found
    found += 7 + 5 * sum(link.weight_gradient for link in layer.incoming) + own + len(kernel.history) + len(kernel.saved)
    found += 2 * len(layer.sent) + layer.records
    back = sum(problem.copies(link) for link in layer.outgoing)
    return found + (11 + 5 * back if back else 0)
