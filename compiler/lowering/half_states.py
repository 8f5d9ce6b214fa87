"""States as float16 numbers: neuron equations that round every value assigned to a state.

A state then behaves like a variable of type float16: an assignment rounds to the nearest float16 number, ties to even, and whatever reads
the state afterwards, in this step (a threshold, an output) or in the next, reads the rounded number. All else is computed in float32.
The derivative of rounding is 1.
"""

from __future__ import annotations

from dataclasses import replace

from snnc.compiler.neurons.expression import ROUND, Assignment, Call
from snnc.compiler.neurons.neuron import NeuronModel


def with_half_states(model: NeuronModel) -> NeuronModel:
    """Return `model` with each value that is assigned to a state rounded to float16."""
    rounded = (Assignment(a.target, Call(ROUND, (a.value,))) if a.target in model.states else a for a in model.equations)
    return replace(model, equations=tuple(rounded))
