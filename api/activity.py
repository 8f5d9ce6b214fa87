"""How often neurons fire on a user's data, measured with the reference backend; it sets window capacities and predicted costs."""

from __future__ import annotations

from collections.abc import Mapping

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.graph import Array
from snnc.compiler.step_program import StepProgram


def measure_activity(program: StepProgram, inputs: Mapping[str, Array]) -> dict[str, float]:
    """Return spikes a value and step of every buffer that sends spikes.

    Parameters
    ----------
    program
        The network.
    inputs
        Input id -> [T, B, *shape].
    """
    memory = ReferenceEngine(program)._run(inputs, {})
    sending = dict.fromkeys(c.source_buffer for c in program.connections if c.event_driven)
    return {name: float(memory[name].mean()) for name in sending}
