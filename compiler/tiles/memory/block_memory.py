"""Bytes of one population's blocks on a tile, by category and lifetime, as a function of the number of neurons on the tile.

A block is the neurons and samples that one worker processes: a column group (a part of the tile's neurons) with a part of its samples. The
lifetime of data is the stages of a training step in which they are live (:mod:`snnc.compiler.tiles.memory.lifetimes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.tiles.blocks.blocks import cut_key
from snnc.compiler.tiles.blocks.grouping import AnyCut, Ints, ceil_div, column_groups, even_neurons, mask_words
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.codelets.block_codelets import layer_code_bytes
from snnc.compiler.tiles.cycles.block_cycles import received_bytes
from snnc.compiler.tiles.cycles.indexed_cycles import Holdings, estimated, indexed_bytes, owned_estimate, rows_read
from snnc.compiler.tiles.mapped.learned import half_elements, learned_rows, learned_scalars
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.memory.lifetimes import (
    BACKWARD,
    BACKWARD_NEURONS,
    COPIES,
    FORWARD_NEURONS,
    OPTIMISER,
    PACKED,
    RECOMPUTE_NEURONS,
    LiveBytes,
    peak_bytes,
    stages_of,
)
from snnc.compiler.tiles.problem import MappingProblem

CategoryAndLife: TypeAlias = tuple[str, str]
"""Category of data (see :class:`snnc.compiler.ir.plan.Plan`), and lifetime (see :mod:`snnc.compiler.tiles.memory.lifetimes`)."""


def block_bytes(
    problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Any, samples: Any, holdings: Holdings | None = None, *, owned: bool = True
) -> dict[CategoryAndLife, Ints]:
    """Return bytes by category and lifetime on a tile with `neurons` neurons of `layer` for `samples` samples (numbers or arrays).

    A replica stores the optimiser state of its share of the parameters. `holdings` returns the sizes of the tables of indexed connections;
    by default they are estimated. With `owned`, owned weights of indexed connections are included, as if all tiles owned equally many.
    """
    groups = column_groups(neurons, cut.columns)
    shares = problem.sample_groups(neurons, cut.columns, samples)
    learned = sum(learned_rows(layer))
    scalars = layer.scalar_parameters + sum(link.weight_elements == 1 for link in layer.incoming)
    stored = layer.neuron_parameters + sum(link.inputs if link.dense else int(link.weight_elements > 1) for link in layer.incoming)
    copies = _copies(problem, layer) if problem.training else 0
    partials = sum(problem.bus_into(link).gradient_capacity for link in layer.incoming if problem.returns(link))
    per_neuron = _states(problem, layer) | _adjoints(problem, layer)
    floats: dict[CategoryAndLife, Any] = {key: per_value * samples * neurons for key, per_value in per_neuron.items()}
    # A record that is read only for its mean and variance is live in the forward pass; the statistics are two values per neuron.
    floats["records", "always"] = problem.steps * (layer.records - layer.computes_statistics + layer.stores_adjoint) * samples * neurons
    floats["records", "forward"] = problem.steps * layer.computes_statistics * samples * neurons
    floats["history", "always"] = floats.get(("history", "always"), 0) + 2 * layer.computes_statistics * shares * neurons
    floats["records", "record adjoints"] = problem.steps * bool(layer.adjoint_outputs) * samples * neurons
    floats["weights", "always"] = stored * neurons + scalars
    floats["weights", "copies of weights"] = copies * neurons
    floats["optimiser", "always"] = problem.network.optimiser_values * ceil_div(learned * neurons, cut.replicas)
    # The first private gradient of a group is live always: the others are added to it, and the host reads the sum.
    sent = floats.pop(("gradients", "sent"), 0)
    floats["gradients", "always"] = learned * neurons + shares * learned_scalars(layer) * groups + sent
    floats["gradients", "private gradients" if np.all(cut.replicas > 1) else "gradients"] = (shares - 1) * learned * neurons
    floats["gradients", "backward"] = floats.get(("gradients", "backward"), 0) + samples * partials * groups
    held: dict[CategoryAndLife, Ints] = {key: FLOAT * size + 0 * groups for key, size in floats.items()}
    for key, per_value in _half_states(problem, layer).items():
        held[key] = held[key] + HALF * per_value * samples * even_neurons(neurons, cut.columns)
    if layer.gradient and (halves := len({link.port for link in layer.incoming if link.half_deltas and problem.copies(link)})):
        held["gradients", "always"] = held["gradients", "always"] + (HALF - FLOAT) * halves * samples * neurons
    if halves := layer.half_weights:
        held["weights", "always"] = held["weights", "always"] + (HALF - FLOAT) * halves * neurons
    if copies and problem.network.half_weights:
        held["weights", "copies of weights"] = held["weights", "copies of weights"] - _saved_copies(problem, layer) * neurons
    if problem.network.rounding == "master":
        held["optimiser", "always"] = held["optimiser", "always"] + FLOAT * ceil_div(half_elements(layer) * neurons, cut.replicas)
    spiking = [source for source in layer.sent if source.kind == "spikes"]
    words = sum(mask_words(neurons, cut.columns, support=source in problem.windowed) for source in spiking)
    masks = FLOAT * samples * words
    # In the first iteration of a run, relays read masks before neurons write them, so masks are live always. If relays and neurons share a
    # superstep (`problem.fused`), relays read copies.
    held["history", "always"] = held["history", "always"] + masks
    copied: CategoryAndLife = ("history", "always" if problem.segment else "forward")
    held[copied] = held[copied] + masks * (problem.fused is not None)
    held["history", "sequence"] = held["history", "sequence"] + masks * problem.segments.boundaries_sent
    parts = [indexed_bytes(problem, layer, neurons, samples, shares, holdings or estimated(neurons, groups))]
    parts += [owned_estimate(problem, layer, neurons, cut.replicas)] if owned else []
    for key, size in (item for part in parts for item in part.items()):
        held[key] = held.get(key, 0 * groups) + size
    if not problem.lives_between_programs:  # forward and backward pass are one program
        return held
    lives: dict[str, dict[str, Ints]] = {}
    for (category, life), size in held.items():
        lives.setdefault(category, {})[life] = size
    return {(category, life): size for category, sizes in lives.items() for life, size in problem.sizes_between_programs(sizes).items()}


def estimated_bytes(problem: MappingProblem, layer: Layer, where: TileRange) -> dict[CategoryAndLife, Ints]:
    """Return :func:`block_bytes` on each tile of a placed population, with estimated tables; the result is cached: do not modify it."""

    def make() -> dict[CategoryAndLife, Ints]:
        return block_bytes(problem, layer, where.cut, where.tile_neurons, where.tile_samples)

    return problem.memo.get(("bytes", layer.id, cut_key(where)), make)


def most_bytes(problem: MappingProblem, held: LiveBytes, more: Mapping[str, Any] | None = None) -> Ints:
    """Return the maximum of live bytes over the stages of a step; `more` contains additional bytes by stage."""
    return peak_bytes(held, stages_of(training=problem.training, segment=problem.segment), more)


def _copies(problem: MappingProblem, layer: Layer) -> int:
    """Return the number of copied weights that a tile stores per neuron, as a source of connections."""
    return sum((link.outputs if link.dense else int(link.weight_elements > 1)) for link in layer.outgoing if problem.copies(link))


def _saved_copies(problem: MappingProblem, layer: Layer) -> int:
    """Return the bytes per neuron that float16 instead of float32 copies save on the source's side; dense rows have an even length."""
    links = [link for link in layer.outgoing if link.half and link.indexed is None and problem.copies(link)]
    return sum(FLOAT * link.outputs - HALF * (link.outputs + link.outputs % 2) if link.dense else FLOAT - HALF for link in links)


