"""Measure the response of a membrane to one input by running the neuron's equations."""

from __future__ import annotations

import numpy as np

from snnc.compiler.ir.graph import Array, Population
from snnc.compiler.neurons.expression import SPIKES, calls, symbols
from snnc.compiler.neurons.interpret import evaluate
from snnc.errors import InitialisationError

IMPULSE = 1e-3
"""Size of the test input in thresholds: too small to cause a spike."""


def threshold_of(population: Population) -> float:
    """Return the mean of the parameter ``threshold``; 1 for a neuron without it."""
    default = population.model.parameters.get("threshold", 1.0)
    return float(np.mean(population.parameters.get("threshold", default)))


def membrane_of(population: Population) -> str:
    """Return the state that is compared with the threshold; for a neuron without spikes, the first state that it outputs."""
    model = population.model
    spikes = [c for a in model.equations for c in calls(a.value) if c.function in SPIKES]
    compared = [name for spike in spikes for name in symbols(spike)]
    for name in [*compared, *model.outputs]:
        if name in model.states:
            return name
    raise InitialisationError(f"neuron {model.name!r} has no membrane: it compares no state with a threshold and outputs none.")


def membrane_response(population: Population, port: str, steps: int) -> tuple[float, float]:
    """Return the sums over `steps` steps of the membrane's response to 1 at `port` in step 0, and of its squares; means over neurons.

    The response to a small input is scaled up, which is exact for neurons that are linear below the threshold.
    """
    model, size = population.model, IMPULSE * threshold_of(population)
    membrane = membrane_of(population)
    parameters = {name: np.asarray(population.parameters.get(name, value), np.float64) for name, value in model.parameters.items()}
    runs = []
    for impulse in (size, 0.0):
        values = {name: np.asarray(population.initial.get(name, value), np.float64) for name, value in model.states.items()}
        trace = []
        for t in range(steps):
            currents = {name: np.float64(impulse if name == port and t == 0 else 0.0) for name in model.inputs}
            assigned = evaluate(model.equations, {**parameters, **currents, **values})
            values = {name: assigned.get(name, values[name]) for name in model.states}
            trace.append(values[membrane])
        runs.append(trace)
    response: Array = np.asarray([(one - other) / size for one, other in zip(*runs, strict=True)])
    return float(np.mean(response.sum(axis=0))), float(np.mean(np.square(response).sum(axis=0)))
