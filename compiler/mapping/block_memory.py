"""Bytes that the blocks of one population hold on a tile, by category, as a function of the neurons there."""

from __future__ import annotations

import math
from typing import Any

from snnc.compiler.mapping.gradient_counts import returned_buses
from snnc.compiler.mapping.grouping import Ints, column_groups, mask_words, sample_groups
from snnc.compiler.mapping.network import Layer, learned_elements
from snnc.compiler.mapping.problem import Problem

FLOAT = 4


def block_bytes(problem: Problem, layer: Layer, neurons: Any) -> dict[str, Ints]:
    """Return category -> bytes on a tile with `neurons` (a number or an array) of `layer`; see :class:`snnc.compiler.plan.Plan`."""
    per_neuron = {
        "weights": _weights(problem, layer),
        "optimiser": problem.network.moments * sum(learned_elements(layer).values()),
        "history": problem.batch * _state(problem, layer),
        "gradients": problem.batch * _adjoints(problem, layer) if layer.gradient else 0,
        "records": problem.batch * problem.steps * (layer.records + bool(layer.adjoint_outputs)),
    }
    groups, shares = column_groups(neurons, problem.target.workers), sample_groups(neurons, problem.target.workers, problem.batch)
    found: dict[str, Ints] = {name: FLOAT * floats * neurons + 0 * groups for name, floats in per_neuron.items()}
    scalars = layer.scalar_parameters + sum(link.weight_elements == 1 for link in layer.incoming)
    found["weights"] = found["weights"] + FLOAT * scalars
    private = sum(learned_elements(layer).values()) * neurons + _learned_scalars(layer) * groups
    found["gradients"] = found["gradients"] + FLOAT * shares * private
    partials = sum(problem.bus[problem.bus_of[link.id]].gradient_capacity for link in layer.incoming if problem.returns(link))
    found["gradients"] = found["gradients"] + FLOAT * problem.batch * partials * groups
    masks = sum((2 if source in problem.windowed else 1) for source in layer.sent if source.kind == "spikes")
    found["history"] = found["history"] + FLOAT * problem.batch * masks * mask_words(neurons, problem.target.workers)
    return found


def _learned_scalars(layer: Layer) -> int:
    return layer.learnable_scalars + sum(link.weight_gradient and link.weight_elements == 1 for link in layer.incoming)


def _weights(problem: Problem, layer: Layer) -> int:
    """Floats a neuron: weights of its connections, its parameters, and the source-side copies."""
    own = sum(link.inputs if link.dense else int(link.weight_elements > 1) for link in layer.incoming)
    copies = sum((link.outputs if link.dense else int(link.weight_elements > 1)) for link in layer.outgoing if problem.copies(link))
    return own + layer.neuron_parameters + (copies if problem.training else 0)


def _state(problem: Problem, layer: Layer) -> int:
    """Floats a neuron and sample: history, other states, saved values, currents, values that are sent."""
    kernel = layer.kernel
    sent = sum(source.kind != "spikes" for source in layer.sent)
    if not layer.gradient:
        return len(kernel.states) + len(kernel.inputs) + sent
    kept = (problem.steps + 1) * len(kernel.history) + (len(kernel.states) - len(kernel.history))
    return kept + problem.steps * len(kernel.saved) + len(kernel.inputs) + sent


def _adjoints(problem: Problem, layer: Layer) -> int:
    """Floats a neuron and sample: adjoints of the states, deltas of the currents, output gradients that wait."""
    return len(layer.kernel.states) + len(layer.kernel.inputs) + sum(problem.ring_slots(source) for source in layer.sent)


def received_bytes(problem: Problem, layer: Layer) -> int:
    """Bytes that one superstep brings to each tile of `layer`, at most; the same however many neurons it holds."""
    windows = sum(problem.batch * bus.window_bytes for bus in problem.buses_into(layer))
    if not problem.training:
        return windows
    deltas = sum(problem.batch * FLOAT * problem.by_id[target].neurons for target, _ in problem.deltas_into(layer))
    back = sum(problem.batch * problem.backward_bytes(bus) for bus in problem.buses_into(layer))
    back += sum(problem.batch * bus.returned_bytes for bus in returned_buses(problem, layer))
    return max(windows, deltas, back)


def code_bytes_estimate(problem: Problem, layer: Layer) -> int:
    """Code of a tile of `layer`, before relays and tiles are known: a fragment for each relay and each column group."""
    relays = math.ceil(problem.batch / problem.target.workers)
    fragments = 2 * 2 * relays * len(problem.buses_into(layer))
    fragments += sum(2 * min(problem.by_id[target].neurons, problem.target.tiles) for target, _ in problem.deltas_into(layer))
    return problem.target.fixed_tile_bytes + fragments * problem.target.fragment_code_bytes
