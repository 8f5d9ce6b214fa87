"""Lower a graph to the step program of a target."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.capacities import check_names, source_labels
from snnc.compiler.lowering.halves import check_layers
from snnc.compiler.lowering.lower import lower
from snnc.compiler.lowering.spike_limits import spike_sources
from snnc.options.compile_options import CompileOptions


@dataclass(frozen=True, eq=False)
class Lowered:
    """A graph, the same graph as the target's backend prepared it (`ready`), and its step program."""

    graph: Graph
    ready: Graph
    program: StepProgram


def lower_graph(graph: Graph, chosen: CompileOptions) -> Lowered:
    """Prepare `graph` for the target and lower it; raise an error if an option names a source or layer that it lacks."""
    backend, accepted = chosen.backend, chosen.for_backend()
    ready, halves = backend.prepare(graph, accepted), backend.halves(accepted)
    program = lower(
        ready,
        loss=chosen.loss,
        optimizer=chosen.optimizer,
        surrogate=chosen.surrogate,
        gradient_window=chosen.gradient_window,
        steps=chosen.steps,
        loss_output=chosen.loss_output,
        truncate=chosen.truncate,
        limit=backend.limit(accepted),
        half=halves,
        rounding=backend.rounding(accepted),
    )
    labels, kinds = source_labels(program), {name: buffer.kind for name, buffer in program.buffers.items()}
    check_names(chosen.capacity, [labels[buffer] for buffer in spike_sources(program.forward, kinds)])
    check_layers(halves, program)
    return Lowered(graph, ready, program)
