"""Worker cycles of the busiest block of a tile, as a function of the neurons of a population that it holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snnc.compiler.mapping.block_memory import FLOAT
from snnc.compiler.mapping.cost import worker_cycles
from snnc.compiler.mapping.cut import Cut
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, column_groups, sample_groups
from snnc.compiler.mapping.indexed_cycles import Holdings, estimated, indexed_counts
from snnc.compiler.mapping.network import Layer, learned_elements
from snnc.compiler.mapping.problem import Problem

PARTS: Final = ("forward", "backward", "source_gradient")


def block_cycles(problem: Problem, layer: Layer, cut: Cut, neurons: Any, samples: Any, part: str, holdings: Holdings | None = None) -> Any:
    """Expected worker cycles of one run of the largest block, the start of its vertex included.

    Parameters
    ----------
    problem, layer
        What is mapped, and the population.
    cut
        How the tile's neurons and samples are cut.
    neurons, samples
        Neurons and samples of the tile, numbers or arrays.
    part
        One of :data:`PARTS`.
    holdings
        What the tables of indexed connections hold there; estimated by default.
    """
    n = np.asarray(neurons, dtype=np.int64)
    columns = ceil_div(n, np.maximum(column_groups(n, cut.columns), 1))
    each = ceil_div(samples, np.maximum(sample_groups(n, cut.columns, problem.target.workers, samples), 1))
    cost = problem.costs[f"{part}.{layer.id}"]
    counts = _source_counts(layer, columns, each) if part == "source_gradient" else _neuron_counts(problem, layer, columns, each)
    for name, number in indexed_counts(
        problem, layer, part, columns, each, holdings or estimated(n, column_groups(n, cut.columns))
    ).items():
        counts[name] = counts.get(name, 0) + number
    return problem.target.vertex_start_cycles + worker_cycles(cost, samples=each, columns=columns, **counts)


def _neuron_counts(problem: Problem, layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    dense = [link for link in layer.incoming if link.dense]
    other = [link for link in layer.incoming if link.one_to_one]
    rows = samples * sum(link.inputs for link in dense if not link.events)
    return {
        "events": samples * sum(problem.window_events(link) for link in dense if link.events),
        "rows": rows,
        "products": rows * ((columns + 1) // 2),
        "neurons": samples * columns,
        "ids": samples * sum(problem.window_events(link) for link in other if link.events),
        "elements": samples * columns * sum(not link.events for link in other),
    }


def _source_counts(layer: Layer, columns: Any, samples: Any) -> dict[str, Any]:
    back = [link for link in layer.outgoing if link.input_gradient]
    return {
        "rows": samples * columns * sum(link.dense for link in back),
        "products": samples * columns * sum((link.outputs + 1) // 2 for link in back if link.dense),
        "elements": samples * columns * sum(link.one_to_one for link in back),
    }


def vertices(problem: Problem, cut: Cut, neurons: Any, samples: Any) -> Any:
    """Blocks of a tile that holds `neurons` of a population for `samples` samples."""
    return column_groups(neurons, cut.columns) * sample_groups(neurons, cut.columns, problem.target.workers, samples)


def step_cycles(problem: Problem, layer: Layer, cut: Cut, neurons: Ints) -> Floats:
    """Tile cycles of one time step, a row for each part of it: what placement balances.

    Rows: forward, backward, source gradients (computing and receiving), and the update's share of a step.
    """
    samples = cut.samples(problem.batch)
    runs = {"forward": True, "backward": layer.gradient, "source_gradient": layer.gradient and bool(problem.deltas_into(layer))}
    received = _received(problem, layer, samples)
    found = [
        problem.target.workers * block_cycles(problem, layer, cut, neurons, samples, part) + received[part] + 0.0 * neurons
        if runs[part]
        else 0.0 * neurons
        for part in PARTS
    ]
    return np.array([*found, _update(problem, layer, cut, neurons)], dtype=np.float64)


def _received(problem: Problem, layer: Layer, samples: int) -> dict[str, float]:
    """Cycles that the exchange before each part takes, fragments not counted."""
    rate = problem.target.exchange_bytes_per_cycle
    windows = sum(samples * bus.window_bytes for bus in problem.buses_into(layer)) / rate
    deltas = sum(samples * FLOAT * problem.by_id[target].neurons for target, _ in problem.whole_deltas_into(layer)) / rate
    return {"forward": windows, "backward": windows, "source_gradient": deltas}


def _update(problem: Problem, layer: Layer, cut: Cut, neurons: Ints) -> Floats:
    """Private gradients are summed, shares travel between replicas; one update serves all steps."""
    learned = sum(learned_elements(layer).values()) if problem.training else 0
    elements = learned * neurons
    shares = sample_groups(neurons, cut.columns, problem.target.workers, cut.samples(problem.batch))
    summed = elements / 2 * (shares - 1 + (cut.replicas - 1) / cut.replicas) * problem.costs["update"].product if learned else 0.0
    moved = 2 * FLOAT * elements * (1 - 1 / cut.replicas) / problem.target.exchange_bytes_per_cycle
    found: Floats = (summed + moved) / problem.schedule.iterations(problem.steps) + 0.0 * neurons
    return found
