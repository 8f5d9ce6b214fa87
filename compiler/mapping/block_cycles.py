"""Worker cycles of the busiest block of a tile, as a function of the neurons of a population that it holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snnc.compiler.mapping.cost import EVENT_SWEEP, VALUE_SWEEP, column_pairs, column_sweeps, sample_sweeps, worker_cycles
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
    counts = (
        _source_counts(problem, layer, columns, samples) if part == "source_gradient" else _neuron_counts(problem, layer, columns, samples)
    )
    return problem.target.vertex_start_cycles + worker_cycles(cost, samples=samples, columns=columns, **counts)


def _neuron_counts(problem: Problem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    dense = [link for link in layer.incoming if link.dense]
    other = [link for link in layer.incoming if not link.dense]
    event_sweeps, value_sweeps = column_sweeps(columns, EVENT_SWEEP), column_sweeps(columns, VALUE_SWEEP)
    values = samples * sum(link.inputs for link in dense if not link.events)
    return {
        "sweeps": samples * sum(event_sweeps if link.events else value_sweeps for link in dense),
        "held": samples * columns * len(dense),
        "events": samples * sum(problem.window_events(link) for link in dense if link.events),
        "rows": values * value_sweeps,
        "products": values * column_pairs(columns),
        "neurons": samples * columns,
        "ids": samples * sum(problem.window_events(link) for link in other if link.events),
        "elements": samples * columns * sum(not link.events for link in other),
    }


def _source_counts(problem: Problem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    back = [link for link in layer.outgoing if link.input_gradient]
    dense = sum(link.dense for link in back)
    outputs = columns * sum(link.outputs for link in back if link.dense)
    aligned = (problem.batch % 2 == 0) & (samples % 2 == 0)
    return {
        "sweeps": columns * sample_sweeps(samples) * dense,
        "held": columns * samples * dense,
        "rows": outputs * sample_sweeps(samples),
        "products": outputs * column_pairs(samples),
        "unaligned": outputs * column_pairs(samples) * (1 - aligned),
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
