"""Bytes that the blocks of one population hold on a tile, by category, as a function of the neurons there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snnc.compiler.mapping.cut import Cut
from snnc.compiler.mapping.gradient_counts import returned_buses
from snnc.compiler.mapping.grouping import Ints, ceil_div, column_groups, mask_words, sample_groups
from snnc.compiler.mapping.indexed_cycles import Holdings, estimated, indexed_bytes, owned_estimate, rows_read
from snnc.compiler.mapping.network import Layer, learned_elements, learned_scalars
from snnc.compiler.mapping.problem import Problem

FLOAT = 4


def block_bytes(
    problem: Problem, layer: Layer, cut: Cut, neurons: Any, samples: Any, holdings: Holdings | None = None, *, owned: bool = True
) -> dict[str, Ints]:
    """Return category -> bytes on a tile with `neurons` of `layer` for `samples` samples (numbers or arrays).

    Categories are those of :class:`snnc.compiler.plan.Plan`. A replica keeps the optimiser state of its share of the parameters.
    `holdings` tells what the tables of indexed connections hold; by default it is estimated. With `owned`, a tile's share of the weights of
    indexed connections that somebody has to update is counted as if all tiles had alike.
    """
    per_neuron = _weights(problem, layer)
    per_state = {
        "history": _state(problem, layer),
        "gradients": _adjoints(problem, layer) if layer.gradient else 0,
        "records": problem.steps * (layer.records + bool(layer.adjoint_outputs)),
    }
    groups = column_groups(neurons, cut.columns)
    shares = sample_groups(neurons, cut.columns, problem.target.workers, samples)
    learned = sum(learned_elements(layer).values())
    scalars = layer.scalar_parameters + sum(link.weight_elements == 1 for link in layer.incoming)
    found: dict[str, Ints] = {name: FLOAT * floats * samples * neurons + 0 * groups for name, floats in per_state.items()}
    found["weights"] = FLOAT * (per_neuron * neurons + scalars) + 0 * groups
    found["optimiser"] = FLOAT * problem.network.moments * ceil_div(learned * neurons, cut.replicas) + 0 * groups
    found["gradients"] = found["gradients"] + FLOAT * shares * (learned * neurons + learned_scalars(layer) * groups)
    partials = sum(problem.bus[problem.bus_of[link.id]].gradient_capacity for link in layer.incoming if problem.returns(link))
    found["gradients"] = found["gradients"] + FLOAT * samples * partials * groups
    copies = 1 + problem.segments.boundaries_sent + (problem.fused is not None)
    found["history"] = found["history"] + copies * masks_bytes(problem, layer, cut, neurons, samples)
    parts = [indexed_bytes(problem, layer, neurons, samples, shares, holdings or estimated(neurons, groups))]
    parts += [owned_estimate(problem, layer, neurons, cut.replicas)] if owned else []
    for name, size in (item for part in parts for item in part.items()):
        found[name] = found.get(name, 0 * groups) + size
    return found


def masks_bytes(problem: Problem, layer: Layer, cut: Cut, neurons: Any, samples: Any) -> Any:
    """Bytes of the spike masks that a tile sends in a step."""
    words = sum(mask_words(neurons, cut.columns, near=source in problem.windowed) for source in layer.sent if source.kind == "spikes")
    return FLOAT * samples * words


def _weights(problem: Problem, layer: Layer) -> int:
    """Floats a neuron: weights of its connections, its parameters, and the source-side copies."""
    own = sum(link.inputs if link.dense else int(link.weight_elements > 1) for link in layer.incoming)
    copies = sum((link.outputs if link.dense else int(link.weight_elements > 1)) for link in layer.outgoing if problem.copies(link))
    return own + layer.neuron_parameters + (copies if problem.training else 0)


def _state(problem: Problem, layer: Layer) -> int:
    """Floats a neuron and sample: history, other states, saved values, states at boundaries, currents, values that are sent."""
    kernel = layer.kernel
    sent = sum(source.kind != "spikes" for source in layer.sent)
    segments, states = problem.segments, len(kernel.states)
    held = segments.boundaries * states + segments.boundaries_sent * sent + len(kernel.inputs) + sent
    if not layer.gradient:
        return held + states
    kept = (segments.steps_kept + 1) * len(kernel.history) + (states - len(kernel.history))
    return held + kept + segments.steps_kept * len(kernel.saved)


def _adjoints(problem: Problem, layer: Layer) -> int:
    """Floats a neuron and sample: adjoints of the states, deltas of the currents, output gradients that wait."""
    return len(layer.kernel.states) + len(layer.kernel.inputs) + sum(problem.ring_slots(source) for source in layer.sent)


def received_bytes(problem: Problem, layer: Layer, cut: Cut, neurons: Any) -> Any:
    """Bytes that one superstep brings to each tile of `layer`, at most."""
    samples = cut.samples(problem.batch)
    windows = sum(samples * bus.window_bytes for bus in problem.buses_into(layer))
    deltas = sum(samples * FLOAT * problem.by_id[target].neurons for target, _ in problem.whole_deltas_into(layer))
    deltas = deltas + samples * FLOAT * rows_read(layer, estimated(neurons, column_groups(neurons, cut.columns)))
    back = sum(samples * problem.backward_bytes(bus) for bus in problem.buses_into(layer))
    back += sum(samples * bus.returned_bytes for bus in returned_buses(problem, layer))
    steady = np.maximum(max(windows, back), deltas) if problem.training else windows
    if cut.replicas == 1 or not problem.training:
        return steady + 0 * neurons
    elements = sum(learned_elements(layer).values()) * neurons
    return np.maximum(steady, FLOAT * (elements - elements // cut.replicas))


def code_bytes_estimate(problem: Problem, layer: Layer, cut: Cut) -> int:
    """Code of a tile of `layer`, before relays and tiles are known: a fragment for each relay and each column group."""
    relays = math.ceil(problem.batch / cut.replicas / problem.target.workers)
    fragments = 2 * 2 * relays * len(problem.buses_into(layer))
    fragments += sum(2 * min(problem.by_id[target].neurons, problem.target.tiles) for target, _ in problem.whole_deltas_into(layer))
    return problem.target.fixed_tile_bytes + fragments * problem.target.fragment_code_bytes