def _states(problem: MappingProblem, layer: Layer) -> dict[CategoryAndLife, int]:
    kernel, segments = layer.kernel, problem.segments
    states, sent = len(kernel.states) - len(kernel.halves), sum(source.kind != "spikes" for source in layer.sent)
    # Further windows are added to currents that the previous step set to zero, so these currents are live always.
    limited = any(problem.bus_into(link) in problem.limited() for link in layer.incoming)
    # Boundaries are restored into states, so states outside the history are live from one segment to the next. Sent values are live always,
    # because the first iteration reads them before it overwrites them.
    recomputes = problem.segment > 0
    stored = layer.past.floats(segments.steps_in_history) + segments.boundaries_sent * sent
    values: dict[CategoryAndLife, int] = {  # floats per neuron and sample
        ("history", "always"): max(1, segments.boundaries) * states + sent,
        ("history", "sequence"): stored + recomputes * layer.states_outside_history[0],
        ("history", "forward"): (1 - recomputes) * layer.states_outside_history[0],
    }
    current: CategoryAndLife = ("history", "always" if limited else "currents")
    return values | {current: values.get(current, 0) + len(kernel.inputs)}


def _half_states(problem: MappingProblem, layer: Layer) -> dict[CategoryAndLife, int]:
    segments, recomputes = problem.segments, problem.segment > 0
    values: dict[CategoryAndLife, int] = {  # float16 values per neuron and sample
        ("history", "always"): max(1, segments.boundaries) * len(layer.kernel.halves),
        ("history", "sequence"): layer.past.halves(segments.steps_in_history) + recomputes * layer.states_outside_history[1],
        ("history", "forward"): (1 - recomputes) * layer.states_outside_history[1],
    }
    return {key: each for key, each in values.items() if each}


