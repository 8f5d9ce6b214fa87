"""Find the neurons that receive a gradient at a step, because they spiked or are inside the support of their surrogate."""

from __future__ import annotations

import numpy as np

from snnc.backends.reference.forward import environment_of, population_of
from snnc.backends.reference.memory import SequenceArrays
from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.lowering.gradient_support import argument_name, support_bounds, with_arguments
from snnc.compiler.neurons.interpret import evaluate


def neurons_in_support(op: NeuronStep, memory: SequenceArrays, t: int) -> dict[str, Array]:
    """Return which neurons receive a gradient at step `t`: a mask [B, n] for each output buffer whose surrogate has bounded support.

    The currents in `memory` must be those of step `t`.
    """
    info = population_of(memory, op.population)
    bounds = {o: b for o in info.kernel.outputs if (b := support_bounds(info, o)) is not None}
    if not bounds:
        return {}
    results = evaluate(with_arguments(info.kernel, tuple(bounds)), environment_of(op, memory, t))
    buffers = dict(zip(info.kernel.outputs, op.outputs, strict=True))
    in_support = {}
    for output, (low, high) in bounds.items():
        x = results[argument_name(output)]
        mask = (x >= low) & (x <= high) | (results[output] != 0)
        in_support[buffers[output]] = np.broadcast_to(mask, memory[buffers[output]][t].shape)
    return in_support
