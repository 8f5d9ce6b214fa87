"""What a report tells of a StepProgram, as plain data."""

from __future__ import annotations

import math
from typing import Any

from snnc.compiler.step_operations import NeuronStep
from snnc.compiler.step_program import StepProgram


def summarise(program: StepProgram) -> dict[str, Any]:
    """Return inputs, populations, connections and outputs with their sizes and the author's names; JSON can hold it."""
    sizes = {name: math.prod(parameter.value.shape) for name, parameter in program.parameters.items()}
    steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
    connections: list[dict[str, Any]] = [
        {
            "id": c.id,
            "label": c.label,
            "source": c.source,
            "target": c.target,
            "kind": c.kind,
            "delay": c.delay,
            "parameters": sum(sizes.get(name, 0) for name in (c.weight, c.bias) if name),
        }
        for c in program.connections
    ]
    return {
        "name": program.name,
        "inputs": [{"id": i.id, "label": i.label, "shape": list(i.shape), "kind": i.kind} for i in program.inputs],
        "populations": [
            {
                "id": p.id,
                "label": p.label,
                "shape": list(p.shape),
                "model": p.model.name,
                "equations": p.model.text,
                "surrogate": str(p.surrogate),
                "parameters": sum(sizes.get(name, 0) for name in steps[p.id].parameters),
            }
            for p in program.populations
        ],
        "connections": connections,
        "outputs": [{"id": o.id, "label": o.label, "source": o.source.buffer, "readout": o.readout} for o in program.outputs],
        "parameters": sum(sizes.values()),
        "loss": program.loss.name if program.loss else None,
        "optimizer": program.optimizer.name if program.optimizer else None,
        "assumptions": list(program.assumptions),
    }