def _adjoints(problem: MappingProblem, layer: Layer) -> dict[CategoryAndLife, int]:
    """Return the number of floats per neuron and sample of state adjoints, pending output gradients, sent deltas and deltas of currents."""
    if not (problem.training and layer.gradient):
        return {}
    rings = sum(problem.ring_slots.get(source.buffer, 0) for source in layer.sent)
    sent = len({link.port for link in layer.incoming if link.input_gradient and not problem.returns(link)})
    # "sent" is not a lifetime: sources read deltas before targets overwrite them in the first iteration, so the caller adds it to "always".
    return {
        ("gradients", "sent"): sent,
        ("gradients", "backward"): len(layer.kernel.states) + rings,
        ("gradients", "deltas"): len(layer.kernel.inputs),
    }


def most_received(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Any) -> dict[str, Any]:
    """Return the maximum number of bytes that a tile of `layer` receives in a superstep of each stage, including packed rows of weights."""
    samples = cut.samples(problem.batch)
    before = received_bytes(problem, layer, samples)
    windows = before["forward"] + 0 * neurons
    if not problem.training:
        return {FORWARD_NEURONS: windows}
    rows = rows_read(layer, estimated(neurons, column_groups(neurons, cut.columns)))
    deltas, back = before["source_gradient"] + samples * FLOAT * rows, before["backward"]
    elements = sum(learned_rows(layer)) * neurons
    gathered = FLOAT * (elements - elements // cut.replicas)
    received = {FORWARD_NEURONS: windows, RECOMPUTE_NEURONS: windows, BACKWARD: deltas, BACKWARD_NEURONS: back, OPTIMISER: gathered}
    if problem.packed:
        packed = FLOAT * neurons * sum(link.inputs for link in layer.incoming if link.dense and problem.copies(link))
        received |= {PACKED: 2 * packed, COPIES: packed + FLOAT * neurons * _copies(problem, layer)}
    return received


def code_bytes_estimate(problem: MappingProblem, layer: Layer, cut: AnyCut, neurons: Any) -> Ints:
    """Estimate the code bytes of a tile of `layer` before placement: its codelets, and the code that receives fragments.

    The number of fragments follows from the relays and column groups. With packed rows, each tile of a target sends one fragment of deltas,
    and the fragments of rows grow with the square root of the number of these tiles.
    """
    relays = np.ceil(problem.batch / cut.replicas / problem.target.workers).astype(np.int64)
    fragments = 2 * 2 * relays * len(problem.buses_into(layer)) + 0 * np.asarray(neurons, dtype=np.int64)
    for target, _ in problem.whole_deltas_into(layer):
        most = min(problem.by_id[target].neurons, problem.target.tiles)
        if problem.packed:
            tiles = np.minimum(ceil_div(most, np.maximum(neurons, 1)), most)
            fragments = fragments + tiles + np.ceil(2 * np.sqrt(cut.columns * tiles)).astype(np.int64)
        else:
            fragments = fragments + 2 * most
    return problem.target.fixed_tile_bytes + layer_code_bytes(problem, layer) + fragments * problem.target.fragment_code_bytes
