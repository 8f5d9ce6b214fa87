"""Describe in words when neurons fire and how they reset, derived from their equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir.graph import Array, Population
from snnc.compiler.neurons.expression import SPIKES, calls, symbols
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.recognise import recognise
from snnc.understanding.equations import range_text


@dataclass(frozen=True)
class FiringDescription:
    """How a population fires and resets, in words.

    `fires` says when the neuron fires, such as "above the threshold (>)", and `reset` how it resets, or why it does not; both are None if
    it never fires. `gradient` says whether gradients flow through the reset; None without a reset.
    """

    fires: str | None
    reset: str | None = None
    gradient: str | None = None


def firing(population: Population) -> FiringDescription:
    """Return how `population` fires and resets, derived from its equations."""
    functions = {call.function for a in population.model.equations for call in calls(a.value) if call.function in SPIKES}
    if not functions:
        return FiringDescription(None)
    fires = {
        frozenset({"spike"}): "above the threshold (>)",
        frozenset({"spike_ge"}): "at or above the threshold (>=)",
    }.get(frozenset(functions), "as the equations say")
    if not population.model.states:
        return FiringDescription(fires, "none: it has no state")
    immediate = _immediate_resets(population.model)
    if not immediate:
        return FiringDescription(fires, "none: no state depends on a spike")
    parameters = {n: np.asarray(population.parameters.get(n, default)) for n, default in population.model.parameters.items()}
    facts = recognise(population.model, parameters)
    when = "at once" if any(immediate) else "in the step after the spike"
    reset = f"as the equations say, {when}"
    if facts is not None and facts.threshold is not None:
        words = {"subtract": "the threshold is subtracted", "zero": "to 0", "value": f"to {_format_values(facts.v_reset)}"}
        reset = f"{words[facts.reset]}, {when}" if facts.reset in words else "none"
    detached = any(c.function == "detach" for a in population.model.equations for c in calls(a.value))
    return FiringDescription(fires, reset, "gradients do not flow through it" if detached else "gradients flow through it")


def _format_values(value: Array | None) -> str:
    if value is None or not np.size(value):
        return "v_reset"
    text = range_text(value)
    return f"one value per neuron ({text})" if "…" in text else text


def _immediate_resets(model: NeuronModel) -> list[bool]:
    """Return, for each spike that a state depends on, whether that spike depends on inputs of the same step."""
    current: set[str] = set(model.inputs)  # names whose value depends on inputs of this step
    spikes_in: dict[str, set[bool]] = {}
    immediate: list[bool] = []
    for equation in model.equations:
        names = set(symbols(equation.value))
        spikes = {bool(current & set(symbols(call))) for call in calls(equation.value) if call.function in SPIKES}
        for name in names:
            spikes |= spikes_in.get(name, set())
        spikes_in[equation.target] = spikes
        if current & names:
            current.add(equation.target)
        else:
            current.discard(equation.target)
        if equation.target in model.states:
            immediate += sorted(spikes)
    return immediate
