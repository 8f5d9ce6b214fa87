"""Summarise a step program for reports, as JSON types."""

from __future__ import annotations

import math
from typing import Any

from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.window_values import is_run_value
from snnc.compiler.tiles.exchange.layer_traffic import program_traffic
from snnc.compiler.tiles.mapped.network import describe


def summarise(program: StepProgram) -> dict[str, Any]:
    """Return inputs, populations, connections and outputs with their sizes and the author's names, as JSON types."""
    traffic = program_traffic(describe(program))
    of_connections, of_populations = ({each["id"]: each for each in traffic[kind]} for kind in ("connections", "populations"))
    sizes = {name: math.prod(parameter.value.shape) for name, parameter in program.parameters.items() if not is_run_value(name)}
    steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
    connections: list[dict[str, Any]] = [
        {
            **{name: getattr(c, name) for name in ("id", "label", "source", "target", "kind", "delay", "port")},
            "parameters": sum(sizes.get(name, 0) for name in (c.weight, c.bias) if name),
            **of_connections[c.id],
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
                "outputs": list(p.output_buffers.values()),
                **of_populations[p.id],
            }
            for p in program.populations
        ],
        "connections": connections,
        "outputs": [{"id": o.id, "label": o.label, "source": o.source.buffer, "readout": o.readout} for o in program.outputs],
        "parameters": sum(sizes.values()),
        "loss": program.loss.name if program.loss else None,
        "loss_layer": traffic["loss_layer"],
        "optimizer": program.optimizer.name if program.optimizer else None,
        "assumptions": list(program.assumptions),
    }
