"""Activity of neurons (their spikes per step) as input of a plan: counted in a run on the reference backend, or assumed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.reference.gradient_support import neurons_in_support
from snnc.backends.reference.memory import SequenceArrays
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.activity import Activity
from snnc.errors import OptionValueError


def assumed_activity(program: StepProgram, value: float) -> Activity:
    """Return an activity in which every neuron and every input of spikes fires with probability `value` in each step."""
    if not 0 <= value <= 1:
        raise OptionValueError(f"the activity is {value}; it must be between 0 and 1 spikes per neuron and step.")
    return Activity(dict.fromkeys(_spike_buffers(program), value), {}, f"{value:g} assumed")


def _spike_buffers(program: StepProgram) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.source_buffer for c in program.connections if program.buffers[c.source_buffer].kind == "spikes"))


def measure_activity(program: StepProgram, inputs: Mapping[str, Array], source: str) -> Activity:
    """Run `inputs` (input id -> [T, B, *shape]) on the reference backend and count the spikes of every spiking source.

    Neurons within the support of their surrogate are counted too, because only they receive a gradient. `source` names the data in reports.
    """
    in_support: dict[str, list[Array]] = {}
    neuron_steps = [op for op in program.forward if isinstance(op, NeuronStep)]

    def count_in_support(memory: SequenceArrays, t: int) -> None:
        for op in neuron_steps:
            for name, neurons in neurons_in_support(op, memory, t).items():
                in_support.setdefault(name, []).append(neurons.sum(axis=-1))

    memory = ReferenceEngine(program).run_sequence(inputs, {}, count_in_support)
    buffers = _spike_buffers(program)
    spikes = {name: memory[name].reshape(memory.steps, memory.batch, -1) for name in buffers}
    counts = {name: values.sum(axis=-1).round().astype(np.int32) for name, values in spikes.items()}
    support_counts = {name: np.array(rows, dtype=np.int32) for name, rows in in_support.items() if name in buffers}
    return Activity(
        mean={name: float(memory[name].mean()) for name in buffers},
        peak={name: int(count.max()) for name, count in counts.items()},
        source=source,
        support={name: float(rows.mean()) / memory[name].shape[-1] for name, rows in support_counts.items()},
        support_peak={name: int(rows.max()) for name, rows in support_counts.items()},
        rates={name: memory[name].mean(axis=(0, 1)) for name in buffers},
        counts=counts,
        support_counts=support_counts,
        patterns={name: np.packbits(values != 0, axis=-1) for name, values in spikes.items()},
    )
