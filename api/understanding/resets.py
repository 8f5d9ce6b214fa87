"""The effect of a spike on its neuron, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir.graph import Array, Population
from snnc.compiler.neurons.expression import Call, Expression, symbols
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.recognise import Facts, recognise

_STEPS = ("spike", "spike_ge")


@dataclass(frozen=True)
class FiringDescription:
    """How a population fires and resets.

    Attributes
    ----------
    fires
        "above the threshold (>)", "at or above the threshold (>=)", or None if it does not fire.
    reset
        In words, or None if there is nothing to reset.
    gradient
        What training sees of the reset, or None if there is none.
    """

    fires: str | None
    reset: str | None = None
    gradient: str | None = None


def firing(population: Population) -> FiringDescription:
    """Say how `population` fires, from its equations alone, whoever wrote them."""
    found = [call for a in population.model.equations for call in _calls(a.value) if call.function in _STEPS]
    if not found:
        return FiringDescription(None)
    kinds = {call.function for call in found}
    fires = {
        frozenset({"spike"}): "above the threshold (>)",
        frozenset({"spike_ge"}): "at or above the threshold (>=)",
    }.get(frozenset(kinds), "as the equations say")
    if not population.model.states:
        return FiringDescription(fires, "none: it has no state")
    resetting = _resetting(population.model)
    if not resetting:
        return FiringDescription(fires, "none: no state depends on a spike")
    given = {n: np.asarray(population.parameters.get(n, default)) for n, default in population.model.parameters.items()}
    facts = recognise(population.model, given)
    when = "at once" if any(resetting) else "in the step after the spike"
    known = facts is not None and facts.threshold is not None
    words = _words(facts, when) if known and facts is not None else f"as the equations say, {when}"
    return FiringDescription(fires, words, _gradient(population))


def _words(facts: Facts, when: str) -> str:
    match facts.reset:
        case "subtract":
            return f"the threshold is subtracted, {when}"
        case "zero":
            return f"to 0, {when}"
        case "value":
            return f"to {_range(facts.v_reset)}, {when}"
    return "none"


def _range(value: Array | None) -> str:
    if value is None or not np.size(value):
        return "v_reset"
    least, most = float(np.min(value)), float(np.max(value))
    return f"{least:g}" if least == most else f"a value a neuron ({least:g} … {most:g})"


def _gradient(population: Population) -> str:
    cut = any(c.function == "detach" for a in population.model.equations for c in _calls(a.value))
    return "training sees no gradient through it" if cut else "gradients flow through it"


def _resetting(model: NeuronModel) -> list[bool]:
    """For each spike that a state depends on: whether it reads what arrived in the same step."""
    now: set[str] = set(model.inputs)
    carried: dict[str, set[bool]] = {}
    found: list[bool] = []
    for line in model.equations:
        spikes = {bool(now & set(symbols(call))) for call in _calls(line.value) if call.function in _STEPS}
        for name in symbols(line.value):
            spikes |= carried.get(name, set())
        carried[line.target] = spikes
        if now & set(symbols(line.value)):
            now.add(line.target)
        else:
            now.discard(line.target)
        if line.target in model.states:
            found += sorted(spikes)
    return found


def _calls(e: Expression) -> Iterator[Call]:
    if isinstance(e, Call):
        yield e
        for argument in e.args:
            yield from _calls(argument)
