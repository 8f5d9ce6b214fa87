"""Worker cycles of the busiest block of a tile, as a function of the neurons of a population that it holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snnc.compiler.mapping.cost import worker_cycles
from snnc.compiler.mapping.gradient_counts import near_counts
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, column_groups, sample_groups
from snnc.compiler.mapping.network import Layer
from snnc.compiler.mapping.problem import Problem

PARTS: Final = ("forward", "backward", "source_gradient")


def block_cycles(problem: Problem, layer: Layer, neurons: Any, part: str) -> Any:
    """Expected worker cycles of one run of the largest block, the start of its vertex included.

    Parameters
    ----------
    problem, layer
        What is mapped, and the population.
    neurons
        Neurons of the tile, a number or an array.
    part
        One of :data:`PARTS`.
    """
    n = np.asarray(neurons, dtype=np.int64)
    columns = ceil_div(n, np.maximum(column_groups(n, problem.target.workers), 1))
    samples = ceil_div(problem.batch, np.maximum(sample_groups(n, problem.target.workers, problem.batch), 1))
    cost = problem.costs[f"{part}.{layer.id}"]
    if part == "source_gradient":
        counts = _source_counts(problem, layer, columns, samples)
    else:
        counts = _neuron_counts(problem, layer, columns, samples)
        extra = near_counts(problem, layer, columns, samples) if part == "backward" else {}
        counts = {name: counts.get(name, 0) + extra.get(name, 0) for name in {**counts, **extra}}
        if part == "forward":
            counts["nears"] = samples * columns * sum(source in problem.windowed for source in layer.sent)
    return problem.target.vertex_start_cycles + worker_cycles(cost, columns=columns, **counts)


def _neuron_counts(problem: Problem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    dense = [link for link in layer.incoming if link.dense]
    other = [link for link in layer.incoming if not link.dense]
    rows = samples * sum(link.inputs for link in dense if not link.events)
    return {
        "samples": samples,
        "events": samples * sum(problem.window_events(link) for link in dense if link.events),
        "rows": rows,
        "products": rows * ((columns + 1) // 2),
        "neurons": samples * columns,
        "ids": samples * sum(problem.window_events(link) for link in other if link.events),
        "elements": samples * columns * sum(not link.events for link in other),
    }


def _source_counts(problem: Problem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    back = [link for link in layer.outgoing if problem.copies(link)]
    return {
        "samples": samples,
        "rows": samples * columns * sum(link.dense for link in back),
        "products": samples * columns * sum((link.outputs + 1) // 2 for link in back if link.dense),
        "elements": samples * columns * sum(not link.dense for link in back),
    }


def vertices(problem: Problem, neurons: Any) -> Any:
    """Blocks of a tile that holds `neurons` of a population."""
    workers = problem.target.workers
    return column_groups(neurons, workers) * sample_groups(neurons, workers, problem.batch)


def step_cycles(problem: Problem, layer: Layer, neurons: Ints) -> Floats:
    """Worker cycles of one time step, a row for each of :data:`PARTS`: what placement balances."""
    runs = {"forward": True, "backward": layer.gradient, "source_gradient": layer.gradient and bool(problem.deltas_into(layer))}
    found = [block_cycles(problem, layer, neurons, part) + 0.0 * neurons if runs[part] else 0.0 * neurons for part in PARTS]
    return np.array(found, dtype=np.float64)
